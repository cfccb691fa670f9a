"""Laws of early passes: soon after an event that needs one, and not more often than agreed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.control import ControlLoop
from equipoise.control.config import ControlConfig
from equipoise.control.ports import Decider
from equipoise.model.action import Boot, Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.event import (
    ActionStarted,
    Event,
    HostChanged,
    HostFailed,
    HostJoined,
    HostRecovered,
    VmArrived,
    VmCrashed,
)
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import RestartPriority
from equipoise.sim.simple_deciders import RestartDecider
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script

INTERVAL_MS, END_MS = 300_000, 1_000_000
DELAYS = st.sampled_from([0, 1000, 10_000, 45_000])
TIMES = st.integers(1, END_MS // 1000 - 60).map(lambda seconds: 1000 * seconds)


class Observer:
    """A decider that notes the time of each pass and proposes nothing."""

    def __init__(self) -> None:
        self.passes: list[int] = []

    def propose(self, snapshot: Snapshot) -> Proposal:
        self.passes.append(snapshot.at_ms)
        return Proposal(decider="observer", purpose=Purpose.BALANCE)


def cluster() -> Snapshot:
    vms = [a_vm(f"v{n}", f"h{1 + n % 3}") for n in range(6)]
    hosts = [a_host(f"h{n}") for n in (1, 2, 3)]
    return a_cluster(*hosts, a_host("h4", state=HostState.FAILED), vms=vms)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Draw at most one event of each kind; each of them needs a pass."""
    chosen: list[Event] = [
        HostFailed(at_ms=draw(TIMES), host=HostId("h1")),
        HostRecovered(at_ms=draw(TIMES), host=HostId("h4")),
        HostJoined(at_ms=draw(TIMES), host=a_host("h5")),
        HostChanged(
            at_ms=draw(TIMES),
            host=a_host("h2", requested=draw(st.sampled_from(RequestedHostState))),
        ),
        VmArrived(at_ms=draw(TIMES), vm=a_vm("new")),
        VmCrashed(at_ms=draw(TIMES), vm=VmId("v2")),
    ]
    kept = draw(st.sets(st.sampled_from(range(len(chosen)))))
    return [event for index, event in enumerate(chosen) if index in kept]


def passes_with(script: Sequence[Event], delay_ms: int) -> list[int]:
    """Return the times of all passes while these events happen."""
    observer = Observer()
    config = ControlConfig(pass_interval_ms=INTERVAL_MS, pass_delay_ms=delay_ms)
    world = MemoryWorld(cluster(), Script(events=tuple(script)))
    ControlLoop(world, MemoryJournal(), deciders=[observer], config=config).run(END_MS)
    return observer.passes


@given(events(), DELAYS)
def test_a_pass_follows_each_event_within_the_delay(script: list[Event], delay_ms: int) -> None:
    passes = passes_with(script, delay_ms)
    for event in script:
        assert any(event.at_ms <= at_ms <= event.at_ms + delay_ms for at_ms in passes), event


@given(events(), DELAYS)
def test_passes_are_not_closer_than_the_delay(script: list[Event], delay_ms: int) -> None:
    passes = passes_with(script, delay_ms)
    assert all(later - earlier >= delay_ms for earlier, later in pairwise(passes))
    assert all(later - earlier <= INTERVAL_MS for earlier, later in pairwise(passes))


@given(DELAYS)
def test_without_such_events_passes_are_regular(delay_ms: int) -> None:
    quiet = [HostChanged(at_ms=70_000, host=a_host("h2", memory_mib=1024))]
    assert passes_with(quiet, delay_ms) == list(range(0, END_MS, INTERVAL_MS))


class Shuttle:
    """A decider whose plan moves one VM to and fro, one move after the other."""

    def __init__(self, moves: int, move_ms: int) -> None:
        self._moves, self._move_ms = moves, move_ms

    def propose(self, snapshot: Snapshot) -> Proposal:
        places = [HostId("h2"), HostId("h3")]
        if snapshot.at_ms or snapshot.vms[VmId("v1")].host != places[0]:
            return Proposal(decider="shuttle", purpose=Purpose.BALANCE)
        intents = [
            Intent(
                id=StepId(str(n)),
                action=Migrate(vm=VmId("v1"), source=places[n % 2], target=places[1 - n % 2]),
                duration_ms=self._move_ms,
                after=(StepId(str(n - 1)),) if n else (),
            )
            for n in range(self._moves)
        ]
        return Proposal(decider="shuttle", purpose=Purpose.BALANCE, intents=tuple(intents))


def starts_after_failure(
    failed_ms: int, delay_ms: int, moves: int, move_ms: int
) -> list[tuple[int, VmId]]:
    """Return when the VMs of a failed host start again, beside a plan of many moves."""
    priorities = [RestartPriority.LOW, RestartPriority.MEDIUM, RestartPriority.HIGH]
    lost = [a_vm(f"lost{n}", "h1", restart_priority=level) for n, level in enumerate(priorities)]
    hosts = [a_host(f"h{n}") for n in (1, 2, 3)]
    snapshot = a_cluster(*hosts, vms=[*lost, a_vm("v1", "h2")])
    world = MemoryWorld(snapshot, Script(events=(HostFailed(at_ms=failed_ms, host=HostId("h1")),)))
    scenario = Scenario(name="s", duration_s=1, cluster=Inventory(hosts=()), estimates=Estimates())
    deciders: list[Decider] = [Shuttle(moves, move_ms), RestartDecider(scenario)]
    config = ControlConfig(pass_interval_ms=INTERVAL_MS, pass_delay_ms=delay_ms)
    journal = MemoryJournal()
    ControlLoop(world, journal, deciders=deciders, config=config).run(END_MS)
    return [
        (event.at_ms, event.step.action.vm)
        for event in journal.events()
        if isinstance(event, ActionStarted) and isinstance(event.step.action, Boot)
    ]


@given(TIMES, DELAYS, st.integers(0, 8), st.integers(1, 200).map(lambda seconds: 1000 * seconds))
def test_a_lost_vm_that_can_run_starts_within_a_bound(
    failed_ms: int, delay_ms: int, moves: int, move_ms: int
) -> None:
    starts = starts_after_failure(failed_ms, delay_ms, moves, move_ms)
    # After the delay no further move starts; the one under way goes on beside the restarts.
    assert all(at_ms <= failed_ms + delay_ms for at_ms, _ in starts)
    assert [vm for _, vm in starts] == ["lost2", "lost1", "lost0"], "by priority"


def test_a_long_plan_makes_room_for_lost_vms() -> None:
    starts = starts_after_failure(50_000, 10_000, 8, 100_000)
    assert {at_ms for at_ms, _ in starts} == {60_000}, "beside the move under way"
