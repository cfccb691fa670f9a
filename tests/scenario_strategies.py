"""Hypothesis strategies for valid scenarios: loads, fleets, physics, faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from hypothesis import strategies as st

from equipoise.model import event
from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostReserve, HostState
from equipoise.model.inventory import Inventory, Sla, Tenant
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.scenario import faults, load, physics
from equipoise.model.scenario.faults import Faults, ScheduledEvent
from equipoise.model.scenario.load import Distribution, Load, LoadPart, NumberSpec
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    FleetPlacementOrder,
    Fleets,
    HostFleet,
    MeasurementSettings,
    Scenario,
    VmFleet,
    fleet_member_id,
)
from equipoise.model.vm import Vm, VmState
from strategies import hosts, ids, inventories, names, plans, pool_trees, some, texts, up_to, vms

numbers = st.floats(-(10**12), 10**12) | st.integers(-5, 10**12).map(float)
above_zero = st.floats(0, 10**12)
words = texts.filter(bool)
percents = st.floats(0, 100)
rates = st.floats(0, 10)
seconds = up_to(10**9)
milliseconds = up_to(10**15)
counts = st.integers(1, 10**7)


@st.composite
def spreads(draw: st.DrawFn, number: st.SearchStrategy[float]) -> Distribution:
    """One of the three ways to draw a number."""
    low, high = sorted((draw(number), draw(number)))
    ways = (
        Distribution(one_of=tuple(draw(st.lists(number, min_size=1, max_size=3)))),
        Distribution(low=low, high=high),
        Distribution(mean=low, sd=draw(above_zero)),
    )
    return draw(st.sampled_from(ways))


levels: st.SearchStrategy[NumberSpec] = numbers | spreads(numbers)
times: st.SearchStrategy[NumberSpec] = above_zero | spreads(above_zero)


@st.composite
def parts(draw: st.DrawFn, duration_s: int) -> LoadPart:
    """A part of a load that does not change too often for a run of that length."""
    period = st.integers(max(1, duration_s // 10**5), 10**9)
    kind: Any = draw(st.sampled_from(get_args(LoadPart)))
    given: dict[str, Any] = {"together": draw(st.none() | words)}
    if kind is load.ConstantLoad:
        given |= {"level": draw(times)}
    elif kind is load.StepLoad:
        moments = sorted(draw(st.lists(seconds, min_size=1, max_size=3, unique=True)))
        given["points"] = tuple(load.LoadPoint(at_s=at, level=draw(levels)) for at in moments)
    elif kind is load.CyclicLoad:
        given |= {"high": draw(levels), "high_s": draw(period), "low": draw(levels)}
        given |= {"low_s": draw(period), "redraw_s": draw(st.none() | period)}
    elif kind is load.DiurnalLoad:
        given["low"], given["high"] = sorted((draw(numbers), draw(numbers)))
        given |= {"peak_s": draw(seconds), "period_s": draw(period), "every_s": draw(period)}
    elif kind is load.NoiseLoad:
        given |= {"level": draw(levels), "period_s": draw(period)}
        given["phase_s"] = draw(st.none() | seconds)
    elif kind is load.SpikeLoad:
        lasts, again = sorted((draw(period), draw(period)))
        given |= {"level": draw(levels), "at_s": draw(seconds), "for_s": lasts}
        given["every_s"] = draw(st.sampled_from((None, again)))
    else:
        given |= {"file": draw(words), "value": draw(words), "time": draw(words)}
        given |= {"time_per_s": draw(counts), "scale": draw(numbers), "gap_s_max": draw(period)}
        given["repeat"] = draw(st.booleans())
    return cast(LoadPart, kind(**given))


@st.composite
def loads(draw: st.DrawFn, duration_s: int) -> dict[str, Load]:
    """Some loads by name."""
    some_parts = st.lists(parts(duration_s), max_size=2).map(tuple)
    made: dict[str, Load] = {}
    for name in draw(st.lists(words, max_size=2, unique=True)):
        memory = draw(st.sampled_from(("memory_mib", "memory_pct")))
        given: dict[str, Any] = {"cpu_mhz": draw(some_parts), memory: draw(some_parts)}
        made[name] = Load(**given)
    return made


@st.composite
def bare_clusters(draw: st.DrawFn) -> Inventory:
    """Settings without a machine."""
    tenants = [Tenant(id=TenantId(name), sla=Sla(vms_max=9)) for name in draw(names(2))]
    return Inventory(hosts=(), pools=draw(pool_trees()), tenants=tuple(tenants))


def roomy(host: Host) -> Host:
    """A host on which any VM of these strategies fits."""
    size = {"cores": 10**5, "mhz_per_core": 10**6, "memory_mib": 10**12}
    return host.but(**size, reserve=HostReserve())


def fleet_names(taken: Sequence[str], most: int, least: int = 0) -> st.SearchStrategy[list[str]]:
    """Names of fleets whose members have names that are not taken."""
    free = ids.filter(lambda name: not any(prefix.startswith(name) for prefix in taken))
    return st.lists(free, min_size=least, max_size=most, unique=True)


@st.composite
def host_fleets(draw: st.DrawFn, cluster: Inventory) -> tuple[HostFleet, ...]:
    """Hosts in numbers; if there are no others, the first fleet has hosts."""
    least = 0 if cluster.hosts else 1
    made = [
        HostFleet(count=draw(up_to(20)), like=draw(hosts(name)))
        for name in draw(fleet_names([host.id for host in cluster.hosts], 2, least))
    ]
    if not cluster.hosts:
        made[0] = made[0].but(count=1 + made[0].count, like=roomy(made[0].like))
    return tuple(made)


@st.composite
def vm_fleets(
    draw: st.DrawFn, cluster: Inventory, of_hosts: Sequence[HostFleet], load_names: Sequence[str]
) -> tuple[VmFleet, ...]:
    """VMs in numbers; some of them start on hosts that are on."""
    somewhere = Host(id=HostId("h"), cores=1, mhz_per_core=1, memory_mib=1)
    owners = [tenant.id for tenant in cluster.tenants]
    made = []
    for name in draw(fleet_names([vm.id for vm in cluster.vms], 2)):
        like = draw(vms(name, [somewhere], cluster.pools, owners))
        start = draw(st.none() | starts(cluster, of_hosts))
        like = like.but(
            state=VmState.RUNNING, host=None, consumption={}, agent=like.agent and start is not None
        )
        load_name = draw(st.none() | st.sampled_from(load_names)) if load_names else None
        made.append(VmFleet(count=draw(up_to(20)), like=like, load=load_name, start=start))
    return tuple(made)


@st.composite
def starts(
    draw: st.DrawFn, cluster: Inventory, fleets: Sequence[HostFleet]
) -> FleetPlacement | None:
    """Some of the hosts that are on, if there are any."""
    lit = {host.id: 1 for host in cluster.hosts if host.state is HostState.ON}
    lit |= {
        fleet_part.like.id: fleet_part.count
        for fleet_part in fleets
        if fleet_part.count and fleet_part.like.state is HostState.ON
    }
    if not lit:
        return None
    chosen = draw(some(sorted(lit), least=1))
    first = draw(st.none() | st.integers(1, sum(lit[name] for name in chosen)))
    return FleetPlacement(
        hosts=chosen, first=first, assigned=draw(st.sampled_from(FleetPlacementOrder))
    )


def with_members(cluster: Inventory, fleet: Fleets) -> Inventory:
    """Return the cluster with one member of each fleet that is not empty."""
    more_hosts = [
        group.like.but(id=HostId(fleet_member_id(group.like.id, 1, group.count)))
        for group in fleet.hosts
        if group.count
    ]
    more_vms = [
        group.like.but(
            id=VmId(fleet_member_id(group.like.id, group.count, group.count)), state=VmState.READY
        )
        for group in fleet.vms
        if group.count
    ]
    return cluster.but(hosts=(*cluster.hosts, *more_hosts), vms=(*cluster.vms, *more_vms))


@st.composite
def scheduled_events(
    draw: st.DrawFn, inventory: Inventory, end_ms: int
) -> tuple[ScheduledEvent, ...]:
    """Scheduled events for an inventory, in any order."""
    present = {host.id: host for host in inventory.hosts}
    there = {vm.id: vm for vm in inventory.vms}
    # A fleet may have more members than are here.
    taken = [
        name for known in (*present, *there) for name in (known, known.rpartition("-")[0]) if name
    ]
    fresh = [
        name for name in draw(names(4)) if not any(name.startswith(prefix) for prefix in taken)
    ]
    scheduled: list[Any] = []
    for at in sorted(draw(st.lists(up_to(end_ms), max_size=4, unique=True))):
        occurrence = draw(a_scheduled_event(present, there, fresh, at))
        scheduled.append(occurrence)
        if isinstance(occurrence, event.HostJoined):
            present[occurrence.host.id] = occurrence.host
        elif isinstance(occurrence, event.HostLeft):
            del present[occurrence.host]
        elif isinstance(occurrence, event.VmArrived):
            there[occurrence.vm.id] = occurrence.vm
        elif isinstance(occurrence, event.VmLeft):
            del there[occurrence.vm]
    return tuple(draw(st.permutations(scheduled)))


@st.composite
def a_scheduled_event(
    draw: st.DrawFn,
    present: Mapping[HostId, Host],
    there: Mapping[VmId, Vm],
    fresh: list[str],
    at_ms: int,
) -> ScheduledEvent:
    """What may come next."""
    at, for_ms = st.just(at_ms), st.integers(1, 10**15)
    kinds: list[st.SearchStrategy[Any]] = [
        st.builds(faults.MonitoringLost, at_ms=at, for_ms=for_ms),
        st.builds(faults.MigrationsSlowed, at_ms=at, for_ms=for_ms, speed_pct=st.floats(0.1, 100)),
    ]
    if present:
        host = st.sampled_from(list(present))
        kinds += [
            st.builds(event.HostFailed, at_ms=at, host=host, reason=texts),
            st.builds(event.HostRecovered, at_ms=at, host=host),
            st.builds(event.HostLeft, at_ms=at, host=host),
            st.builds(faults.PowerOnStuck, at_ms=at, host=host),
        ]
    if there:
        vm = st.sampled_from(list(there))
        kinds += [
            st.builds(event.VmCrashed, at_ms=at, vm=vm, reason=texts),
            st.builds(event.VmLeft, at_ms=at, vm=vm),
        ]
    if draw(st.booleans()) and fresh:
        name = fresh.pop()
        kinds = [st.builds(event.HostJoined, at_ms=at, host=hosts(name))]
        if present:
            kinds.append(st.builds(event.VmArrived, at_ms=at, vm=vms(name, list(present.values()))))
    return cast(ScheduledEvent, draw(st.one_of(kinds)))


any_physics = st.builds(
    physics.Physics,
    migration=st.none() | st.builds(
        physics.MigrationPhysics, link_mbps=st.floats(0.001, 10**9),
        dirty_mib_per_ghz=st.floats(0, 10**9), dirty_pct_max=percents,
        downtime_ms_max=milliseconds, rounds_max=counts, switch_ms=milliseconds,
        cpu_mhz=seconds, slowdown_pct=percents, per_host_max=counts, failed_pct=percents,
    ),
    switching=st.none() | st.builds(
        physics.PowerPhysics, power_on_s=seconds, power_off_s=seconds,
        enter_maintenance_s=seconds, leave_maintenance_s=seconds, boot_s=seconds,
        shutdown_s=seconds, forge_s=seconds, suspend_mib_per_s=st.floats(0.001, 10**9),
        jitter_pct=percents, failed_pct=percents, boot_failed_pct=percents,
    ),
    memory=st.builds(
        physics.MemoryPhysics, balloon_pct_max=percents, swap_slowdown=st.floats(0, 10**6)
    ),
    overhead_mib=up_to(10**6),
)  # fmt: skip
speeds = st.floats(0.001, 10**9)
any_estimates: st.SearchStrategy[Estimates] = st.builds(
    Estimates,
    **{
        name: st.integers(1, 10**15) if name.endswith("_ms") else speeds
        for name in Estimates.__struct_fields__
        if name != "written_mib_per_ghz"
    },
    written_mib_per_ghz=st.floats(0, 10**6),
)
measurings = st.builds(
    MeasurementSettings,
    window_s=st.integers(1, 10**9),
    sample_s=st.integers(1, 10**9),
    imbalance_target=percents,
)


@st.composite
def random_faults(draw: st.DrawFn, fleet: Fleets) -> Faults:
    """Something of everything that goes on at random."""
    new_hosts = [fleet_part.like.id for fleet_part in fleet.hosts]
    new_vms = [fleet_part.like.id for fleet_part in fleet.vms]
    scaled = [
        (fleet_part.like.id, fleet_part.like.tenant)
        for fleet_part in fleet.vms
        if fleet_part.like.tenant is not None
    ]
    below, above = sorted(draw(st.lists(percents, min_size=2, max_size=2, unique=True)))
    crashes = st.builds(faults.HostCrashes, per_host_day=rates, back_after_s=times)
    return Faults(
        host_crashes=draw(st.none() | crashes),
        vm_crashes=draw(st.none() | st.builds(faults.VmCrashes, per_vm_day=rates)),
        slow_migrations=draw(
            st.none() | st.builds(faults.SlowMigrations, pct=percents, factor=st.floats(1, 10**6))
        ),
        hanging_power_ons=draw(st.none() | st.builds(faults.HangingPowerOns, pct=percents)),
        monitoring_gaps=draw(
            st.none() | st.builds(faults.MonitoringGaps, per_day=rates, for_s=times)
        ),
        hosts=tuple(
            faults.HostChurn(fleet=name, per_day=draw(rates), stay_s=draw(st.none() | times))
            for name in draw(some(new_hosts, most=1))
        ),
        vms=tuple(
            faults.VmChurn(fleet=name, per_hour=draw(rates), stay_s=draw(times))
            for name in draw(some(new_vms, most=1))
        ),
        scaling=tuple(
            faults.TenantAutoscaling(
                tenant=tenant, fleet=name, out_above_pct=above, in_below_pct=below
            )
            for name, tenant in draw(some(scaled, most=1))
        ),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario in which nothing is wrong."""
    cluster = draw(inventories() | bare_clusters())
    if cluster.hosts:
        cluster = cluster.but(hosts=(roomy(cluster.hosts[0]), *cluster.hosts[1:]))
    duration_s = draw(st.integers(1, 10**9))
    all_loads = draw(loads(duration_s))
    of_hosts = draw(host_fleets(cluster))
    fleet = Fleets(hosts=of_hosts, vms=draw(vm_fleets(cluster, of_hosts, list(all_loads))))
    complete = with_members(cluster, fleet)
    loaded = some([vm.id for vm in cluster.vms] if all_loads else [])
    return Scenario(
        name=draw(words),
        about=draw(texts),
        seed=draw(st.integers(0, 2**63 - 1)),
        duration_s=duration_s,
        pass_s=draw(st.integers(1, 10**9)),
        deciders=tuple(draw(st.lists(texts, max_size=2, unique=True))),
        cluster=cluster,
        fleet=fleet,
        loads=all_loads,
        vm_loads={vm: draw(st.sampled_from(list(all_loads))) for vm in draw(loaded)},
        physics=draw(st.just(physics.Physics()) | any_physics),
        estimates=draw(st.just(Estimates()) | any_estimates),
        measuring=draw(st.just(MeasurementSettings()) | measurings),
        plan=draw(st.none() | plans(complete)),
        events=draw(scheduled_events(complete, duration_s * 1000)),
        faults=draw(st.just(Faults()) | random_faults(fleet)),
    )
