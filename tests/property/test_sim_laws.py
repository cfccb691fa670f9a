"""Laws of simulated runs, with any faults on a small cluster and with random deciders."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_host, a_vm, an_inventory
from equipoise.control import ControlLoop
from equipoise.control.config import ControlConfig
from equipoise.control.ports import Instruction, World
from equipoise.errors import WorldError
from equipoise.model.event import (
    Event,
    HostFailed,
    HostJoined,
    HostLeft,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import Host, HostState, PowerProfile
from equipoise.model.inventory import Pool, Sla, Tenant
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.quantity import HostId, PoolId, TenantId, VmId
from equipoise.model.scenario.faults import (
    Faults,
    HangingPowerOns,
    HostChurn,
    HostCrashes,
    MigrationsSlowed,
    MonitoringGaps,
    MonitoringLost,
    PowerOnStuck,
    ScheduledEvent,
    SlowMigrations,
    TenantAutoscaling,
    VmChurn,
    VmCrashes,
)
from equipoise.model.scenario.load import ConstantLoad, CyclicLoad, Distribution, Load, NoiseLoad
from equipoise.model.scenario.physics import MigrationPhysics, Physics, PowerPhysics
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    FleetPlacementOrder,
    Fleets,
    HostFleet,
    MeasurementSettings,
    Scenario,
    VmFleet,
)
from equipoise.model.state.snapshot import Snapshot
from equipoise.sim.plugins import load_decider
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import MemoryJournal
from placement_auditor import PlacementAuditor

fewer = settings(max_examples=settings().max_examples // 8)
SHOP = TenantId("shop")
WATTS = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=5)
LOADS = {
    "calm": Load(cpu_mhz=(ConstantLoad(level=Distribution(low=0, high=600)),)),
    "wild": Load(
        cpu_mhz=(
            CyclicLoad(high=Distribution(low=500, high=2500), high_s=700, low=0, low_s=900),
            NoiseLoad(level=Distribution(mean=0, sd=80), period_s=433),
        ),
        memory_pct=(NoiseLoad(level=Distribution(low=10, high=120), period_s=601),),
    ),
}


def perhaps(some: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | some


some_faults = st.builds(
    Faults,
    host_crashes=perhaps(
        st.builds(
            HostCrashes,
            per_host_day=st.sampled_from([2.0, 12.0]),
            back_after_s=st.sampled_from([1, 600, Distribution(mean=900, sd=700)]),
        )
    ),
    vm_crashes=perhaps(st.builds(VmCrashes, per_vm_day=st.sampled_from([1.0, 10.0]))),
    slow_migrations=perhaps(st.just(SlowMigrations(pct=50, factor=9))),
    hanging_power_ons=perhaps(st.just(HangingPowerOns(pct=50))),
    monitoring_gaps=perhaps(
        st.just(MonitoringGaps(per_day=48, for_s=Distribution(low=1, high=3000)))
    ),
    hosts=st.sampled_from(
        [(), (HostChurn(fleet="big", per_day=24, stay_s=Distribution(low=300, high=5000)),)]
    ),
    vms=st.sampled_from(
        [(), (VmChurn(fleet="web", per_hour=6, stay_s=Distribution(low=60, high=4000)),)]
    ),
    scaling=st.sampled_from(
        [
            (),
            (TenantAutoscaling(tenant=SHOP, fleet="shop"),),
            (
                TenantAutoscaling(
                    tenant=SHOP, fleet="shop", out_above_pct=20, in_below_pct=15, every_s=97
                ),
            ),
        ]
    ),
)

physics = st.builds(
    Physics,
    migration=perhaps(
        st.builds(
            MigrationPhysics,
            link_mbps=st.sampled_from([30.0, 1000.0]),
            dirty_mib_per_ghz=st.sampled_from([0.0, 60.0]),
            per_host_max=st.sampled_from([1, 2, 8]),
            failed_pct=st.sampled_from([0.0, 30.0]),
        )
    ),
    switching=perhaps(
        st.builds(
            PowerPhysics,
            power_on_s=st.sampled_from([0, 180, 900]),
            jitter_pct=st.sampled_from([0.0, 10.0, 100.0]),
            failed_pct=st.sampled_from([0.0, 30.0]),
            boot_failed_pct=st.sampled_from([0.0, 30.0]),
        )
    ),
    overhead_mib=st.sampled_from([0, 50]),
)


@st.composite
def some_events(draw: st.DrawFn, hours: int) -> tuple[ScheduledEvent, ...]:
    """Scheduled events at whole seconds, so that some share an instant."""
    scheduled: list[ScheduledEvent] = []
    for number in range(draw(st.integers(0, 4))):
        at_ms = 60_000 * draw(st.integers(1, 60 * hours - 1))
        host = HostId(f"h{draw(st.integers(1, 2))}")
        arrival = a_vm(f"late-{number}", demand=a_vm().demand)
        kinds: list[ScheduledEvent] = [
            HostFailed(at_ms=at_ms, host=host),
            VmCrashed(at_ms=at_ms, vm=VmId("v1")),
            VmArrived(at_ms=at_ms, vm=arrival),
            HostJoined(at_ms=at_ms, host=a_host(f"new-{number}", state=HostState.STANDBY)),
            MonitoringLost(at_ms=at_ms, for_ms=draw(st.sampled_from([1, 10**6]))),
            MigrationsSlowed(at_ms=at_ms, for_ms=draw(st.sampled_from([1, 10**6])), speed_pct=1),
            PowerOnStuck(at_ms=at_ms, host=HostId("spare")),
        ]
        scheduled.append(draw(st.sampled_from(kinds)))
    ends: list[ScheduledEvent] = [
        HostLeft(at_ms=3_600_000 * hours, host=HostId("h2")),
        VmLeft(at_ms=3_600_000 * hours - 60_000, vm=VmId("v1")),
    ]
    return (*scheduled, *(event for event in ends if draw(st.booleans())))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Some hours of a few hosts."""
    hours = draw(st.integers(1, 3))
    load = st.sampled_from([None, "calm", "wild"])
    small: list[Host] = [
        a_host("h1", power=WATTS, memory_mib=4096),
        a_host("h2", power=WATTS, memory_mib=4096),
        a_host("spare", power=WATTS, state=HostState.STANDBY),
    ]
    start = FleetPlacement(
        hosts=("h1", "h2", "big"), assigned=draw(st.sampled_from(list(FleetPlacementOrder)))
    )
    pool = PoolId("gold")
    web = VmFleet(
        count=draw(st.integers(0, 4)), like=a_vm("web", pool=pool), load=draw(load), start=start
    )
    shop = VmFleet(count=draw(st.integers(0, 2)), like=a_vm("shop", tenant=SHOP), load=draw(load))
    sla = Sla(vms_min=1, vms_max=draw(st.integers(1, 4)), scaling_vms=draw(st.integers(1, 2)))
    return Scenario(
        name="law",
        seed=draw(st.integers(0, 10**6)),
        duration_s=3600 * hours,
        pass_s=draw(st.sampled_from([300, 700])),
        deciders=draw(st.sampled_from([(), ("restart",), ("shuffle",), ("restart", "shuffle")])),
        cluster=an_inventory(
            *small,
            vms=[a_vm("v1", "h1"), a_vm("v2", "h2", tenant=SHOP)],
            tenants=(Tenant(id=SHOP, sla=sla),),
            pools=(Pool(id=pool),),
            limits=ConcurrencyLimits(actions_per_host=draw(st.sampled_from([1, 4]))),
        ),
        fleet=Fleets(hosts=(HostFleet(count=1, like=a_host("big", power=WATTS)),), vms=(web, shop)),
        loads=LOADS,
        vm_loads={VmId("v1"): "wild", VmId("v2"): "wild", VmId("late-1"): "calm"},
        physics=draw(physics),
        measuring=MeasurementSettings(sample_s=draw(st.sampled_from([300, 3600]))),
        events=draw(some_events(hours)),
        faults=draw(some_faults),
    )


def played(scenario: Scenario, *cuts_ms: int) -> tuple[ScenarioRunner, MemoryJournal]:
    journal = MemoryJournal()
    play = ScenarioRunner(scenario, journal)
    for until_ms in (*sorted(cuts_ms), 1000 * scenario.duration_s):
        play.run(until_ms)
    return play, journal


def who_is_where(snapshot: Snapshot) -> tuple[Any, ...]:
    """Return the state without demand, which is known only as far as it was measured."""
    return (
        {vm.id: (vm.state, vm.host, vm.tenant) for vm in snapshot.vms.values()},
        dict(snapshot.hosts),
        {step: running.attempt for step, running in snapshot.in_flight.items()},
    )


def a_loop(world: World, journal: MemoryJournal, scenario: Scenario) -> ControlLoop:
    deciders = [load_decider(name, scenario) for name in scenario.deciders]
    config = ControlConfig(pass_interval_ms=1000 * scenario.pass_s)
    return ControlLoop(world, journal, deciders=deciders, config=config)


def check_books(journal: MemoryJournal, snapshot: Snapshot) -> None:
    auditor = PlacementAuditor()
    auditor.read(journal.events())
    assert auditor.findings == []
    running = {vm.id: vm.host for vm in snapshot.vms.values() if vm.state == "running"}
    assert {vm: host for vm, host in auditor.runs_on.items() if host is not None} == running
    for vm, host in running.items():
        assert host is not None
        assert snapshot.hosts[host].state is HostState.ON, vm


@fewer
@given(scenarios())
def test_the_known_state_is_the_true_state(scenario: Scenario) -> None:
    world, journal = SimulatedWorld(scenario), MemoryJournal()
    loop = a_loop(world, journal, scenario)
    for until_ms in range(0, 1000 * scenario.duration_s + 1, 100_000):
        loop.run(until_ms)
        assert who_is_where(loop.snapshot()) == who_is_where(world.observe())
    check_books(journal, loop.snapshot())


class Stumbling:
    """The same world behind a line that breaks now and then, before or after an instruction."""

    def __init__(self, world: SimulatedWorld, breaks: list[bool | None]) -> None:
        self._world = world
        self._breaks = iter(breaks)

    def observe(self) -> Snapshot:
        return self._world.observe()

    def next_event(self, until_ms: int) -> Event | None:
        return self._world.next_event(until_ms)

    def perform(self, instruction: Instruction) -> None:
        got_through = next(self._breaks, None)
        if got_through is not False:
            self._world.perform(instruction)
        if got_through is not None:
            raise WorldError("the line is dead")


@fewer
@given(scenarios(), st.lists(st.sampled_from([None, None, True, False]), max_size=12))
def test_a_new_loop_knows_what_the_crashed_loop_knew(
    scenario: Scenario, breaks: list[bool | None]
) -> None:
    journal = MemoryJournal()
    world = Stumbling(SimulatedWorld(scenario), breaks)
    end_ms = 1000 * scenario.duration_s
    while True:
        try:
            loop = a_loop(world, journal, scenario)
            loop.run(end_ms)
            break
        except WorldError:
            continue
    assert who_is_where(loop.snapshot()) == who_is_where(world.observe())
    check_books(journal, loop.snapshot())


@fewer
@given(scenarios(), st.lists(st.integers(0, 3 * 3_600_000), max_size=5))
def test_a_run_is_the_same_twice_and_however_it_is_cut(scenario: Scenario, cuts: list[int]) -> None:
    end_ms = 1000 * scenario.duration_s
    whole, written = played(scenario)
    pieces, again = played(scenario, *(cut for cut in cuts if cut < end_ms))
    assert list(written.lines()) == list(again.lines())
    one, two = whole.result(), pieces.result()
    assert one.measures == two.measures
    assert one.truth == two.truth
    assert one.finished == two.finished


@fewer
@given(scenarios())
def test_figures_make_sense(scenario: Scenario) -> None:
    play, journal = played(scenario)
    result = play.result()
    assert result.ended_ms == 1000 * scenario.duration_s
    check_sums(result)
    check_record(result)
    tenant = result.measures.breaches[SHOP]
    hair = 1e-6
    assert 0 <= tenant.seconds <= scenario.duration_s + hair
    assert tenant.seconds <= tenant.vm_seconds + hair
    assert tenant.vm_seconds <= tenant.seconds * max(1, tenant.vms_missing_max) + hair
    assert bool(tenant.times) == bool(tenant.vms_missing_max)
    assert result.snapshot.version == len(journal)


def check_sums(result: SimulationResult) -> None:
    measures = result.measures
    for field in fields(measures):
        figure = getattr(measures, field.name)
        if isinstance(figure, float):
            assert isfinite(figure), field.name
            assert figure >= 0, field.name
    percents = [
        measures.satisfied_cpu_pct,
        measures.satisfied_memory_pct,
        measures.payload_cpu_pct,
        measures.payload_memory_pct,
        measures.cpu_ready_pct,
    ]
    percents += [share_class.satisfied_pct for share_class in measures.share_classes]
    percents += [pool.mean_pct for pool in measures.happiness]
    assert all(0 <= number <= 100 + 1e-6 for number in percents)
    hours = result.ended_ms / 3_600_000
    hosts = len(set(result.record.hosts["host"]))
    assert measures.energy_kwh <= 0.2 * hosts * hours + 1e-9


def check_record(result: SimulationResult) -> None:
    record = result.record
    for table in (record.cluster, record.hosts, record.pools):
        for name, column in table.columns.items():
            if column.dtype.kind == "f":
                assert all(map(isfinite, column.tolist())), name
                assert (column >= 0).all(), name
    hosts = record.hosts
    for resource in ("cpu_{}_mhz", "memory_{}_mib"):
        used, wanted = hosts[resource.format("used")], hosts[resource.format("demand")]
        assert (used <= wanted + 1e-6).all()
        assert (used <= hosts[resource.format("capacity")] + 1e-6).all()
    assert (hosts["vms"][hosts["state"] != HostState.ON] == 0).all()
    at_s = record.cluster["at_s"].tolist()
    assert at_s == sorted(set(at_s))
    assert at_s[-1] == result.ended_ms / 1000
