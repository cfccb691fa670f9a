"""Benchmarks of the simulated world, compared with SimPy on the same events."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from time import perf_counter
from typing import Any

from equipoise.bench.measure import BenchmarkRow, peak_memory_mib
from equipoise.capacity.waterfill import ShareClaim, fill_by_shares
from equipoise.errors import MissingExtra
from equipoise.model.host import Host, PowerProfile
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.load import Distribution, Load, NoiseLoad
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    FleetPlacementOrder,
    Fleets,
    HostFleet,
    Scenario,
    VmFleet,
)
from equipoise.model.vm import Vm
from equipoise.sim import SimulatedWorld
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

PERIOD_S = 600
CORES, MHZ = 16, 2000
CPU_MHZ = CORES * MHZ


def rows() -> Iterator[BenchmarkRow]:
    """Yield a small run, large runs of 2, 4 and 24 hours, and a huge run."""
    small = builtin_scenario("drs-table1").but(deciders=())
    _run(small)  # the first run includes compilation
    yield BenchmarkRow("30 hosts, 400 VMs, 1 h (drs-table1, no decider)", _run(small), "", None)
    yield from _compare_with_simpy(hours=2)
    what = "1,000 hosts, 20,000 VMs, a change every 10 min per VM, with loop and journal, "
    for hours in (2, 4, 24):
        seconds = _run(noisy_scenario(1000, 20_000, hours))
        yield BenchmarkRow(
            f"{what}{hours} h, at most {round(peak_memory_mib()):,} MiB so far", seconds, "", None
        )
        what = "the same, "
    huge = _run(builtin_scenario("growth"))
    yield BenchmarkRow(
        f"10,000 hosts, 200,000 VMs, 1 h (growth), at most {round(peak_memory_mib()):,} MiB",
        huge,
        "",
        None,
    )


def _compare_with_simpy(hours: int) -> Iterator[BenchmarkRow]:
    """Compare the world without a loop with SimPy, which does less work and equal work."""
    scenario = noisy_scenario(1000, 20_000, hours)
    events = 20_000 * 3600 * hours // PERIOD_S
    world = SimulatedWorld(scenario)
    began = perf_counter()
    world.next_event(1000 * scenario.duration_s)
    ours = perf_counter() - began
    what = f"world alone, 1,000 hosts, 20,000 VMs, {hours} h, {events:,} changes"
    peer = _simpy(1000, 20_000, hours, divide=False)
    yield BenchmarkRow(
        what, ours, "SimPy, same changes, no division of capacity", peer, count=events
    )
    peer = _simpy(1000, 20_000, hours, divide=True)
    yield BenchmarkRow(
        "the same", ours, "SimPy, capacity divided in plain Python", peer, count=events
    )


def noisy_scenario(hosts: int, vms: int, hours: int) -> Scenario:
    """Return a scenario in which the demand of every VM changes every ten minutes."""
    host = Host(
        id=HostId("host"),
        cores=CORES,
        mhz_per_core=MHZ,
        memory_mib=131_072,
        power=PowerProfile(idle_watts=100, peak_watts=300),
    )
    vm = Vm(id=VmId("vm"), vcpus=2, memory_mib=4096)
    start = FleetPlacement(hosts=("host",), assigned=FleetPlacementOrder.RANDOMLY)
    busy = Load(cpu_mhz=(NoiseLoad(level=Distribution(low=200, high=2500), period_s=PERIOD_S),))
    return Scenario(
        name="bench",
        duration_s=3600 * hours,
        cluster=Inventory(hosts=()),
        fleet=Fleets(
            hosts=(HostFleet(count=hosts, like=host),),
            vms=(VmFleet(count=vms, like=vm, load="busy", start=start),),
        ),
        loads={"busy": busy},
    )


def _run(scenario: Scenario) -> float:
    began = perf_counter()
    runner = ScenarioRunner(scenario, MemoryJournal())
    runner.run(1000 * scenario.duration_s)
    runner.result()
    return perf_counter() - began


def _simpy(hosts: int, vms: int, hours: int, *, divide: bool) -> float:
    """Return the time of the least work in SimPy: wait, draw a demand, sum up a host."""
    try:
        import simpy  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MissingExtra("bench", "comparing with SimPy") from None
    rng = random.Random(1)
    demands: list[dict[int, float]] = [{} for _ in range(hosts)]
    used, area, since = [0.0] * hosts, [0.0] * hosts, [0.0] * hosts

    def vm(environment: Any, name: int, host: int) -> Generator[Any, Any, None]:
        yield environment.timeout(rng.uniform(0, PERIOD_S))
        while True:
            area[host] += used[host] * (environment.now - since[host])
            since[host] = environment.now
            demand = rng.uniform(200, 2500)
            used[host] += demand - demands[host].get(name, 0.0)
            demands[host][name] = demand
            if divide:
                claims = [ShareClaim(0, wanted, 1000) for wanted in demands[host].values()]
                used[host] = sum(fill_by_shares(CPU_MHZ, claims))
            yield environment.timeout(PERIOD_S)

    environment = simpy.Environment()
    for name in range(vms):
        environment.process(vm(environment, name, rng.randrange(hosts)))
    began = perf_counter()
    environment.run(until=3600 * hours)
    return perf_counter() - began
