"""The planner solves a problem exactly if there is a plan, and its best plan is the best.

Small random problems are given to the solver and to a planner that tries everything. Each
constraint of the library is used in each of its modes.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from builders import a_host, a_vm
from equipoise.model.host import Host, HostReserve, HostState, PowerProfile, RequestedHostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.problem import (
    ActionDuration,
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState
from equipoise.plan.exact import narrowing
from equipoise.plan.exact.formula.translate import FormulaTranslator
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.plan.exact.solve import solve, solve_scope
from equipoise.plan.exact.solver import SearchBudget
from equipoise.plan.exact.task import PlanningTask, SearchScope, UnreachableState
from equipoise.plan.exact.values import UnsupportedFormula
from equipoise.spec.library import library_constraints
from meanings import MEANINGS, World
from plain_planner import (
    DESIRED_HOST_STATES,
    DESIRED_VM_STATES,
    PlainPlanner,
    TooMuch,
    faults,
    least_broken,
)
from small_worlds import arguments

MODES = [
    (name, mode)
    for name, home in library_constraints().items()
    for mode in ("discrete", "continuous")
    if mode in home.constraints[name].marks
]
LOOKS_MAX = 4_000
"""Number of states after which the exhaustive planner gives up on a problem."""
FEW = settings(max_examples=max(2, settings().max_examples // 40))
FEWER = settings(max_examples=max(2, settings().max_examples // 2))
CHANCE = st.randoms(use_true_random=False)
MEASURES = [measure.value for measure in ObjectiveMeasure]


# Random problems


def some_problem(chance: Random, name: str, *, continuous: bool, most: int = 3) -> PlanningProblem:
    """Return a tiny cluster, desired states, and rules, the first of which has this name."""
    hosts = [some_host(chance, n) for n in range(1, chance.choice([1, 2, 2, 3, 3]) + 1)]
    vms = [some_vm(chance, n, hosts) for n in range(1, chance.randint(1, most) + 1)]
    if len(vms) > 1 and not chance.randrange(8):
        vms[0], vms[1] = vms[0].but(ft_pair=vms[1].id), vms[1].but(ft_pair=vms[0].id)
    cluster = Inventory(hosts=tuple(hosts), vms=tuple(vms), limits=some_limits(chance))
    rules: list[Rule] = [a_rule(chance, "r1", name, cluster, continuous=continuous)]
    if not chance.randrange(2):
        other, mode = chance.choice(MODES)
        rules.append(a_rule(chance, "r2", other, cluster, continuous=mode == "continuous"))
    if not chance.randrange(6):
        rules.append(a_plain_rule(chance, "r3", cluster))
    return PlanningProblem(
        cluster=cluster.but(rules=tuple(rules)),
        vms={vm.id: some_aim(chance, vm) for vm in vms if chance.random() < 0.4},
        hosts={
            host.id: chance.choice([*DesiredHostState]) for host in hosts if chance.random() < 0.2
        },
        durations=some_durations(chance, cluster),
        horizon_s=chance.choice([1, 2, 3, 3, 4, 4, 5] if len(vms) < 3 else [1, 2, 3, 3, 4]),
        moves_max=chance.choice([1, 2, 2]),
    )


def some_host(chance: Random, number: int) -> Host:
    names = ("zone", "subnet", "rack", "filter_tenant_id", "instance_type", "flavor")
    labels = {key: chance.choice(["a", "a", "b"]) for key in names if chance.random() < 0.5}
    capacity = {"licences": [0, 1, 2, 2, 3], "pods": [1, 2, 3], "instances": [0, 1, 2]}
    return a_host(
        f"h{number}",
        state=chance.choice([*[HostState.ON] * 14, *[HostState.STANDBY] * 3, *HostState]),
        requested=chance.choice([*[None] * 12, *RequestedHostState]),
        power=PowerProfile(idle_watts=chance.choice([0, 50, 80]), peak_watts=100, standby_watts=5),
        cores=chance.choice([1, 2, 3, 4]),
        mhz_per_core=1,
        memory_mib=chance.choice([2, 3, 4]),
        reserve=HostReserve(memory_mib=chance.choice([0, 0, 1])),
        labels=labels,
        capacity={key: chance.choice(some) for key, some in capacity.items()},
        memory_overcommit=chance.choice([None, None, 0.5, 1.5, 2.0]),
        cpu_overcommit=chance.choice([None, None, None, 1.0, 1.7]),
    )


def some_vm(chance: Random, number: int, hosts: list[Host]) -> Vm:
    """Return a VM in any state that its host allows."""
    on = [host.id for host in hosts if host.state is HostState.ON]
    state = chance.choice([*[VmState.RUNNING] * 8, *[VmState.SLEEPING] * 2, *VmState])
    host: HostId | None = None
    agent = not chance.randrange(10)
    if state is VmState.RUNNING and not on:
        state = VmState.SLEEPING
    if state.has_host:
        host = chance.choice(on if state is VmState.RUNNING else [host.id for host in hosts])
    keys = ("zone", "rack", "flavor")
    return a_vm(
        f"v{number}",
        host,
        state=state,
        agent=agent,
        vcpus=chance.choice([1, 1, 1, 2]),
        cpu=CpuSettings(reservation_mhz=chance.choice([0, 1, 1, 2])),
        memory=MemorySettings(reservation_mib=chance.choice([0, 1, 1, 2])),
        memory_mib=chance.choice([1, 2]),
        consumption={
            key: chance.choice([0, 1, 1, 2]) for key in ("licences", "pods") if chance.randrange(2)
        },
        tenant=chance.choice(["a", "b", None]),
        template=chance.choice(["debian", "debian", "debian", None]),
        replaceable=not chance.randrange(3),
        labels={key: chance.choice(["a", "a", "b"]) for key in keys if chance.random() < 0.5},
    )


def some_aim(chance: Random, vm: Vm) -> DesiredVmState:
    """Return a desired state, mostly one that the VM can reach."""
    reachable: dict[VmState, list[DesiredVmState]] = {
        VmState.INIT: [DesiredVmState.FORGED, DesiredVmState.RUNNING],
        VmState.READY: [DesiredVmState.RUNNING],
        VmState.RUNNING: [
            DesiredVmState.RUNNING,
            DesiredVmState.READY,
            DesiredVmState.SLEEPING,
            DesiredVmState.SLEEPING,
        ],
        VmState.SLEEPING: [DesiredVmState.RUNNING],
        VmState.TERMINATED: [DesiredVmState.KILLED],
    }
    likely = reachable[vm.state]
    any_at_all: list[DesiredVmState] = list(DesiredVmState)
    return chance.choice(
        [*likely, *likely, *likely, DesiredVmState.KILLED, chance.choice(any_at_all)]
    )


def some_limits(chance: Random) -> ConcurrencyLimits:
    if chance.randrange(5):
        return ConcurrencyLimits()
    return ConcurrencyLimits(
        actions_per_host=chance.choice([1, 2]), actions_total=chance.choice([1, 2, 64])
    )


def some_durations(chance: Random, cluster: Inventory) -> dict[ActionKind, ActionDuration]:
    """Return durations of one or two seconds; sometimes other durations of single VMs."""
    if chance.randrange(5) < 3:
        return {kind: ActionDuration(ms=1000) for kind in ActionKind}
    durations = {kind: ActionDuration(ms=chance.choice([1000, 1000, 2000])) for kind in ActionKind}
    own = {str(vm.id): chance.choice([1000, 2000]) for vm in cluster.vms if not chance.randrange(3)}
    if chance.randrange(2):
        del durations[ActionKind.REINSTANTIATE]  # its default is the sum of its parts
    durations[ActionKind.MIGRATE] = chance.choice(
        [
            ActionDuration(ms=1000, of=own),
            ActionDuration(ms=4000),
            ActionDuration(ms=1000, per_unit_ms=1000, resource="licences"),
            ActionDuration(ms=1000, per_unit_ms=500),
        ]
    )
    return durations


def a_rule(
    chance: Random, rule: str, name: str, cluster: Inventory, *, continuous: bool
) -> Satisfy:
    """Return a constraint with random arguments, mostly such that the hosts of VMs matter.

    A discrete one is mostly violated at first, so that a plan is needed.
    """
    constraint = library_constraints()[name].constraints[name]
    choices = arguments(constraint, Snapshot.of(cluster), chance, most=16)
    others = [shuffled(chance, cluster) for _ in range(4)]
    for _ in range(6):
        values = some_times(chance, dict(chance.choice(choices)))
        at_first = holds(name, values, cluster, cluster)
        differs = any(holds(name, values, cluster, other) != at_first for other in others)
        if at_first == continuous and differs:
            break
    return Satisfy(
        id=RuleId(rule),
        constraint=name,
        arguments={key: written(value) for key, value in values.items()},
        continuous=continuous,
    )


def some_times(chance: Random, values: dict[str, Any]) -> dict[str, Any]:
    """Return the same arguments, with times and kinds of action that may occur."""
    if "ms" in values:
        values["ms"] = 1000 * values["ms"] - chance.choice([0, 0, 500])
    if "kind" in values:
        values["kind"] = chance.choice([values["kind"], *(kind.value for kind in ActionKind)])
    return values


def shuffled(chance: Random, cluster: Inventory) -> Inventory:
    """Return the cluster with VMs on other hosts and hosts in other states."""
    hosts = [host.id for host in cluster.hosts]
    states = [HostState.ON, HostState.ON, HostState.STANDBY]
    return cluster.but(
        hosts=tuple(host.but(state=chance.choice(states)) for host in cluster.hosts),
        vms=tuple(
            vm.but(state=VmState.RUNNING, host=chance.choice(hosts)) if chance.randrange(4) else vm
            for vm in cluster.vms
        ),
    )


def holds(name: str, values: dict[str, Any], before: Inventory, now: Inventory) -> bool:
    return MEANINGS[name](World(Snapshot.of(now), Snapshot.of(before)), values)


def written(value: Any) -> Any:
    """Return an argument as a file has it: sets are lists there."""
    if isinstance(value, frozenset):
        return tuple(sorted(map(written, value)))
    return value


def a_plain_rule(chance: Random, rule: str, cluster: Inventory) -> Rule:
    name, continuous = RuleId(rule), bool(chance.randrange(2))
    vms = tuple(vm.id for vm in cluster.vms if chance.randrange(3)) or (cluster.vms[0].id,)
    hosts = tuple(host.id for host in cluster.hosts if chance.randrange(2))
    if len(vms) > 1 and chance.randrange(2):
        if chance.randrange(2):
            return KeepApart(id=name, vms=vms, continuous=continuous)
        return KeepTogether(id=name, vms=vms, continuous=continuous)
    hosts = hosts or (HostId("h1"),)
    if chance.randrange(2):
        return StayWithin(id=name, vms=vms, hosts=hosts, continuous=continuous)
    return StayOff(id=name, vms=vms, hosts=hosts, continuous=continuous)


# Both planners


def any_problem(chance: Random, most: int = 3) -> PlanningProblem:
    name, mode = chance.choice(MODES)
    problem = some_problem(chance, name, continuous=mode == "continuous", most=most)
    note(str(problem))
    return problem


def solved(problem: PlanningProblem, *, optimise: bool = False) -> PlanningResult:
    """Return the planner's answer; an unreachable state has no plan."""
    task = PlanningTask.of(problem)
    assert not task.invalid
    try:
        answer = solve_scope(
            task, SearchScope(problem.moves_max), SearchBudget(), optimise=optimise
        )
    except UnreachableState:
        return PlanningResult(PlanningStatus.UNSAT)
    assert answer.status is not PlanningStatus.TIMEOUT, "the budget has no limit"
    return answer


def tried(problem: PlanningProblem) -> PlainPlanner:
    """Return a planner that tries everything."""
    return PlainPlanner(problem, looks_max=LOOKS_MAX)


def is_possible(problem: PlanningProblem) -> bool:
    """Whether the exhaustive planner finds a plan."""
    try:
        plan = tried(problem).plan()
    except TooMuch:
        assume(False)
    if plan is not None:
        assert not faults(problem, plan), "the exhaustive planner finds an invalid plan"
    return plan is not None


def least(problem: PlanningProblem, measure: str) -> int | None:
    """Return the cost of the best plan of the exhaustive planner."""
    try:
        return tried(problem).least(measure)
    except TooMuch:
        assume(False)
        raise


# Laws


@pytest.mark.parametrize(("name", "mode"), MODES)
@FEW
@given(chance=CHANCE)
def test_the_planner_finds_a_plan_exactly_if_there_is_one(
    name: str, mode: str, chance: Random
) -> None:
    problem = some_problem(chance, name, continuous=mode == "continuous")
    note(str(problem))
    answer = solved(problem)
    assert (answer.status is PlanningStatus.SOLVED) == is_possible(problem)
    if answer.plan is not None:
        assert not faults(problem, answer.plan)


@FEWER
@given(chance=CHANCE)
def test_narrow_scopes_lose_no_plan(chance: Random) -> None:
    problem = any_problem(chance)
    answer = solve(problem, repair=bool(chance.randrange(2)))
    assert (answer.status is PlanningStatus.SOLVED) == is_possible(problem)
    if answer.plan is not None:
        assert not faults(problem, answer.plan)
    else:
        assert answer.conflict is not None
        assert answer.conflict.codes


@given(chance=CHANCE)
def test_claims_about_a_problem_that_is_too_large_are_true(
    chance: Random,
) -> None:
    problem = any_problem(chance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrowing, "SMALL_MAX", 0)
        patch.setattr(narrowing, "WHOLE_MAX", 0)
        answer = solve(problem)
    if answer.plan is not None:
        assert not faults(problem, answer.plan)
    elif answer.status is PlanningStatus.UNSAT:
        assert not is_possible(problem)
        assert answer.conflict is not None


@pytest.mark.parametrize("measure", MEASURES)
@given(chance=CHANCE)
def test_the_best_plan_is_optimal(measure: str, chance: Random) -> None:
    problem = any_problem(chance).but(objective=(ObjectiveMeasure(measure),))
    answer = solved(problem, optimise=True)
    best = least(problem, measure)
    assert answer.goals == (() if best is None else (best,))
    if answer.plan is not None:
        assert answer.optimal
        assert not faults(problem, answer.plan)


@given(chance=CHANCE)
def test_as_few_soft_rules_as_possible_are_violated(chance: Random) -> None:
    problem = any_problem(chance, most=2)
    rules = tuple(rule.but(hard=not chance.randrange(3)) for rule in problem.cluster.rules)
    soft = [rule.id for rule in rules if not rule.hard]
    weights = {name: chance.choice([1, 2, 3]) for name in soft if chance.randrange(2)}
    problem = problem.but(cluster=problem.cluster.but(rules=rules), weights=weights)
    answer = solved(problem, optimise=True)
    try:
        expected = least_broken(problem, LOOKS_MAX)
    except TooMuch:
        assume(False)
    if answer.plan is None:
        assert expected is None
        return
    broken = {condition.rule.id for condition in answer.broken}
    assert sum(weights.get(name, 1) for name in broken) == expected
    assert not faults(problem, answer.plan, set(soft) - broken)


@FEWER
@given(chance=CHANCE)
def test_refinement_alone_loses_no_plan_and_accepts_no_invalid_one(
    chance: Random,
) -> None:
    """No formula is translated, so every rule is left to the judge."""

    def refuse(*_: Any) -> None:
        raise UnsupportedFormula("nothing is translated")

    problem = any_problem(chance, most=2).but(moves_max=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FormulaTranslator, "require", refuse)
        answer = solved(problem)
    assert (answer.status is PlanningStatus.SOLVED) == is_possible(problem)


@pytest.mark.parametrize("measure", MEASURES)
@FEW
@given(chance=CHANCE)
def test_one_more_rule_never_makes_the_best_plan_better(measure: str, chance: Random) -> None:
    problem = any_problem(chance).but(objective=(ObjectiveMeasure(measure),))
    *fewer, last = problem.cluster.rules
    # A desired state may make more possible: a VM that is killed need not be moved.
    assume(getattr(last, "constraint", "") not in {*DESIRED_VM_STATES, *DESIRED_HOST_STATES})
    before = solved(problem.but(cluster=problem.cluster.but(rules=tuple(fewer))), optimise=True)
    after = solved(problem, optimise=True)
    if after.status is PlanningStatus.SOLVED:
        assert before.status is PlanningStatus.SOLVED
        assert before.goals <= after.goals


@FEW
@given(chance=CHANCE)
def test_the_same_seed_gives_the_same_plan(chance: Random) -> None:
    problem, optimise = any_problem(chance), bool(chance.randrange(2))
    first, second = solved(problem, optimise=optimise), solved(problem, optimise=optimise)
    assert first.plan == second.plan
    assert first.goals == second.goals
