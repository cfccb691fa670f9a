"""The figures of a run, each computed by hand for a small cluster."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_step, a_vm, an_inventory
from equipoise.control.ports import CancelAction, StartAction
from equipoise.model.action import Action, LeaveMaintenance, PowerOff, PowerOn
from equipoise.model.event import HostFailed, HostJoined, HostLeft, HostRecovered, VmCrashed
from equipoise.model.host import Host, HostReserve, HostState, PowerProfile
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.load import Load, LoadPoint, StepLoad
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm
from equipoise.sim.measure.measures import Measures
from equipoise.sim.world.simulated_world import SimulatedWorld

HOUR_S = 3600
WATTS = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=10)


def a_scenario(*hosts: Host, vms: list[Vm] | None = None, **fields: Any) -> Scenario:
    given: dict[str, Any] = {"measuring": MeasurementSettings(sample_s=600)}
    return Scenario(
        name="measured",
        duration_s=100 * HOUR_S,
        cluster=an_inventory(*hosts, vms=vms or []),
        **given | fields,
    )


def wants(name: str, host: str | None, mhz: int, mib: int = 0, **fields: Any) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz, memory_mib=mib), **fields)


def go(world: SimulatedWorld, to_s: float) -> None:
    while world.next_event(round(1000 * to_s)) is not None:
        pass


def after(scenario: Scenario, seconds: float = HOUR_S) -> Measures:
    world = SimulatedWorld(scenario)
    go(world, seconds)
    return world.measures()


def kwh(host: Host, *vms: Vm) -> float:
    return after(a_scenario(host, vms=list(vms))).energy_kwh


@pytest.mark.parametrize(
    ("state", "watts"),
    [
        (HostState.ON, 100),
        (HostState.STANDBY, 10),
        (HostState.MAINTENANCE, 100),
        (HostState.FAILED, 0),
    ],
)
def test_energy_depends_on_the_state_of_a_host(state: HostState, watts: int) -> None:
    assert kwh(a_host("h1", state=state, power=WATTS)) == pytest.approx(watts / 1000)


@pytest.mark.parametrize(("mhz", "watts"), [(0, 100), (1000, 125), (4000, 200), (9000, 200)])
def test_energy_rises_with_use(mhz: int, watts: int) -> None:
    vm = wants("a", "h1", mhz)
    assert kwh(a_host("h1", power=WATTS), vm) == pytest.approx(watts / 1000)


def test_a_host_with_its_own_power_curve_follows_it() -> None:
    curve = WATTS.but(managed=True, managed_watts=(40, 80, 100, 200))
    for power, watts in ((curve, 80), (curve.but(managed=False), 100 + 100 / 3)):
        host = a_host("h1", cores=3, power=power)
        assert kwh(host, wants("a", "h1", 1000)) == pytest.approx(watts / 1000)


def test_reserved_host_cpu_is_part_of_the_full_load() -> None:
    host = a_host("h1", power=WATTS, reserve=HostReserve(cpu_mhz=2000))
    assert kwh(host, wants("a", "h1", 9000)) == pytest.approx(0.15)


def test_a_waking_host_draws_idle_power_until_it_is_on_or_cancelled() -> None:
    scenario = a_scenario(a_host("h1", state=HostState.STANDBY, power=WATTS))
    wake = StartAction(a_step("s", PowerOn(host=HostId("h1")), 0, 1_800_000), 1)
    world = SimulatedWorld(scenario)
    world.perform(wake)
    go(world, HOUR_S)
    assert world.measures().energy_kwh == pytest.approx(0.1)
    world = SimulatedWorld(scenario)
    world.perform(wake)
    go(world, HOUR_S / 4)
    world.perform(CancelAction(StepId("s"), 1))
    go(world, HOUR_S)
    assert world.measures().energy_kwh == pytest.approx(0.025 + 0.0075)


@pytest.mark.parametrize(
    ("action", "state", "expected_kwh"),
    [
        (PowerOff(host=HostId("h1")), HostState.ON, 0.05 + 0.005),
        (LeaveMaintenance(host=HostId("h1")), HostState.MAINTENANCE, 0.1),
    ],
)
def test_energy_changes_when_a_switch_has_ended(
    action: Action, state: HostState, expected_kwh: float
) -> None:
    world = SimulatedWorld(a_scenario(a_host("h1", state=state, power=WATTS)))
    world.perform(StartAction(a_step("s", action, 0, 1_800_000), 1))
    go(world, HOUR_S)
    assert world.measures().energy_kwh == pytest.approx(expected_kwh)


def test_failed_and_removed_hosts_draw_no_power() -> None:
    h1, h2 = HostId("h1"), HostId("h2")
    scheduled = (
        HostFailed(at_ms=900_000, host=h1),
        HostRecovered(at_ms=2_700_000, host=h1),
        HostJoined(at_ms=1_800_000, host=a_host("h2", power=WATTS)),
        HostLeft(at_ms=2_700_000, host=h2),
    )
    measures = after(a_scenario(a_host("h1", power=WATTS), events=scheduled))
    assert measures.energy_kwh == pytest.approx(0.05 + 0.025)


def test_a_host_that_fails_while_it_wakes_draws_no_power() -> None:
    fault = HostFailed(at_ms=900_000, host=HostId("h1"))
    scenario = a_scenario(a_host("h1", state=HostState.STANDBY, power=WATTS), events=(fault,))
    world = SimulatedWorld(scenario)
    world.perform(StartAction(a_step("s", PowerOn(host=HostId("h1")), 0, 1_800_000), 1))
    go(world, HOUR_S)
    assert world.measures().energy_kwh == pytest.approx(0.025)


def test_satisfaction_is_allocation_over_demand() -> None:
    hosts = (a_host("h1", memory_mib=1000), a_host("h2"))
    vms = [wants("a", "h1", 6000, 1000), wants("b", "h1", 2000, 600), wants("c", "h2", 2000, 400)]
    measures = after(a_scenario(*hosts, vms=vms))
    assert measures.satisfied_memory_pct == pytest.approx(100 * 1400 / 2000)
    # Who misses memory runs slower, and asks for less than it wants.
    assert measures.satisfied_cpu_pct == pytest.approx(100 * 6000 / 10_000)
    assert measures.payload_cpu_pct == pytest.approx(100 * 6000 / 8000)
    assert measures.payload_memory_pct == pytest.approx(100 * 1400 / (1000 + 16_384))


def test_satisfaction_without_demand_is_100_percent() -> None:
    measures = after(a_scenario(a_host("h1")))
    assert (measures.satisfied_cpu_pct, measures.satisfied_memory_pct) == (100, 100)
    assert (measures.payload_cpu_pct, measures.cpu_ready_pct) == (0, 0)
    assert measures.share_classes == ()
    assert measures.happiness == ()


def test_ready_is_the_part_of_the_time_that_vms_wait_for_a_cpu() -> None:
    vms = [wants("a", "h1", 4000), wants("b", "h1", 4000), wants("c", "h2", 1000)]
    measures = after(a_scenario(a_host("h1"), a_host("h2"), vms=vms))
    assert measures.cpu_ready_pct == pytest.approx(100 * (0.5 + 0.5 + 0) / 3)


def test_swapping_slows_a_vm_down() -> None:
    """Half of the active memory is missing: the VM runs at 1 / (1 + 0.8 * 0.5)."""
    host = a_host("h1", memory_mib=512)
    measures = after(a_scenario(host, vms=[wants("a", "h1", 1400, 1024)]))
    assert measures.satisfied_cpu_pct == pytest.approx(100 / 1.4)
    assert measures.cpu_ready_pct == 0, "the VM waits for the disk, not for a CPU"


def test_figures_change_with_the_load() -> None:
    load = Load(
        cpu_mhz=(
            StepLoad(points=(LoadPoint(at_s=0, level=2000), LoadPoint(at_s=1800, level=8000))),
        )
    )
    scenario = a_scenario(a_host("h1", power=WATTS), vms=[a_vm("a", "h1")], loads={"l": load})
    measures = after(scenario.but(vm_loads={VmId("a"): "l"}))
    assert measures.satisfied_cpu_pct == pytest.approx(100 * 6 / 10)
    assert measures.payload_cpu_pct == pytest.approx(75)
    assert measures.energy_kwh == pytest.approx(0.075 + 0.1)
    assert measures.cpu_ready_pct == pytest.approx(25)


def test_a_crashed_vm_is_down_and_its_demand_is_unsatisfied() -> None:
    crash = VmCrashed(at_ms=900_000, vm=VmId("a"))
    vms = [wants("a", "h1", 1000, 100), wants("never", None, 1000)]
    measures = after(a_scenario(a_host("h1"), vms=vms, events=(crash,)))
    assert measures.downtime_s == pytest.approx(2700)
    assert measures.satisfied_cpu_pct == pytest.approx(25), (
        "a VM that never ran has no unmet demand"
    )
    assert measures.satisfied_memory_pct == pytest.approx(25)


def test_share_classes_are_separate_per_resource() -> None:
    vms = [
        wants("a", "h1", 3000, 100, cpu=CpuSettings(shares=3000)),
        wants("b", "h1", 3000, 100, cpu=CpuSettings(shares=1000)),
        wants("c", "h1", 0, 100, memory=MemorySettings(shares=10)),
    ]
    found = after(a_scenario(a_host("h1"), vms=vms)).share_classes
    cpu = {
        share_class.shares: share_class for share_class in found if share_class.resource == "cpu"
    }
    memory = {
        share_class.shares: share_class for share_class in found if share_class.resource == "memory"
    }
    assert {shares: group.vms for shares, group in cpu.items()} == {1000: 2, 3000: 1}
    assert {shares: group.vms for shares, group in memory.items()} == {10: 1, 1000: 2}
    assert cpu[3000].satisfied_pct == pytest.approx(100)
    assert cpu[1000].satisfied_pct == pytest.approx(100 / 3)
    assert cpu[3000].payload_pct == pytest.approx(75)


def test_the_imbalance_of_first_and_last_sample_and_the_time_below_target() -> None:
    load = Load(
        cpu_mhz=(StepLoad(points=(LoadPoint(at_s=0, level=4000), LoadPoint(at_s=1000, level=100))),)
    )
    hosts = (a_host("h1"), a_host("h2"))
    scenario = a_scenario(*hosts, vms=[a_vm("a", "h1")], loads={"l": load}, vm_loads={"a": "l"})
    measures = after(scenario)
    assert measures.imbalance_initial == pytest.approx(2 / 3 * 0.5)
    assert measures.imbalance_final == pytest.approx(2 / 3 * 0.0125)
    assert measures.below_target_at_s == 1200
    assert after(scenario, 700).below_target_at_s is None
    strict = scenario.but(measuring=scenario.measuring.but(imbalance_target=0.001))
    assert after(strict).below_target_at_s is None
    assert after(strict).imbalance_target == 0.001


def test_happiness_is_the_mean_of_the_samples_and_the_last_of_them() -> None:
    load = Load(
        cpu_mhz=(StepLoad(points=(LoadPoint(at_s=0, level=8000), LoadPoint(at_s=700, level=100))),)
    )
    hosts = (a_host("h1"), a_host("h2"))
    scenario = a_scenario(*hosts, vms=[a_vm("a", "h1")], loads={"l": load}, vm_loads={"a": "l"})
    (found,) = after(scenario, 1800).happiness
    assert found.pool == "(no pool)"
    assert found.mean_pct == pytest.approx((50 + 50 + 100 + 100) / 4)
    assert found.happy_pct == pytest.approx(50)
    assert (found.final_mean_pct, found.final_happy_pct) == (100, 100)
