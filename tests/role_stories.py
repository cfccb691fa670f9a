"""Stories about roles for the whole house: world, loop, gate, executor and journal."""

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
from equipoise.model.quantity import HostId, ProcessorId, TeamId
from equipoise.model.roles.layout import (
    Choose,
    Ready,
    Redundancy,
    Role,
    RoleLayout,
    Slot,
    Workload,
)
from equipoise.model.story.physics import Physics, RolePhysics
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import Happening
from equipoise.sim.play import Play
from equipoise.store import MemoryJournal
from role_walks import (
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


def a_story(layout: RoleLayout, *happenings: Happening, **more: Any) -> Scenario:
    """A scenario in which only roles are decided about."""
    given: dict[str, Any] = {
        "name": "roles", "duration_s": END_S, "pass_s": END_S, "deciders": ("roles",),
        "cluster": an_inventory_for(layout), "happenings": happenings,
    }  # fmt: skip
    return Scenario(**given | more)


def played(scenario: Scenario) -> tuple[Play, MemoryJournal]:
    """A run to the end of its story."""
    journal = MemoryJournal()
    play = Play(scenario, journal)
    play.run(1000 * scenario.duration_s)
    return play, journal


def deeds(journal: MemoryJournal) -> list[tuple[int, str]]:
    """What was decided and done, without names that depend on how often somebody counted."""
    told: list[tuple[int, str]] = []
    names: dict[str, str] = {}
    for event in journal.events():
        match event:
            case SlotsFilled():
                told.append((event.at_ms, f"fill {event.group} {dict(event.slots)}"))
            case ActionStarted(step=step):
                names[step.id] = str(step.action)
                told.append((event.at_ms, f"begin {step.action}"))
            case ActionFinished() | ActionFailed():
                told.append((event.at_ms, f"{type(event).__name__} {names.get(event.step)}"))
            case _:
                pass
    return sorted(told)


@st.composite
def role_layouts(draw: st.DrawFn, groups: int = 1) -> RoleLayout:
    """Groups with timers; a second one competes for some of the processors."""
    timers: dict[str, Any] = {
        "grace_s": draw(st.sampled_from([0, 15])), "suspect_s": 10,
        "probation_s": draw(st.sampled_from([0, 20])), "retry_s": 5, "isolation_s": 60,
    }  # fmt: skip
    wanted = draw(preferences((Choose.PRIORITY, Choose.ANY)))
    if draw(st.booleans()):  # an active role and its standby
        wanted = (wanted[0].but(promotes=wanted[1].role), wanted[1])
        timers["apart"] = ((wanted[0].role, wanted[1].role),)
    teams = [a_team(draw(layouts()), wanted, packed=draw(st.booleans()), **timers)]
    if groups > 1:
        hosts = draw(st.lists(st.sampled_from(PROCESSORS), min_size=2, max_size=4, unique=True))
        model = draw(st.sampled_from(Redundancy))
        pair = Workload(active=FIXED[0], standby=FIXED[1])
        few = tuple(Slot(id=slot) for slot in SLOTS[:2])
        ready = Ready(model=model, workloads=(pair,))
        second = a_team(redundancy=ready, slots=few, priority=draw(st.integers(0, 1)), **timers)
        teams.append(second.but(id=TeamId("h"), hosts=tuple(hosts), apart=()))
        teams[0] = teams[0].but(priority=draw(st.integers(0, 1)))
    quick = [Role(id=r, start_ms=1500, stop_ms=700) for r in (*FIXED, *FREE)]
    return a_layout_of(*teams, roles=quick)


@st.composite
def happenings(draw: st.DrawFn, most: int = 12) -> list[Happening]:
    """Things that happen to processors, in whole seconds, so that some fall on one instant."""
    told: list[Happening] = []
    for _ in range(draw(st.integers(0, most))):
        at_ms = 1000 * draw(st.integers(5, 90))
        name = draw(st.sampled_from(PROCESSORS))
        told.append(draw(st.sampled_from(_kinds(at_ms, name))))
    return sorted(told, key=lambda one: one.at_ms)


def _kinds(at_ms: int, name: ProcessorId) -> list[Happening]:
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
