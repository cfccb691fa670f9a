"""The status of a role group: processors in service, processors out of service and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId, RoleId, SlotId, VmId
from equipoise.model.roles.layout import Role, RoleGroup, SlotChoice
from equipoise.model.roles.state import GroupRole, LayoutIndex, ProcessorStatus, RoleInstance
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState


@dataclass(slots=True, kw_only=True)
class GroupStatus:
    """A group at one moment, with all inputs of the decision."""

    team: RoleGroup
    roles: Mapping[RoleId, Role]
    now_ms: int
    present: dict[ProcessorId, None] = field(default_factory=dict)
    """Processors in service, in the order of the group."""
    suspected: set[ProcessorId] = field(default_factory=set)
    """Suspected processors in service. They keep their roles and get no new ones."""
    out_of_service: dict[ProcessorId, str] = field(default_factory=dict)
    """Processors out of service, with the reason."""
    leaving: set[ProcessorId] = field(default_factory=set)
    """Processors out of service that can still stop their roles."""
    slot_kept_until_ms: dict[ProcessorId, int] = field(default_factory=dict)
    """Until when the slot of a processor out of service is kept."""
    members: Mapping[SlotId, ProcessorId] = field(default_factory=dict)
    """The processor of each slot, as decided before."""
    held: dict[ProcessorId, tuple[RoleId, ...]] = field(default_factory=dict)
    """The roles that each processor runs."""
    starting: Collection[tuple[RoleId, ProcessorId]] = ()
    """Roles that are starting. They count as running: otherwise the next decision could differ."""
    busy: Collection[ProcessorId] = ()
    """Processors on which another action runs, such as a migration."""
    taken: Collection[ProcessorId] = ()
    """Processors that fill a slot of another group."""
    on_probation: set[ProcessorId] = field(default_factory=set)
    """Processors on probation."""
    isolated: set[tuple[RoleId, ProcessorId]] = field(default_factory=set)
    """Pairs that failed too often and are not tried again."""
    retry_ms: dict[tuple[RoleId, ProcessorId], int] = field(default_factory=dict)
    """When a failed pair is tried again."""
    load_pct: Mapping[ProcessorId, float] = field(default_factory=dict)
    labels: dict[ProcessorId, Mapping[str, str]] = field(default_factory=dict)
    named: Sequence[RoleId] = ()
    """The roles that the layout names."""
    needs: dict[SlotId, Mapping[str, str]] = field(default_factory=dict)
    """The labels that slots need."""
    pins: Mapping[RoleId, SlotId] = field(default_factory=dict)
    timers_ms: list[int] = field(default_factory=list)
    """Future times at which the status changes without an event."""

    def eligible(self, processor: ProcessorId, slot: SlotId) -> bool:
        """Return whether a processor has the labels that a slot needs."""
        needs = self.needs.get(slot)
        if not needs:
            return True
        labels = self.labels.get(processor, {})
        return all(labels.get(key) == value for key, value in needs.items())

    def runs(self, role: RoleId, processor: ProcessorId) -> bool:
        """Return whether a processor runs or starts a role of this group."""
        return role in self.held.get(processor, ()) or (role, processor) in self.starting

    def due(self, at_ms: int) -> bool:
        """Return whether a time has come; if not, set a timer."""
        if at_ms <= self.now_ms:
            return True
        self.timers_ms.append(at_ms)
        return False


class GroupContext(NamedTuple):
    """Inputs of the status of a group beside the snapshot."""

    members: Mapping[SlotId, ProcessorId] | None = None
    """The processor of each slot, if newer than the snapshot."""
    taken: Collection[ProcessorId] = ()
    starting: Collection[tuple[RoleId, ProcessorId]] = ()
    busy: Collection[ProcessorId] = ()
    leaving: Collection[ProcessorId] = ()
    """Processors that count as locked."""


def assess_group(
    snapshot: Snapshot, table: LayoutIndex, group: RoleGroupId, context: GroupContext
) -> GroupStatus:
    """Return the status of a group."""
    team, role_state = table.groups[group], snapshot.role_state
    group_status = GroupStatus(
        team=team,
        roles=table.roles,
        now_ms=snapshot.at_ms,
        members=role_state.slots.get(group, {}) if context.members is None else context.members,
        taken=context.taken,
        starting=context.starting,
        busy=context.busy,
        named=table.named[group],
        needs={slot.id: slot.needs for slot in team.slots if slot.needs},
    )
    for processor in table.processors[group]:
        status = role_state.status(processor)
        _assess_processor(group_status, snapshot, processor, status, processor in context.leaving)
        held = role_state.held.get(processor, ())
        roles_here = tuple(group_role.role for group_role in held if group_role.group == group)
        if roles_here:
            group_status.held[processor] = roles_here
    if role_state.failures:
        _assess_failures(group_status, snapshot)
    if role_state.pins:
        found = ((role, role_state.pins.get(GroupRole(group, role))) for role in table.roles)
        group_status.pins = {role: slot for role, slot in found if slot is not None}
    # Load changes with every observation, so only groups that use it compute it.
    if any(preference.choose is SlotChoice.LEAST_LOADED for preference in team.preferences):
        group_status.load_pct = {
            processor: cpu_load_pct(snapshot, processor) for processor in group_status.present
        }
    return group_status


def _assess_processor(
    group_status: GroupStatus,
    snapshot: Snapshot,
    processor: ProcessorId,
    status: ProcessorStatus,
    leaving: bool,
) -> None:
    """Determine whether a processor is in service, and why not."""
    team = group_status.team
    host, vm = snapshot.hosts.get(HostId(processor)), snapshot.vms.get(VmId(processor))
    if host is not None:
        up, state, group_status.labels[processor] = (
            host.state is HostState.ON,
            str(host.state),
            host.labels,
        )
    elif vm is not None:
        up, state, group_status.labels[processor] = (
            vm.state is VmState.RUNNING,
            str(vm.state),
            vm.labels,
        )
    else:
        up, state = False, "gone"
    if not up:
        group_status.out_of_service[processor] = f"{processor} is {state}"
        # During grace the slot stays reserved for the processor.
        kept_ms = status.since_ms + 1000 * team.grace_s
        if not group_status.due(kept_ms):
            group_status.slot_kept_until_ms[processor] = kept_ms
    # The order of the cases is the order of certainty: down, then what the operator says, then a
    # suspicion.
    elif leaving or status.locked is not None:
        why = f": {status.locked}" if status.locked else ""
        group_status.out_of_service[processor] = (
            f"{processor} is being removed" if leaving else f"{processor} is locked{why}"
        )
        group_status.leaving.add(processor)
    elif host is not None and host.requested is not None:
        group_status.out_of_service[processor] = f"{processor} goes into {host.requested}"
        group_status.leaving.add(processor)
    elif status.suspected_ms is not None and group_status.due(
        status.suspected_ms + 1000 * team.suspect_s
    ):
        group_status.out_of_service[processor] = (
            f"{processor} has been suspected for more than {team.suspect_s} s"
        )
        group_status.leaving.add(processor)
    else:
        group_status.present[processor] = None
        if status.suspected_ms is not None:
            group_status.suspected.add(processor)
        if team.probation_s and not group_status.due(status.since_ms + 1000 * team.probation_s):
            group_status.on_probation.add(processor)


def _assess_failures(group_status: GroupStatus, snapshot: Snapshot) -> None:
    team, failures = group_status.team, snapshot.role_state.failures
    for processor in team.processors:
        for role in group_status.roles:
            failure = failures.get(RoleInstance(team.id, role, processor))
            if failure is None:
                continue
            out = failure.times >= team.attempts_max
            # Isolation ends too: a processor that was repaired meanwhile gets another chance.
            again_ms = failure.at_ms + 1000 * (team.isolation_s if out else team.retry_s)
            if not group_status.due(again_ms):
                group_status.retry_ms[role, processor] = again_ms
                if out:
                    group_status.isolated.add((role, processor))


def cpu_load_pct(snapshot: Snapshot, processor: ProcessorId) -> float:
    """Return the CPU demand of a processor in percent of its capacity."""
    host = snapshot.hosts.get(HostId(processor))
    if host is not None:
        demand_mhz = sum(snapshot.vms[vm].demand.cpu_mhz for vm in snapshot.residents[host.id])
        return 100 * demand_mhz / max(1, host.usable_cpu_mhz)
    vm = snapshot.vms[VmId(processor)]
    below = None if vm.host is None else snapshot.hosts.get(vm.host)
    return 0.0 if below is None else 100 * vm.demand.cpu_mhz / (vm.vcpus * below.mhz_per_core)
