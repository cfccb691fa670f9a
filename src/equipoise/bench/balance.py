"""Benchmarks of balance: speed and quality, compared with Watcher and ProxLB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.adapters.targets.worker import ProposedMoves, encode_cluster, start_worker
from equipoise.balance import BalanceDecider
from equipoise.balance.run_pass import run_balance_pass
from equipoise.bench.measure import BenchmarkRow, best_time_s, peak_memory_mib, skewed_cluster
from equipoise.capacity.imbalance import imbalance
from equipoise.errors import MissingExtra
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Plan
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

CLUSTERS = 5
HALF_AN_HOUR_S = 1800
RANDOM_CLUSTERS = 1000
PEERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Watcher workload_stabilization", "watcher", {}),
    (
        "Watcher workload_stabilization, CPU and RAM",
        "watcher",
        {"metrics": ["instance_cpu_usage", "instance_ram_usage"]},
    ),
    ("ProxLB, memory", "proxlb", {"method": "memory"}),
    ("ProxLB, CPU", "proxlb", {"method": "cpu"}),
)


def rows() -> Iterator[BenchmarkRow]:
    """Yield peers, passes of several sizes, random clusters, and the scenarios of the paper."""
    run_balance_pass(Snapshot.of(skewed_cluster(20, 200, 1)), Estimates())  # includes compilation
    yield from _compare_with_peers()  # first, while this process is as small as the peers
    for hosts, vms, tries in (
        (32, 1280, 7),
        (64, 8000, 3),
        (1000, 30_000, 2),
        (10_000, 300_000, 1),
    ):
        yield _pass_row(hosts, vms, tries)
    yield from _rule_rows()
    yield _random_clusters()
    yield from _paper_rows()


def _pass_row(hosts: int, vms: int, tries: int) -> BenchmarkRow:
    snapshot = Snapshot.of(skewed_cluster(hosts, vms, 1))
    advice = run_balance_pass(snapshot, Estimates()).advice
    seconds = best_time_s(lambda: run_balance_pass(snapshot, Estimates()), tries=tries)
    figures = {
        "moves": len(advice.moves),
        "imbalance_before": advice.before,
        "imbalance_after": advice.after,
        "memory_mib_so_far": round(peak_memory_mib()),
    }
    sampled = ", in samples" if hosts > snapshot.settings.balance.sample_hosts else ""
    what = f"one pass, {hosts:,} hosts, {vms:,} VMs{sampled}"
    return BenchmarkRow(what, seconds, "", None, figures=figures)


RESERVE_RULES: Final[tuple[tuple[str, Mapping[str, int | str]], ...]] = (
    ("Failover", {"nb": 1, "id": "memory"}),
    ("FailoverPercentage", {"id": "memory", "percent": 10}),
    ("FailoverPercentage", {"id": "memory", "percent": 99}),
    ("MinOnline", {"ns": "all hosts", "nb": 20}),
)
"""Rules about the whole cluster: reserves that hold, one that no move can repair, and a quorum."""


def _rule_rows() -> Iterator[BenchmarkRow]:
    """Yield passes with a rule about the whole cluster, compared with the same pass without."""
    plain = Snapshot.of(skewed_cluster(32, 1280, 1))
    plain_s = best_time_s(lambda: run_balance_pass(plain, Estimates()), tries=7)
    for constraint, given in RESERVE_RULES:
        arguments = {**given, "ns": tuple(plain.hosts)} if "ns" in given else given
        for continuous in (False, True):
            rule = Satisfy(
                id=RuleId("reserve"),
                constraint=constraint,
                arguments=FrozenMap(arguments),
                continuous=continuous,
            )
            ruled = replace(plain, settings=plain.settings.but(rules=(rule,)))
            advice = run_balance_pass(ruled, Estimates()).advice
            seconds = best_time_s(partial(run_balance_pass, ruled, Estimates()), tries=5)
            values = ", ".join(str(value) for name, value in given.items() if name != "id")
            kind = ", continuous" if continuous else ""
            yield BenchmarkRow(
                f"one pass, 32 hosts, 1,280 VMs, {constraint} ({values}){kind}",
                seconds,
                "the same pass without a rule",
                plain_s,
                figures={"moves": len(advice.moves), "faults": len(advice.faults)},
            )


class _PassResult(NamedTuple):
    seconds: float
    moves: int
    after: float


def _compare_with_peers() -> Iterator[BenchmarkRow]:
    snapshots = [Snapshot.of(skewed_cluster(50, 500, seed)) for seed in range(1, CLUSTERS + 1)]
    for title, name, options in PEERS:
        try:
            with start_worker(name) as worker:
                theirs = [_run_peer(worker, snapshot, options) for snapshot in snapshots]
        except MissingExtra as error:
            yield BenchmarkRow(f"{title} at 50/500: not measured, {error}", 0.0, "", None)
            continue
        ours = [
            _ours(snapshot, peer_pass.moves)
            for snapshot, peer_pass in zip(snapshots, theirs, strict=True)
        ]
        figures = {
            "moves": fmean(result.moves for result in ours),
            "peer_moves": fmean(result.moves for result in theirs),
            "imbalance_before": fmean(map(_imbalance, snapshots)),
            "imbalance_after": fmean(result.after for result in ours),
            "peer_imbalance_after": fmean(result.after for result in theirs),
        }
        seconds, peer = (fmean(result.seconds for result in results) for results in (ours, theirs))
        what = "one pass, 50 hosts, 500 VMs, at most as many moves as the peer"
        yield BenchmarkRow(what, seconds, title, peer, figures=figures)


def _run_peer(worker: Any, snapshot: Snapshot, options: dict[str, Any]) -> _PassResult:
    replies = [worker.plan(encode_cluster(snapshot, **options)) for _ in range(3)]
    plans = [reply for reply in replies if isinstance(reply, ProposedMoves)]
    if not plans:
        return _PassResult(float("nan"), 0, _imbalance(snapshot))
    quick = min(plans, key=lambda plan: plan.seconds)
    before = {str(vm.id): str(vm.host) for vm in snapshot.vms.values()}
    after = quick.placement(before)
    return _PassResult(
        quick.seconds, len(quick.moves), _imbalance(_with_placement(snapshot, after))
    )


def _ours(snapshot: Snapshot, moves: int) -> _PassResult:
    # The most eager settings: only the number of moves of the peer ends the pass.
    policy = BalancePolicy(moves_per_pass=max(1, moves), threshold=5, imbalance_target=0.01)
    ruled = replace(snapshot, settings=snapshot.settings.but(balance=policy))
    advice = run_balance_pass(ruled, Estimates()).advice
    after = {str(move.vm): str(move.target) for move in advice.moves}
    seconds = best_time_s(lambda: run_balance_pass(ruled, Estimates()), tries=3)
    return _PassResult(seconds, len(advice.moves), _imbalance(_with_placement(snapshot, after)))


def _with_placement(snapshot: Snapshot, hosts: dict[str, str]) -> Snapshot:
    vms = {
        vm.id: vm.but(host=HostId(hosts.get(vm.id, str(vm.host)))) for vm in snapshot.vms.values()
    }
    return replace(snapshot, vms=FrozenMap(vms))


def _imbalance(snapshot: Snapshot) -> float:
    """Return the imbalance of the demand, which equals the entitlement without overload."""
    row = {host: number for number, host in enumerate(snapshot.hosts)}
    loads = np.zeros((len(row), 2))
    for vm in snapshot.vms.values():
        if vm.host is not None:
            loads[row[vm.host]] += (vm.demand.cpu_mhz, vm.demand.memory_mib)
    sizes = [(host.usable_cpu_mhz, host.usable_memory_mib) for host in snapshot.hosts.values()]
    return imbalance(loads / np.array(sizes))


def _random_clusters() -> BenchmarkRow:
    """Count the plans that the gate refuses on small clusters with rules."""
    refused, moves, worse = 0, 0, 0
    began = perf_counter()
    for seed in range(RANDOM_CLUSTERS):
        snapshot = _cluster_with_rules(seed)
        proposal = BalanceDecider(Estimates()).propose(snapshot)
        if not proposal.intents:
            continue
        plan = order(snapshot, proposal.intents, PlanId("p"), proposal.repairs)
        passed = isinstance(plan, Plan) and isinstance(verify(snapshot, plan), VerifiedPlan)
        refused += not passed
        targets = {
            str(intent.action.vm): str(intent.action.target)
            for intent in proposal.intents
            if isinstance(intent.action, Migrate)
        }
        moves += len(targets)
        worse += _imbalance(_with_placement(snapshot, targets)) > _imbalance(snapshot) + 1e-9
    figures = {"violations": refused, "worse": worse, "moves": moves}
    what = f"{RANDOM_CLUSTERS:,} random clusters with rules: {refused} refused by the gate"
    seconds = perf_counter() - began
    return BenchmarkRow(what, seconds, "", None, count=RANDOM_CLUSTERS, figures=figures)


def _cluster_with_rules(seed: int) -> Snapshot:
    """Return a small cluster with rules that hold at the start."""
    rng = np.random.default_rng(seed)
    inventory = skewed_cluster(int(rng.integers(3, 12)), int(rng.integers(10, 80)), seed)
    by_host: dict[HostId, list[VmId]] = {host.id: [] for host in inventory.hosts}
    for vm in inventory.vms:
        assert vm.host is not None
        by_host[vm.host].append(vm.id)
    full = [vms for vms in by_host.values() if vms]
    apart = tuple(vms[0] for vms in full)
    together = full[0][1:3]
    names = list(by_host)
    rules: list[Rule] = []
    if len(apart) > 1:
        rules.append(KeepApart(id=RuleId("apart"), vms=apart, continuous=bool(seed % 2)))
    if len(together) > 1:
        rules.append(KeepTogether(id=RuleId("together"), vms=tuple(together)))
    away = [vm for vm in full[0] if by_host[names[-1]].count(vm) == 0]
    rules.append(StayOff(id=RuleId("off"), vms=tuple(away[:3]), hosts=(names[-1],)))
    home = next(host for host, vms in by_host.items() if vms)
    rules.append(StayWithin(id=RuleId("within"), vms=(by_host[home][-1],), hosts=(home, names[-1])))
    policy = BalancePolicy(threshold=5)
    return Snapshot.of(inventory.but(rules=tuple(rules), balance=policy))


def _paper_rows() -> Iterator[BenchmarkRow]:
    """Yield the built-in scenarios of the paper."""
    yield _scenario("drs-table1", "paper: 73.74 / 94.99 %, 166 moves")
    yield _scenario("drs-testbed", "paper: under 0.1 in 30 min, under 0.05 in 140, 267 moves")
    for name, paper in (("drs-table2-1", "41 to 25"), ("drs-table2-2", "78 to 27"),
                        ("drs-table2-3", "39 to 16")):  # fmt: skip
        yield _scenario(name, f"paper: from {paper} moves", weighing=True)


def _scenario(name: str, paper: str, *, weighing: bool = False) -> BenchmarkRow:
    began = perf_counter()
    figures = _figures(name, BalancePolicy())
    if weighing:
        figures |= {
            f"{key}_without_cost_benefit": value
            for key, value in _figures(name, BalancePolicy(cost_benefit=False)).items()
        }
    return BenchmarkRow(f"{name} ({paper})", perf_counter() - began, "", None, figures=figures)


def _figures(name: str, policy: BalancePolicy) -> dict[str, float]:
    scenario = builtin_scenario(name)
    scenario = scenario.but(cluster=scenario.cluster.but(balance=policy))
    runner = ScenarioRunner(scenario, MemoryJournal())
    runner.run(1000 * scenario.duration_s)
    result = runner.result()
    series = result.record.cluster
    late = np.nonzero(np.array(series["at_s"]) >= HALF_AN_HOUR_S)[0]
    at_30 = series["imbalance"][late[0]] if len(late) else float("nan")
    measures = result.measures
    return {
        "payload_cpu_pct": measures.payload_cpu_pct,
        "payload_memory_pct": measures.payload_memory_pct,
        "moves": float(result.finished[Migrate]),
        "imbalance_at_30_min": float(at_30),
        "below_target_at_s": measures.below_target_at_s or float("nan"),
    }
