"""Actions in the simulated world: their duration, their end, and repeated requests."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import CancelAction, StartAction
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    Event,
    HostFailed,
    HostLeft,
    HostRecovered,
    VmLeft,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.model.scenario.faults import Faults, HangingPowerOns, PowerOnStuck
from equipoise.model.scenario.physics import Physics, PowerPhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import VmState
from equipoise.sim.world.simulated_world import SimulatedWorld

H1, H2, H3, V1 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1")
PLANNED_MS = 1000
EXACT = PowerPhysics(jitter_pct=0)
WAKE = PowerOn(host=H2)


def a_world(switching: PowerPhysics | None = None, **fields: Any) -> SimulatedWorld:
    """h1 is on with v1, h2 in standby, h3 in maintenance; one VM in each state."""
    hosts = (
        a_host("h1", capacity={"licences": 5}),
        a_host("h2", state=HostState.STANDBY),
        a_host("h3", state=HostState.MAINTENANCE),
        a_host("h4"),
    )
    vms = (
        a_vm("v1", "h1", memory_mib=2000),
        a_vm("ready"),
        a_vm("raw", state=VmState.INIT, template="debian"),
        a_vm("asleep", "h1", state=VmState.SLEEPING, memory_mib=3000),
    )
    return SimulatedWorld(
        Scenario(
            name="actions",
            duration_s=3600,
            cluster=an_inventory(*hosts, vms=vms),
            physics=Physics(switching=switching),
            **fields,
        )
    )


def start(action: Action, attempt: int = 1, name: str = "s") -> StartAction:
    return StartAction(a_step(name, action, 0, PLANNED_MS), attempt)


def drained(world: SimulatedWorld, until_ms: int = 3_600_000) -> list[Event]:
    events = []
    while (event := world.next_event(until_ms)) is not None:
        events.append(event)
    return events


def finished(at_ms: int, attempt: int = 1) -> ActionFinished:
    return ActionFinished(at_ms=at_ms, step=StepId("s"), attempt=attempt)


def failed(events: list[Event]) -> list[tuple[int, str, int]]:
    """Return time, code and attempt of failures; other events are errors."""
    assert all(isinstance(event, ActionFailed) and event.step == "s" for event in events)
    return [
        (event.at_ms, event.code, event.attempt)
        for event in events
        if isinstance(event, ActionFailed)
    ]


ACTIONS: list[tuple[Action, int]] = [
    (WAKE, 180_000),
    (PowerOff(host=HostId("h4")), 60_000),
    (EnterMaintenance(host=HostId("h4")), 10_000),
    (LeaveMaintenance(host=H3), 10_000),
    (Boot(vm=VmId("ready"), target=H1), 30_000),
    (Shutdown(vm=V1, source=H1), 20_000),
    (Forge(vm=VmId("raw")), 60_000),
    (Suspend(vm=V1, source=H1), 4000),
    (Resume(vm=VmId("asleep"), source=H1, target=H1), 6000),
    (Kill(vm=V1), PLANNED_MS),
    (Allocate(vm=V1, resource=ResourceName("licences"), amount=1), PLANNED_MS),
    (Migrate(vm=V1, source=H1, target=HostId("h4")), PLANNED_MS),
]


@pytest.mark.parametrize(("action", "usual_ms"), ACTIONS)
def test_durations_come_from_the_physics_or_else_from_the_plan(
    action: Action, usual_ms: int
) -> None:
    for physics, expected_ms in ((EXACT, usual_ms), (None, PLANNED_MS)):
        world = a_world(physics)
        world.perform(start(action))
        assert drained(world) == [finished(expected_ms)]


def test_durations_vary_within_bounds_and_repeat() -> None:
    took = []
    for _ in range(2):
        world = a_world(PowerPhysics(boot_failed_pct=100))
        for attempt in range(1, 40):
            began_ms = world.observe().at_ms
            world.perform(start(Boot(vm=VmId("ready"), target=H1), attempt))
            (answer,) = drained(world, began_ms + 33_000)
            took.append(answer.at_ms - began_ms)
    assert took[:39] == took[39:]
    assert all(27_000 <= duration_ms <= 33_000 for duration_ms in took)
    assert min(took) < 28_500
    assert max(took) > 31_500


def test_an_action_takes_at_least_a_millisecond() -> None:
    world = a_world(PowerPhysics(power_on_s=0))
    world.perform(start(WAKE))
    assert drained(world) == [finished(1)]


def test_failed_actions_leave_hosts_and_vms_unchanged() -> None:
    world = a_world(PowerPhysics(jitter_pct=0, failed_pct=100, boot_failed_pct=100))
    before = world.observe()
    for number, (action, _) in enumerate(ACTIONS[:2] + ACTIONS[4:5] + ACTIONS[8:9]):
        world.perform(start(action, name=f"s{number}"))
    answers = drained(world)
    codes = {answer.code for answer in answers if isinstance(answer, ActionFailed)}
    assert codes == {"power-failed", "boot-failed"}
    assert len(answers) == 4
    assert world.observe().hosts == before.hosts
    assert world.observe().vms == before.vms


def test_a_stuck_power_on_hangs_once_until_it_is_cancelled() -> None:
    world = a_world(EXACT, events=(PowerOnStuck(at_ms=0, host=H2),))
    drained(world, 0)
    world.perform(start(WAKE))
    assert drained(world, 1_000_000) == []
    assert world.observe().in_flight
    world.perform(CancelAction(StepId("s"), 1))
    assert failed(drained(world, 1_000_000)) == [(1_000_000, "cancelled", 1)]
    world.perform(start(WAKE, attempt=2))
    assert drained(world) == [finished(1_180_000, attempt=2)]
    assert world.observe().hosts[H2].state is HostState.ON


def test_a_stuck_power_on_affects_the_next_attempt_not_the_current_one() -> None:
    world = a_world(EXACT, events=(PowerOnStuck(at_ms=1000, host=H2),))
    world.perform(start(WAKE))
    assert drained(world, 200_000) == [finished(180_000)]
    world.perform(start(PowerOff(host=H2), name="off"))
    assert len(drained(world, 300_000)) == 1
    world.perform(start(WAKE, name="again"))
    assert drained(world) == []


def test_random_hangs_affect_power_ons_only() -> None:
    world = a_world(EXACT, faults=Faults(hanging_power_ons=HangingPowerOns(pct=100)))
    for number, (action, _) in enumerate(ACTIONS[:7]):
        if number != 2:  # h4 can only be switched off once
            world.perform(start(action, name=f"s{number}"))
    ended = [event.step for event in drained(world) if isinstance(event, ActionFinished)]
    assert sorted(ended) == ["s1", "s3", "s4", "s5", "s6"]


def test_a_repeated_request_while_running_is_answered_once() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    drained(world, 100_000)
    world.perform(start(WAKE))
    assert drained(world) == [finished(180_000)]


def test_a_repeated_request_after_the_end_is_only_answered() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    drained(world)
    version = world.observe().version
    world.perform(start(WAKE))
    world.perform(start(WAKE))
    assert drained(world) == [finished(180_000)] * 2
    assert world.observe().version == version
    assert not world.observe().in_flight


def test_a_repeated_request_for_a_cancelled_attempt_stays_cancelled() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    world.perform(CancelAction(StepId("s"), 1))
    world.perform(CancelAction(StepId("s"), 1))
    assert failed(drained(world, 50_000)) == [(0, "cancelled", 1)], "once"
    world.perform(start(WAKE))
    world.perform(CancelAction(StepId("s"), 1))
    assert failed(drained(world)) == [(0, "cancelled", 1)]
    assert world.observe().hosts[H2].state is HostState.STANDBY


def test_the_end_of_an_attempt_that_was_cancelled_does_not_end_the_next_one() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    drained(world, 100_000)
    world.perform(CancelAction(StepId("s"), 1))
    drained(world, 110_000)
    world.perform(start(WAKE, attempt=2))
    world.perform(CancelAction(StepId("s"), 1))
    assert drained(world) == [finished(290_000, attempt=2)]


@pytest.mark.parametrize(
    ("gone", "action"),
    [
        (HostLeft(at_ms=0, host=H2), WAKE),
        (HostLeft(at_ms=0, host=H2), Boot(vm=VmId("ready"), target=H2)),
        (HostLeft(at_ms=0, host=H2), Migrate(vm=V1, source=H1, target=H2)),
        (VmLeft(at_ms=0, vm=V1), Shutdown(vm=V1, source=H1)),
        (VmLeft(at_ms=0, vm=V1), Suspend(vm=V1, source=H1)),
        (VmLeft(at_ms=0, vm=V1), Migrate(vm=V1, source=H1, target=HostId("h4"))),
    ],
)
def test_an_action_on_a_missing_host_or_vm_is_interrupted(
    gone: HostLeft | VmLeft, action: Action
) -> None:
    world = a_world(EXACT, events=(gone,))
    drained(world, 0)
    world.perform(start(action))
    assert drained(world, 1_000_000) == []
    assert not world.observe().in_flight
    world.perform(CancelAction(StepId("s"), 1))
    world.perform(start(action))
    assert failed(drained(world, 1_000_000)) == [(1_000_000, "action-interrupted", 1)]


@pytest.mark.parametrize("host", ["h1", "h2", "h3"])
def test_a_host_can_fail_in_any_state_and_recovers_on(host: str) -> None:
    name = HostId(host)
    scheduled = (HostFailed(at_ms=1000, host=name), HostRecovered(at_ms=2000, host=name))
    world = a_world(EXACT, events=scheduled)
    assert drained(world, 1500) == [scheduled[0]]
    assert world.observe().hosts[name].state is HostState.FAILED
    assert drained(world) == [scheduled[1]]
    assert world.observe().hosts[name].state is HostState.ON


@pytest.mark.parametrize(
    "action",
    [
        WAKE,
        LeaveMaintenance(host=H3),
        PowerOff(host=HostId("h4")),
        Boot(vm=VmId("ready"), target=H1),
    ],
)
def test_a_host_failure_ends_the_actions_of_the_host(action: Action) -> None:
    seen = start(action).step.footprint.hosts[0]
    fault = HostFailed(at_ms=500, host=seen)
    world = a_world(EXACT, events=(fault,))
    world.perform(start(action))
    assert drained(world) == [fault]
    assert world.observe().hosts[seen].state is HostState.FAILED
    assert not world.observe().in_flight
    world.perform(start(action))
    assert [type(event) for event in drained(world)] == [ActionFailed]
