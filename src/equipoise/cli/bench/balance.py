"""How fast and how good balancing is, beside Watcher and ProxLB on the same clusters."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from equipoise.balance import Balance
from equipoise.balance.advise import advise
from equipoise.cli.bench.row import Row, a_skewed_cluster, best
from equipoise.errors import MissingExtra
from equipoise.fuzz.targets import Planned, cluster_of, start
from equipoise.model.action import Migrate
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Plan
from equipoise.model.policy import BalancePolicy
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.place.imbalance import imbalance
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.sim.builtin import builtin
from equipoise.sim.play import Play
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


def rows() -> Iterator[Row]:
    """Sizes, peers, random clusters, and the rows of the paper."""
    advise(Snapshot.of(a_skewed_cluster(20, 200, 1)), Estimates())  # which pays for compiling
    yield from _beside_peers()  # first, while this process is as small as theirs
    for hosts, vms, tries in (
        (32, 1280, 7),
        (64, 8000, 3),
        (1000, 30_000, 2),
        (10_000, 300_000, 1),
    ):
        yield _pass(hosts, vms, tries)
    yield _random_clusters()
    yield from _paper()


def _pass(hosts: int, vms: int, tries: int) -> Row:
    snapshot = Snapshot.of(a_skewed_cluster(hosts, vms, 1))
    found = advise(snapshot, Estimates()).advice
    seconds = best(lambda: advise(snapshot, Estimates()), tries=tries)
    figures = {
        "moves": len(found.moves),
        "imbalance_before": found.before,
        "imbalance_after": found.after,
        "memory_mib_so_far": _memory_mib(),
    }
    sampled = ", in samples" if hosts > snapshot.settings.balance.sample_hosts else ""
    what = f"one pass, {hosts:,} hosts, {vms:,} VMs{sampled}"
    return Row(what, seconds, "", None, figures=figures)


class _Answer(NamedTuple):
    seconds: float
    moves: int
    after: float


def _beside_peers() -> Iterator[Row]:
    snapshots = [Snapshot.of(a_skewed_cluster(50, 500, seed)) for seed in range(1, CLUSTERS + 1)]
    for title, name, options in PEERS:
        try:
            with start(name) as worker:
                theirs = [_asked(worker, snapshot, options) for snapshot in snapshots]
        except MissingExtra as error:
            yield Row(f"{title} at 50/500: not measured, {error}", 0.0, "", None)
            continue
        ours = [_ours(one, two.moves) for one, two in zip(snapshots, theirs, strict=True)]
        figures = {
            "moves": fmean(one.moves for one in ours),
            "peer_moves": fmean(one.moves for one in theirs),
            "imbalance_before": fmean(map(_imbalance, snapshots)),
            "imbalance_after": fmean(one.after for one in ours),
            "peer_imbalance_after": fmean(one.after for one in theirs),
        }
        seconds, peer = (fmean(one.seconds for one in some) for some in (ours, theirs))
        what = "one pass, 50 hosts, 500 VMs, at most as many moves as the peer"
        yield Row(what, seconds, title, peer, figures=figures)


def _asked(worker: Any, snapshot: Snapshot, options: dict[str, Any]) -> _Answer:
    found = [worker.plan(cluster_of(snapshot, **options)) for _ in range(3)]
    plans = [one for one in found if isinstance(one, Planned)]
    if not plans:
        return _Answer(float("nan"), 0, _imbalance(snapshot))
    quick = min(plans, key=lambda one: one.seconds)
    before = {str(vm.id): str(vm.host) for vm in snapshot.vms.values()}
    after = quick.placement(before)
    return _Answer(quick.seconds, len(quick.moves), _imbalance(_placed(snapshot, after)))


def _ours(snapshot: Snapshot, moves: int) -> _Answer:
    policy = BalancePolicy(moves_per_pass=max(1, moves), threshold=5, imbalance_target=0.01)
    ruled = replace(snapshot, settings=snapshot.settings.but(balance=policy))
    found = advise(ruled, Estimates()).advice
    after = {str(one.vm): str(one.target) for one in found.moves}
    seconds = best(lambda: advise(ruled, Estimates()), tries=3)
    return _Answer(seconds, len(found.moves), _imbalance(_placed(snapshot, after)))


def _placed(snapshot: Snapshot, hosts: dict[str, str]) -> Snapshot:
    vms = {
        vm.id: vm.but(host=HostId(hosts.get(vm.id, str(vm.host)))) for vm in snapshot.vms.values()
    }
    return replace(snapshot, vms=FrozenMap(vms))


def _imbalance(snapshot: Snapshot) -> float:
    """The imbalance of what is asked for, which is what is deserved where there is enough."""
    row = {host: number for number, host in enumerate(snapshot.hosts)}
    loads = np.zeros((len(row), 2))
    for vm in snapshot.vms.values():
        if vm.host is not None:
            loads[row[vm.host]] += (vm.demand.cpu_mhz, vm.demand.memory_mib)
    sizes = [(one.usable_cpu_mhz, one.usable_memory_mib) for one in snapshot.hosts.values()]
    return imbalance(loads / np.array(sizes))


def _random_clusters() -> Row:
    """Many small clusters with rules and tight reservations: does the gate let all pass?"""
    refused, moves, worse = 0, 0, 0
    began = perf_counter()
    for seed in range(RANDOM_CLUSTERS):
        snapshot = _ruled(seed)
        proposal = Balance(Estimates()).propose(snapshot)
        if not proposal.intents:
            continue
        plan = order(snapshot, proposal.intents, PlanId("p"), proposal.mends)
        passed = isinstance(plan, Plan) and isinstance(verify(snapshot, plan), VerifiedPlan)
        refused += not passed
        targets = {
            str(one.action.vm): str(one.action.target)
            for one in proposal.intents
            if isinstance(one.action, Migrate)
        }
        moves += len(targets)
        worse += _imbalance(_placed(snapshot, targets)) > _imbalance(snapshot) + 1e-9
    figures = {"violations": refused, "worse": worse, "moves": moves}
    what = f"{RANDOM_CLUSTERS:,} random clusters with rules: {refused} refused by the gate"
    seconds = perf_counter() - began
    return Row(what, seconds, "", None, count=RANDOM_CLUSTERS, figures=figures)


def _ruled(seed: int) -> Snapshot:
    """A small cluster with rules that hold at the start."""
    chance = np.random.default_rng(seed)
    inventory = a_skewed_cluster(int(chance.integers(3, 12)), int(chance.integers(10, 80)), seed)
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


def _paper() -> Iterator[Row]:
    """The rows of the paper, each scenario as it is built in."""
    yield _scenario("drs-table1", "paper: 73.74 / 94.99 %, 166 moves")
    yield _scenario("drs-testbed", "paper: under 0.1 in 30 min, under 0.05 in 140, 267 moves")
    for name, paper in (("drs-table2-1", "41 to 25"), ("drs-table2-2", "78 to 27"),
                        ("drs-table2-3", "39 to 16")):  # fmt: skip
        yield _scenario(name, f"paper: from {paper} moves", weighing=True)


def _scenario(name: str, paper: str, *, weighing: bool = False) -> Row:
    began = perf_counter()
    figures = _figures(name, BalancePolicy())
    if weighing:
        figures |= {
            f"{key}_without_cost_benefit": value
            for key, value in _figures(name, BalancePolicy(cost_benefit=False)).items()
        }
    return Row(f"{name} ({paper})", perf_counter() - began, "", None, figures=figures)


def _figures(name: str, policy: BalancePolicy) -> dict[str, float]:
    scenario = builtin(name)
    scenario = scenario.but(cluster=scenario.cluster.but(balance=policy))
    play = Play(scenario, MemoryJournal())
    play.run(1000 * scenario.duration_s)
    result = play.result()
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


def _memory_mib() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (1024 * 1024 if sys.platform == "darwin" else 1024)
