"""The simulated world against ``plain_world``, an oracle written from the model alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_plan, a_step, a_vm, an_inventory
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFinished, VmCrashed
from equipoise.model.host import HostState, PowerProfile
from equipoise.model.inventory import Pool
from equipoise.model.quantity import HostId, PoolId, StepId, VmId
from equipoise.model.scenario.load import Distribution, Load, NoiseLoad
from equipoise.model.scenario.physics import MigrationPhysics, Physics
from equipoise.model.scenario.scenario import MeasurementSettings, Scenario
from equipoise.model.vm import CpuSettings, Demand, Vm
from equipoise.sim.measure.sampling import RunRecord
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.store import MemoryJournal
from plain_scenarios import scenarios
from plain_world import PlainWorld, action_starts

CLOSE = 1e-6
LATE_MS = 3
"""The tolerance for the end of a migration: each round is rounded up to a millisecond."""


class Run(NamedTuple):
    result: SimulationResult
    journal: MemoryJournal
    plain: PlainWorld

    @property
    def ended(self) -> dict[StepId, int]:
        events = self.journal.events()
        return {event.step: event.at_ms for event in events if isinstance(event, ActionFinished)}


def played(
    scenario: Scenario, stops: tuple[int, ...] = ()
) -> tuple[SimulationResult, MemoryJournal]:
    journal = MemoryJournal()
    play = ScenarioRunner(scenario, journal)
    for at_ms in (*sorted(stops), 1000 * scenario.duration_s):
        play.run(at_ms)
    return play.result(), journal


def both(scenario: Scenario) -> Run:
    result, journal = played(scenario)
    plain = PlainWorld(scenario, action_starts(journal.events()))
    plain.run()
    return Run(result, journal, plain)


Pair = tuple[str, Any, Any]


def pairs(run: Run) -> Iterator[Pair]:
    """Yield every figure twice: of the simulated world and of the oracle."""
    yield from summed(run)
    if run.ended == run.plain.ended:
        yield from sampled(run)
        yield from contented(run)


def summed(run: Run) -> Iterator[Pair]:
    found, plain = run.result.measures, run.plain
    hosts, whole_ms = plain.scenario.cluster.hosts, plain.now_ms
    total = {
        what: sum(guest.sums[what] for guest in plain.guests.values())
        for what in (
            "cpu_allocated",
            "cpu_demand",
            "memory_allocated",
            "memory_demand",
            "ready",
            "ran",
            "down",
        )
    }
    cpu = whole_ms * sum(host.usable_cpu_mhz for host in hosts)
    memory = whole_ms * sum(host.usable_memory_mib for host in hosts)
    yield "payload cpu", found.payload_cpu_pct, percent(total["cpu_allocated"], cpu)
    yield "payload memory", found.payload_memory_pct, percent(total["memory_allocated"], memory)
    satisfied = percent(total["cpu_allocated"], total["cpu_demand"], 100)
    yield "satisfied cpu", found.satisfied_cpu_pct, satisfied
    satisfied = percent(total["memory_allocated"], total["memory_demand"], 100)
    yield "satisfied memory", found.satisfied_memory_pct, satisfied
    yield "ready", found.cpu_ready_pct, percent(total["ready"], total["ran"])
    missed = (total["cpu_demand"] - total["cpu_allocated"]) / 3_600_000
    yield "unsatisfied cpu", found.unsatisfied.cpu_mhz_h, missed
    missed = (total["memory_demand"] - total["memory_allocated"]) / 3_600_000
    yield "unsatisfied memory", found.unsatisfied.memory_mib_h, missed
    yield "energy", found.energy_kwh, plain.joules / 3_600_000
    yield "energy saved", found.energy.saved_kwh, plain.joules_saved / 3_600_000
    yield "hours asleep", found.energy.host_hours_asleep, plain.asleep_s / 3600
    yield "downtime", found.downtime_s, total["down"] / 1000
    yield "first imbalance", found.imbalance_initial, plain.samples[0].imbalance


def percent(part: float, whole: float, of_nothing: float = 0) -> float:
    return 100 * part / whole if whole else of_nothing


def sampled(run: Run) -> Iterator[Pair]:
    cluster, hosts = run.result.record.cluster, run.result.record.hosts
    yield "last imbalance", run.result.measures.imbalance_final, run.plain.samples[-1].imbalance
    yield "samples", cluster["at_s"].tolist(), [sample.at_s for sample in run.plain.samples]
    row = 0
    for number, sample in enumerate(run.plain.samples):
        yield f"imbalance at {sample.at_s}", cluster["imbalance"][number], sample.imbalance
        watts = sum(host["watts"] for host in sample.hosts.values())
        yield f"watts at {sample.at_s}", cluster["watts"][number], watts
        yield f"VMs at {sample.at_s}", cluster["vms_running"][number], len(sample.happiness)
        for name, figures in sample.hosts.items():
            yield f"host at {sample.at_s}", hosts["host"][row], name
            for column, figure in figures.items():
                yield f"{column} of {name} at {sample.at_s}", hosts[column][row], figure
            row += 1
    yield "rows of hosts", len(hosts), row


def contented(run: Run) -> Iterator[Pair]:
    table = run.result.record.pools
    keys = zip(table["at_s"], table["pool"], strict=True)
    found = dict(zip(keys, table["happiness_pct"], strict=True))
    for sample in run.plain.samples:
        groups: dict[str, list[float]] = {}
        for vm, part in sample.happiness.items():
            groups.setdefault(run.plain.guests[vm].vm.pool or "(no pool)", []).append(part)
        for pool, parts in groups.items():
            mean = 100 * sum(parts) / len(parts)
            yield f"happiness of {pool} at {sample.at_s}", found.pop((sample.at_s, pool), -1), mean
    yield "unknown pools", len(found), 0


def wrong(run: Run) -> list[Pair]:
    """What the two worlds do not agree on; a late millisecond leaves its trace in all sums."""
    part = CLOSE if run.ended == run.plain.ended else 0.01
    return [pair for pair in pairs(run) if not agree(pair[1], pair[2], part)]


def agree(one: Any, other: Any, part: float) -> bool:
    if isinstance(one, str | list):
        return bool(one == other)
    return bool(abs(one - other) <= part * max(1, abs(one), abs(other)))


@given(scenarios())
def test_every_figure_of_a_run_equals_the_oracle(scenario: Scenario) -> None:
    assert not wrong(both(scenario))


@given(scenarios(moving=True))
def test_durations_of_migrations_equal_the_oracle(scenario: Scenario) -> None:
    run = both(scenario)
    never_ms = 1000 * scenario.duration_s + 1
    for step in run.ended | run.plain.ended:
        ends = run.ended.get(step, never_ms), run.plain.ended.get(step, never_ms)
        assert abs(ends[0] - ends[1]) <= LATE_MS, step
    assert not wrong(run)


@given(scenarios())
def test_allocation_is_bounded_by_capacity_demand_and_limit(
    scenario: Scenario,
) -> None:
    result, _ = played(scenario)
    hosts, measures = result.record.hosts, result.measures
    for resource, unit in (("cpu", "mhz"), ("memory", "mib")):
        capacity, used = hosts[f"{resource}_capacity_{unit}"], hosts[f"{resource}_used_{unit}"]
        assert (used <= capacity * (1 + CLOSE)).all()
        assert (used <= hosts[f"{resource}_demand_{unit}"] * (1 + CLOSE)).all()
    assert (hosts["ballooned_mib"] >= 0).all()
    assert (hosts["swapped_mib"] >= 0).all()
    for figure in (measures.payload_cpu_pct, measures.satisfied_cpu_pct, measures.cpu_ready_pct):
        assert 0 <= figure <= 100 * (1 + CLOSE)


@given(scenarios() | scenarios(moving=True), st.lists(st.integers(0, 61_000), max_size=30))
def test_a_run_in_pieces_is_the_same_run(scenario: Scenario, stops: list[int]) -> None:
    whole, journal = played(scenario)
    cut, other = played(scenario, tuple(stops))
    assert list(other.lines()) == list(journal.lines())
    assert cut.measures == whole.measures
    assert cut.truth == whole.truth
    assert cut.snapshot == whole.snapshot
    assert columns(cut.record) == columns(whole.record)


def columns(record: RunRecord) -> list[tuple[str, list[Any]]]:
    tables = (record.cluster, record.hosts, record.pools)
    return [(name, column.tolist()) for table in tables for name, column in table.columns.items()]


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    noise = NoiseLoad(level=Distribution(low=0, high=4000), period_s=20)
    one = a_scenario(thirsty("v1", "h1")).but(
        loads={"noise": Load(cpu_mhz=(noise,))}, vm_loads={VmId("v1"): "noise"}
    )
    digests = [played(one.but(seed=seed % 5))[1].sha256() for seed in range(10)]
    assert digests[:5] == digests[5:]
    assert len(set(digests)) == 5


# By hand


def a_scenario(*vms: Vm, **fields: Any) -> Scenario:
    """Two hosts of 4,000 MHz and 16 GiB for 100 seconds."""
    given_: dict[str, Any] = {"name": "by hand", "duration_s": 100, "pass_s": 10}
    given_ |= {"cluster": an_inventory(a_host("h1"), a_host("h2"), vms=vms)}
    return Scenario(**given_ | fields)


def thirsty(name: str, host: str, mhz: int = 4000, **fields: Any) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz), **fields)


def moving(*vms: str, **physics: Any) -> dict[str, Any]:
    """A plan that moves VMs from the first host to the second, and how that goes."""
    moves = [Migrate(vm=VmId(vm), source=HostId("h1"), target=HostId("h2")) for vm in vms]
    steps = [a_step(f"move-{move.vm}", move, 0, 60_000) for move in moves]
    return {"plan": a_plan(*steps), "physics": Physics(migration=MigrationPhysics(**physics))}


def agreed(scenario: Scenario) -> SimulationResult:
    run = both(scenario)
    assert run.ended == run.plain.ended
    assert not wrong(run)
    return run.result


def ends(scenario: Scenario) -> dict[str, int]:
    run = both(scenario)
    assert not wrong(run)
    return {str(step): at_ms for step, at_ms in run.ended.items()}


def test_an_idle_gibibyte_takes_859_ms_over_ten_gigabits_and_is_down_for_the_switch() -> None:
    scenario = a_scenario(a_vm("v1", "h1"), **moving("v1"))
    assert ends(scenario) == {"move-v1": 859 + 100}
    assert agreed(scenario).measures.downtime_s == 0.1


def test_a_busy_vm_is_copied_in_several_rounds() -> None:
    """4 GHz write 240 MiB/s, but a round finds at most half of the 512 MiB that are active."""
    busy = a_vm("v1", "h1", demand=Demand(cpu_mhz=4000, memory_mib=512))
    # 1,024 MiB in 859 ms, 206 MiB in 173 ms: the 41.5 MiB that follow take 35 ms.
    fast = a_scenario(busy, **moving("v1", downtime_ms_max=100))
    assert ends(fast) == {"move-v1": 859 + 173 + 35 + 100}
    slow = a_scenario(busy, **moving("v1", link_mbps=1000, downtime_ms_max=100))
    # 1,024 MiB in 8,590 ms; then 256 MiB in 2,148 ms; then no less, so the VM is stopped for it.
    assert ends(slow) == {"move-v1": 8590 + 2148 + 2148 + 100}


def test_two_copies_share_the_link_and_a_third_waits() -> None:
    vms = [a_vm(f"v{n}", "h1") for n in (1, 2, 3)]
    together = a_scenario(*vms[:2], **moving("v1", "v2", switch_ms=0))
    assert all(abs(at_ms - 1718) <= LATE_MS for at_ms in ends(together).values())
    waiting = ends(a_scenario(*vms, **moving("v1", "v2", "v3", switch_ms=0, per_host_max=2)))
    assert abs(waiting["move-v3"] - (1718 + 859)) <= LATE_MS


def test_a_copy_costs_cpu_on_both_hosts_and_slows_its_vm() -> None:
    vms = [thirsty("v1", "h1"), thirsty("v2", "h2")]
    scenario = a_scenario(*vms, **moving("v1", link_mbps=50, dirty_mib_per_ghz=0), duration_s=60)
    record = agreed(scenario.but(measuring=MeasurementSettings(sample_s=10))).record
    used = record.hosts["cpu_used_mhz"][record.hosts["at_s"] == 10]
    assert used.tolist() == [3500, 3500]
    alone = agreed(
        a_scenario(vms[0], **moving("v1", link_mbps=50, cpu_mhz=0), duration_s=60)
    ).record
    assert alone.cluster["cpu_used_mhz"][-1] == 3600


def test_a_vm_without_half_its_memory_runs_slower() -> None:
    hungry = a_vm("v1", "h1", demand=Demand(cpu_mhz=700, memory_mib=1000))
    cluster = an_inventory(a_host("h1", memory_mib=500), vms=[hungry])
    result = agreed(a_scenario(cluster=cluster))
    hosts = result.record.hosts
    assert hosts["cpu_used_mhz"][-1] == pytest.approx(500), "700 / (1 + 0.8 / 2)"
    assert (hosts["ballooned_mib"][-1], hosts["swapped_mib"][-1]) == (24, 500)
    assert result.measures.cpu_ready_pct == 0, "the VM does not wait for a CPU"


def test_the_weight_of_vms_rises_when_others_of_the_pool_leave() -> None:
    """The pool's shares are divided among two VMs, then one has them all, on another host."""
    vms = [thirsty("a", "h1", pool="p"), thirsty("b", "h2", pool="p"), thirsty("c", "h1")]
    cluster = an_inventory(a_host("h1"), a_host("h2"), vms=vms, pools=(Pool(id=PoolId("p")),))
    crash = VmCrashed(at_ms=30_001, vm=VmId("b"))
    scenario = a_scenario(
        cluster=cluster, events=(crash,), measuring=MeasurementSettings(sample_s=20)
    )
    pools = agreed(scenario).record.pools
    alone = pools["cpu_used_mhz"][pools["pool"] == "(no pool)"]
    assert np.round(alone, 6).tolist() == [2666.666667] * 2 + [2000] * 4


def test_a_reservation_holds_beside_and_inside_a_pool_without_reservation() -> None:
    def used_by_pool(of_reserved: str | None, of_other: str | None) -> float:
        kept = thirsty("a", "h1", pool=of_reserved, cpu=CpuSettings(reservation_mhz=3000))
        vms = [kept, thirsty("b", "h1", pool=of_other)]
        cluster = an_inventory(a_host("h1"), vms=vms, pools=(Pool(id=PoolId("p")),))
        pools = agreed(a_scenario(cluster=cluster)).record.pools
        return float(pools["cpu_used_mhz"][pools["pool"] == "p"][-1])

    assert used_by_pool(None, "p") == pytest.approx(1000)
    assert used_by_pool("p", None) == pytest.approx(3000)


def test_power_follows_from_state_and_load() -> None:
    power = PowerProfile(idle_watts=100, peak_watts=300, standby_watts=10)
    curve = PowerProfile(managed=True, managed_watts=(50, 60, 90, 200))
    hosts = [
        a_host("h1", power=power),
        a_host("h2", power=curve),
        *(a_host(f"h-{state}", state=state, power=power) for state in list(HostState)[1:]),
    ]
    vms = [thirsty("v1", "h1", 1000), thirsty("v2", "h2", 2000)]
    result = agreed(a_scenario(cluster=an_inventory(*hosts, vms=vms)))
    watts = result.record.hosts["watts"][-len(hosts) :].tolist()
    assert watts == pytest.approx([150, 75, 10, 100, 0])
    assert result.measures.energy_kwh == pytest.approx(335 * 100 / 3_600_000)


def test_imbalance_weighs_a_contended_resource_three_times() -> None:
    half = agreed(a_scenario(thirsty("v1", "h1", 2000))).measures
    assert half.imbalance_final == pytest.approx(0.25 * 2 / 3)
    full = agreed(a_scenario(thirsty("v1", "h1", 4000))).measures
    assert full.imbalance_final == pytest.approx(0.5 * 2 / 3), "just full is not contended"
    crowded = agreed(a_scenario(thirsty("v1", "h1", 3000), thirsty("v2", "h1", 3000))).measures
    assert crowded.imbalance_final == pytest.approx(0.75)
