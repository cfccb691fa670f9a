"""The account of a campaign: what came of each iteration, of each set and of each promise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.model.event import Event
from equipoise.model.quantity import ResourceId, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.event import CampaignStatus, Eliminated
from equipoise.model.upgrade.request import Change, RequestId, SetId
from equipoise.model.upgrade.work import Errand, VmBatch
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.scene import look_at_sides
from equipoise.upgrade.spare import Spare, spare_for
from equipoise.upgrade.state import Standing, State


@dataclass
class VmRound:
    """One sub-iteration: how many VMs were in question, and how many could move."""

    wanted: int
    size: int
    reason: str


@dataclass
class IterationAccount:
    """One iteration."""

    i: int
    began_ms: int
    ended_ms: int = 0
    z: int = 0
    v: int | None = None
    """Nothing if the hosts were not divided, so that step 4 of the thesis did not apply."""
    batch: tuple[str, ...] = ()
    eliminated: tuple[Eliminated, ...] = ()
    vm_batches: list[tuple[VmId, ...]] = field(default_factory=list)
    consolidation: list[tuple[VmId, ...]] = field(default_factory=list)
    rounds: list[VmRound] = field(default_factory=list)
    works: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What was done with each group of the batch, in words."""
    failed: dict[ResourceId, str] = field(default_factory=dict)
    paused: str = ""
    sizes: dict[TenantId, int] = field(default_factory=dict)
    """How many VMs each tenant had in the end."""
    headroom: int | None = None
    """How many more compute hosts could have been spared."""


@dataclass
class Violation:
    """A promise that was not kept."""

    at_ms: int
    tenant: TenantId | None
    what: str


@dataclass
class Account:
    """All of a campaign."""

    status: CampaignStatus = CampaignStatus.RUNNING
    reason: str = ""
    iterations: list[IterationAccount] = field(default_factory=list)
    sets: dict[SetId, tuple[str, str]] = field(default_factory=dict)
    """How each set ended, and why."""
    complements: dict[SetId, list[str]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    outage_ms: dict[TenantId, int] = field(default_factory=dict)
    """How long no VM at all of a tenant answered."""
    isolated: dict[ResourceId, str] = field(default_factory=dict)
    moves: dict[VmId, int] = field(default_factory=dict)
    spare: list[Spare] = field(default_factory=list)
    """What each request needs beyond what is promised, when it was taken up."""
    duration_ms: int = 0
    groups: dict[str, tuple[ResourceId, ...]] = field(default_factory=dict)
    """Of each group of several resources that was looked at: who is in it."""
    matching: dict[SetId, list[ResourceId]] = field(default_factory=dict)
    """Of each set, the resources that were as it wants them from the start."""
    refused_orders: list[tuple[str, str]] = field(default_factory=list)
    """What administrators wanted in vain, and why."""


def account(events: Iterable[Event]) -> Account:
    """Tell a campaign from its journal."""
    keeper = _Keeper()
    for event in events:
        keeper.take_in(event)
    return keeper.made


class _Keeper:
    def __init__(self) -> None:
        self.made = Account()
        self._coordinator = Coordinator()
        self._moving: set[VmId] = set()
        self._asked: list[RequestId] = []

    @property
    def _now(self) -> IterationAccount:
        return self.made.iterations[-1]

    def take_in(self, event: Event) -> None:
        """Note what an event says, with the state it happened in."""
        note = getattr(self, f"_{type(event).__name__}", None)
        before = not isinstance(event, past.IterationBegan)
        if before and note is not None:
            note(event)
        self._coordinator.handle(event)
        if not before and note is not None:
            note(event)
        self.made.duration_ms = max(self.made.duration_ms, event.at_ms)

    @property
    def _state(self) -> State:
        return self._coordinator.state

    def _UpgradeRequested(self, event: past.UpgradeRequested) -> None:  # noqa: N802
        self._asked.append(event.request.id)

    def _IterationBegan(self, event: past.IterationBegan) -> None:  # noqa: N802
        self.made.iterations.append(IterationAccount(event.iteration, event.at_ms))
        first = self._state.taken_up - len(self._asked) + 1
        for order, request in enumerate(self._asked, first):
            self.made.spare.append(spare_for(self._state, request, order))
        self._asked = []
        for standing in self._state.standings.values():
            said = [_complement(one) for one in standing.set.changes if one.complements]
            if said:
                self.made.complements[standing.id] = said
            if standing.id not in self.made.matching:
                self.made.matching[standing.id] = _matching(self._state, standing)

    def _OrderRefused(self, event: past.OrderRefused) -> None:  # noqa: N802
        self.made.refused_orders.append((event.order, event.reason))

    def _BatchDecided(self, event: past.BatchDecided) -> None:  # noqa: N802
        now = self._now
        now.z, now.batch, now.eliminated = event.z, event.batch, event.eliminated
        made = grouping(self._state)
        told = (one for group in event.eliminated for one in group.vertices)
        for one in (*event.batch, *told):
            if len(made.members.get(one, ())) > 1:
                self.made.groups[one] = made.members[one]
        # Those that only return into service take no host out of it.
        out = [one for one in event.batch if any(self._state.parts[each].levels
                                                 for each in made.members[one])]  # fmt: skip
        taken = {host for one in out for host in made.hosts_of.get(one, ())}
        now.headroom = event.z - len(taken)

    def _BatchStarted(self, event: past.BatchStarted) -> None:  # noqa: N802
        groups = grouping(self._state).group_of
        for task in event.batch.tasks:
            if task.errand is Errand.APPLY:
                said = tuple(_words(work.component, work.before, work.after) for work in task.works)
                group = groups[task.resource]
                self._now.works[group] = (*self._now.works.get(group, ()), *said)

    def _VmBatchDecided(self, event: past.VmBatchDecided) -> None:  # noqa: N802
        if look_at_sides(self._state).divided:
            self._now.v = event.v
        self._now.rounds.append(VmRound(event.wanted, event.size, event.reason))

    def _VmBatchStarted(self, event: past.VmBatchStarted) -> None:  # noqa: N802
        moved = tuple(move.vm for move in event.batch.moves)
        self._moving = set(moved)
        (self._now.consolidation if event.why else self._now.vm_batches).append(moved)
        self._disturb(event.batch, event.at_ms)

    def _disturb(self, batch: VmBatch, at_ms: int) -> None:
        """Count who does not answer for a moment, and whether a group loses too many at once."""
        tenants: dict[TenantId, int] = {}
        groups: dict[str, int] = {}
        for move in batch.moves:
            seat = self._state.seats[move.vm]
            if seat.tenant is not None:
                tenants[seat.tenant] = tenants.get(seat.tenant, 0) + 1
            if seat.group is not None:
                groups[seat.group] = groups.get(seat.group, 0) + 1
                if groups[seat.group] > self._state.disturbed_max[seat.group]:
                    what = f"{groups[seat.group]} VMs of group {seat.group} are disturbed at once"
                    self.made.violations.append(Violation(at_ms, seat.tenant, what))
        for tenant, moving in tenants.items():
            if moving == self._state.sizes[tenant]:
                had = self.made.outage_ms.get(tenant, 0)
                self.made.outage_ms[tenant] = had + self._state.settings.vm_outage_ms

    def _VmMoved(self, event: past.VmMoved) -> None:  # noqa: N802
        if event.vm in self._moving:  # an answer may come twice
            self._moving.discard(event.vm)
            self.made.moves[event.vm] = self.made.moves.get(event.vm, 0) + 1

    def _TaskFailed(self, event: past.TaskFailed) -> None:  # noqa: N802
        self._now.failed[event.resource] = f"{event.errand}: {event.reason or 'failed'}"

    def _ScalingAnswered(self, event: past.ScalingAnswered) -> None:  # noqa: N802
        if event.refused:
            what = f"{event.refused} VMs within the SLA found no place"
            self.made.violations.append(Violation(event.at_ms, event.tenant, what))

    def _VmsRestarted(self, event: past.VmsRestarted) -> None:  # noqa: N802
        for vm in event.unplaced:
            seat = self._state.seats.get(vm)
            what = f"VM {vm} of the failed host {event.host} found no place"
            tenant = None if seat is None else seat.tenant
            self.made.violations.append(Violation(event.at_ms, tenant, what))

    def _ResourceIsolated(self, event: past.ResourceIsolated) -> None:  # noqa: N802
        self.made.isolated[event.resource] = event.reason

    def _ResourceReleased(self, event: past.ResourceReleased) -> None:  # noqa: N802
        self.made.isolated.pop(event.resource, None)

    def _SetEnded(self, event: past.SetEnded) -> None:  # noqa: N802
        self.made.sets[event.set] = (event.outcome.value, event.reason)

    def _IterationEnded(self, event: past.IterationEnded) -> None:  # noqa: N802
        self._now.ended_ms, self._now.paused = event.at_ms, event.paused
        self._now.sizes = dict(self._state.sizes)

    def _CampaignEnded(self, event: past.CampaignEnded) -> None:  # noqa: N802
        self.made.status, self.made.reason = event.status, event.reason


def _matching(state: State, standing: Standing) -> list[ResourceId]:
    """The resources of a set on which nothing is to be done for it when it is taken up."""
    if standing.id in state.refused:
        return []
    parts = {one: state.parts[one] for one in standing.resources if one in state.parts}
    return [id_ for id_, part in parts.items() if not part.awaits(standing.id)]


def _complement(change: Change) -> str:
    """A change that nobody asked for, in words."""
    what = " ".join(one for one in (change.component, change.version) if one)
    whom = ", ".join(change.resources)
    return f"{change.does} {what + ' on ' if what else ''}{whom}: {change.complements}"


def _words(component: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"{component} {after} installed"
    return f"{component} {before} removed" if after is None else f"{component} {before} to {after}"
