"""Small random scenarios that ``plain_world`` understands: loads, faults, migrations, no power."""

from __future__ import annotations

from hypothesis import strategies as st

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.model.action import Migrate
from equipoise.model.event import HostFailed, HostRecovered, VmCrashed
from equipoise.model.host import Host, HostReserve, HostState, PowerProfile
from equipoise.model.inventory import Inventory, Pool
from equipoise.model.plan import ConcurrencyLimits, Plan
from equipoise.model.quantity import HostId, PoolId, VmId
from equipoise.model.scenario.faults import ScheduledEvent
from equipoise.model.scenario.load import (
    CyclicLoad,
    Distribution,
    Load,
    LoadPart,
    LoadPoint,
    NoiseLoad,
    StepLoad,
)
from equipoise.model.scenario.physics import MemoryPhysics, MigrationPhysics, Physics
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm

some_shares = st.sampled_from([250, 500, 1000, 1000, 2000, 7000])
some_mhz = st.integers(0, 30).map(lambda number: 100 * number)
some_mib = st.integers(0, 16).map(lambda number: 128 * number)


@st.composite
def powers(draw: st.DrawFn) -> PowerProfile:
    curve = draw(st.none() | st.sampled_from([2, 4, 6, 16]))
    watts = st.integers(0, 400)
    figures = [] if curve is None else [draw(watts) for _ in range(curve)]
    return PowerProfile(
        idle_watts=draw(watts),
        peak_watts=draw(watts),
        standby_watts=draw(st.integers(0, 20)),
        managed=curve is not None,
        managed_watts=tuple(figures),
    )


@st.composite
def some_hosts(draw: st.DrawFn, name: str) -> Host:
    return a_host(
        name,
        cores=draw(st.integers(1, 4)),
        mhz_per_core=draw(st.sampled_from([1000, 1700, 2400])),
        memory_mib=draw(st.sampled_from([1024, 2048, 4096])),
        state=draw(st.sampled_from([HostState.ON] * 6 + list(HostState))),
        power=draw(powers()),
        reserve=HostReserve(
            cpu_mhz=draw(st.sampled_from([0, 0, 300])), memory_mib=draw(some_mib) // 4
        ),
    )


@st.composite
def some_pools(draw: st.DrawFn) -> tuple[Pool, ...]:
    made: list[Pool] = []
    for number in range(draw(st.integers(0, 3))):
        parent = draw(st.sampled_from([None, *(pool.id for pool in made)]))
        cpu = CpuSettings(shares=draw(some_shares))
        memory = MemorySettings(shares=draw(some_shares))
        name, scalable = PoolId(f"p{number}"), draw(st.booleans())
        made.append(Pool(id=name, parent=parent, cpu=cpu, memory=memory, scalable=scalable))
    return tuple(made)


@st.composite
def some_vms(draw: st.DrawFn, name: str, on: list[HostId], pools: tuple[Pool, ...]) -> Vm:
    size = draw(st.sampled_from([256, 512, 1024, 2048]))
    limits = st.none() | st.integers(1, 10)
    cpu_limit, memory_limit = draw(limits), draw(limits)
    return a_vm(
        name,
        draw(st.sampled_from([*on, *on, None])) if on else None,
        memory_mib=size,
        demand=Demand(cpu_mhz=draw(some_mhz), memory_mib=min(size, draw(some_mib))),
        cpu=CpuSettings(
            reservation_mhz=draw(st.sampled_from([0, 0, 100, 400, 1000])) if not cpu_limit else 0,
            limit_mhz=cpu_limit and 200 * cpu_limit,
            shares=draw(some_shares),
        ),
        memory=MemorySettings(
            reservation_mib=draw(st.sampled_from([0, 0, size // 4, size]))
            if not memory_limit
            else 0,
            limit_mib=memory_limit and 100 * memory_limit,
            shares=draw(some_shares),
        ),
        pool=draw(st.sampled_from([None, *(pool.id for pool in pools)])),
    )


@st.composite
def some_parts(draw: st.DrawFn, most: int) -> LoadPart:
    level = st.integers(0, most) | st.builds(
        lambda n: Distribution(low=0, high=n), st.integers(0, most)
    )
    period = st.integers(20, 200)
    phase = st.none() | st.integers(0, 100)
    kind = draw(st.sampled_from(["steps", "pattern", "noise"]))
    if kind == "steps":
        moments = draw(st.lists(st.integers(0, 500), min_size=1, max_size=3, unique=True))
        return StepLoad(
            points=tuple(LoadPoint(at_s=at, level=draw(level)) for at in sorted(moments))
        )
    if kind == "noise":
        return NoiseLoad(level=draw(level), period_s=draw(period), phase_s=draw(phase))
    return CyclicLoad(
        high=draw(level),
        high_s=draw(period),
        low=draw(level),
        low_s=draw(period),
        phase_s=draw(phase),
    )


@st.composite
def some_loads(draw: st.DrawFn) -> Load:
    cpu = draw(st.lists(some_parts(3000), max_size=2))
    memory = draw(st.lists(some_parts(1500), max_size=1))
    return Load(cpu_mhz=tuple(cpu), memory_mib=tuple(memory))


@st.composite
def migrations(draw: st.DrawFn, cluster: Inventory) -> Plan | None:
    on = [host.id for host in cluster.hosts if host.state is HostState.ON]
    moved = [(vm.id, vm.host) for vm in cluster.vms if vm.host is not None]
    if len(on) < 2 or not moved:
        return None
    steps = []
    for number, (vm, source) in enumerate(draw(st.permutations(moved))[: draw(st.integers(1, 6))]):
        target = draw(st.sampled_from([host for host in on if host != source]))
        after = [f"s{number - 1}"] if number and draw(st.booleans()) else []
        action = Migrate(vm=vm, source=source, target=target)
        start = draw(st.integers(0, 3)) + 120_001 * number
        steps.append(
            a_step(
                f"s{number}", action, start, start + draw(st.sampled_from([7001, 60_013])), *after
            )
        )
    return a_plan(*steps)


speeds = st.sampled_from([50.0, 100.0, 1000.0, 10_000.0])
migration_physics = st.builds(
    MigrationPhysics,
    link_mbps=speeds,
    dirty_mib_per_ghz=st.sampled_from([0.0, 1.0, 5.0, 60.0, 500.0]),
    dirty_pct_max=st.sampled_from([10.0, 50.0, 100.0]),
    downtime_ms_max=st.sampled_from([0, 50, 500, 5000]),
    rounds_max=st.sampled_from([1, 2, 30]),
    switch_ms=st.sampled_from([0, 1, 100]),
    cpu_mhz=st.sampled_from([0, 100, 500, 2000]),
    slowdown_pct=st.sampled_from([0.0, 10.0, 50.0]),
    per_host_max=st.integers(1, 3),
)


@st.composite
def some_events(draw: st.DrawFn, cluster: Inventory, end_ms: int) -> tuple[ScheduledEvent, ...]:
    scheduled: list[ScheduledEvent] = []
    for _ in range(draw(st.integers(0, 3))):
        at_ms = draw(st.integers(1, end_ms - 1)) | 1
        host = draw(st.sampled_from([host.id for host in cluster.hosts]))
        kinds: list[ScheduledEvent] = [
            HostFailed(at_ms=at_ms, host=host),
            HostRecovered(at_ms=at_ms, host=host),
        ]
        kinds += [VmCrashed(at_ms=at_ms, vm=vm.id) for vm in cluster.vms]
        scheduled.append(draw(st.sampled_from(kinds)))
    return tuple(scheduled)


@st.composite
def scenarios(draw: st.DrawFn, moving: bool = False) -> Scenario:
    """A small cluster for some minutes; nothing of note falls on the last millisecond.

    If VMs are to be ``moving``, there are some, and hosts to move them to.
    """
    least_hosts, least_vms = (2, 2) if moving else (1, 0)
    hosts = [draw(some_hosts(f"h{n}")) for n in range(draw(st.integers(least_hosts, 4)))]
    hosts = [host.but(state=HostState.ON) if moving else host for host in hosts]
    on = [host.id for host in hosts if host.state is HostState.ON]
    pools = draw(some_pools())
    vms = [draw(some_vms(f"v{n}", on, pools)) for n in range(draw(st.integers(least_vms, 8)))]
    limits = ConcurrencyLimits(actions_per_host=draw(st.sampled_from([2, 9])), actions_total=99)
    cluster = an_inventory(*hosts, vms=vms, pools=pools, limits=limits)
    loads = {f"l{n}": draw(some_loads()) for n in range(3)}
    chosen = {vm.id: draw(st.none() | st.sampled_from(list(loads))) for vm in vms}
    duration_s = draw(st.sampled_from([61, 173, 311, 599]))
    return Scenario(
        name="small",
        seed=draw(st.integers(0, 99)),
        duration_s=duration_s,
        pass_s=97,
        deciders=draw(st.sampled_from([(), ("restart",)])),
        cluster=cluster,
        loads=loads,
        vm_loads={VmId(vm): load for vm, load in chosen.items() if load is not None},
        physics=Physics(
            migration=draw(migration_physics if moving else st.none() | migration_physics),
            overhead_mib=draw(st.sampled_from([0, 0, 32])),
            memory=MemoryPhysics(
                balloon_pct_max=draw(st.sampled_from([0.0, 65.0, 100.0])),
                swap_slowdown=draw(st.sampled_from([0.0, 0.8, 10.0])),
            ),
        ),
        measuring=MeasurementSettings(sample_s=draw(st.sampled_from([31, 120]))),
        plan=draw(migrations(cluster)),
        events=draw(some_events(cluster, 1000 * duration_s)),
    )
