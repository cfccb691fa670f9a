"""Actions in the simulated world: how long they take, how they end, and what is asked twice."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import Cancel, Start
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
from equipoise.model.story.physics import Physics, SwitchPhysics
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import Hanging, PowerOnStuck, Unrest
from equipoise.model.vm import VmState
from equipoise.sim.world import SimulatedWorld

H1, H2, H3, V1 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1")
PLANNED_MS = 1000
EXACT = SwitchPhysics(jitter_pct=0)
WAKE = PowerOn(host=H2)


def a_world(switching: SwitchPhysics | None = None, **fields: Any) -> SimulatedWorld:
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
            name="doing",
            duration_s=3600,
            cluster=an_inventory(*hosts, vms=vms),
            physics=Physics(switching=switching),
            **fields,
        )
    )


def start(action: Action, attempt: int = 1, name: str = "s") -> Start:
    return Start(a_step(name, action, 0, PLANNED_MS), attempt)


def drained(world: SimulatedWorld, until_ms: int = 3_600_000) -> list[Event]:
    found = []
    while (event := world.next_event(until_ms)) is not None:
        found.append(event)
    return found


def finished(at_ms: int, attempt: int = 1) -> ActionFinished:
    return ActionFinished(at_ms=at_ms, step=StepId("s"), attempt=attempt)


def a_failure(at_ms: int, reason: str, attempt: int = 1) -> ActionFailed:
    return ActionFailed(at_ms=at_ms, step=StepId("s"), attempt=attempt, reason=reason)


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
def test_each_action_takes_what_the_physics_say_or_else_what_was_planned(
    action: Action, usual_ms: int
) -> None:
    for physics, expected_ms in ((EXACT, usual_ms), (None, PLANNED_MS)):
        world = a_world(physics)
        world.perform(start(action))
        assert drained(world) == [finished(expected_ms)]


def test_times_vary_within_bounds_and_the_same_each_time() -> None:
    took = []
    for _ in range(2):
        world = a_world(SwitchPhysics(boot_failed_pct=100))
        for attempt in range(1, 40):
            began_ms = world.observe().at_ms
            world.perform(start(Boot(vm=VmId("ready"), target=H1), attempt))
            (answer,) = drained(world, began_ms + 33_000)
            took.append(answer.at_ms - began_ms)
    assert took[:39] == took[39:]
    assert all(27_000 <= one <= 33_000 for one in took)
    assert min(took) < 28_500
    assert max(took) > 31_500


def test_what_takes_no_time_takes_a_millisecond() -> None:
    world = a_world(SwitchPhysics(power_on_s=0))
    world.perform(start(WAKE))
    assert drained(world) == [finished(1)]


def test_hosts_and_vms_that_do_not_obey_stay_as_they_are() -> None:
    world = a_world(SwitchPhysics(jitter_pct=0, failed_pct=100, boot_failed_pct=100))
    before = world.observe()
    for number, (action, _) in enumerate(ACTIONS[:2] + ACTIONS[4:5] + ACTIONS[8:9]):
        world.perform(start(action, name=f"s{number}"))
    answers = drained(world)
    assert {one.reason for one in answers if isinstance(one, ActionFailed)} == {
        "the host did not obey",
        "the VM did not start",
    }
    assert len(answers) == 4
    assert world.observe().hosts == before.hosts
    assert world.observe().vms == before.vms


def test_a_power_on_hangs_until_somebody_gives_up_on_it_for_once() -> None:
    world = a_world(EXACT, happenings=(PowerOnStuck(at_ms=0, host=H2),))
    drained(world, 0)
    world.perform(start(WAKE))
    assert drained(world, 1_000_000) == []
    assert world.observe().in_flight
    world.perform(Cancel(StepId("s"), 1))
    assert drained(world, 1_000_000) == [a_failure(1_000_000, "cancelled")]
    world.perform(start(WAKE, attempt=2))
    assert drained(world) == [finished(1_180_000, attempt=2)]
    assert world.observe().hosts[H2].state is HostState.ON


def test_a_host_that_is_on_its_way_is_not_stuck_but_the_next_time_it_is() -> None:
    world = a_world(EXACT, happenings=(PowerOnStuck(at_ms=1000, host=H2),))
    world.perform(start(WAKE))
    assert drained(world, 200_000) == [finished(180_000)]
    world.perform(start(PowerOff(host=H2), name="off"))
    assert len(drained(world, 300_000)) == 1
    world.perform(start(WAKE, name="again"))
    assert drained(world) == []


def test_by_chance_some_power_ons_hang_and_nothing_else() -> None:
    world = a_world(EXACT, unrest=Unrest(hanging_power_ons=Hanging(pct=100)))
    for number, (action, _) in enumerate(ACTIONS[:7]):
        if number != 2:  # h4 can only be switched off once
            world.perform(start(action, name=f"s{number}"))
    ended = [one.step for one in drained(world) if isinstance(one, ActionFinished)]
    assert sorted(ended) == ["s1", "s3", "s4", "s5", "s6"]


def test_what_is_asked_for_twice_while_it_runs_is_done_and_answered_once() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    drained(world, 100_000)
    world.perform(start(WAKE))
    assert drained(world) == [finished(180_000)]


def test_what_is_asked_for_again_after_its_end_is_answered_again_and_not_done_again() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    drained(world)
    version = world.observe().version
    world.perform(start(WAKE))
    world.perform(start(WAKE))
    assert drained(world) == [finished(180_000)] * 2
    assert world.observe().version == version
    assert not world.observe().in_flight


def test_a_cancelled_attempt_that_is_asked_for_again_stays_cancelled() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    world.perform(Cancel(StepId("s"), 1))
    world.perform(Cancel(StepId("s"), 1))
    assert drained(world, 50_000) == [a_failure(0, "cancelled")], "once"
    world.perform(start(WAKE))
    world.perform(Cancel(StepId("s"), 1))
    assert drained(world) == [a_failure(0, "cancelled")]
    assert world.observe().hosts[H2].state is HostState.STANDBY


def test_the_end_of_an_attempt_that_was_cancelled_does_not_end_the_next_one() -> None:
    world = a_world(EXACT)
    world.perform(start(WAKE))
    drained(world, 100_000)
    world.perform(Cancel(StepId("s"), 1))
    drained(world, 110_000)
    world.perform(start(WAKE, attempt=2))
    world.perform(Cancel(StepId("s"), 1))
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
def test_what_is_asked_of_somebody_who_is_gone_is_broken_off(
    gone: HostLeft | VmLeft, action: Action
) -> None:
    world = a_world(EXACT, happenings=(gone,))
    drained(world, 0)
    world.perform(start(action))
    assert drained(world, 1_000_000) == []
    assert not world.observe().in_flight
    world.perform(Cancel(StepId("s"), 1))
    world.perform(start(action))
    assert drained(world, 1_000_000) == [a_failure(1_000_000, "broken off")]


@pytest.mark.parametrize("host", ["h1", "h2", "h3"])
def test_a_host_may_die_in_any_state_and_comes_back_on(host: str) -> None:
    name = HostId(host)
    told = (HostFailed(at_ms=1000, host=name), HostRecovered(at_ms=2000, host=name))
    world = a_world(EXACT, happenings=told)
    assert drained(world, 1500) == [told[0]]
    assert world.observe().hosts[name].state is HostState.FAILED
    assert drained(world) == [told[1]]
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
def test_a_host_that_dies_takes_with_it_what_was_being_done_with_it(action: Action) -> None:
    seen = start(action).step.footprint.hosts[0]
    fault = HostFailed(at_ms=500, host=seen)
    world = a_world(EXACT, happenings=(fault,))
    world.perform(start(action))
    assert drained(world) == [fault]
    assert world.observe().hosts[seen].state is HostState.FAILED
    assert not world.observe().in_flight
    world.perform(start(action))
    assert [type(one) for one in drained(world)] == [ActionFailed]
