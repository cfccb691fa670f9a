"""Random faults come at their rates, and the same for the same seed."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.control.ports import StartAction
from equipoise.model.action import Action, Boot, Migrate
from equipoise.model.event import (
    ActionFailed,
    Event,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.faults import (
    Faults,
    HostChurn,
    HostCrashes,
    MonitoringGaps,
    ScheduledEvent,
    SlowMigrations,
    VmChurn,
    VmCrashes,
)
from equipoise.model.scenario.load import ConstantLoad, Distribution, Load
from equipoise.model.scenario.physics import MigrationPhysics, Physics, PowerPhysics
from equipoise.model.scenario.scenario import FleetPlacement as Beginning
from equipoise.model.scenario.scenario import (
    Fleets,
    HostFleet,
    MeasurementSettings,
    Scenario,
    VmFleet,
)
from equipoise.sim.world.simulated_world import SimulatedWorld

DAY_MS = 24 * 3600 * 1000
SIGMAS = 5
IDLE = Load(cpu_mhz=(ConstantLoad(level=0),))


def a_scenario(faults: Faults, hosts: int = 2, vms: int = 0, **fields: Any) -> Scenario:
    guests = VmFleet(count=vms, like=a_vm("v"), load="idle", start=Beginning(hosts=("h",)))
    given: dict[str, Any] = {
        "seed": 1,
        "cluster": an_inventory(a_host("spare", state=HostState.STANDBY)),
        "fleet": Fleets(
            hosts=(HostFleet(count=hosts, like=a_host("h")),),
            vms=(guests, VmFleet(count=0, like=a_vm("new"), load="idle")),
        ),
        "loads": {"idle": IDLE},
    }
    return Scenario(
        name="faults",
        duration_s=10**9,
        measuring=MeasurementSettings(sample_s=10**9),
        faults=faults,
        **given | fields,
    )


def events(scenario: Scenario, days: float) -> list[Event]:
    world, found = SimulatedWorld(scenario), []
    while (event := world.next_event(round(days * DAY_MS))) is not None:
        found.append(event)
    return found


def times(occurred: list[Event], kind: type[Event]) -> list[int]:
    return [event.at_ms for event in occurred if isinstance(event, kind)]


def about(expected: float) -> Any:
    return pytest.approx(expected, abs=SIGMAS * sqrt(expected))


def test_hosts_crash_at_their_rate_and_recover() -> None:
    outages = HostCrashes(per_host_day=0.5, back_after_s=60)
    occurred = events(a_scenario(Faults(host_crashes=outages), hosts=3), 1000)
    assert len(times(occurred, HostFailed)) == about(0.5 * 3 * 1000)
    back: dict[str, int] = {}
    for event in occurred:
        if isinstance(event, HostFailed):
            assert event.host not in back, "a failed host does not fail"
            assert event.host != "spare", "a host in standby does not crash"
            back[event.host] = event.at_ms + 60_000
        else:
            assert isinstance(event, HostRecovered)
            assert back.pop(event.host) == event.at_ms


def test_crashes_hit_all_hosts_equally_often() -> None:
    outages = HostCrashes(per_host_day=1, back_after_s=1)
    occurred = events(a_scenario(Faults(host_crashes=outages), hosts=4), 400)
    for number in range(1, 5):
        mine = [
            event
            for event in occurred
            if isinstance(event, HostFailed) and event.host == f"h-{number}"
        ]
        assert len(mine) == about(400)


def test_long_outages_leave_fewer_hosts_to_crash() -> None:
    """A host that fails after a day on average and stays down for a day is up half of the time."""
    outages = HostCrashes(per_host_day=1, back_after_s=24 * 3600)
    occurred = events(a_scenario(Faults(host_crashes=outages), hosts=20), 200)
    assert len(times(occurred, HostFailed)) == about(0.5 * 20 * 200)


def test_restarted_vms_crash_at_their_rate() -> None:
    """Two VMs that are hardly ever down: 48 crashes a day."""
    faults = Faults(vm_crashes=VmCrashes(per_vm_day=24))
    world, crashes = SimulatedWorld(a_scenario(faults, hosts=1, vms=2)), 0
    while (event := world.next_event(20 * DAY_MS)) is not None:
        if isinstance(event, VmCrashed):
            crashes += 1
            action = Boot(vm=event.vm, target=HostId("h-1"))
            world.perform(StartAction(Step(id=StepId(f"s{crashes}"), action=action, end_ms=1), 1))
    assert crashes == about(48 * 20)


def test_vms_crash_at_their_rate() -> None:
    occurred = events(a_scenario(Faults(vm_crashes=VmCrashes(per_vm_day=0.5)), hosts=1, vms=200), 1)
    expected = 200 * (1 - exp(-0.5))
    sigma = sqrt(expected * exp(-0.5))
    assert len(times(occurred, VmCrashed)) == pytest.approx(expected, abs=SIGMAS * sigma)
    assert len({event.vm for event in occurred if isinstance(event, VmCrashed)}) == len(occurred)


def test_faults_pause_without_targets_and_resume() -> None:
    outages = HostCrashes(per_host_day=24, back_after_s=7200)
    occurred = events(a_scenario(Faults(host_crashes=outages), hosts=1), 100)
    # Alive for an hour on average, then dead for two.
    sigma = sqrt(100 * 24 / 3**3)
    assert len(times(occurred, HostFailed)) == pytest.approx(800, abs=SIGMAS * sigma)


def test_vms_arrive_at_their_rate_and_leave_after_their_stay() -> None:
    churn = VmChurn(fleet="new", per_hour=10, stay_s=Distribution(low=600, high=1200))
    occurred = events(a_scenario(Faults(vms=(churn,))), 3)
    came = {event.vm.id: event.at_ms for event in occurred if isinstance(event, VmArrived)}
    assert len(came) == about(10 * 24 * 3)
    assert list(came)[:3] == ["new-1", "new-2", "new-3"]
    left = {event.vm: event.at_ms for event in occurred if isinstance(event, VmLeft)}
    assert len(left) > len(came) - 20
    assert all(600_000 <= left[vm] - came[VmId(vm)] <= 1_200_000 for vm in left)


def test_hosts_join_at_their_rate_and_some_leave() -> None:
    for stay_s in (None, 3600):
        churn = HostChurn(fleet="h", per_day=10, stay_s=stay_s)
        occurred = events(a_scenario(Faults(hosts=(churn,)), hosts=2), 30)
        came = {event.host.id: event.at_ms for event in occurred if isinstance(event, HostJoined)}
        left = {event.host: event.at_ms for event in occurred if isinstance(event, HostLeft)}
        assert len(came) == about(300)
        assert next(iter(came)) == "h-3"
        assert all(left[host] == came[HostId(host)] + 3_600_000 for host in left)
        assert bool(left) == (stay_s is not None)


def test_the_seed_alone_determines_the_random_events() -> None:
    faults = Faults(
        host_crashes=HostCrashes(per_host_day=2, back_after_s=Distribution(mean=600, sd=300)),
        vm_crashes=VmCrashes(per_vm_day=1),
        vms=(VmChurn(fleet="new", per_hour=2),),
        hosts=(HostChurn(fleet="h", per_day=3, stay_s=7200),),
    )
    first, again, other = (events(a_scenario(faults, 4, 20, seed=seed), 3) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_random_faults_are_independent() -> None:
    outages = HostCrashes(per_host_day=2)
    alone = events(a_scenario(Faults(host_crashes=outages)), 20)
    churn = (VmChurn(fleet="new", per_hour=0.5),)
    both = events(a_scenario(Faults(host_crashes=outages, vms=churn)), 20)
    assert times(alone, HostFailed) == times(both, HostFailed)


def test_two_rates_of_one_fleet_are_independent() -> None:
    churn = VmChurn(fleet="new", per_hour=6)
    occurred = events(a_scenario(Faults(vms=(churn, churn.but(stay_s=60)))), 2)
    moments = times(occurred, VmArrived)
    assert len(moments) == about(2 * 6 * 48)
    assert len(set(moments)) > 0.9 * len(moments), "the two rates are independent"


@pytest.mark.parametrize("rate", [0.0, 1e-9, 1e-305])
def test_a_tiny_rate_yields_no_event(rate: float) -> None:
    faults = Faults(
        host_crashes=HostCrashes(per_host_day=rate),
        vm_crashes=VmCrashes(per_vm_day=rate),
        monitoring_gaps=MonitoringGaps(per_day=rate),
        hosts=(HostChurn(fleet="h", per_day=rate),),
        vms=(VmChurn(fleet="new", per_hour=rate),),
    )
    assert events(a_scenario(faults, 2, 2), 1) == []


def test_a_host_that_recovered_as_scheduled_does_not_recover_again() -> None:
    outages = HostCrashes(per_host_day=5, back_after_s=50_000)
    scenario = a_scenario(Faults(host_crashes=outages), hosts=1)
    (first, *_) = times(events(scenario, 2), HostFailed)
    occurred: tuple[ScheduledEvent, ...] = (HostRecovered(at_ms=first + 1000, host=HostId("h-1")),)
    found = events(scenario.but(events=occurred), 1)
    assert [type(event) for event in found][:2] == [HostFailed, HostRecovered]
    state: dict[bool, list[int]] = {True: [], False: []}
    for event in found:
        state[isinstance(event, HostFailed)].append(event.at_ms)
    for at_ms in state[True][1:]:
        later = [event for event in state[False] if event > at_ms]
        assert not later or later[0] - at_ms == 50_000_000, "each outage has its own end"


def failures(scenario: Scenario, vm: str, count: int) -> int:
    """How many of so many attempts fail, each in a world of its own."""
    failed = 0
    for number in range(count):
        world = SimulatedWorld(scenario)
        seen = world.observe().vms[VmId(vm)]
        there = HostId("h-2")
        action: Action = Boot(vm=seen.id, target=there)
        if seen.host is not None:
            action = Migrate(vm=seen.id, source=seen.host, target=there)
        world.perform(StartAction(Step(id=StepId(f"s{number}"), action=action, end_ms=1000), 1))
        failed += isinstance(world.next_event(10**12), ActionFailed)
    return failed


def test_the_share_of_failed_migrations_matches_its_probability() -> None:
    scenario = a_scenario(
        Faults(slow_migrations=SlowMigrations(pct=50)),
        cluster=an_inventory(a_host("spare"), vms=[a_vm("moved", "spare"), a_vm("started")]),
        physics=Physics(
            migration=MigrationPhysics(failed_pct=20), switching=PowerPhysics(boot_failed_pct=40)
        ),
    )
    for vm, part in (("moved", 0.2), ("started", 0.4)):
        expected, sigma = 300 * part, sqrt(300 * part * (1 - part))
        assert failures(scenario, vm, 300) == pytest.approx(expected, abs=SIGMAS * sigma)
