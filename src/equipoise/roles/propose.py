"""The decider: heeds events, looks at the groups they touch, and proposes what may begin now.

All it keeps between two questions can be found again in the journal: which groups to look at, and
which steps of accepted plans have not begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush

from equipoise.model.action import RoleAction, StartRole, StopRole
from equipoise.model.change.draft import Touched
from equipoise.model.event import (
    ActionSkipped,
    ActionStarted,
    ClusterLoaded,
    DemandObserved,
    Event,
    LayoutChanged,
    PlanAccepted,
    PlanRefused,
    RoleMoveAsked,
    SettingsChanged,
    SlotsFilled,
)
from equipoise.model.plan import Filling, Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, ProcessorId, SlotId, StepId, TeamId, VmId
from equipoise.model.roles.duty import Duty, LayoutTable, table_of
from equipoise.model.roles.layout import Choose
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.roles.decide import Decision, decide
from equipoise.roles.step import Act, Pair

AGAIN_MS = 1000
"""So long after a refusal a group is looked at again."""


def for_scenario(_scenario: Scenario) -> Roles:
    """The decider for a simulated run."""
    return Roles()


class Roles:
    """Wants every role held by whom the layout says, with as little movement as possible."""

    def __init__(self) -> None:
        self._table: LayoutTable | None = None
        self._all = True
        self._dirty: dict[TeamId, None] = {}
        self._due: list[tuple[int, TeamId]] = []
        self._timer: dict[TeamId, int] = {}
        """The time that each group is looked at again, as far as it has asked for one."""
        self._pending: dict[StepId, RoleAction] = {}

    def heed(self, event: Event, touched: Touched) -> None:
        """Note which groups an event has to do with."""
        match event:
            case ClusterLoaded() | SettingsChanged() | LayoutChanged():
                self._all = True
            case PlanAccepted():
                self._pending |= {
                    step.id: step.action
                    for step in event.plan.steps
                    if isinstance(step.action, RoleAction)
                }
            case ActionStarted():
                self._pending.pop(event.step.id, None)
                return  # it was decided knowing that it would be so
            case SlotsFilled():
                return  # the same
            case ActionSkipped():
                self._put_off([self._pending.pop(event.step, None)], event.at_ms)
            case PlanRefused():
                self._put_off((step.action for step in event.plan.steps), event.at_ms)
            case DemandObserved() if self._table is not None:
                self._dirty |= dict.fromkeys(_loaded(self._table))
            case RoleMoveAsked():
                self._dirty[event.group] = None
        self._note(touched)

    def _note(self, touched: Touched) -> None:
        if self._table is not None:
            teams_of = self._table.teams_of
            for name in (*touched.hosts, *touched.vms):
                for group in teams_of.get(ProcessorId(name), ()):
                    self._dirty[group] = None

    def due_ms(self) -> int | None:
        """When a group should be looked at."""
        if self._all or self._dirty:
            return 0
        return self._due[0][0] if self._due else None

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Say what to start and stop now, and why; and what waits."""
        layout = snapshot.settings.layout
        if layout is None:
            self._table, self._all, self._dirty, self._due = None, False, {}, []
            return Proposal(decider="roles", purpose=Purpose.REPAIR, reason="there are no roles")
        left_over: list[tuple[TeamId, Act]] = []
        table = table_of(layout)
        if self._all or self._table is not table:
            self._table, self._all, self._due, self._timer = table, False, [], {}
            self._dirty = dict.fromkeys(table.teams)
            left_over += orphans(snapshot, table)
        decided, fillings = self._decide(snapshot, table)
        acts = left_over + [(k, act) for k, one in decided.items() for act in one.steps.acts]
        waits = [wait for one in decided.values() for wait in one.steps.waits]
        return Proposal(
            decider="roles",
            purpose=Purpose.REPAIR,
            intents=tuple(_intents(acts, snapshot, table)),
            reason=f"{len(acts)} to start or stop, {len(fillings)} groups filled anew",
            rejected=tuple(waits),
            fillings=fillings,
        )

    def _decide(
        self, snapshot: Snapshot, table: LayoutTable
    ) -> tuple[dict[TeamId, Decision], tuple[Filling, ...]]:
        """Decide about every group that something has to do with."""
        under_way, busy = self._under_way(snapshot), _busy(snapshot)
        slots: dict[TeamId, Mapping[SlotId, ProcessorId]] = dict(snapshot.duties.slots)
        decided: dict[TeamId, Decision] = {}
        fillings: dict[TeamId, Filling] = {}
        while groups := self._next_groups(snapshot.at_ms, table):
            for group in groups:
                found = decide(snapshot, table, group, under_way.get(group, {}), slots, busy)
                decided[group] = found
                if found.filling is not None:
                    self._free(table, group, slots.get(group, {}), found.filling)
                    slots[group] = found.filling.slots
                    fillings[group] = found.filling
                if found.due_ms is not None and self._timer.get(group) != found.due_ms:
                    self._timer[group] = found.due_ms
                    heappush(self._due, (found.due_ms, group))
        return decided, tuple(fillings.values())

    def _next_groups(self, now_ms: int, table: LayoutTable) -> list[TeamId]:
        """The groups to look at, those first that choose first."""
        while self._due and self._due[0][0] <= now_ms:
            due_ms, group = heappop(self._due)
            self._dirty[group] = None
            if self._timer.get(group) == due_ms:
                del self._timer[group]
        found = [group for group in self._dirty if group in table.teams]
        self._dirty = {}
        return sorted(found, key=lambda one: (table.teams[one].priority, table.place[one]))

    def _free(
        self,
        table: LayoutTable,
        group: TeamId,
        before: Mapping[SlotId, ProcessorId],
        filling: Filling,
    ) -> None:
        """Who is no longer needed here may be needed elsewhere."""
        for processor in before.values():
            if processor not in filling.slots.values():
                others = table.teams_of.get(processor, ())
                self._dirty |= dict.fromkeys(one for one in others if one != group)

    def _put_off(self, actions: Iterable[object], at_ms: int) -> None:
        for action in actions:
            if isinstance(action, RoleAction):
                heappush(self._due, (at_ms + AGAIN_MS, action.group))

    def _under_way(self, snapshot: Snapshot) -> dict[TeamId, dict[Pair, bool]]:
        """What is being started, or else stopped, or about to be."""
        found: dict[TeamId, dict[Pair, bool]] = {}
        running = (one.step.action for one in snapshot.in_flight.values())
        for action in (*running, *self._pending.values()):
            if isinstance(action, RoleAction):
                mine = found.setdefault(action.group, {})
                mine[action.role, action.processor] = isinstance(action, StartRole)
        return found


def _busy(snapshot: Snapshot) -> set[ProcessorId]:
    """Hosts that are being switched, and VMs with which something else is being done."""
    found: set[ProcessorId] = set()
    for running in snapshot.in_flight.values():
        seen = running.step.footprint
        name = seen.switched or seen.vm
        if name is not None and not isinstance(running.step.action, RoleAction):
            found.add(ProcessorId(name))
    return found


def orphans(snapshot: Snapshot, table: LayoutTable) -> Iterator[tuple[TeamId, Act]]:
    """What runs though no group has anything to say about it any more."""
    for processor, held in snapshot.duties.held.items():
        for duty in held:
            team = table.teams.get(duty.group)
            if team is None or processor not in team.processors or duty.role not in table.roles:
                why = "it is not in the layout any more"
                yield duty.group, Act(False, duty.role, processor, why)


def _loaded(table: LayoutTable) -> Iterator[TeamId]:
    """The groups in which load matters."""
    for group, team in table.teams.items():
        if any(one.choose is Choose.LEAST_LOADED for one in team.preferences):
            yield group


def _intents(
    acts: Iterable[tuple[TeamId, Act]], snapshot: Snapshot, table: LayoutTable
) -> Iterator[Intent]:
    busy: set[Duty] = set()
    for number, (group, act) in enumerate(acts, start=1):
        role = table.roles.get(act.role)
        is_host = HostId(act.processor) in snapshot.hosts
        kind = StartRole if act.is_start else StopRole
        action = kind(
            group=group,
            role=act.role,
            host=HostId(act.processor) if is_host else None,
            vm=None if is_host else VmId(act.processor),
            epoch=snapshot.duties.epoch,
        )
        if act.is_start and action.duty in table.single:
            assert action.duty not in busy, "a single role is started once at a time"
            busy.add(action.duty)
        duration_ms = 1000 if role is None else role.start_ms if act.is_start else role.stop_ms
        verb = "start" if act.is_start else "stop"
        name = StepId(f"{number}-{verb}-{act.role[:40]}-{act.processor[:40]}")
        yield Intent(id=name, action=action, duration_ms=duration_ms, reason=act.reason)
