"""Why a role may not be started or stopped now; above all, because somebody else still holds it."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.action import RoleAction, StartRole, StopRole
from equipoise.model.change.draft import Draft
from equipoise.model.quantity import HostId, ProcessorId, VmId
from equipoise.model.roles.duty import LayoutTable, table_of
from equipoise.model.snapshot import Running
from equipoise.plan.objection import Objection


def role_objections(draft: Draft, action: RoleAction) -> Iterator[Objection]:
    """List everything that speaks against starting or stopping a role in the present state."""
    processor = action.processor
    if (action.host is None) == (action.vm is None):
        yield Objection("form", "a role runs on a host or in a VM: one of the two is given")
        return
    if not (action.vm in draft.vms if action.host is None else action.host in draft.hosts):
        noun = "host" if action.vm is None else "VM"
        yield Objection("known", f"there is no {noun} {processor}")
        return
    if not draft.is_up(processor):
        yield Objection("processor_up", f"{processor} is not up")
    yield from _in_the_way(draft, action)
    if isinstance(action, StopRole):
        if action.duty not in draft.duties.held.get(processor, ()):
            yield Objection("role_life", f"{processor} does not run {action.role}")
        return
    if draft.settings.layout is None:
        yield Objection("known", "the cluster has no roles")
        return
    yield from _start(draft, action, table_of(draft.settings.layout))


def _in_the_way(draft: Draft, action: RoleAction) -> Iterator[Objection]:
    """What else is being done with the processor, other than with other roles."""
    for running in _under_way(draft, action.processor):
        other = running.step.action
        if not isinstance(other, RoleAction):
            if running.step.footprint.switched is not None or action.vm is not None:
                detail = f"{action.processor} is still part of step {running.step.id}"
                yield Objection("processor_free", detail)
        elif other.post == action.post:
            detail = f"{action.role} on {action.processor} is still part of step {running.step.id}"
            yield Objection("one_action", detail)


def _start(draft: Draft, action: StartRole, table: LayoutTable) -> Iterator[Objection]:
    team = table.teams.get(action.group)
    if team is None or action.role not in table.roles:
        name = f"role {action.role}" if team is not None else f"group {action.group}"
        yield Objection("known", f"there is no {name}")
        return
    processors = table.processors[action.group]
    if action.processor not in processors:
        yield Objection("known", f"{action.processor} is not one of {action.group}")
    if action.duty in draft.duties.held.get(action.processor, ()):
        yield Objection("role_life", f"{action.processor} already runs {action.role}")
    if action.duty not in table.single:
        return
    for other in processors:
        if other == action.processor:
            continue
        if action.duty in draft.duties.held.get(other, ()):
            yield Objection("single_holder", f"{other} still holds {action.role}")
        elif any(
            isinstance(running.step.action, StartRole) and running.step.action.duty == action.duty
            for running in _under_way(draft, other)
        ):
            yield Objection("single_holder", f"{action.role} is being started on {other}")


def _under_way(draft: Draft, processor: ProcessorId) -> tuple[Running, ...]:
    host = HostId(processor)
    if host in draft.hosts:
        return draft.running_at(host)
    return draft.running_on(VmId(processor))
