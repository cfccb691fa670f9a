"""Advice of the deciders for a cluster, verified plans for a desired state, and the gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.api.loading import Loaded
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.diagnostics import closest_match
from equipoise.model.estimate import Estimates
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

if TYPE_CHECKING:
    from equipoise.balance.advice import BalanceAdvice, MoveAdvice
    from equipoise.balance.placement import PlacementAdvice
    from equipoise.balance.repair.faults import BalanceFault
    from equipoise.balance.run_pass import PassResult
    from equipoise.power.advice import PowerAdvice
from time import perf_counter

from equipoise.model.problem import PlanningProblem

if TYPE_CHECKING:
    from equipoise.plan import Refusal, VerifiedPlan
    from equipoise.plan.exact.result import PlanningResult


Cluster = Snapshot | Loaded
"""Whatever describes a cluster: a snapshot, or what ``load`` returns, except a plan."""


def snapshot_of(cluster: Cluster) -> Snapshot:
    """Return the snapshot of whatever describes a cluster."""
    if isinstance(cluster, Snapshot):
        return cluster
    if isinstance(cluster, Plan):
        what, cure = "a plan describes no cluster", "load an inventory"
        raise InvalidInput("cluster", [InputProblem(key="", what=what, cure=cure)])
    if isinstance(cluster, Scenario):
        from equipoise.sim.expand import expand

        return Snapshot.of(expand(cluster).inventory)
    return Snapshot.of(cluster if isinstance(cluster, Inventory) else cluster.cluster)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What one pass recommends: moves and switches with their reasons, and what stays wrong."""

    snapshot: Snapshot
    balance: BalanceAdvice
    power: PowerAdvice | None = None
    result: PassResult | None = None
    """The pass itself, for explanations."""

    @property
    def moves(self) -> tuple[MoveAdvice, ...]:
        """The recommended moves, in an order in which they fit."""
        return self.balance.moves

    @property
    def faults(self) -> tuple[BalanceFault, ...]:
        """What is wrong and no move repairs, each with a code."""
        return self.balance.faults

    def __str__(self) -> str:
        lines = [f"{self.snapshot.name}: {self.balance.summary}"]
        lines += [
            f"  move {move.vm} from {move.source} to {move.target}: {move.reason}"
            for move in self.moves
        ]
        lines += [f"  fault {fault.code}: {fault.detail}" for fault in self.faults]
        if self.power is not None:
            lines.append(f"  power: {self.power.summary}")
        return "\n".join(lines)


def recommend(cluster: Cluster, *, power: bool = False, seed: int = 0) -> Recommendation:
    """Return what one pass recommends for a cluster; nothing is executed.

    :param power: whether the power decider proposes standbys and wake-ups too.
    """
    from equipoise.balance.run_pass import run_balance_pass
    from equipoise.power.propose import run_power_pass

    snapshot = snapshot_of(cluster)
    done = run_balance_pass(snapshot, Estimates(), seed=seed, alternatives=True)
    switched = run_power_pass(snapshot, Estimates(), seed=seed) if power else None
    return Recommendation(snapshot, done.advice, switched, done)


def place(cluster: Cluster, vms: Iterable[Vm]) -> PlacementAdvice:
    """Return where new VMs should start, and which moves and wake-ups come first."""
    from equipoise.balance.placement import place_vms

    snapshot, new = snapshot_of(cluster), _to_start(vms)
    both = snapshot.inventory()
    joined = Snapshot.of(both.but(vms=(*both.vms, *new)), at_ms=snapshot.at_ms)
    return place_vms(joined, [vm.id for vm in new], Estimates())


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The pass on a changed cluster."""

    recommendation: Recommendation
    restarts: tuple[tuple[VmId, HostId], ...]
    """The VMs of failed hosts, and where each restarts."""
    unplaced: tuple[VmId, ...]
    """The VMs that find no host."""

    def __str__(self) -> str:
        lines = [f"  restart {vm} on {host}" for vm, host in self.restarts]
        lines += [f"  no host for {vm}" for vm in self.unplaced]
        return "\n".join([str(self.recommendation), *lines])


def whatif(
    cluster: Cluster,
    *,
    remove: Sequence[str] = (),
    fail: Sequence[str] = (),
    add: Iterable[Vm] = (),
) -> WhatIf:
    """Return what a pass would do if hosts were removed or failed, or VMs were added."""
    from equipoise.balance.run_pass import run_whatif

    snapshot, new = snapshot_of(cluster), _to_start(add)
    if new:
        both = snapshot.inventory()
        snapshot = Snapshot.of(both.but(vms=(*both.vms, *new)), at_ms=snapshot.at_ms)
    found = run_whatif(
        snapshot,
        Estimates(),
        remove=known_hosts(remove, snapshot, "remove"),
        fail=known_hosts(fail, snapshot, "fail"),
        new=[vm.id for vm in new],
    )
    restarts = tuple((start.vm, start.host) for start in found.restarts.placed)
    pass_ = found.done
    advice = Recommendation(pass_.snapshot, pass_.advice, None, pass_)
    return WhatIf(advice, restarts, tuple(found.unplaced))


def _to_start(vms: Iterable[Vm]) -> tuple[Vm, ...]:
    """Return VMs that are new to the cluster as VMs that wait for their first host."""
    return tuple(vm.but(state=VmState.READY, host=None) for vm in vms)


def known_hosts(names: Sequence[str], snapshot: Snapshot, source: str) -> list[HostId]:
    """Return the hosts of these names, each once, or raise with a guess for each unknown one."""
    problems = []
    for name in names:
        if name not in snapshot.hosts:
            near = closest_match(name, snapshot.hosts)
            cure = f"did you mean {near}?" if near else "name a host of the inventory"
            problems.append(InputProblem(key=name, what="there is no such host", cure=cure))
    if problems:
        raise InvalidInput(source, problems)
    return [HostId(name) for name in dict.fromkeys(names)]


def solve(
    problem: Loaded,
    *,
    repair: bool = False,
    optimise: bool = False,
    time_limit_s: float | None = None,
) -> PlanningResult:
    """Return a plan that satisfies every condition, or the conditions that are in conflict.

    :param repair: move only VMs that may be misplaced, unless no such plan exists.
    :param optimise: search for the best plan by the objective of the problem.
    """
    from equipoise.plan.exact.solve import solve as solve_exactly
    from equipoise.plan.exact.solver import SearchBudget

    if isinstance(problem, Inventory):
        problem = PlanningProblem(cluster=problem)
    if not isinstance(problem, PlanningProblem):
        what = f"a {type(problem).__name__} is no planning problem"
        cure = "load an inventory or a problem"
        raise InvalidInput("solve", [InputProblem(key="", what=what, cure=cure)])
    budget = SearchBudget.of(time_limit_s, perf_counter)
    return solve_exactly(problem, budget, repair=repair, optimise=optimise)


def verify(cluster: Cluster, plan: Plan | Loaded) -> VerifiedPlan | Refusal:
    """Replay a plan through every intermediate state: a ``VerifiedPlan``, or why it is refused."""
    from equipoise.plan import verify as verify_plan

    if not isinstance(plan, Plan):
        what = f"a {type(plan).__name__} is no plan"
        raise InvalidInput("verify", [InputProblem(key="", what=what, cure="load a plan")])
    return verify_plan(snapshot_of(cluster), plan)
