"""Benchmarks of power decisions: speed, savings of the paper's scenarios, and forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from equipoise.bench.measure import BenchmarkRow, best_time_s, skewed_cluster
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.host import PowerProfile
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.power.propose import run_power_pass
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

NIGHT_DEMAND_SHARE = 0.15
"""Demand at night, as a share of the demand by day."""
FORESIGHT_S = 1800


def rows() -> Iterator[BenchmarkRow]:
    """Yield passes of several sizes, the scenarios of the paper, and a week with forecasts."""
    run_power_pass(_quiet_cluster(20, 200), Estimates())  # includes compilation
    yield _pass_row(32, 1280, 5)
    yield _pass_row(1000, 30_000, 2)
    for name, paper in (
        ("dpm-table3", "paper: 31.65 to 11.97 kWh, 273 moves"),
        ("dpm-testbed", "paper: with host power management most is saved"),
        ("dpm-testbed-no-hpm", "paper: six of eight hosts asleep when idle"),
    ):
        yield _scenario(name, paper)
    yield _forecast_row()


def _quiet_cluster(hosts: int, vms: int) -> Snapshot:
    """Return a cluster with low demand."""
    inventory = skewed_cluster(hosts, vms, 1)
    power = PowerProfile(idle_watts=120, peak_watts=350, standby_watts=6)
    return Snapshot.of(
        inventory.but(
            hosts=tuple(host.but(power=power) for host in inventory.hosts),
            vms=tuple(
                vm.but(
                    demand=vm.demand.but(
                        cpu_mhz=int(NIGHT_DEMAND_SHARE * vm.demand.cpu_mhz),
                        memory_mib=int(NIGHT_DEMAND_SHARE * vm.demand.memory_mib),
                    )
                )
                for vm in inventory.vms
            ),
        )
    )


def _pass_row(hosts: int, vms: int, tries: int) -> BenchmarkRow:
    snapshot = _quiet_cluster(hosts, vms)
    advice = run_power_pass(snapshot, Estimates())
    seconds = best_time_s(lambda: run_power_pass(snapshot, Estimates()), tries=tries)
    moves = sum(len(standby.evacuations) for standby in advice.standbys)
    figures = {"hosts_to_sleep": float(len(advice.standbys)), "moves": float(moves)}
    what = f"one pass with power, {hosts:,} hosts, {vms:,} VMs"
    return BenchmarkRow(what, seconds, "", None, figures=figures)


def _scenario(name: str, paper: str) -> BenchmarkRow:
    began = perf_counter()
    without, with_ = (_figures(builtin_scenario(name), *deciders) for deciders in ((), ("power",)))
    saved = 100 * (1 - with_["energy_kwh"] / without["energy_kwh"])
    figures = {f"{key}_without": value for key, value in without.items()} | with_
    figures["saved_pct"] = saved
    return BenchmarkRow(f"{name} ({paper})", perf_counter() - began, "", None, figures=figures)


def _forecast_row() -> BenchmarkRow:
    """Compare reactive wakes with wakes before the rise of demand at eight."""
    began = perf_counter()
    scenario = builtin_scenario("nightly")
    policies = (PowerPolicy(), PowerPolicy(foresight_s=FORESIGHT_S))
    reactive, proactive = (
        _figures(scenario.but(cluster=scenario.cluster.but(power=policy)), "power")
        for policy in policies
    )
    figures = {f"{key}_reactive": value for key, value in reactive.items()} | proactive
    figures["unsatisfied_part"] = (
        proactive["unsatisfied_cpu_mhz_h"] / reactive["unsatisfied_cpu_mhz_h"]
    )
    figures["energy_part"] = proactive["energy_kwh"] / reactive["energy_kwh"]
    what = "nightly, with a forecast of half an hour"
    return BenchmarkRow(what, perf_counter() - began, "", None, figures=figures)


def _figures(scenario: Scenario, *more: str) -> dict[str, float]:
    runner = ScenarioRunner(scenario.but(deciders=(*scenario.deciders, *more)), MemoryJournal())
    runner.run(1000 * scenario.duration_s)
    result = runner.result()
    measures = result.measures
    return {
        "energy_kwh": measures.energy_kwh,
        "payload_cpu_pct": measures.payload_cpu_pct,
        "unsatisfied_cpu_mhz_h": measures.unsatisfied.cpu_mhz_h,
        "moves": float(result.finished[Migrate]),
        "power_offs": float(result.finished[PowerOff]),
        "power_ons": float(result.finished[PowerOn]),
        "fewest_hosts_on": float(min(result.record.cluster["hosts_on"])),
    }
