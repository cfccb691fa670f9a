"""The JSON documents of ``roles``: defects of a layout, a plan, and a run with its history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import field as json_field

from equipoise.documents.event_text import describe_event
from equipoise.documents.json_document import Document
from equipoise.model.action import RoleAction, StartRole, describe
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    ClusterLoaded,
    Event,
    HostChanged,
    LayoutChanged,
    PlanAccepted,
    PlanRefused,
    SlotsFilled,
    event_kind,
)
from equipoise.model.plan import Step
from equipoise.model.quantity import ProcessorId, RoleGroupId, SlotId, format_count
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.roles.state import GroupRole, layout_index
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.roles.removal import RemovalCheck
from equipoise.store import Journal


@dataclass(slots=True)
class RoleAvailability:
    """One role of one group over a run."""

    group_role: GroupRole
    starts: int = 0
    stops: int = 0
    failures: int = 0
    most: int = 0
    """Largest number of holders at one time."""
    outages: list[tuple[int, int]] = field(default_factory=list)
    """Periods without a holder after the first holder, in milliseconds."""
    down_ms: int | None = None

    @property
    def without_holder_s(self) -> float:
        """Time without a holder after the first holder."""
        return sum(end - start for start, end in self.outages) / 1000


def role_availability(events: Iterable[Event], end_ms: int) -> list[RoleAvailability]:
    """Return the availability of every role over the events of a journal."""
    roles: dict[GroupRole, RoleAvailability] = {}
    draft = Draft(Snapshot())
    for event in events:
        if isinstance(event, ActionFinished | ActionFailed):
            running = draft.in_flight.get(event.step)
            if running is not None and isinstance(running.step.action, RoleAction):
                _count_action(roles, running.step.action, event)
        before = draft.role_state.freeze().held
        transition.apply_to_draft(draft, event)
        # By identity: the map is replaced with every change, and comparing it is slow.
        if draft.role_state.freeze().held is not before:
            _update_holders(roles, draft, event.at_ms)
    for role in roles.values():
        if role.down_ms is not None:
            role.outages.append((role.down_ms, end_ms))
    return _sorted_by_layout(roles, draft)


def _count_action(
    roles: dict[GroupRole, RoleAvailability],
    action: RoleAction,
    event: ActionFinished | ActionFailed,
) -> None:
    role = roles.setdefault(action.group_role, RoleAvailability(action.group_role))
    if isinstance(event, ActionFailed):
        role.failures += 1
    elif isinstance(action, StartRole):
        role.starts += 1
    else:
        role.stops += 1


def _update_holders(roles: dict[GroupRole, RoleAvailability], draft: Draft, at_ms: int) -> None:
    holders: dict[GroupRole, int] = {}
    for held in draft.role_state.held.values():
        for group_role in held:
            holders[group_role] = holders.get(group_role, 0) + 1
    for group_role in holders:
        roles.setdefault(group_role, RoleAvailability(group_role))
    for group_role, role in roles.items():
        count = holders.get(group_role, 0)
        if count and role.down_ms is not None:
            role.outages.append((role.down_ms, at_ms))
            role.down_ms = None
        # Only after a first holder: a role that never ran has no outage.
        elif not count and role.most and role.down_ms is None:
            role.down_ms = at_ms
        role.most = max(role.most, count)


def _sorted_by_layout(
    roles: dict[GroupRole, RoleAvailability], draft: Draft
) -> list[RoleAvailability]:
    layout = draft.settings.layout
    if layout is None:
        return list(roles.values())
    place = layout_index(layout).place
    return sorted(
        roles.values(),
        # Roles of a group that the layout has lost come first.
        key=lambda role: (place.get(role.group_role.group, -1), role.group_role.role),
    )


_HIDDEN_EVENTS: Final = frozenset(
    ("demand_observed", "plan_accepted", "plan_ended", "proposal_made", "proposals_arbitrated")
)


class RoleHistoryEntry(NamedTuple):
    """One line of the history."""

    at_ms: int
    event: str
    what: str
    reason: str = ""


def role_history(events: Iterable[Event]) -> Iterator[RoleHistoryEntry]:
    """Yield the history of a journal, without periodic and internal events."""
    steps: dict[str, Step] = {}
    layout: RoleLayout | None = None
    for event in events:
        match event:
            case PlanAccepted():
                steps |= {step.id: step for step in event.plan.steps}
            case ClusterLoaded():
                layout = event.inventory.layout
            case LayoutChanged():
                layout = event.layout
            case SlotsFilled() if layout is not None:
                event = event.but(slots=_slots_in_layout_order(event, layout))  # noqa: PLW2901
        line = _entry(event, steps)
        if line is not None:
            yield line


def _slots_in_layout_order(event: SlotsFilled, layout: RoleLayout) -> dict[SlotId, ProcessorId]:
    """Return the slots in the order of the layout; a journal sorts them by name."""
    order = [slot.id for team in layout.groups if team.id == event.group for slot in team.slots]
    return {slot: event.slots[slot] for slot in order if slot in event.slots}


def _entry(event: Event, steps: dict[str, Step]) -> RoleHistoryEntry | None:
    kind = event_kind(event)
    if kind in _HIDDEN_EVENTS:
        return None
    match event:
        case ActionStarted(step=step) if isinstance(step.action, RoleAction):
            return RoleHistoryEntry(event.at_ms, kind, describe(step.action), step.reason)
        case ActionFinished() if event.step in steps:
            return RoleHistoryEntry(
                event.at_ms, kind, f"done: {describe(steps[event.step].action)}"
            )
        case ActionFailed() | ActionSkipped() if event.step in steps:
            verb = "failed" if isinstance(event, ActionFailed) else "not done"
            words = f"{verb}: {describe(steps[event.step].action)}"
            return RoleHistoryEntry(event.at_ms, kind, words, event.reason)
        case ActionLost() if event.step in steps:
            return RoleHistoryEntry(
                event.at_ms, kind, f"unknown: {describe(steps[event.step].action)}"
            )
        case SlotsFilled():
            slots = ", ".join(f"{slot} = {processor}" for slot, processor in event.slots.items())
            return RoleHistoryEntry(
                event.at_ms, kind, f"slots of {event.group}: {slots}", event.reason
            )
        case HostChanged() if event.host.requested is not None:
            words = f"{event.host.requested} requested for host {event.host.id}"
            return RoleHistoryEntry(event.at_ms, kind, words)
        case PlanRefused():
            why = "; ".join(violation.detail for violation in event.violations[:3])
            return RoleHistoryEntry(event.at_ms, kind, "the gate refused the plan", why)
        case ClusterLoaded():
            cluster = event.inventory
            hosts, vms = len(cluster.hosts), len(cluster.vms)
            size = f"{format_count(hosts, 'host')}, {format_count(vms, 'VM')}"
            return RoleHistoryEntry(event.at_ms, kind, f"the cluster: {size}")
        case _:
            return RoleHistoryEntry(event.at_ms, kind, describe_event(event))


class LayoutDefectRow(Document):
    """A defect of a layout, with its place in the file."""

    code: str
    doubtful: bool
    """Whether it is a warning; a layout with warnings can run."""
    line: int | None
    key: str
    what: str
    cure: str


class RolesCheckDocument(Document):
    """The JSON document of ``equipoise roles check``."""

    file: str
    clean: bool
    defects: tuple[LayoutDefectRow, ...]


class HistoryRow(Document):
    """An event with its reason."""

    at_s: float
    event: str
    what: str
    reason: str


class RemovalRow(Document):
    """The hosts and VMs that may leave, and why the others must stay."""

    may: tuple[str, ...]
    stay: Mapping[ProcessorId, str]
    codes: Mapping[str, str]


class RolesPlanDocument(Document):
    """The JSON document of ``equipoise roles plan``."""

    scenario: str
    actions: tuple[HistoryRow, ...]
    slots: Mapping[RoleGroupId, Mapping[SlotId, ProcessorId]]
    """The processor of each slot, by group."""
    held: Mapping[str, tuple[str, ...]]
    """The roles of each processor, as ``group/role``."""
    uncovered: tuple[str, ...]
    may_leave: RemovalRow | None


class OutageRow(Document):
    """A period in which no processor held a role."""

    from_s: float
    to_s: float


class RoleRow(Document):
    """The availability of a role over a run."""

    group: str
    role: str
    starts: int
    stops: int
    failures: int
    without_holder_s: float
    most_holders: int
    outages: tuple[OutageRow, ...]


class RolesRunDocument(Document):
    """The JSON document of ``equipoise roles run``."""

    scenario: str
    about: str
    seed: int
    duration_s: float
    epoch: int
    slots: Mapping[RoleGroupId, Mapping[SlotId, ProcessorId]]
    held: Mapping[str, tuple[str, ...]]
    roles: tuple[RoleRow, ...]
    # The old key stays: readers of the JSON depend on it.
    history: tuple[HistoryRow, ...] = json_field(name="story")
    events: int
    journal_sha256: str
    wall_s: float


def roles_plan_document(
    scenario: Scenario,
    snapshot: Snapshot,
    actions: Iterable[RoleHistoryEntry],
    uncovered: Iterable[GroupRole],
    removal: RemovalCheck | None,
    *,
    since_ms: int = 0,
) -> RolesPlanDocument:
    """Return the actions of a plan and the roles after it."""
    may_leave = removal and RemovalRow(
        may=tuple(removal.allowed),
        stay=removal.blocked,
        codes=dict.fromkeys(removal.blocked, "role-lost"),
    )
    return RolesPlanDocument(
        scenario=scenario.name,
        actions=_history_rows(actions, since_ms),
        slots=snapshot.role_state.slots,
        held=_held_roles(snapshot),
        uncovered=tuple(map(_role_name, uncovered)),
        may_leave=may_leave,
    )


def roles_run_document(
    scenario: Scenario,
    snapshot: Snapshot,
    journal: Journal,
    *,
    ended_ms: int,
    wall_s: float,
) -> RolesRunDocument:
    """Return the availability of every role, and the history of a run."""
    return RolesRunDocument(
        scenario=scenario.name,
        about=scenario.about,
        seed=scenario.seed,
        duration_s=ended_ms / 1000,
        epoch=snapshot.role_state.epoch,
        slots=snapshot.role_state.slots,
        held=_held_roles(snapshot),
        roles=tuple(map(_role_row, role_availability(journal.events(), ended_ms))),
        history=_history_rows(role_history(journal.events())),
        events=len(journal),
        journal_sha256=journal.sha256(),
        wall_s=round(wall_s, 3),
    )


def _role_row(role: RoleAvailability) -> RoleRow:
    return RoleRow.of(
        role,
        group=role.group_role.group,
        role=role.group_role.role,
        without_holder_s=round(role.without_holder_s, 3),
        most_holders=role.most,
        outages=tuple(
            OutageRow(from_s=start / 1000, to_s=end / 1000) for start, end in role.outages
        ),
    )


def _history_rows(history: Iterable[RoleHistoryEntry], since_ms: int = 0) -> tuple[HistoryRow, ...]:
    return tuple(HistoryRow.of(entry, at_s=(entry.at_ms - since_ms) / 1000) for entry in history)


def _held_roles(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    held = snapshot.role_state.held
    return {processor: tuple(map(_role_name, roles)) for processor, roles in held.items()}


def _role_name(group_role: GroupRole) -> str:
    return f"{group_role.group}/{group_role.role}"
