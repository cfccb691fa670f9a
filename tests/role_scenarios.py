"""Scenarios about roles for the whole system: world, loop, gate, executor and journal."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionStarted,
    HostFailed,
    HostRecovered,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    SlotsFilled,
)
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId
from equipoise.model.roles.layout import (
    ProtectedWorkload,
    RedundancyLayout,
    RedundancyModel,
    Role,
    RoleLayout,
    Slot,
    SlotChoice,
)
from equipoise.model.scenario.faults import ScheduledEvent
from equipoise.model.scenario.physics import Physics, RolePhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal
from role_harness import (
    FIXED,
    FREE,
    PROCESSORS,
    SLOTS,
    a_layout_of,
    a_team,
    an_inventory_for,
    layouts,
    preferences,
)

END_S = 600


def a_role_scenario(layout: RoleLayout, *events: ScheduledEvent, **more: Any) -> Scenario:
    """Return a scenario with the role decider only."""
    given: dict[str, Any] = {
        "name": "roles", "duration_s": END_S, "pass_s": END_S, "deciders": ("roles",),
        "cluster": an_inventory_for(layout), "events": events,
    }  # fmt: skip
    return Scenario(**given | more)


def run_scenario(scenario: Scenario) -> tuple[ScenarioRunner, MemoryJournal]:
    """Run a scenario to its end."""
    journal = MemoryJournal()
    runner = ScenarioRunner(scenario, journal)
    runner.run(1000 * scenario.duration_s)
    return runner, journal


def role_actions(journal: MemoryJournal) -> list[tuple[int, str]]:
    """Return slot assignments and role actions, without ids that depend on counters."""
    actions: list[tuple[int, str]] = []
    names: dict[str, str] = {}
    for event in journal.events():
        match event:
            case SlotsFilled():
                actions.append((event.at_ms, f"fill {event.group} {dict(event.slots)}"))
            case ActionStarted(step=step):
                names[step.id] = str(step.action)
                actions.append((event.at_ms, f"begin {step.action}"))
            case ActionFinished() | ActionFailed():
                actions.append((event.at_ms, f"{type(event).__name__} {names.get(event.step)}"))
            case _:
                pass
    return sorted(actions)


@st.composite
def role_layouts(draw: st.DrawFn, groups: int = 1) -> RoleLayout:
    """Draw groups with timers; a second group competes for some of the processors."""
    timers: dict[str, Any] = {
        "grace_s": draw(st.sampled_from([0, 15])), "suspect_s": 10,
        "probation_s": draw(st.sampled_from([0, 20])), "retry_s": 5, "isolation_s": 60,
    }  # fmt: skip
    preferred = draw(preferences((SlotChoice.PRIORITY, SlotChoice.ANY)))
    if draw(st.booleans()):  # an active role and its standby
        preferred = (preferred[0].but(promotes=preferred[1].role), preferred[1])
        timers["apart"] = ((preferred[0].role, preferred[1].role),)
    teams = [a_team(draw(layouts()), preferred, packed=draw(st.booleans()), **timers)]
    if groups > 1:
        hosts = draw(st.lists(st.sampled_from(PROCESSORS), min_size=2, max_size=4, unique=True))
        model = draw(st.sampled_from(RedundancyModel))
        pair = ProtectedWorkload(active=FIXED[0], standby=FIXED[1])
        two_slots = tuple(Slot(id=slot) for slot in SLOTS[:2])
        redundancy = RedundancyLayout(model=model, workloads=(pair,))
        second = a_team(
            redundancy=redundancy, slots=two_slots, priority=draw(st.integers(0, 1)), **timers
        )
        teams.append(second.but(id=RoleGroupId("h"), hosts=tuple(hosts), apart=()))
        teams[0] = teams[0].but(priority=draw(st.integers(0, 1)))
    fast_roles = [Role(id=role_id, start_ms=1500, stop_ms=700) for role_id in (*FIXED, *FREE)]
    return a_layout_of(*teams, roles=fast_roles)


@st.composite
def scheduled_events(draw: st.DrawFn, most: int = 12) -> list[ScheduledEvent]:
    """Draw events of processors, in whole seconds, so that some share an instant."""
    events: list[ScheduledEvent] = []
    for _ in range(draw(st.integers(0, most))):
        at_ms = 1000 * draw(st.integers(5, 90))
        name = draw(st.sampled_from(PROCESSORS))
        events.append(draw(st.sampled_from(_kinds(at_ms, name))))
    return sorted(events, key=lambda event: event.at_ms)


def _kinds(at_ms: int, name: ProcessorId) -> list[ScheduledEvent]:
    host = HostId(name)
    return [
        HostFailed(at_ms=at_ms, host=host),
        HostRecovered(at_ms=at_ms, host=host),
        ProcessorLocked(at_ms=at_ms, processor=name),
        ProcessorUnlocked(at_ms=at_ms, processor=name),
        ProcessorSuspected(at_ms=at_ms, processor=name),
        ProcessorTrusted(at_ms=at_ms, processor=name),
    ]


UNRELIABLE = Physics(roles=RolePhysics(jitter_pct=20, start_failed_pct=20, stop_failed_pct=10))
