"""Caution: a plan says when actions end, the world decides it.

The gate judges the moments of a plan as it was timed. When it is carried out, actions that overlap
end in any order, and one of them may fail. So before a step starts, each VM that takes part in an
action counts as being where it is *and* where it may soon be, and a continuous hard rule must hold
in every combination. A step that would be a risk waits until less is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.action import LeaveMaintenance, PowerOn
from equipoise.model.draft import Draft
from equipoise.model.lifecycle import passage
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.vm import VmState
from equipoise.plan.objections import Objection


class Caution:
    """Knows the continuous hard rules of each VM."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[VmId, list[Rule]] = {}
        for rule in rules:
            if rule.hard and rule.continuous:
                for vm in rule.vms:
                    self._rules.setdefault(vm, []).append(rule)

    def companions(self, draft: Draft, step: Step) -> tuple[VmId, ...]:
        """The VMs whose moves may make or end a risk for a step."""
        movers = (vm for vm, _ in _brought_to_run(draft, step))
        named = (other for vm in movers for rule in self._rules.get(vm, ()) for other in rule.vms)
        return tuple(dict.fromkeys(named))

    def risks(self, draft: Draft, step: Step) -> Iterator[Objection]:
        """Say which rules the end of a step might break, whatever else ends before it."""
        for vm, host in _brought_to_run(draft, step):
            for rule in self._rules.get(vm, ()):
                for detail in _risks(draft, rule, vm, host):
                    yield Objection(f"rule {rule.id}", detail)


def _brought_to_run(draft: Draft, step: Step) -> Iterator[tuple[VmId, HostId]]:
    """Which VMs will run where once a step has ended: its own, or the agents that a host wakes."""
    way = passage(step.action)
    if way is not None and way.host_after is not None and way.state_after is VmState.RUNNING:
        yield way.vm, way.host_after
    elif isinstance(step.action, PowerOn | LeaveMaintenance):
        host = step.action.host
        yield from ((vm, host) for vm in draft.residents(host) if draft.vms[vm].agent)


def _risks(draft: Draft, rule: Rule, mover: VmId, target: HostId) -> Iterator[str]:
    others = [vm for vm in rule.vms if vm != mover]
    match rule:
        case KeepApart():
            for vm in others:
                if target in places(draft, vm):
                    yield f"{vm} might still be on {target} when {mover} comes"
        case KeepTogether():
            for vm in others:
                elsewhere = (host for host in places(draft, vm) if host != target)
                yield from (f"{vm} might be on {host}, {mover} on {target}" for host in elsewhere)
        case StayWithin() if target not in rule.hosts:
            yield f"{target} is not one of {', '.join(rule.hosts)}"
        case StayOff() if target in rule.hosts:
            yield f"{mover} must not run on {target}"


def places(draft: Draft, name: VmId) -> tuple[HostId, ...]:
    """Where a VM runs now, and where it may run once the actions under way have ended."""
    vm = draft.vms.get(name)
    if vm is None:
        return ()
    found = [vm.host] if vm.state is VmState.RUNNING and vm.host is not None else []
    under_way = draft.running_on(name)
    if vm.agent and vm.host is not None:
        under_way += draft.running_at(vm.host)
    for running in under_way:
        found += (host for one, host in _brought_to_run(draft, running.step) if one == name)
    return tuple(dict.fromkeys(found))
