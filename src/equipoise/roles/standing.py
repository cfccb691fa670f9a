"""How a group stands: who is in service, who is missed and why, and what everybody runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ProcessorId, RoleId, SlotId, TeamId, VmId
from equipoise.model.roles.duty import Duty, LayoutTable, Mark, Post
from equipoise.model.roles.layout import Choose, Role, Team
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState


@dataclass(slots=True, kw_only=True)
class Standing:
    """A group at one moment, with all that is decided by."""

    team: Team
    roles: Mapping[RoleId, Role]
    now_ms: int
    present: dict[ProcessorId, None] = field(default_factory=dict)
    """Those in service, in the order of the group."""
    doubtful: set[ProcessorId] = field(default_factory=set)
    """Those of them that are suspected: they keep what they have and get nothing new."""
    missed: dict[ProcessorId, str] = field(default_factory=dict)
    """Those not in service, and why."""
    leaving: set[ProcessorId] = field(default_factory=set)
    """Those of the missed that could still do something: stop what they run."""
    kept_until: dict[ProcessorId, int] = field(default_factory=dict)
    """How long the slot of somebody who is missed is kept."""
    members: Mapping[SlotId, ProcessorId] = field(default_factory=dict)
    """Who has which slot, as was decided before."""
    held: dict[ProcessorId, tuple[RoleId, ...]] = field(default_factory=dict)
    starting: Collection[tuple[RoleId, ProcessorId]] = ()
    """What is being started: as good as running, or the next look would choose anew."""
    busy: Collection[ProcessorId] = ()
    """Those with which something else is being done, such as a migration."""
    taken: Collection[ProcessorId] = ()
    """Those that fill a slot of another group."""
    unsettled: set[ProcessorId] = field(default_factory=set)
    """Those on probation."""
    isolated: set[tuple[RoleId, ProcessorId]] = field(default_factory=set)
    """What is not tried again, because it failed too often."""
    retry_ms: dict[tuple[RoleId, ProcessorId], int] = field(default_factory=dict)
    """When what failed is tried again."""
    load_pct: Mapping[ProcessorId, float] = field(default_factory=dict)
    labels: dict[ProcessorId, Mapping[str, str]] = field(default_factory=dict)
    named: Sequence[RoleId] = ()
    """The roles that the layout names."""
    needs: dict[SlotId, Mapping[str, str]] = field(default_factory=dict)
    """What some slots need."""
    pins: Mapping[RoleId, SlotId] = field(default_factory=dict)
    dues_ms: list[int] = field(default_factory=list)
    """When something changes by itself: the times that are still to come."""

    def eligible(self, processor: ProcessorId, slot: SlotId) -> bool:
        """Whether a processor has what a slot needs."""
        needs = self.needs.get(slot)
        if not needs:
            return True
        labels = self.labels.get(processor, {})
        return all(labels.get(key) == value for key, value in needs.items())

    def runs(self, role: RoleId, processor: ProcessorId) -> bool:
        """Whether a processor runs a role of this group, or is about to."""
        return role in self.held.get(processor, ()) or (role, processor) in self.starting

    def due(self, at_ms: int) -> bool:
        """Whether a time has come; if not, it will be asked again then."""
        if at_ms <= self.now_ms:
            return True
        self.dues_ms.append(at_ms)
        return False


class Around(NamedTuple):
    """What a group's standing depends on besides the facts about it."""

    members: Mapping[SlotId, ProcessorId] | None = None
    """Who has which slot, if that is known better than by the facts."""
    taken: Collection[ProcessorId] = ()
    starting: Collection[tuple[RoleId, ProcessorId]] = ()
    busy: Collection[ProcessorId] = ()
    leaving: Collection[ProcessorId] = ()
    """Those that are seen as if they were locked."""


def standing_of(snapshot: Snapshot, table: LayoutTable, group: TeamId, around: Around) -> Standing:
    """See how a group stands."""
    team, duties = table.teams[group], snapshot.duties
    at = Standing(
        team=team,
        roles=table.roles,
        now_ms=snapshot.at_ms,
        members=duties.slots.get(group, {}) if around.members is None else around.members,
        taken=around.taken,
        starting=around.starting,
        busy=around.busy,
        named=table.named[group],
        needs={slot.id: slot.needs for slot in team.slots if slot.needs},
    )
    for processor in table.processors[group]:
        mark = duties.mark(processor)
        _see(at, snapshot, processor, mark, processor in around.leaving)
        held = duties.held.get(processor, ())
        mine = tuple(duty.role for duty in held if duty.group == group)
        if mine:
            at.held[processor] = mine
    if duties.failures:
        _see_failures(at, snapshot)
    if duties.pins:
        found = ((role, duties.pins.get(Duty(group, role))) for role in table.roles)
        at.pins = {role: slot for role, slot in found if slot is not None}
    if any(one.choose is Choose.LEAST_LOADED for one in team.preferences):
        at.load_pct = {one: measured_pct(snapshot, one) for one in at.present}
    return at


def _see(
    at: Standing, snapshot: Snapshot, processor: ProcessorId, mark: Mark, leaving: bool
) -> None:
    """Find out whether a processor is in service."""
    team = at.team
    host, vm = snapshot.hosts.get(HostId(processor)), snapshot.vms.get(VmId(processor))
    if host is not None:
        up, state, at.labels[processor] = host.state is HostState.ON, str(host.state), host.labels
    elif vm is not None:
        up, state, at.labels[processor] = vm.state is VmState.RUNNING, str(vm.state), vm.labels
    else:
        up, state = False, "gone"
    if not up:
        at.missed[processor] = f"{processor} is {state}"
        kept_ms = mark.since_ms + 1000 * team.grace_s
        if not at.due(kept_ms):
            at.kept_until[processor] = kept_ms
    elif leaving or mark.locked is not None:
        why = f": {mark.locked}" if mark.locked else ""
        at.missed[processor] = f"{processor} is to leave" if leaving else f"{processor} locked{why}"
        at.leaving.add(processor)
    elif host is not None and host.requested is not None:
        at.missed[processor] = f"{processor} is to go into {host.requested}"
        at.leaving.add(processor)
    elif mark.suspected_ms is not None and at.due(mark.suspected_ms + 1000 * team.suspect_s):
        at.missed[processor] = f"{processor} is suspected for more than {team.suspect_s} s"
        at.leaving.add(processor)
    else:
        at.present[processor] = None
        if mark.suspected_ms is not None:
            at.doubtful.add(processor)
        if team.probation_s and not at.due(mark.since_ms + 1000 * team.probation_s):
            at.unsettled.add(processor)


def _see_failures(at: Standing, snapshot: Snapshot) -> None:
    team, failures = at.team, snapshot.duties.failures
    for processor in team.processors:
        for role in at.roles:
            failure = failures.get(Post(team.id, role, processor))
            if failure is None:
                continue
            out = failure.times >= team.attempts_max
            again_ms = failure.at_ms + 1000 * (team.isolation_s if out else team.retry_s)
            if not at.due(again_ms):
                at.retry_ms[role, processor] = again_ms
                if out:
                    at.isolated.add((role, processor))


def measured_pct(snapshot: Snapshot, processor: ProcessorId) -> float:
    """What is asked of a processor, in percent of what it has."""
    host = snapshot.hosts.get(HostId(processor))
    if host is not None:
        asked = sum(snapshot.vms[vm].demand.cpu_mhz for vm in snapshot.residents[host.id])
        return 100 * asked / max(1, host.usable_cpu_mhz)
    vm = snapshot.vms[VmId(processor)]
    below = None if vm.host is None else snapshot.hosts.get(vm.host)
    return 0.0 if below is None else 100 * vm.demand.cpu_mhz / (vm.vcpus * below.mhz_per_core)
