"""Migrations in the simulated world: their duration, their cost and their end."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import CancelAction, StartAction
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFailed, ActionFinished, Event, HostFailed
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.faults import Faults, MigrationsSlowed, SlowMigrations
from equipoise.model.scenario.load import Load, LoadPoint, StepLoad
from equipoise.model.scenario.physics import MigrationPhysics, Physics
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import Demand, Vm
from equipoise.sim.world.simulated_world import SimulatedWorld

LINK_MBPS = 838.8608
"""100 MiB per second: a GB takes ten seconds."""


def a_scenario(
    *hosts: Host, vms: list[Vm], physics: dict[str, Any] | None = None, **fields: Any
) -> Scenario:
    given: dict[str, Any] = {"link_mbps": LINK_MBPS, "dirty_mib_per_ghz": 0}
    return Scenario(
        name="copies",
        duration_s=10_000,
        cluster=an_inventory(*(hosts or [a_host(f"h{n}") for n in range(1, 5)]), vms=vms),
        physics=Physics(migration=MigrationPhysics(**given | (physics or {}))),
        measuring=MeasurementSettings(sample_s=10**9),
        **fields,
    )


def a_gigabyte(name: str, host: str, **fields: Any) -> Vm:
    return a_vm(name, host, **{"memory_mib": 1000} | fields)


def move(vm: str, source: str, target: str, attempt: int = 1) -> StartAction:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return StartAction(a_step(f"move-{vm}", action), attempt)


def drained(world: SimulatedWorld, until_ms: int = 10_000_000) -> list[Event]:
    found = []
    while (event := world.next_event(until_ms)) is not None:
        found.append(event)
    return found


def ends(events: list[Event]) -> dict[str, int]:
    """When each migration arrived."""
    return {str(event.step): event.at_ms for event in events if isinstance(event, ActionFinished)}


def used(world: SimulatedWorld) -> dict[str, float]:
    """The cycles that VMs use on each host, now."""
    table = world.record().hosts
    now = table["at_s"] == table["at_s"][-1]
    return dict(zip(table["host"][now], table["cpu_used_mhz"][now], strict=True))


def test_a_copy_takes_memory_over_link_speed_plus_switch_time() -> None:
    world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")]))
    world.perform(move("a", "h1", "h2"))
    assert drained(world) == [ActionFinished(at_ms=10_100, step=StepId("move-a"), attempt=1)]
    assert world.observe().vms[VmId("a")].host == "h2"
    assert world.measures().downtime_s == pytest.approx(0.1)


def test_dirty_pages_are_copied_again_and_the_rest_while_stopped() -> None:
    busy = a_gigabyte("a", "h1", demand=Demand(cpu_mhz=1000, memory_mib=1000))
    world = SimulatedWorld(a_scenario(vms=[busy], physics={"dirty_mib_per_ghz": 10}))
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": 10_000 + 1000 + 100 + 100}
    assert world.measures().downtime_s == pytest.approx(0.2)


def test_a_vm_that_writes_faster_than_the_link_is_stopped_for_the_whole_copy() -> None:
    busy = a_gigabyte("a", "h1", demand=Demand(cpu_mhz=1000, memory_mib=1000))
    physics = {"dirty_mib_per_ghz": 1000, "dirty_pct_max": 100}
    world = SimulatedWorld(a_scenario(vms=[busy], physics=physics))
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": 20_100}
    assert world.measures().downtime_s == pytest.approx(10.1)


def test_a_copy_speeds_up_when_another_ends() -> None:
    vms = [a_gigabyte("a", "h1"), a_vm("b", "h1", memory_mib=500)]
    world = SimulatedWorld(a_scenario(vms=vms))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h3"))
    # Until 10.1 s both have the half; then a has 495 MiB left and the whole link.
    assert ends(drained(world)) == {"move-b": 10_100, "move-a": 10_100 + 4950 + 100}


def test_copies_between_other_hosts_do_not_disturb_each_other() -> None:
    world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1"), a_gigabyte("b", "h3")]))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h3", "h4"))
    assert ends(drained(world)) == {"move-a": 10_100, "move-b": 10_100}


def test_a_host_limits_its_copies_and_the_others_wait() -> None:
    vms = [a_gigabyte(name, "h1") for name in "abc"]
    world = SimulatedWorld(a_scenario(vms=vms, physics={"per_host_max": 1, "switch_ms": 0}))
    for name in "bca":
        world.perform(move(name, "h1", "h2"))
    assert ends(drained(world)) == {"move-b": 10_001, "move-c": 20_002, "move-a": 30_003}


def test_a_vm_whose_copy_waits_runs_at_full_speed() -> None:
    vms = [a_gigabyte("a", "h1"), a_gigabyte("b", "h1", demand=Demand(cpu_mhz=1000))]
    world = SimulatedWorld(a_scenario(vms=vms, physics={"per_host_max": 1, "cpu_mhz": 0}))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    drained(world, 5000)
    assert used(world)["h1"] == 1000
    drained(world, 15_000)
    assert used(world)["h1"] == pytest.approx(900), "the VM is a tenth slower during the copy"


def test_the_dirty_rate_is_measured_when_the_copy_starts() -> None:
    rising = Load(
        cpu_mhz=(StepLoad(points=(LoadPoint(at_s=0, level=0), LoadPoint(at_s=5, level=1000))),),
        memory_mib=(StepLoad(points=(LoadPoint(at_s=0, level=0), LoadPoint(at_s=5, level=1000))),),
    )
    vms = [a_gigabyte("a", "h1"), a_gigabyte("b", "h1")]
    physics = {"per_host_max": 1, "dirty_mib_per_ghz": 10}
    loads: dict[str, Any] = {"loads": {"rising": rising}, "vm_loads": {"b": "rising"}}
    world = SimulatedWorld(a_scenario(vms=vms, physics=physics, **loads))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    # From 10.1 s on it writes 10 MiB per second: 100 MiB more, then 10 MiB and the switch.
    assert ends(drained(world))["move-b"] == 10_100 + 10_000 + 1000 + 100 + 100


def test_a_waiting_copy_can_be_cancelled() -> None:
    vms = [a_gigabyte("a", "h1"), a_gigabyte("b", "h1")]
    world = SimulatedWorld(a_scenario(vms=vms, physics={"per_host_max": 1}))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    drained(world, 3000)
    world.perform(CancelAction(StepId("move-b"), 1))
    cancelled, finished = drained(world)
    assert isinstance(cancelled, ActionFailed)
    assert (cancelled.at_ms, cancelled.step, cancelled.attempt) == (3000, "move-b", 1)
    assert cancelled.code == "cancelled"
    assert finished.at_ms == 10_100
    assert world.observe().vms[VmId("b")].host == "h1"


def test_cancelling_a_copy_starts_the_next_one() -> None:
    vms = [a_gigabyte("a", "h1", demand=Demand(cpu_mhz=1000)), a_gigabyte("b", "h1")]
    world = SimulatedWorld(a_scenario(vms=vms, physics={"per_host_max": 1}))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    drained(world, 3000)
    world.perform(CancelAction(StepId("move-a"), 1))
    assert ends(drained(world)) == {"move-b": 13_100}
    assert world.observe().vms[VmId("a")].host == "h1"
    assert used(world)["h1"] == 1000, "at full speed again"


def test_a_second_attempt_starts_from_zero() -> None:
    world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 9000)
    world.perform(CancelAction(StepId("move-a"), 1))
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
    world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")], events=(slow,)))
    drained(world, 0)
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": arrives_ms}


def test_overlapping_slow_periods_end_separately() -> None:
    first = MigrationsSlowed(at_ms=0, for_ms=2000, speed_pct=50)
    second = MigrationsSlowed(at_ms=1000, for_ms=100_000, speed_pct=10)
    scenario = a_scenario(vms=[a_gigabyte("a", "h1")], events=(first, second))
    world = SimulatedWorld(scenario)
    drained(world, 2000)
    world.perform(move("a", "h1", "h2"))
    # From 2 s to 101 s the links carry 10 MiB per second: 990 MiB, and the rest takes 0.1 s.
    assert ends(drained(world)) == {"move-a": 101_200}


def test_a_slow_migration_takes_several_times_as_long() -> None:
    faults = Faults(slow_migrations=SlowMigrations(pct=100, factor=5))
    world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")], faults=faults))
    world.perform(move("a", "h1", "h2"))
    assert ends(drained(world)) == {"move-a": 50_100}


def test_a_failing_copy_fails_at_another_point_in_each_attempt() -> None:
    scenario = a_scenario(vms=[a_gigabyte("a", "h1")], physics={"failed_pct": 100})
    took = []
    for _ in range(2):
        world = SimulatedWorld(scenario)
        for attempt in (1, 2, 3):
            began_ms = world.observe().at_ms
            world.perform(move("a", "h1", "h2", attempt))
            (answer,) = drained(world, began_ms + 10_100)
            assert isinstance(answer, ActionFailed)
            assert answer.code == "migration-failed"
            assert world.observe().vms[VmId("a")].host == "h1"
            took.append(answer.at_ms - began_ms)
    assert took[:3] == took[3:], "the same seed, the same fate"
    assert len(set(took)) == 3
    assert all(0 < number <= 10_000 for number in took)


def test_a_copy_costs_both_hosts_cpu_and_slows_the_vm() -> None:
    hungry = a_gigabyte("a", "h1", demand=Demand(cpu_mhz=4000))
    other = a_gigabyte("b", "h2", demand=Demand(cpu_mhz=4000))
    world = SimulatedWorld(a_scenario(vms=[hungry, other]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 5000)
    assert used(world) == {"h1": 3500, "h2": 3500, "h3": 0, "h4": 0}
    drained(world, 10_050)
    assert used(world)["h1"] == 0, "the VM is stopped for the switch"
    drained(world, 20_000)
    assert used(world) == {"h1": 0, "h2": 4000, "h3": 0, "h4": 0}


def test_a_copy_uses_the_active_memory_on_its_target() -> None:
    moved = a_gigabyte("a", "h1", demand=Demand(memory_mib=500))
    other = a_vm("b", "h2", memory_mib=2048, demand=Demand(memory_mib=2000))
    world = SimulatedWorld(
        a_scenario(a_host("h1"), a_host("h2", memory_mib=2048), vms=[moved, other])
    )
    world.perform(move("a", "h1", "h2"))
    drained(world, 5000)
    table = world.record().hosts
    assert table["memory_used_mib"][-2:].tolist() == [500, 2048 - 500]
    world.perform(CancelAction(StepId("move-a"), 1))
    drained(world, 6000)
    assert world.record().hosts["memory_used_mib"][-2:].tolist() == [500, 2000]


def test_an_end_comes_before_a_fault_of_the_same_instant() -> None:
    for host, where in (("h1", "h2"), ("h2", None)):
        fault = HostFailed(at_ms=10_100, host=HostId(host))
        world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")], events=(fault,)))
        world.perform(move("a", "h1", "h2"))
        assert [type(event) for event in drained(world)] == [ActionFinished, HostFailed]
        assert world.observe().vms[VmId("a")].host == where


def test_a_migration_cancelled_at_its_end_has_finished() -> None:
    world = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")]))
    world.perform(move("a", "h1", "h2"))
    drained(world, 10_099)
    world.perform(CancelAction(StepId("move-a"), 1))
    (failed,) = drained(world)
    assert isinstance(failed, ActionFailed)
    again = SimulatedWorld(a_scenario(vms=[a_gigabyte("a", "h1")]))
    again.perform(move("a", "h1", "h2"))
    (finished,) = drained(again, 10_100)
    again.perform(CancelAction(StepId("move-a"), 1))
    assert isinstance(finished, ActionFinished)
    assert drained(again) == []
