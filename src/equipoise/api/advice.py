"""Advice of the deciders for a cluster, verified plans for a desired state, and the gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.api.loading import Loaded
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.action_durations import Estimates
from equipoise.model.diagnostics import closest_match
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, PlanId, VmId, format_count
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

if TYPE_CHECKING:
    from equipoise.api.observation import Observation
    from equipoise.balance.advice import BalanceAdvice, MoveAdvice
    from equipoise.balance.placement import PlacementAdvice
    from equipoise.balance.repair.faults import BalanceFault
    from equipoise.balance.run_pass import PassResult
    from equipoise.control.advice_plan import AdvicePlan
    from equipoise.power.advice import PowerAdvice
from time import perf_counter

from equipoise.model.problem import PlanningProblem

if TYPE_CHECKING:
    from equipoise.plan import Refusal, VerifiedPlan
    from equipoise.plan.exact.result import PlanningResult
    from equipoise.store import Journal


Cluster = Snapshot | Loaded
"""Whatever describes a cluster: a snapshot, or what ``load`` returns, except a plan."""


def snapshot_of(cluster: Cluster) -> Snapshot:
    """Return the snapshot of whatever describes a cluster."""
    if isinstance(cluster, Snapshot):
        return cluster
    if isinstance(cluster, Plan):
        what, cure = "a plan describes no cluster", "load an inventory"
        raise InvalidInput.of("cluster", what, cure=cure, code="wrong-type")
    if isinstance(cluster, Scenario):
        from equipoise.sim.expand import expand

        return Snapshot.of(expand(cluster).inventory)
    return Snapshot.of(cluster if isinstance(cluster, Inventory) else cluster.cluster)


@dataclass(frozen=True)
class Recommendation:
    """What one pass recommends: moves and switches with their reasons, and what stays wrong."""

    snapshot: Snapshot
    balance: BalanceAdvice
    power: PowerAdvice | None = None
    result: PassResult | None = None
    """The pass itself, for explanations."""
    actions: AdvicePlan | None = None
    """All actions in the order of execution, as one plan that the gate accepts."""
    estimates: Estimates = field(default_factory=Estimates)
    unknown: tuple[str, ...] = ()
    """The VMs of the history that the cluster does not have."""

    @property
    def moves(self) -> tuple[MoveAdvice, ...]:
        """The recommended moves, in an order in which they fit."""
        return self.balance.moves

    @property
    def plan(self) -> Plan:
        """All actions in the order of execution; ``verify`` accepts the plan."""
        return Plan(id=PlanId("advice"), steps=()) if self.actions is None else self.actions.plan

    @cached_property
    def imbalance(self) -> tuple[float, float]:
        """The imbalance before and after all actions, as the next pass reads it."""
        from equipoise.balance.run_pass import measure_imbalance

        balance, actions = self.balance, self.actions
        if actions is None or {step.action for step in actions.plan.steps} == set(balance.actions):
            return balance.before, balance.after
        # A forecast changes demand only within the pass, which is therefore no measure here.
        return balance.before, measure_imbalance(actions.after, self.estimates)

    @property
    def faults(self) -> tuple[BalanceFault, ...]:
        """What is wrong and no move repairs, overload included, each with a code."""
        return self.balance.unresolved

    @property
    def summary(self) -> str:
        """The advice in one sentence."""
        count = 0 if self.actions is None else len(self.actions.plan.steps)
        every = len(self.balance.actions)
        if self.power is not None or count >= every or self.actions is None:
            return self.balance.summary
        before, after = self.imbalance
        return (
            f"{count} of {format_count(every, 'action')}; the imbalance is {before:.3f} now and "
            f"{after:.3f} then"
        )

    def __str__(self) -> str:
        lines = [f"{self.snapshot.name}: {self.summary}"]
        lines += [
            f"  move {move.vm} from {move.source} to {move.target}: {move.reason}"
            for move in self.moves
        ]
        lines += [f"  fault {fault.code}: {fault.detail}" for fault in self.faults]
        if self.power is not None:
            lines.append(f"  power: {self.power.summary}")
        return "\n".join(lines)


def recommend(  # noqa: PLR0913  (each parameter is an option of the pass)
    cluster: Cluster,
    *,
    power: bool = False,
    seed: int | None = None,
    estimates: Estimates | None = None,
    link_mbps: float | None = None,
    history: str | Path | None = None,
    journal: Journal | str | None = None,
    top: int | None = None,
) -> Recommendation:
    """Return what one pass recommends for a cluster; nothing is executed.

    For a scenario it is the first pass of its simulation.

    :param power: whether the power decider proposes standbys and wake-ups too.
    :param seed: the random seed; default: that of the scenario, or 0.
    :param estimates: the expected durations; default: those of the scenario.
    :param link_mbps: the speed of the links that migrations use, in Mbit/s.
    :param history: a CSV file with the columns time, vm, cpu_mhz and memory_mib.
    :param journal: the journal of a control loop that ends where the cluster is now.
    :param top: recommend at most so many actions, the most useful ones.
    """
    from equipoise.api.observation import with_link_speed

    observed = _observed(cluster, history, journal)
    if isinstance(cluster, Scenario):
        seed = cluster.seed if seed is None else seed
        estimates = cluster.estimates if estimates is None else estimates
    expected = Estimates() if estimates is None else estimates
    if link_mbps is not None:
        expected = with_link_speed(expected, link_mbps)
    return advise(observed, expected, seed=seed or 0, power=power, top=top)


def _observed(
    cluster: Cluster, history: str | Path | None, journal: Journal | str | None
) -> Observation:
    """Return the cluster with what is known of its past."""
    from equipoise.api import observation

    if history is not None and journal is not None:
        what, cure = "a history and a journal are given", "give one of them"
        raise InvalidInput.of("history", what, cure=cure, code="option-conflict")
    if isinstance(cluster, Scenario) and history is None and journal is None:
        return observation.first_observation(cluster)
    snapshot = snapshot_of(cluster)
    if history is not None:
        return observation.with_history(snapshot, Path(history))
    if journal is not None:
        return observation.with_journal(snapshot, journal)
    return observation.Observation(snapshot=snapshot)


def advise(
    observed: Observation, estimates: Estimates, *, seed: int, power: bool, top: int | None
) -> Recommendation:
    """Run the deciders of the control loop once, and join their advice into one plan."""
    from equipoise.balance.propose import BalanceDecider
    from equipoise.control.advice_plan import balance_worth, plan_advice, power_worth
    from equipoise.control.arbitrate import keeps_hosts_on
    from equipoise.power.propose import PowerDecider

    snapshot = observed.snapshot
    balance = BalanceDecider(estimates, seed=seed, powered=power, alternatives=True)
    for past in observed.past:
        balance.learn(past)
    proposal, done = balance.propose_with_pass(snapshot)
    proposals, advice = [], None
    if power:
        decider = PowerDecider(estimates, seed=seed)
        for past in observed.past:
            decider.learn(past)
        switches, advice = decider.propose_with_advice(snapshot, done)
        if keeps_hosts_on(done, switches):
            proposal, done = balance.propose_with_pass(snapshot, even=True)
        proposals.append(switches.but(repairs=advice.repairs))
    # All of it is approved here, so it repairs what it would repair as a whole.
    proposals.insert(0, proposal.but(repairs=done.advice.repairs))
    worth = balance_worth(done.advice)
    if advice is not None:
        worth |= power_worth(advice)
    units = [unit for unit in done.assessment.members if len(unit) > 1]
    actions = plan_advice(snapshot, proposals, worth, units=units, top=top)
    return Recommendation(snapshot, done.advice, advice, done, actions, estimates, observed.unknown)


def recommendation_of(done: PassResult) -> Recommendation:
    """Return a balance pass that has run as a recommendation."""
    from equipoise.balance.propose import BalanceDecider
    from equipoise.control.advice_plan import balance_worth, plan_advice

    proposal = BalanceDecider(done.estimates).proposal_of(done.snapshot, done.advice)
    proposal = proposal.but(repairs=done.advice.repairs)
    actions = plan_advice(done.snapshot, [proposal], balance_worth(done.advice))
    return Recommendation(done.snapshot, done.advice, None, done, actions, done.estimates)


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
    return WhatIf(recommendation_of(pass_), restarts, tuple(found.unplaced))


def _to_start(vms: Iterable[Vm]) -> tuple[Vm, ...]:
    """Return VMs that are new to the cluster as VMs that wait for their first host."""
    # ``running`` is the default state of a VM, and a host would already be a decision.
    return tuple(vm.but(state=VmState.READY, host=None) for vm in vms)


def known_hosts(names: Sequence[str], snapshot: Snapshot, source: str) -> list[HostId]:
    """Return the hosts of these names, each once, or raise with a guess for each unknown one."""
    problems = []
    for name in names:
        if name not in snapshot.hosts:
            near = closest_match(name, snapshot.hosts)
            cure = f"did you mean {near}?" if near else "name a host of the inventory"
            what = "there is no such host"
            problems.append(InputProblem(key=name, what=what, cure=cure, code="unknown-name"))
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

    Rules that are broken before the plan are repaired; those that no plan can repair may stay as
    they are, and the result names them.

    :param repair: move only VMs that may be misplaced, unless no such plan exists.
    :param optimise: search for the best plan by the objective of the problem.
    """
    from equipoise.plan.exact.broken_rules import solve_with_broken_rules
    from equipoise.plan.exact.solver import SearchBudget

    if isinstance(problem, Inventory):
        problem = PlanningProblem(cluster=problem)
    if not isinstance(problem, PlanningProblem):
        what = f"a {type(problem).__name__} is no planning problem"
        cure = "load an inventory or a problem"
        raise InvalidInput.of("solve", what, cure=cure, code="wrong-type")
    budget = SearchBudget.of(time_limit_s, perf_counter)
    return solve_with_broken_rules(problem, budget, repair=repair, optimise=optimise)


def verify(cluster: Cluster, plan: Plan | Loaded) -> VerifiedPlan | Refusal:
    """Replay a plan through every intermediate state: a ``VerifiedPlan``, or why it is refused."""
    from equipoise.plan import verify as verify_plan

    if not isinstance(plan, Plan):
        what = f"a {type(plan).__name__} is no plan"
        raise InvalidInput.of("verify", what, cure="load a plan", code="wrong-type")
    return verify_plan(snapshot_of(cluster), plan)
