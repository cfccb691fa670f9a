"""Migrations whose source, target or VM is lost during the copy."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import StartAction
from equipoise.model.action import Migrate
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    Event,
    HostFailed,
    HostJoined,
    HostLeft,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.faults import ScheduledEvent
from equipoise.model.scenario.load import ConstantLoad, Load
from equipoise.model.scenario.physics import MigrationPhysics, Physics
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.sim.world.simulated_world import SimulatedWorld

LINK_MBPS = 838.8608
"""100 MiB per second: a GB takes ten seconds."""
AT_MS = 4000


def a_world(vms: list[Vm], *events: ScheduledEvent, per_host_max: int = 8) -> SimulatedWorld:
    migration = MigrationPhysics(
        link_mbps=LINK_MBPS, dirty_mib_per_ghz=0, per_host_max=per_host_max
    )
    return SimulatedWorld(
        Scenario(
            name="faults",
            duration_s=1000,
            cluster=an_inventory(*(a_host(f"h{n}") for n in range(1, 5)), vms=vms),
            loads={"steady": Load(cpu_mhz=(ConstantLoad(level=3000),))},
            vm_loads={vm.id: "steady" for vm in vms},
            physics=Physics(migration=migration),
            measuring=MeasurementSettings(sample_s=10**9),
            events=events,
        )
    )


def guest(name: str, host: str, **fields: Any) -> Vm:
    return a_vm(name, host, memory_mib=1000, demand=Demand(memory_mib=1000), **fields)


def move(vm: str, source: str, target: str, attempt: int = 1) -> StartAction:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return StartAction(a_step(f"move-{vm}", action), attempt)


def drained(world: SimulatedWorld, until_ms: int = 1_000_000) -> list[Event]:
    found = []
    while (event := world.next_event(until_ms)) is not None:
        found.append(event)
    return found


def now_on_hosts(world: SimulatedWorld, figure: str) -> dict[str, float]:
    table = world.record().hosts
    now = table["at_s"] == table["at_s"][-1]
    return dict(zip(table["host"][now], table[figure][now], strict=True))


def failed(host: str) -> HostFailed:
    return HostFailed(at_ms=AT_MS, host=HostId(host))


def left(host: str) -> HostLeft:
    return HostLeft(at_ms=AT_MS, host=HostId(host))


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        (failed("h1"), None),
        (failed("h2"), "h1"),
        (left("h1"), None),
        (left("h2"), "h1"),
        (VmCrashed(at_ms=AT_MS, vm=VmId("a")), None),
    ],
)
def test_a_migration_ends_with_its_source_its_target_or_its_vm(
    fault: ScheduledEvent, where: str | None
) -> None:
    # Four neighbours who want all there is: they tell whether the copy still costs something.
    vms = [guest("a", "h1"), *(guest(f"b{n}", f"h{n}") for n in range(1, 5))]
    world = a_world(vms, fault)
    world.perform(move("a", "h1", "h2"))
    events = drained(world, AT_MS + 1)
    assert events == [fault], "an action that a fault ended has no answer"
    moved = world.observe().vms[VmId("a")]
    assert moved.host == where
    assert moved.state is (VmState.READY if where is None else VmState.RUNNING)
    assert not world.observe().in_flight
    lives = [host.id for host in world.observe().hosts.values() if host.state == "on"]
    used = now_on_hosts(world, "cpu_used_mhz")
    memory = now_on_hosts(world, "memory_used_mib")
    for host in lives:
        here = sum(vm.host == host for vm in world.observe().vms.values())
        assert used[host] == min(4000, 3000 * here), host
        assert memory[host] == 1000 * here, host
    assert now_on_hosts(world, "watts").keys() == world.observe().hosts.keys()
    assert drained(world) == []


def test_a_vm_that_leaves_ends_its_migration() -> None:
    vms = [guest("a", "h1"), guest("b", "h1"), guest("c", "h2")]
    world = a_world(vms, VmLeft(at_ms=AT_MS, vm=VmId("a")))
    world.perform(move("a", "h1", "h2"))
    assert [type(event) for event in drained(world)] == [VmLeft]
    used = now_on_hosts(world, "cpu_used_mhz")
    assert (used["h1"], used["h2"]) == (3000, 3000)
    assert world.record().cluster["migrations_running"][-1] == 0


def test_a_repeated_request_for_an_interrupted_action_fails() -> None:
    world = a_world([guest("a", "h1")], failed("h2"))
    world.perform(move("a", "h1", "h2"))
    drained(world, AT_MS)
    world.perform(move("a", "h1", "h2"))
    (answer,) = drained(world, AT_MS)
    assert isinstance(answer, ActionFailed)
    assert answer.code == "action-interrupted"
    world.perform(move("a", "h1", "h3", attempt=2))
    (finished,) = drained(world)
    assert isinstance(finished, ActionFinished)
    assert (finished.attempt, finished.at_ms) == (2, AT_MS + 10_100)


def test_a_copy_that_waits_for_a_failed_host_never_starts() -> None:
    vms = [guest("a", "h1"), guest("b", "h1"), guest("c", "h3")]
    world = a_world(vms, failed("h2"), per_host_max=1)
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h1", "h2"))
    world.perform(move("c", "h3", "h1"))
    events = drained(world)
    assert [(type(event), event.at_ms) for event in events] == [
        (HostFailed, AT_MS),
        (ActionFinished, AT_MS + 10_100),
    ]
    assert world.observe().vms[VmId("b")].host == "h1"
    assert world.observe().vms[VmId("c")].host == "h1"
    used = now_on_hosts(world, "cpu_used_mhz")
    assert (used["h1"], used["h3"]) == (4000, 0)


def test_a_host_failure_speeds_up_copies_of_its_peers() -> None:
    vms = [guest("a", "h1"), guest("b", "h3"), guest("c", "h2")]
    world = a_world(vms, failed("h1"))
    world.perform(move("a", "h1", "h2"))
    world.perform(move("b", "h3", "h2"))
    # For 4 s b has half of the link into h2; 800 MiB are left, and the link is its own.
    events = drained(world)
    assert [(type(event), event.at_ms) for event in events] == [
        (HostFailed, AT_MS),
        (ActionFinished, AT_MS + 8100),
    ]
    assert now_on_hosts(world, "cpu_used_mhz")["h2"] == 4000


def test_a_host_failure_ends_all_copies_and_their_cost() -> None:
    vms = [guest(name, "h1") for name in "abcdef"] + [guest("z", "h2"), guest("y", "h3")]
    world = a_world(vms, failed("h1"), per_host_max=2)
    for name, target in zip("abcdef", ("h2", "h3") * 3, strict=True):
        world.perform(move(name, "h1", target))
    assert [type(event) for event in drained(world)] == [HostFailed]
    used = now_on_hosts(world, "cpu_used_mhz")
    assert (used["h2"], used["h3"]) == (3000, 3000)
    assert world.record().cluster["migrations_running"][-1] == 0
    memory = now_on_hosts(world, "memory_used_mib")
    assert (memory["h2"], memory["h3"]) == (1000, 1000)


def test_old_copies_do_not_affect_a_host_that_rejoins() -> None:
    again = HostJoined(at_ms=AT_MS + 1000, host=a_host("h2"))
    world = a_world([guest("a", "h1"), guest("b", "h3")], left("h2"), again)
    world.perform(move("a", "h1", "h2"))
    drained(world, AT_MS + 2000)
    world.perform(move("b", "h3", "h2"))
    (finished,) = drained(world)
    assert finished.at_ms == AT_MS + 2000 + 10_100
    used = now_on_hosts(world, "cpu_used_mhz")
    assert (used["h1"], used["h2"], used["h3"]) == (3000, 3000, 0)


def test_an_old_copy_does_not_affect_a_vm_that_returns() -> None:
    gone = VmLeft(at_ms=AT_MS, vm=VmId("a"))
    again = VmArrived(at_ms=AT_MS, vm=guest("a", "h3"))
    world = a_world([guest("a", "h1")], gone, again)
    world.perform(move("a", "h1", "h2"))
    assert [type(event) for event in drained(world)] == [VmLeft, VmArrived]
    assert world.observe().vms[VmId("a")].host == "h3"
    assert now_on_hosts(world, "cpu_used_mhz")["h3"] == 3000


def test_a_vm_that_crashes_during_the_switch_restarts_at_full_speed() -> None:
    stopped_ms = 10_050
    world = a_world([guest("a", "h1")], VmCrashed(at_ms=stopped_ms, vm=VmId("a")))
    world.perform(move("a", "h1", "h2"))
    assert [type(event) for event in drained(world, 20_050)] == [VmCrashed]
    # Stopped for the switch from 10 s on, then lost: it is down since, and only once.
    assert world.measures().downtime_s == pytest.approx(10.05)
