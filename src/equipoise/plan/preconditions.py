"""What must be true before a step starts: the preconditions of its action, and earlier steps.

The gate checks the preconditions for each planned start; the executor checks them again for each
real start. Planned times are not kept in reality: real actions take longer or shorter. So the
executor keeps the order of related steps instead: steps on one VM, steps around the switching of a
host, and a step that takes the capacity that another step frees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from equipoise.capacity.ledger import CapacityLedger, Shortage, vm_claim
from equipoise.model.action import (
    HOST_TRANSITIONS,
    Action,
    Allocate,
    EnterMaintenance,
    Forge,
    HostAction,
    Kill,
    Migrate,
    PowerOff,
    Reinstantiate,
    Resume,
    RoleAction,
    StartRole,
    StopRole,
    VmAction,
    vm_transition,
)
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import HostId, ProcessorId, StepId, VmId
from equipoise.model.roles.state import LayoutIndex, layout_index
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import RunningAction
from equipoise.model.vm import Vm, VmState


class FailedPrecondition(NamedTuple):
    """One reason why an action may not start."""

    constraint: str
    """The precondition, as reports name it."""
    detail: str
    code: str
    """A key of ``equipoise.errors.CODES``."""

    def violation(self, step: StepId, at_ms: int) -> Violation:
        """Return the reason as a violation of a step."""
        return Violation(
            constraint=self.constraint, at_ms=at_ms, detail=self.detail, step=step, code=self.code
        )


def failed_role_preconditions(draft: Draft, action: RoleAction) -> Iterator[FailedPrecondition]:
    """Return every reason why a role may not start or stop in the current state."""
    processor = action.processor
    if (action.host is None) == (action.vm is None):
        yield FailedPrecondition(
            "form", "a role action names either a host or a VM; give one of them", "invalid-step"
        )
        return
    if not (action.vm in draft.vms if action.host is None else action.host in draft.hosts):
        noun = "host" if action.vm is None else "VM"
        yield FailedPrecondition("known", f"there is no {noun} {processor}", "object-not-found")
        return
    if not draft.is_up(processor):
        yield FailedPrecondition("processor_up", f"{processor} is not up", "processor-down")
    yield from _conflicting_actions(draft, action)
    if isinstance(action, StopRole):
        if action.group_role not in draft.role_state.held.get(processor, ()):
            detail = f"{processor} does not run {action.role}"
            yield FailedPrecondition("role_life", detail, "role-wrong-state")
        return
    if draft.settings.layout is None:
        yield FailedPrecondition("known", "the cluster has no roles", "object-not-found")
        return
    yield from _start_role(draft, action, layout_index(draft.settings.layout))


def _conflicting_actions(draft: Draft, action: RoleAction) -> Iterator[FailedPrecondition]:
    """Yield the actions under way that keep the role action from starting.

    Actions on other roles of the same processor do not conflict.
    """
    for running in _under_way(draft, action.processor):
        other = running.step.action
        if not isinstance(other, RoleAction):
            if running.step.footprint.switched is not None or action.vm is not None:
                detail = (
                    f"{action.processor} takes part in step {running.step.id}, which has not ended"
                )
                yield FailedPrecondition("processor_free", detail, "action-in-progress")
        elif other.role_instance == action.role_instance:
            subject = f"{action.role} on {action.processor}"
            detail = f"{subject} takes part in step {running.step.id}, which has not ended"
            yield FailedPrecondition("one_action", detail, "action-in-progress")


def _start_role(
    draft: Draft, action: StartRole, table: LayoutIndex
) -> Iterator[FailedPrecondition]:
    group = table.groups.get(action.group)
    if group is None or action.role not in table.roles:
        name = f"role {action.role}" if group is not None else f"group {action.group}"
        yield FailedPrecondition("known", f"there is no {name}", "object-not-found")
        return
    processors = table.processors[action.group]
    if action.processor not in processors:
        detail = f"{action.processor} is not a processor of {action.group}"
        yield FailedPrecondition("known", detail, "object-not-found")
    if action.group_role in draft.role_state.held.get(action.processor, ()):
        detail = f"{action.processor} already runs {action.role}"
        yield FailedPrecondition("role_life", detail, "role-wrong-state")
    if action.group_role not in table.single:
        return
    # A role counts as held until its stop has ended. A start under way counts as well: the role may
    # run already, although its end is not known yet.
    for other in processors:
        if other == action.processor:
            continue
        if action.group_role in draft.role_state.held.get(other, ()):
            detail = f"{other} still holds {action.role}"
            yield FailedPrecondition("single_holder", detail, "role-held")
        elif any(
            isinstance(running.step.action, StartRole)
            and running.step.action.group_role == action.group_role
            for running in _under_way(draft, other)
        ):
            detail = f"{action.role} is being started on {other}"
            yield FailedPrecondition("single_holder", detail, "role-held")


def _under_way(draft: Draft, processor: ProcessorId) -> tuple[RunningAction, ...]:
    host = HostId(processor)
    if host in draft.hosts:
        return draft.actions_on_host(host)
    return draft.actions_on_vm(VmId(processor))


def failed_preconditions(ledger: CapacityLedger, action: Action) -> tuple[FailedPrecondition, ...]:
    """Return every reason why an action may not start in the current state."""
    if isinstance(action, HostAction):
        return tuple(_host_action(ledger, action))
    if isinstance(action, RoleAction):
        return tuple(failed_role_preconditions(ledger.draft, action))
    return tuple(_vm_action(ledger, action))


def _host_action(ledger: CapacityLedger, action: HostAction) -> Iterator[FailedPrecondition]:
    draft, name = ledger.draft, action.host
    host = draft.hosts.get(name)
    if host is None:
        yield FailedPrecondition("known", f"there is no host {name}", "object-not-found")
        return
    needed, _ = HOST_TRANSITIONS[type(action)]
    if host.state is not needed:
        yield FailedPrecondition(
            "host_life", f"{name} is {host.state}, not {needed}", "wrong-state"
        )
    # A dict keeps the order of the starts, in which the reasons are reported.
    busy = {running.step.id: None for running in draft.actions_on_host(name)}
    for vm in draft.residents(name):  # an action such as Kill does not name the host of its VM
        busy.update((running.step.id, None) for running in draft.actions_on_vm(vm))
    for step in busy:
        detail = f"{name} takes part in step {step}, which has not ended"
        yield FailedPrecondition("host_life", detail, "action-in-progress")
    if isinstance(action, PowerOff | EnterMaintenance):
        # Agents belong to the host: they stop and start with it.
        guests = [vm for vm in draft.residents(name) if not draft.vms[vm].agent]
        if guests:
            detail = f"{name} still has {_listed(guests)}"
            yield FailedPrecondition("host_empty", detail, "host-not-empty")
        for group_role in draft.role_state.held.get(ProcessorId(name), ()):
            detail = f"{name} still runs {group_role.role} of {group_role.group}"
            yield FailedPrecondition("host_empty", detail, "host-not-empty")


def _vm_action(ledger: CapacityLedger, action: VmAction) -> Iterator[FailedPrecondition]:
    draft = ledger.draft
    vm = draft.vms.get(action.vm)
    if vm is None:
        yield FailedPrecondition("known", f"there is no VM {action.vm}", "object-not-found")
        return
    for running in draft.actions_on_vm(vm.id):
        detail = f"{vm.id} takes part in step {running.step.id}, which has not ended"
        yield FailedPrecondition("one_action", detail, "action-in-progress")
    yield from _vm_lifecycle(vm, action)
    if isinstance(action, Migrate | Reinstantiate | Resume):
        yield from _host_ready(ledger, action.source, "source")
    elif vm.host is not None:
        yield from _being_switched(ledger, vm.host, "source")
    if isinstance(action, Allocate) and vm.host is not None:
        yield from _capacity_for_growth(ledger, vm, action)
    change = vm_transition(action)
    if change is None:
        return
    if change.host_after is not None and change.state_after is VmState.RUNNING:
        yield from _target(ledger, vm, change.host_after)


def _vm_lifecycle(vm: Vm, action: VmAction) -> Iterator[FailedPrecondition]:
    change = vm_transition(action)
    if change is not None and vm.state is not change.state_before:
        detail = f"{vm.id} is {vm.state}, not {change.state_before}"
        yield FailedPrecondition("vm_life", detail, "wrong-state")
    elif change is not None and vm.host != change.host_before:
        detail = f"{vm.id} is on {vm.host}, not on {change.host_before}"
        yield FailedPrecondition("vm_life", detail, "wrong-state")
    match action:
        case Migrate() | Reinstantiate() if action.source == action.target:
            detail = f"{vm.id} is already on {action.target}"
            yield FailedPrecondition("vm_life", detail, "wrong-state")
        case Migrate() | Reinstantiate() | Resume() if vm.agent and action.source != action.target:
            detail = f"{vm.id} is an agent of {vm.host} and never leaves it"
            yield FailedPrecondition("agent_stays", detail, "agent-pinned")
        case Allocate() if vm.state is not VmState.RUNNING:
            detail = f"{vm.id} is {vm.state}, not running"
            yield FailedPrecondition("vm_life", detail, "wrong-state")
        case Kill() if vm.state is VmState.TERMINATED:
            detail = f"{vm.id} is already terminated"
            yield FailedPrecondition("vm_life", detail, "wrong-state")
        case Forge() | Reinstantiate() if vm.template is None:
            detail = f"{vm.id} has no template from which it can be created"
            yield FailedPrecondition("vm_life", detail, "no-template")
        case Reinstantiate() if not vm.replaceable:
            detail = f"{vm.id} is not replaceable, so it cannot be created again"
            yield FailedPrecondition("vm_life", detail, "not-replaceable")


def _host_ready(ledger: CapacityLedger, name: HostId, role: str) -> Iterator[FailedPrecondition]:
    host = ledger.draft.hosts.get(name)
    if host is None:
        yield FailedPrecondition("known", f"there is no host {name}", "object-not-found")
        return
    if host.state is not HostState.ON:
        detail = f"{role} {name} is {host.state}, not on"
        yield FailedPrecondition("host_on", detail, "host-not-on")
    yield from _being_switched(ledger, name, role)


def _being_switched(
    ledger: CapacityLedger, name: HostId, role: str
) -> Iterator[FailedPrecondition]:
    for running in ledger.draft.actions_on_host(name):
        if running.step.footprint.switched == name:
            detail = f"{role} {name} is being switched by step {running.step.id}"
            yield FailedPrecondition("host_on", detail, "host-not-on")


def _target(ledger: CapacityLedger, vm: Vm, name: HostId) -> Iterator[FailedPrecondition]:
    draft = ledger.draft
    yield from _host_ready(ledger, name, "target")
    host = draft.hosts.get(name)
    if host is None:
        return
    # A VM cannot run with more vCPUs than its host has cores, whatever the load.
    if vm.vcpus > host.cores:
        detail = f"{vm.id} has {vm.vcpus} vCPUs, {name} has {host.cores} cores"
        yield FailedPrecondition("fits", detail, "vcpus-exceed-cores")
    if vm.ft_pair is not None and name in ledger.occupied(vm.ft_pair):
        detail = f"{vm.ft_pair}, the fault-tolerant pair of {vm.id}, is on {name}"
        yield FailedPrecondition("ft_pair", detail, "ft-pair-conflict")
    # A VM that already occupies the host needs no more capacity.
    if name not in ledger.occupied(vm.id):
        yield from _capacity(ledger, vm, host)


def _capacity(ledger: CapacityLedger, vm: Vm, host: Host) -> Iterator[FailedPrecondition]:
    # In the ledger a VM that migrates counts on both of its hosts. Only what this VM adds counts: a
    # host that is already too full may still lose VMs.
    for short in ledger.capacity.shortages(vm_claim(vm), host.id):
        yield _lacking(vm, host.id, short, f"{short.need} {short.resource}")


def _capacity_for_growth(
    ledger: CapacityLedger, vm: Vm, action: Allocate
) -> Iterator[FailedPrecondition]:
    assert vm.host is not None
    growth = action.amount - vm.consumption.get(action.resource, 0)
    if growth > 0:
        for short in ledger.capacity.shortages({action.resource: growth}, vm.host):
            yield _lacking(vm, vm.host, short, f"{growth} more {action.resource}")


def _lacking(vm: Vm, host: HostId, short: Shortage, needed: str) -> FailedPrecondition:
    left = f"{max(0, short.free)} of {short.limit} left"
    detail = f"{vm.id} needs {needed} on {host}, which has {left}"
    return FailedPrecondition("capacity", detail, "no-capacity")


def _listed(names: list[VmId]) -> str:
    shown, more = ", ".join(names[:3]), len(names) - 3
    return f"{shown} and {more} more" if more > 0 else shown


def prerequisites(
    steps: Iterable[Step], placement: Mapping[VmId, HostId]
) -> dict[StepId, tuple[StepId, ...]]:
    """Return, for each step, the steps that must succeed before it: the written and implied ones.

    ``placement`` maps each VM to its host when the plan begins.
    """
    # Prerequisites become part of plans, which must not depend on the order of the input.
    steps = sorted(steps, key=lambda step: (step.start_ms, step.end_ms, step.id))
    related = _RelatedSteps(steps, placement)
    waits: dict[StepId, tuple[StepId, ...]] = {}
    for step in steps:
        # Only a step that the plan ends before this one starts is a prerequisite. Related steps
        # that overlap in the plan were judged together, so they may overlap in reality.
        earlier = (other.id for other in related.to(step) if other.end_ms <= step.start_ms)
        waits[step.id] = tuple(dict.fromkeys((*step.after, *earlier)))
    return waits


class _RelatedSteps:
    """An index of the steps by VM and host: it finds related steps without comparing all pairs."""

    def __init__(self, steps: Sequence[Step], placement: Mapping[VmId, HostId]) -> None:
        self._hosts_of_vm: dict[VmId, set[HostId]] = {vm: {host} for vm, host in placement.items()}
        for step in steps:
            seen = step.footprint
            if seen.vm is not None and seen.target is not None:
                self._hosts_of_vm.setdefault(seen.vm, set()).add(seen.target)
        self._on_vm: dict[VmId, list[Step]] = {}
        self._leaving: dict[HostId, list[Step]] = {}
        self._touching: dict[HostId, list[Step]] = {}
        self._switching: dict[HostId, list[Step]] = {}
        for step in steps:
            seen = step.footprint
            if seen.vm is not None:
                self._on_vm.setdefault(seen.vm, []).append(step)
            for host in self._freed(step):
                self._leaving.setdefault(host, []).append(step)
            if seen.switched is not None:
                self._switching.setdefault(seen.switched, []).append(step)
            for host in self._hosts(step):
                self._touching.setdefault(host, []).append(step)

    def _hosts(self, step: Step) -> Iterable[HostId]:
        """Return the hosts that matter to a step; without a named host, all hosts of its VM."""
        seen = step.footprint
        if seen.hosts or seen.vm is None:
            return seen.hosts
        return sorted(self._hosts_of_vm.get(seen.vm, ()))

    def _freed(self, step: Step) -> Iterable[HostId]:
        """Return the hosts on which a step may free capacity."""
        source = step.footprint.source
        if source is not None:
            return (source,)
        return self._hosts(step) if isinstance(step.action, Kill | Allocate) else ()

    def _taken(self, step: Step) -> Iterable[HostId]:
        """Return the hosts on which a step may take capacity."""
        target = step.footprint.target
        if target is not None:
            return (target,)
        return self._hosts(step) if isinstance(step.action, Allocate) else ()

    def to(self, step: Step) -> Iterable[Step]:
        """Yield the steps that a step may have to wait for.

        The step itself is among them; it ends after its own start, so it is never a prerequisite.
        """
        seen = step.footprint
        if seen.vm is not None:
            yield from self._on_vm[seen.vm]
        # Capacity: wait for steps that leave the host.
        for host in self._taken(step):
            yield from self._leaving.get(host, ())
        # Switching: wait for every step that touches the host.
        if seen.switched is not None:
            yield from self._touching[seen.switched]
        for host in self._hosts(step):
            yield from self._switching.get(host, ())
