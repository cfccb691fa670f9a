"""How fast the simulated world is, beside SimPy on the same events."""

from __future__ import annotations

import random
import resource
import sys
from collections.abc import Generator, Iterator
from time import perf_counter
from typing import Any

from equipoise.cli.bench.row import Row
from equipoise.errors import MissingExtra
from equipoise.model.host import Host, PowerFigures
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.story.fleet import Dealing, Fleet, HostFleet, Start, VmFleet
from equipoise.model.story.load import Load, Noise, Spread
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import Vm
from equipoise.place.fill import Claim, fill
from equipoise.sim import SimulatedWorld
from equipoise.sim.builtin import builtin
from equipoise.sim.play import Play
from equipoise.store import MemoryJournal

PERIOD_S = 600
CORES, MHZ = 16, 2000
CPU_MHZ = CORES * MHZ


def rows() -> Iterator[Row]:
    """Small, large for some hours, twice as long, large for a day, and huge."""
    small = builtin("drs-table1").but(deciders=())
    _run(small)  # the first one pays for compiling
    yield Row("30 hosts, 400 VMs, 1 h (drs-table1, nobody decides)", _run(small), "", None)
    yield from _beside_simpy(hours=2)
    what = "1,000 hosts, 20,000 VMs, a change every 10 min per VM, with loop and journal, "
    for hours in (2, 4, 24):
        seconds = _run(a_world(1000, 20_000, hours))
        yield Row(f"{what}{hours} h, at most {_memory_mib():,} MiB so far", seconds, "", None)
        what = "the same, "
    huge = _run(builtin("growth"))
    yield Row(
        f"10,000 hosts, 200,000 VMs, 1 h (growth), at most {_memory_mib():,} MiB", huge, "", None
    )


def _beside_simpy(hours: int) -> Iterator[Row]:
    """The world alone, without anybody who looks at it, beside SimPy doing less and as much."""
    scenario = a_world(1000, 20_000, hours)
    events = 20_000 * 3600 * hours // PERIOD_S
    world = SimulatedWorld(scenario)
    began = perf_counter()
    world.next_event(1000 * scenario.duration_s)
    ours = perf_counter() - began
    what = f"world alone, 1,000 hosts, 20,000 VMs, {hours} h, {events:,} changes"
    peer = _simpy(1000, 20_000, hours, divide=False)
    yield Row(what, ours, "SimPy with the same changes, dividing no host", peer, count=events)
    peer = _simpy(1000, 20_000, hours, divide=True)
    yield Row("the same", ours, "SimPy, dividing hosts in plain Python", peer, count=events)


def a_world(hosts: int, vms: int, hours: int) -> Scenario:
    """A cluster in which every VM changes its mind every ten minutes, each at its own time."""
    host = Host(
        id=HostId("host"),
        cores=CORES,
        mhz_per_core=MHZ,
        memory_mib=131_072,
        power=PowerFigures(idle_watts=100, peak_watts=300),
    )
    vm = Vm(id=VmId("vm"), vcpus=2, memory_mib=4096)
    start = Start(hosts=("host",), dealt=Dealing.RANDOMLY)
    busy = Load(cpu_mhz=(Noise(level=Spread(low=200, high=2500), period_s=PERIOD_S),))
    return Scenario(
        name="bench",
        duration_s=3600 * hours,
        cluster=Inventory(hosts=()),
        fleet=Fleet(
            hosts=(HostFleet(count=hosts, like=host),),
            vms=(VmFleet(count=vms, like=vm, load="busy", start=start),),
        ),
        loads={"busy": busy},
    )


def _run(scenario: Scenario) -> float:
    began = perf_counter()
    play = Play(scenario, MemoryJournal())
    play.run(1000 * scenario.duration_s)
    play.result()
    return perf_counter() - began


def _simpy(hosts: int, vms: int, hours: int, *, divide: bool) -> float:
    """The least that SimPy can do: wait, draw a demand, keep the sums of a host."""
    try:
        import simpy
    except ImportError:
        raise MissingExtra("bench", "comparing with SimPy") from None
    chance = random.Random(1)
    demands: list[dict[int, float]] = [{} for _ in range(hosts)]
    used, area, since = [0.0] * hosts, [0.0] * hosts, [0.0] * hosts

    def vm(environment: Any, name: int, host: int) -> Generator[Any, Any, None]:
        yield environment.timeout(chance.uniform(0, PERIOD_S))
        while True:
            area[host] += used[host] * (environment.now - since[host])
            since[host] = environment.now
            demand = chance.uniform(200, 2500)
            used[host] += demand - demands[host].get(name, 0.0)
            demands[host][name] = demand
            if divide:
                claims = [Claim(0, one, 1000) for one in demands[host].values()]
                used[host] = sum(fill(CPU_MHZ, claims))
            yield environment.timeout(PERIOD_S)

    environment = simpy.Environment()
    for name in range(vms):
        environment.process(vm(environment, name, chance.randrange(hosts)))
    began = perf_counter()
    environment.run(until=3600 * hours)
    return perf_counter() - began


def _memory_mib() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (1024 * 1024 if sys.platform == "darwin" else 1024)
