"""One power model: a host of VMs and a host of jobs draw the same energy at the same load."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.host import Host, PowerProfile, watts_at
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import Demand, Vm
from equipoise.sim.jobs.engine import JobEngine
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.work import Job, TaskWork
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

MHZ = 1000


class Silent:
    """An observer that ignores everything."""

    def job_started(self, job: Job) -> None: ...

    def job_ended(self, job: Job) -> None: ...

    def hosts_switched(self, hosts: object, power_state: int, *, begins: bool) -> None: ...

    def hosts_arrived(self, hosts: object, power_state: int, *, changed: bool) -> None: ...


def joules_of_vms(profile: PowerProfile, cores: int, busy: int, seconds: int) -> float:
    """Run ``busy`` VMs that use one core each."""
    host = Host(
        id=HostId("h"), cores=cores, mhz_per_core=MHZ, memory_mib=1024 * cores, power=profile
    )
    vms = tuple(
        Vm(id=VmId(f"v{n}"), vcpus=1, memory_mib=64, host=host.id, demand=Demand(cpu_mhz=MHZ))
        for n in range(busy)
    )
    scenario = Scenario(
        name="power", cluster=Inventory(hosts=(host,), vms=vms), duration_s=seconds, seed=0
    )
    runner = ScenarioRunner(scenario, MemoryJournal())
    runner.run(1000 * seconds)
    return runner.result().measures.energy.kwh * 3.6e6


def joules_of_job(profile: PowerProfile, cores: int, busy: int, seconds: int) -> float:
    """Run a job with ``busy`` executors on one host, each on a core of its own."""
    state = PowerState(1.0, profile.idle_watts, profile.idle_watts, profile.peak_watts)
    host = JobHost(name="h", power_states=(state,), cores=cores, measures_power=True)
    engine = JobEngine(Platform(hosts=[host]), Silent(), energy=True)
    if busy:
        work = TaskWork(name="t", flops=(float(seconds),) * busy)
        engine.start(Job("w0", "1", 0.0, busy, work), [0], executors=[0] * busy)
    while engine.time.step():
        pass
    return engine.hosts.total_energy_j(float(seconds))


@given(
    idle=st.integers(0, 300),
    more=st.integers(0, 500),
    cores=st.integers(1, 6),
    seconds=st.integers(1, 300),
    data=st.data(),
)
@settings(max_examples=25)
def test_both_worlds_draw_the_same_energy_at_the_same_load(
    idle: int, more: int, cores: int, seconds: int, data: st.DataObject
) -> None:
    busy = data.draw(st.integers(0, cores))
    profile = PowerProfile(idle_watts=idle, peak_watts=idle + more)
    expected = seconds * (idle + more * busy / cores)
    assert joules_of_vms(profile, cores, busy, seconds) == pytest.approx(expected)
    assert joules_of_job(profile, cores, busy, seconds) == pytest.approx(expected)


@given(
    curve=st.lists(st.integers(0, 500), min_size=2, max_size=9).map(sorted),
    load=st.floats(0, 1.5),
)
def test_the_power_lies_on_the_line_between_two_points(curve: list[int], load: float) -> None:
    steps = len(curve) - 1
    points = [(index / steps, watts) for index, watts in enumerate(curve)]
    for (left, low), (right, high) in pairwise(points):
        if left <= min(load, 1.0) <= right:
            expected = low + (high - low) * (min(load, 1.0) - left) / (right - left)
            assert watts_at(curve, load) == pytest.approx(expected, abs=1e-6)
