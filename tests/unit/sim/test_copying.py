"""Migrations in the simulated world: how long they take, what they cost, what may end them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import Cancel, Start
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFailed, ActionFinished, Event, HostFailed
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.story.load import Load, Point, Steps
from equipoise.model.story.physics import MigrationPhysics, Physics
from equipoise.model.story.scenario import Measuring, Scenario
from equipoise.model.story.unrest import MigrationsSlowed, Slowness, Unrest
from equipoise.model.vm import Demand, Vm
from equipoise.sim.world import SimulatedWorld

LINK_MBPS = 838.8608
"""100 MiB per second: a GB takes ten seconds."""


def a_story(
    *hosts: Host, vms: list[Vm], physics: dict[str, Any] | None = None, **fields: Any
) -> Scenario:
    given: dict[str, Any] = {"link_mbps": LINK_MBPS, "dirty_mib_per_ghz": 0}
    return Scenario(
        name="copies",
        duration_s=10_000,
        cluster=an_inventory(*(hosts or [a_host(f"h{n}") for n in range(1, 5)]), vms=vms),
        physics=Physics(migration=MigrationPhysics(**given | (physics or {}))),
        measuring=Measuring(sample_s=10**9),
        **fields,
    )


def a_gigabyte(name: str, host: str, **fields: Any) -> Vm:
    return a_vm(name, host, **{"memory_mib": 1000} | fields)


def move(vm: str, source: str, target: str, attempt: int = 1) -> Start:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return Start(a_step(f"move-{vm}", action), attempt)


def drained(world: SimulatedWorld, until_ms: int = 10_000_000) -> list[Event]:
    found = []
    while (event := world.next_event(until_ms)) is not None:
        found.append(event)
    return found


def ends(events: list[Event]) -> dict[str, int]:
    """When each migration arrived."""
    return {str(one.step): one.at_ms for one in events if isinstance(one, ActionFinished)}


def used(world: SimulatedWorld) -> dict[str, float]:
    """The cycles that VMs use on each host, now."""
    table = world.record().hosts
    now = table["at_s"] == table["at_s"][-1]
    return dict(zip(table["host"][now], table["cpu_used_mhz"][now], strict=True))


def test_a_copy_takes_its_memory_over_the_link_and_the_switch() -> None:
    world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")]))
    world.perform(move("a", "h1", "h2"))
    assert drained(world) == [ActionFinished(at_ms=10_100, step=StepId("move-a"), attempt=1)]
    assert world.observe().vms[VmId("a")].host == "h2"
    assert world.measures().downtime_s == pytest.approx(0.1)


def test_what_a_vm_writes_is_copied_again_and_the_rest_while_it_is_stopped() -> None:
    busy = a_gigabyte("a", "h1", demand=Demand(cpu_mhz=1000, memory_mib=1000))
    world = SimulatedWorld(a_story(vms=[busy], physics={"dirty_mib_per_ghz": 10}))
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": 10_000 + 1000 + 100 + 100}
    assert world.measures().downtime_s == pytest.approx(0.2)


def test_a_vm_that_writes_faster_than_the_link_is_stopped_for_all_of_it() -> None:
    busy = a_gigabyte("a", "h1", demand=Demand(cpu_mhz=1000, memory_mib=1000))
    physics = {"dirty_mib_per_ghz": 1000, "dirty_pct_max": 100}
    world = SimulatedWorld(a_story(vms=[busy], physics=physics))
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": 20_100}
    assert world.measures().downtime_s == pytest.approx(10.1)


def test_of_two_copies_on_a_host_one_ends_and_the_other_speeds_up() -> None:
    vms = [a_gigabyte("a", "h1"), a_vm("b", "h1", memory_mib=500)]
    world = SimulatedWorld(a_story(vms=vms))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h3"))
    # Until 10.1 s both have the half; then a has 495 MiB left and the whole link.
    assert ends(drained(world)) == {"move-b": 10_100, "move-a": 10_100 + 4950 + 100}


def test_copies_between_other_hosts_do_not_disturb_each_other() -> None:
    world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1"), a_gigabyte("b", "h3")]))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h3", "h4"))
    assert ends(drained(world)) == {"move-a": 10_100, "move-b": 10_100}


def test_a_host_carries_out_so_many_and_the_others_wait_for_their_turn() -> None:
    vms = [a_gigabyte(name, "h1") for name in "abc"]
    world = SimulatedWorld(a_story(vms=vms, physics={"per_host_max": 1, "switch_ms": 0}))
    for name in "bca":
        world.perform(move(name, "h1", "h2"))
    assert ends(drained(world)) == {"move-b": 10_001, "move-c": 20_002, "move-a": 30_003}


def test_a_vm_that_waits_for_its_turn_runs_at_full_speed() -> None:
    vms = [a_gigabyte("a", "h1"), a_gigabyte("b", "h1", demand=Demand(cpu_mhz=1000))]
    world = SimulatedWorld(a_story(vms=vms, physics={"per_host_max": 1, "cpu_mhz": 0}))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    drained(world, 5000)
    assert used(world)["h1"] == 1000
    drained(world, 15_000)
    assert used(world)["h1"] == pytest.approx(900), "a tenth slower while it is copied"


def test_what_a_vm_writes_is_judged_when_its_copy_begins_not_when_it_was_asked_for() -> None:
    rising = Load(
        cpu_mhz=(Steps(points=(Point(at_s=0, level=0), Point(at_s=5, level=1000))),),
        memory_mib=(Steps(points=(Point(at_s=0, level=0), Point(at_s=5, level=1000))),),
    )
    vms = [a_gigabyte("a", "h1"), a_gigabyte("b", "h1")]
    physics = {"per_host_max": 1, "dirty_mib_per_ghz": 10}
    loads: dict[str, Any] = {"loads": {"rising": rising}, "vm_loads": {"b": "rising"}}
    world = SimulatedWorld(a_story(vms=vms, physics=physics, **loads))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    # From 10.1 s on it writes 10 MiB per second: 100 MiB more, then 10 MiB and the switch.
    assert ends(drained(world))["move-b"] == 10_100 + 10_000 + 1000 + 100 + 100


def test_a_copy_that_waits_can_be_cancelled() -> None:
    vms = [a_gigabyte("a", "h1"), a_gigabyte("b", "h1")]
    world = SimulatedWorld(a_story(vms=vms, physics={"per_host_max": 1}))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    drained(world, 3000)
    world.perform(Cancel(StepId("move-b"), 1))
    cancelled, finished = drained(world)
    assert cancelled == ActionFailed(
        at_ms=3000, step=StepId("move-b"), attempt=1, reason="cancelled"
    )
    assert finished.at_ms == 10_100
    assert world.observe().vms[VmId("b")].host == "h1"


def test_cancelling_a_copy_lets_the_next_one_begin() -> None:
    vms = [a_gigabyte("a", "h1", demand=Demand(cpu_mhz=1000)), a_gigabyte("b", "h1")]
    world = SimulatedWorld(a_story(vms=vms, physics={"per_host_max": 1}))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    drained(world, 3000)
    world.perform(Cancel(StepId("move-a"), 1))
    assert ends(drained(world)) == {"move-b": 13_100}
    assert world.observe().vms[VmId("a")].host == "h1"
    assert used(world)["h1"] == 1000, "at full speed again"


def test_a_second_attempt_begins_from_nothing() -> None:
    world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 9000)
    world.perform(Cancel(StepId("move-a"), 1))
    (cancelled,) = drained(world, 9000)
    assert isinstance(cancelled, ActionFailed)
    world.perform(move("a", "h1", "h2", attempt=2))
    assert ends(drained(world)) == {"move-a": 19_100}


@pytest.mark.parametrize(
    ("at_ms", "for_ms", "arrives_ms"),
    [(0, 10**6, 20_100), (2000, 4000, 12_100), (5000, 10_000, 15_100), (10_050, 10_000, 10_100)],
)
def test_slow_links_slow_down_what_is_being_copied(
    at_ms: int, for_ms: int, arrives_ms: int
) -> None:
    slow = MigrationsSlowed(at_ms=at_ms, for_ms=for_ms, speed_pct=50)
    world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")], happenings=(slow,)))
    drained(world, 0)
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": arrives_ms}


def test_slow_times_that_overlap_end_each_at_its_own_end() -> None:
    first = MigrationsSlowed(at_ms=0, for_ms=2000, speed_pct=50)
    second = MigrationsSlowed(at_ms=1000, for_ms=100_000, speed_pct=10)
    story = a_story(vms=[a_gigabyte("a", "h1")], happenings=(first, second))
    world = SimulatedWorld(story)
    drained(world, 2000)
    world.perform(move("a", "h1", "h2"))
    # From 2 s to 101 s the links carry 10 MiB per second: 990 MiB, and the rest takes 0.1 s.
    assert ends(drained(world)) == {"move-a": 101_200}


def test_a_slow_migration_takes_several_times_as_long() -> None:
    unrest = Unrest(slow_migrations=Slowness(pct=100, factor=5))
    world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")], unrest=unrest))
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": 50_100}


def test_a_failing_copy_breaks_on_its_way_and_each_attempt_somewhere_else() -> None:
    story = a_story(vms=[a_gigabyte("a", "h1")], physics={"failed_pct": 100})
    took = []
    for _ in range(2):
        world = SimulatedWorld(story)
        for attempt in (1, 2, 3):
            began_ms = world.observe().at_ms
            world.perform(move("a", "h1", "h2", attempt))
            (answer,) = drained(world, began_ms + 10_100)
            assert isinstance(answer, ActionFailed)
            assert answer.reason == "the connection broke"
            assert world.observe().vms[VmId("a")].host == "h1"
            took.append(answer.at_ms - began_ms)
    assert took[:3] == took[3:], "the same seed, the same fate"
    assert len(set(took)) == 3
    assert all(0 < one <= 10_000 for one in took)


def test_a_copy_costs_both_hosts_cycles_and_the_vm_its_speed() -> None:
    hungry = a_gigabyte("a", "h1", demand=Demand(cpu_mhz=4000))
    other = a_gigabyte("b", "h2", demand=Demand(cpu_mhz=4000))
    world = SimulatedWorld(a_story(vms=[hungry, other]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 5000)
    assert used(world) == {"h1": 3500, "h2": 3500, "h3": 0, "h4": 0}
    drained(world, 10_050)
    assert used(world)["h1"] == 0, "it is stopped for the switch"
    drained(world, 20_000)
    assert used(world) == {"h1": 0, "h2": 4000, "h3": 0, "h4": 0}


def test_a_copy_fills_its_target_with_what_is_active() -> None:
    moved = a_gigabyte("a", "h1", demand=Demand(memory_mib=500))
    other = a_vm("b", "h2", memory_mib=2048, demand=Demand(memory_mib=2000))
    world = SimulatedWorld(a_story(a_host("h1"), a_host("h2", memory_mib=2048), vms=[moved, other]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 5000)
    table = world.record().hosts
    assert table["memory_used_mib"][-2:].tolist() == [500, 2048 - 500]
    world.perform(Cancel(StepId("move-a"), 1))
    drained(world, 6000)
    assert world.record().hosts["memory_used_mib"][-2:].tolist() == [500, 2000]


def test_an_end_comes_before_a_fault_of_the_same_instant() -> None:
    for host, where in (("h1", "h2"), ("h2", None)):
        fault = HostFailed(at_ms=10_100, host=HostId(host))
        world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")], happenings=(fault,)))
        world.perform(move("a", "h1", "h2"))
        assert [type(one) for one in drained(world)] == [ActionFinished, HostFailed]
        assert world.observe().vms[VmId("a")].host == where


def test_who_is_cancelled_at_the_instant_of_arrival_has_arrived() -> None:
    world = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 10_099)
    world.perform(Cancel(StepId("move-a"), 1))
    (failed,) = drained(world)
    assert isinstance(failed, ActionFailed)
    again = SimulatedWorld(a_story(vms=[a_gigabyte("a", "h1")]))
    again.perform(move("a", "h1", "h2"))
    (finished,) = drained(again, 10_100)
    again.perform(Cancel(StepId("move-a"), 1))
    assert isinstance(finished, ActionFinished)
    assert drained(again) == []
