"""Energy used and saved, computed by hand: a host in standby saves its idle power."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.control.ports import CancelAction, StartAction
from equipoise.model.action import PowerOff, PowerOn
from equipoise.model.event import HostFailed, HostJoined, HostLeft, HostRecovered, VmCrashed
from equipoise.model.host import Host, HostState, PowerProfile
from equipoise.model.policy.power import EnergyTariff, PowerPolicy
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import Demand, Vm
from equipoise.sim.measure.measures import Energy, Measures
from equipoise.sim.runner import ScenarioRunner
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import MemoryJournal

HOUR_S = 3600
H1 = HostId("h1")
WATTS = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=10)


def sleeping(name: str = "h1", power: PowerProfile = WATTS) -> Host:
    return a_host(name, state=HostState.STANDBY, power=power)


def a_scenario(*hosts: Host, vms: list[Vm] | None = None, **fields: Any) -> Scenario:
    settings = {name: fields.pop(name) for name in ("power",) if name in fields}
    return Scenario(
        name="energy",
        duration_s=100 * HOUR_S,
        cluster=an_inventory(*hosts, vms=vms or [], **settings),
        measuring=MeasurementSettings(sample_s=600),
        **fields,
    )


def go(world: SimulatedWorld, to_s: float) -> Measures:
    while world.next_event(round(1000 * to_s)) is not None:
        pass
    return world.measures()


def energy(scenario: Scenario, seconds: float = HOUR_S) -> Energy:
    return go(SimulatedWorld(scenario), seconds).energy


def test_a_host_in_standby_saves_its_idle_power() -> None:
    found = energy(a_scenario(sleeping(), a_host("h2", power=WATTS)), 5 * HOUR_S)
    assert found.saved_kwh == pytest.approx(5 * (100 - 10) / 1000)
    assert found.kwh == pytest.approx(5 * (100 + 10) / 1000)
    assert found.host_hours_asleep == pytest.approx(5)
    assert found.saved_pct == pytest.approx(100 * 90 / 200)


@pytest.mark.parametrize("state", [HostState.ON, HostState.MAINTENANCE, HostState.FAILED])
def test_only_standby_saves_energy(state: HostState) -> None:
    found = energy(a_scenario(a_host("h1", state=state, power=WATTS)))
    assert (found.saved_kwh, found.saved_pct, found.host_hours_asleep) == (0, 0, 0)


def test_idle_is_the_start_of_the_curve_that_a_host_has() -> None:
    curve = WATTS.but(managed=True, managed_watts=(40, 80, 100, 200))
    assert energy(a_scenario(sleeping(power=curve))).saved_kwh == pytest.approx(0.03)
    unmanaged = curve.but(managed=False)
    assert energy(a_scenario(sleeping(power=unmanaged))).saved_kwh == pytest.approx(0.09)


def test_without_power_figures_nothing_is_saved() -> None:
    found = energy(a_scenario(sleeping(power=PowerProfile(standby_watts=7))))
    assert found.saved_kwh == 0
    assert found.host_hours_asleep == pytest.approx(1)


def test_a_waking_host_is_not_in_standby_and_saves_nothing() -> None:
    world = SimulatedWorld(a_scenario(sleeping()))
    go(world, HOUR_S / 4)
    world.perform(StartAction(a_step("s", PowerOn(host=H1), 0, 1_800_000), 1))
    assert go(world, HOUR_S / 2).energy.saved_kwh == pytest.approx(0.09 / 4)
    world.perform(CancelAction(StepId("s"), 1))
    found = go(world, HOUR_S).energy
    assert found.saved_kwh == pytest.approx(0.09 * 3 / 4), (
        "the wake was cancelled, and the host stays in standby"
    )
    assert found.host_hours_asleep == pytest.approx(3 / 4)


def test_waking_above_idle_power_reduces_the_saving() -> None:
    curve = WATTS.but(managed=True, managed_watts=(40, 200))
    world = SimulatedWorld(a_scenario(sleeping(power=curve)))
    world.perform(StartAction(a_step("s", PowerOn(host=H1), 0, 1_800_000), 1))
    found = go(world, HOUR_S).energy
    assert found.kwh == pytest.approx((100 + 40) / 2 / 1000)
    assert found.saved_kwh == pytest.approx((40 - 100) / 2 / 1000)


def test_a_host_is_on_until_its_power_off_ends() -> None:
    world = SimulatedWorld(a_scenario(a_host("h1", power=WATTS)))
    world.perform(StartAction(a_step("s", PowerOff(host=H1), 0, 1_800_000), 1))
    found = go(world, HOUR_S).energy
    assert found.saved_kwh == pytest.approx(0.09 / 2)
    assert found.host_hours_asleep == pytest.approx(1 / 2)


def test_a_host_that_fails_or_leaves_in_standby_saves_no_more() -> None:
    failed = (HostFailed(at_ms=900_000, host=H1), HostRecovered(at_ms=1_800_000, host=H1))
    assert energy(a_scenario(sleeping(), events=failed)).saved_kwh == pytest.approx(0.09 / 4)
    came = (
        HostJoined(at_ms=900_000, host=sleeping("h2")),
        HostLeft(at_ms=2_700_000, host=HostId("h2")),
    )
    found = energy(a_scenario(a_host("h1"), events=came))
    assert found.saved_kwh == pytest.approx(0.09 / 2)
    assert found.host_hours_asleep == pytest.approx(1 / 2)


def test_price_and_emissions_follow_the_tariff() -> None:
    tariff = EnergyTariff(price_per_kwh=0.5, currency="CHF", co2_g_per_kwh=20)
    hosts = (sleeping(), a_host("h2", power=WATTS))
    found = energy(a_scenario(*hosts, power=PowerPolicy(tariff=tariff)), 10 * HOUR_S)
    assert [found.kwh, found.saved_kwh] == pytest.approx([1.1, 0.9])
    assert [found.price, found.saved_price] == pytest.approx([0.55, 0.45])
    assert [found.co2_kg, found.saved_co2_kg] == pytest.approx([0.022, 0.018])
    assert found.tariff.currency == "CHF"


def test_samples_have_the_power_that_standby_saves() -> None:
    record = SimulatedWorld(a_scenario(sleeping(), a_host("h2", power=WATTS))).record()
    assert record.hosts["watts_saved"].tolist() == [90, 0]
    assert record.cluster["watts_saved"].tolist() == [90]
    assert record.cluster["watts"].tolist() == [110]


def test_a_plan_that_puts_a_host_to_sleep_saves_from_then_on() -> None:
    off = a_step("off", PowerOff(host=H1), 0, 600_000)
    scenario = a_scenario(a_host("h1", power=WATTS), plan=a_plan(off)).but(duration_s=HOUR_S)
    play = ScenarioRunner(scenario, MemoryJournal())
    play.run(1000 * HOUR_S)
    result = play.result()
    assert result.violations == ()
    assert result.measures.energy.host_hours_asleep == pytest.approx(5 / 6)
    assert result.measures.energy.saved_kwh == pytest.approx(0.09 * 5 / 6)


def test_unmet_demand_is_demand_less_allocation() -> None:
    vms = [
        a_vm("a", "h1", demand=Demand(cpu_mhz=6000, memory_mib=600)),
        a_vm("b", "h2", demand=Demand(cpu_mhz=1000, memory_mib=400)),
    ]
    crash = VmCrashed(at_ms=1_800_000, vm=VmId("b"))
    world = SimulatedWorld(a_scenario(a_host("h1"), a_host("h2"), vms=vms, events=(crash,)))
    found = go(world, 2 * HOUR_S).unsatisfied
    assert found.cpu_mhz_h == pytest.approx(2 * 2000 + 1.5 * 1000), (
        "a VM that is down keeps its demand"
    )
    assert found.memory_mib_h == pytest.approx(1.5 * 400)


def test_without_demand_nothing_is_unmet() -> None:
    found = go(SimulatedWorld(a_scenario(a_host("h1"))), HOUR_S).unsatisfied
    assert (found.cpu_mhz_h, found.memory_mib_h) == (0, 0)
