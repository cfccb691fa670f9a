"""The role decider: receives events and proposes the role steps that may begin now.

The decision about one group is a pure function of a snapshot. All that the decider keeps between
two calls follows from the journal: which groups to look at, and which steps of accepted plans have
not begun.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from equipoise.model.action import RoleAction, StartRole, StopRole
from equipoise.model.event import (
    ActionSkipped,
    ActionStarted,
    ClusterLoaded,
    DemandObserved,
    Event,
    LayoutChanged,
    PlanAccepted,
    PlanRefused,
    RoleMoveRequested,
    SettingsChanged,
    SlotsFilled,
)
from equipoise.model.plan import Intent, Proposal, Purpose, SlotAssignment
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId, SlotId, StepId, VmId
from equipoise.model.roles.layout import SlotChoice
from equipoise.model.roles.state import GroupRole, LayoutIndex, layout_index
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.roles.assess import GroupContext, GroupStatus, assess_group
from equipoise.roles.assignment import RoleTarget, best_assignment
from equipoise.roles.slot_filling import candidate_fillings, with_previous_owners
from equipoise.roles.steps import RolePlace, RoleStep, RoleSteps, role_steps


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The decision about a group, and the time of the next look."""

    group_status: GroupStatus
    target: RoleTarget
    filling: SlotAssignment | None
    """The new processor of each slot, if that changes."""
    steps: RoleSteps
    due_ms: int | None
    """When the status changes without an event."""


def decide_group(
    snapshot: Snapshot,
    table: LayoutIndex,
    group: RoleGroupId,
    under_way: Mapping[RolePlace, bool],
    slots: Mapping[RoleGroupId, Mapping[SlotId, ProcessorId]],
    busy: Collection[ProcessorId] = (),
) -> GroupDecision:
    """Decide about a group; ``slots`` has the processors of the slots of all groups."""
    taken = used_by_other_groups(table, group, slots)
    starting = {pair for pair, is_start in under_way.items() if is_start}
    members = slots.get(group, {})
    group_status = assess_group(
        snapshot, table, group, GroupContext(members, taken, starting, busy)
    )
    target = best_role_target(group_status)
    after = with_previous_owners(group_status, target.slots)
    filling = None
    if after != dict(group_status.members):
        filling = SlotAssignment(
            group=group, slots=after, reason=_filling_reason(group_status, after)
        )
    steps = role_steps(group_status, target, under_way, table.single_roles[group])
    return GroupDecision(
        group_status, target, filling, steps, min(group_status.timers_ms, default=None)
    )


def best_role_target(group_status: GroupStatus) -> RoleTarget:
    """Return the best assignment of all candidate fillings."""
    best: RoleTarget | None = None
    for filled in candidate_fillings(group_status):
        target = best_assignment(group_status, filled)
        # Fillings come in the order of preference, so the first of equal ones is kept.
        if best is None or target.cost < best.cost:
            best = target
    assert best is not None, "there is always a candidate filling"
    return best


def used_by_other_groups(
    table: LayoutIndex,
    group: RoleGroupId,
    slots: Mapping[RoleGroupId, Mapping[SlotId, ProcessorId]],
) -> Collection[ProcessorId]:
    """Return the processors of a group that fill a slot of another group."""
    return {
        processor
        for processor in table.processors[group]
        for other in table.groups_of[processor]
        if other != group and processor in slots.get(other, {}).values()
    }


def _filling_reason(group_status: GroupStatus, after: Mapping[SlotId, ProcessorId]) -> str:
    texts = []
    for slot, processor in after.items():
        before = group_status.members.get(slot)
        if before == processor:
            continue
        from_slot = next((s for s, p in group_status.members.items() if p == processor), None)
        text = f"{processor} fills {slot}" if from_slot is None else f"{processor} moves to {slot}"
        if before is not None:
            text += f" instead of {before}"
            text += (
                f" ({group_status.out_of_service[before]})"
                if before in group_status.out_of_service
                else ""
            )
        texts.append(text)
    emptied = [slot for slot in group_status.members if slot not in after]
    texts += [f"{slot} is empty" for slot in emptied]
    return "; ".join(texts)


RETRY_AFTER_REFUSAL_MS = 1000
"""The delay after a refusal before a group is decided again."""


def for_scenario(_scenario: Scenario) -> RoleDecider:
    """Return the decider for a simulated run."""
    return RoleDecider()


class RoleDecider:
    """The decider of roles: every role has the holders of its layout, with the fewest moves."""

    def __init__(self) -> None:
        self._table: LayoutIndex | None = None
        self._all_groups = True
        self._dirty: dict[RoleGroupId, None] = {}
        self._due: list[tuple[int, RoleGroupId]] = []
        self._timer: dict[RoleGroupId, int] = {}
        """The timer of each group."""
        self._pending: dict[StepId, RoleAction] = {}

    def on_event(self, event: Event, touched: TouchedEntities) -> None:
        """Record which groups an event affects."""
        match event:
            case ClusterLoaded() | SettingsChanged() | LayoutChanged():
                self._all_groups = True
            case PlanAccepted():
                self._pending |= {
                    step.id: step.action
                    for step in event.plan.steps
                    if isinstance(step.action, RoleAction)
                }
            case ActionStarted():
                self._pending.pop(event.step.id, None)
                return  # the decision took it into account
            case SlotsFilled():
                return  # the decision took it into account
            case ActionSkipped():
                self._put_off([self._pending.pop(event.step, None)], event.at_ms)
            case PlanRefused():
                self._put_off((step.action for step in event.plan.steps), event.at_ms)
            case DemandObserved() if self._table is not None:
                self._dirty |= dict.fromkeys(_load_dependent_groups(self._table))
            case RoleMoveRequested():
                self._dirty[event.group] = None
        self._note(touched)

    def _note(self, touched: TouchedEntities) -> None:
        if self._table is not None:
            teams_of = self._table.groups_of
            for name in (*touched.hosts, *touched.vms):
                for group in teams_of.get(ProcessorId(name), ()):
                    self._dirty[group] = None

    def due_ms(self) -> int | None:
        """Return the time of the next decision, or None."""
        if self._all_groups or self._dirty:
            return 0
        return self._due[0][0] if self._due else None

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Propose the steps that start now, and report the steps that wait."""
        layout = snapshot.settings.layout
        if layout is None:
            self._table, self._all_groups, self._dirty, self._due = None, False, {}, []
            return Proposal(
                decider="roles", purpose=Purpose.REPAIR, reason="the cluster has no role layout"
            )
        orphaned: list[tuple[RoleGroupId, RoleStep]] = []
        table = layout_index(layout)
        if self._all_groups or self._table is not table:
            self._table, self._all_groups, self._due, self._timer = table, False, [], {}
            self._dirty = dict.fromkeys(table.groups)
            orphaned += orphaned_roles(snapshot, table)
        decided, fillings = self._decide(snapshot, table)
        steps = orphaned + [
            (group, role_step)
            for group, decision in decided.items()
            for role_step in decision.steps.steps
        ]
        waits = [wait for decision in decided.values() for wait in decision.steps.waits]
        return Proposal(
            decider="roles",
            purpose=Purpose.REPAIR,
            intents=tuple(_intents(steps, snapshot, table)),
            reason=f"{len(steps)} role steps, {len(fillings)} groups with changed slots",
            rejected=tuple(waits),
            slot_assignments=fillings,
        )

    def _decide(
        self, snapshot: Snapshot, table: LayoutIndex
    ) -> tuple[dict[RoleGroupId, GroupDecision], tuple[SlotAssignment, ...]]:
        """Decide about every affected group."""
        under_way, busy = self._under_way(snapshot), _busy_processors(snapshot)
        slots: dict[RoleGroupId, Mapping[SlotId, ProcessorId]] = dict(snapshot.role_state.slots)
        decided: dict[RoleGroupId, GroupDecision] = {}
        fillings: dict[RoleGroupId, SlotAssignment] = {}
        # A group that releases a processor makes other groups due, so the loop repeats.
        while groups := self._due_groups(snapshot.at_ms, table):
            for group in groups:
                decision = decide_group(
                    snapshot, table, group, under_way.get(group, {}), slots, busy
                )
                decided[group] = decision
                if decision.filling is not None:
                    self._free(table, group, slots.get(group, {}), decision.filling)
                    # Later groups of this pass see the new owners.
                    slots[group] = decision.filling.slots
                    fillings[group] = decision.filling
                if decision.due_ms is not None and self._timer.get(group) != decision.due_ms:
                    self._timer[group] = decision.due_ms
                    # An older entry of the group stays in the heap: it only causes a look too many.
                    heappush(self._due, (decision.due_ms, group))
        return decided, tuple(fillings.values())

    def _due_groups(self, now_ms: int, table: LayoutIndex) -> list[RoleGroupId]:
        """Return the groups to decide, by priority."""
        while self._due and self._due[0][0] <= now_ms:
            due_ms, group = heappop(self._due)
            self._dirty[group] = None
            if self._timer.get(group) == due_ms:
                del self._timer[group]
        groups = [group for group in self._dirty if group in table.groups]
        self._dirty = {}
        # The more important group takes shared processors first; the file order breaks ties.
        return sorted(groups, key=lambda key: (table.groups[key].priority, table.place[key]))

    def _free(
        self,
        table: LayoutIndex,
        group: RoleGroupId,
        before: Mapping[SlotId, ProcessorId],
        filling: SlotAssignment,
    ) -> None:
        """Mark other groups of processors that a group has released: they may need them."""
        for processor in before.values():
            if processor not in filling.slots.values():
                others = table.groups_of.get(processor, ())
                self._dirty |= dict.fromkeys(other for other in others if other != group)

    def _put_off(self, actions: Iterable[object], at_ms: int) -> None:
        for action in actions:
            if isinstance(action, RoleAction):
                # Not at once: the same decision in the same state would be refused again, without
                # end.
                heappush(self._due, (at_ms + RETRY_AFTER_REFUSAL_MS, action.group))

    def _under_way(self, snapshot: Snapshot) -> dict[RoleGroupId, dict[RolePlace, bool]]:
        """Return the roles that start (True) or stop (False) now or soon."""
        under_way: dict[RoleGroupId, dict[RolePlace, bool]] = {}
        running = (in_flight.step.action for in_flight in snapshot.in_flight.values())
        for action in (*running, *self._pending.values()):
            if isinstance(action, RoleAction):
                in_group = under_way.setdefault(action.group, {})
                in_group[action.role, action.processor] = isinstance(action, StartRole)
        return under_way


def _busy_processors(snapshot: Snapshot) -> set[ProcessorId]:
    """Return hosts that change power state, and VMs on which another action runs."""
    busy: set[ProcessorId] = set()
    for running in snapshot.in_flight.values():
        footprint = running.step.footprint
        name = footprint.switched or footprint.vm
        if name is not None and not isinstance(running.step.action, RoleAction):
            busy.add(ProcessorId(name))
    return busy


def orphaned_roles(
    snapshot: Snapshot, table: LayoutIndex
) -> Iterator[tuple[RoleGroupId, RoleStep]]:
    """Yield stops of running roles that no group has any more."""
    for processor, held in snapshot.role_state.held.items():
        for group_role in held:
            team = table.groups.get(group_role.group)
            if (
                team is None
                or processor not in team.processors
                or group_role.role not in table.roles
            ):
                why = "the layout no longer has it"
                yield group_role.group, RoleStep(False, group_role.role, processor, why)


def _load_dependent_groups(table: LayoutIndex) -> Iterator[RoleGroupId]:
    """Yield the groups whose choice depends on load."""
    for group, team in table.groups.items():
        if any(preference.choose is SlotChoice.LEAST_LOADED for preference in team.preferences):
            yield group


def _intents(
    steps: Iterable[tuple[RoleGroupId, RoleStep]], snapshot: Snapshot, table: LayoutIndex
) -> Iterator[Intent]:
    busy: set[GroupRole] = set()
    for number, (group, role_step) in enumerate(steps, start=1):
        role = table.roles.get(role_step.role)
        is_host = HostId(role_step.processor) in snapshot.hosts
        kind = StartRole if role_step.is_start else StopRole
        action = kind(
            group=group,
            role=role_step.role,
            host=HostId(role_step.processor) if is_host else None,
            vm=None if is_host else VmId(role_step.processor),
            epoch=snapshot.role_state.epoch,
        )
        if role_step.is_start and action.group_role in table.single:
            assert action.group_role not in busy, "a single role is started once at a time"
            busy.add(action.group_role)
        duration_ms = (
            1000 if role is None else role.start_ms if role_step.is_start else role.stop_ms
        )
        verb = "start" if role_step.is_start else "stop"
        # The number keeps cut names apart.
        name = StepId(f"{number}-{verb}-{role_step.role[:40]}-{role_step.processor[:40]}")
        yield Intent(id=name, action=action, duration_ms=duration_ms, reason=role_step.reason)
