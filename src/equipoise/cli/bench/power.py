"""How fast power decisions are, and what they save: the rows of the paper, and looking ahead."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from equipoise.cli.bench.row import Row, a_skewed_cluster, best
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.host import PowerFigures
from equipoise.model.policy import PowerPolicy
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.power.advise import advise_power
from equipoise.sim.builtin import builtin
from equipoise.sim.play import Play
from equipoise.store import MemoryJournal

QUIET = 0.15
"""So much of what VMs ask for by day they ask for at night."""
FORESIGHT_S = 1800


def rows() -> Iterator[Row]:
    """Sizes, the rows of the paper, and a week with and without looking ahead."""
    advise_power(_at_night(20, 200), Estimates())  # which pays for compiling
    yield _pass(32, 1280, 5)
    yield _pass(1000, 30_000, 2)
    for name, paper in (
        ("dpm-table3", "paper: 31.65 to 11.97 kWh, 273 moves"),
        ("dpm-testbed", "paper: with host power management most is saved"),
        ("dpm-testbed-no-hpm", "paper: six of eight hosts asleep when idle"),
    ):
        yield _scenario(name, paper)
    yield _week()


def _at_night(hosts: int, vms: int) -> Snapshot:
    """A cluster whose VMs have little to do."""
    inventory = a_skewed_cluster(hosts, vms, 1)
    power = PowerFigures(idle_watts=120, peak_watts=350, standby_watts=6)
    return Snapshot.of(
        inventory.but(
            hosts=tuple(host.but(power=power) for host in inventory.hosts),
            vms=tuple(
                vm.but(
                    demand=vm.demand.but(
                        cpu_mhz=int(QUIET * vm.demand.cpu_mhz),
                        memory_mib=int(QUIET * vm.demand.memory_mib),
                    )
                )
                for vm in inventory.vms
            ),
        )
    )


def _pass(hosts: int, vms: int, tries: int) -> Row:
    snapshot = _at_night(hosts, vms)
    found = advise_power(snapshot, Estimates())
    seconds = best(lambda: advise_power(snapshot, Estimates()), tries=tries)
    moves = sum(len(one.going) for one in found.sleeps)
    figures = {"hosts_to_sleep": float(len(found.sleeps)), "moves": float(moves)}
    what = f"one pass with power, {hosts:,} hosts, {vms:,} VMs"
    return Row(what, seconds, "", None, figures=figures)


def _scenario(name: str, paper: str) -> Row:
    began = perf_counter()
    without, with_ = (_figures(builtin(name), *some) for some in ((), ("power",)))
    saved = 100 * (1 - with_["energy_kwh"] / without["energy_kwh"])
    figures = {f"{key}_without": value for key, value in without.items()} | with_
    figures["saved_pct"] = saved
    return Row(f"{name} ({paper})", perf_counter() - began, "", None, figures=figures)


def _week() -> Row:
    """Who looks ahead wakes hosts before everybody comes at eight."""
    began = perf_counter()
    scenario = builtin("nightly")
    policies = (PowerPolicy(), PowerPolicy(foresight_s=FORESIGHT_S))
    reactive, proactive = (
        _figures(scenario.but(cluster=scenario.cluster.but(power=one)), "power") for one in policies
    )
    figures = {f"{key}_reactive": value for key, value in reactive.items()} | proactive
    figures["unsatisfied_part"] = (
        proactive["unsatisfied_cpu_mhz_h"] / reactive["unsatisfied_cpu_mhz_h"]
    )
    figures["energy_part"] = proactive["energy_kwh"] / reactive["energy_kwh"]
    what = "nightly, looking ahead by half an hour"
    return Row(what, perf_counter() - began, "", None, figures=figures)


def _figures(scenario: Scenario, *more: str) -> dict[str, float]:
    play = Play(scenario.but(deciders=(*scenario.deciders, *more)), MemoryJournal())
    play.run(1000 * scenario.duration_s)
    result = play.result()
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
