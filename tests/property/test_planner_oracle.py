"""The planner says yes exactly when there is a plan, and its best is the best there is.

Both are asked about tiny worlds: the solver, and a planner that tries everything. Each constraint
of the library is asked for in each mode it can have.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from builders import a_host, a_vm
from equipoise.model.host import Host, HostReserve, HostState, HostWish, PowerFigures
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Limits
from equipoise.model.problem import Duration, HostAim, Measure, Problem, VmAim
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState
from equipoise.plan.exact.answer import Answer, Status
from equipoise.plan.exact.formula.translate import Translator
from equipoise.plan.exact.formula.values import Unsupported
from equipoise.plan.exact.near import reach
from equipoise.plan.exact.search import solve_exactly
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.solver.decide import Effort
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.reach import Reach, Unreachable
from equipoise.spec.library import library_constraints
from meanings import MEANINGS, World
from plain_planner import HOST_WISHES, VM_WISHES, PlainPlanner, TooMuch, faults, least_broken
from small_worlds import arguments

MODES = [
    (name, mode)
    for name, home in library_constraints().items()
    for mode in ("discrete", "continuous")
    if mode in home.constraints[name].marks
]
LOOKS_MAX = 4_000
"""A world that has more to look at is left to those who have the time."""
FEW = settings(max_examples=max(2, settings().max_examples // 40))
FEWER = settings(max_examples=max(2, settings().max_examples // 2))
CHANCE = st.randoms(use_true_random=False)
MEASURES = [measure.value for measure in Measure]


# Worlds by chance


def some_problem(chance: Random, name: str, *, continuous: bool, most: int = 3) -> Problem:
    """A tiny cluster, wishes, and one or two rules, the first of which has this name."""
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
    return Problem(
        cluster=cluster.but(rules=tuple(rules)),
        vms={vm.id: some_aim(chance, vm) for vm in vms if chance.random() < 0.4},
        hosts={host.id: chance.choice([*HostAim]) for host in hosts if chance.random() < 0.2},
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
        requested=chance.choice([*[None] * 12, *HostWish]),
        power=PowerFigures(idle_watts=chance.choice([0, 50, 80]), peak_watts=100, standby_watts=5),
        cores=chance.choice([1, 2, 3, 4]),
        mhz_per_core=1,
        memory_mib=chance.choice([2, 3, 4]),
        reserve=HostReserve(memory_mib=chance.choice([0, 0, 1])),
        labels=labels,
        capacity={key: chance.choice(some) for key, some in capacity.items()},
    )


def some_vm(chance: Random, number: int, hosts: list[Host]) -> Vm:
    """A VM in any state that its host allows."""
    on = [host.id for host in hosts if host.state is HostState.ON]
    state = chance.choice([*[VmState.RUNNING] * 8, *[VmState.SLEEPING] * 2, *VmState])
    host: HostId | None = None
    agent = not chance.randrange(10)
    if state is VmState.RUNNING and not on:
        state = VmState.SLEEPING
    if state.has_host:
        host = chance.choice(on if state is VmState.RUNNING else [one.id for one in hosts])
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


def some_aim(chance: Random, vm: Vm) -> VmAim:
    """Mostly something that the VM can become."""
    reachable: dict[VmState, list[VmAim]] = {
        VmState.INIT: [VmAim.FORGED, VmAim.RUNNING],
        VmState.READY: [VmAim.RUNNING],
        VmState.RUNNING: [VmAim.RUNNING, VmAim.READY, VmAim.SLEEPING, VmAim.SLEEPING],
        VmState.SLEEPING: [VmAim.RUNNING],
        VmState.TERMINATED: [VmAim.KILLED],
    }
    likely = reachable[vm.state]
    any_at_all: list[VmAim] = list(VmAim)
    return chance.choice([*likely, *likely, *likely, VmAim.KILLED, chance.choice(any_at_all)])


def some_limits(chance: Random) -> Limits:
    if chance.randrange(5):
        return Limits()
    return Limits(actions_per_host=chance.choice([1, 2]), actions_total=chance.choice([1, 2, 64]))


def some_durations(chance: Random, cluster: Inventory) -> dict[ActionKind, Duration]:
    """A second each, or up to two; sometimes other times for single VMs."""
    if chance.randrange(5) < 3:
        return {kind: Duration(ms=1000) for kind in ActionKind}
    found = {kind: Duration(ms=chance.choice([1000, 1000, 2000])) for kind in ActionKind}
    own = {str(vm.id): chance.choice([1000, 2000]) for vm in cluster.vms if not chance.randrange(3)}
    if chance.randrange(2):
        del found[ActionKind.REINSTANTIATE]  # it takes what its parts take
    found[ActionKind.MIGRATE] = chance.choice(
        [
            Duration(ms=1000, of=own),
            Duration(ms=4000),
            Duration(ms=1000, per_unit_ms=1000, resource="licences"),
            Duration(ms=1000, per_unit_ms=500),
        ]
    )
    return found


def a_rule(
    chance: Random, rule: str, name: str, cluster: Inventory, *, continuous: bool
) -> Satisfy:
    """A constraint with arguments by chance, mostly such that it makes a difference where VMs are.

    One that is judged in the end is mostly broken at first, so that something has to be done.
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
    """The same arguments, with times and kinds of action that may occur."""
    if "ms" in values:
        values["ms"] = 1000 * values["ms"] - chance.choice([0, 0, 500])
    if "kind" in values:
        values["kind"] = chance.choice([values["kind"], *(kind.value for kind in ActionKind)])
    return values


def shuffled(chance: Random, cluster: Inventory) -> Inventory:
    """The cluster with VMs elsewhere and hosts in other states."""
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
    """An argument as a file has it: sets are lists there."""
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


def any_problem(chance: Random, most: int = 3) -> Problem:
    name, mode = chance.choice(MODES)
    problem = some_problem(chance, name, continuous=mode == "continuous", most=most)
    note(str(problem))
    return problem


def solved(problem: Problem, *, optimise: bool = False) -> Answer:
    """What the planner says; what cannot be wished for has no plan."""
    task = Task.of(problem)
    assert not task.unclear
    try:
        answer = solve_exactly(task, Reach(problem.moves_max), Effort(), optimise=optimise)
    except Unreachable:
        return Answer(Status.UNSAT)
    assert answer.status is not Status.TIMEOUT, "nobody has set a time"
    return answer


def tried(problem: Problem) -> PlainPlanner:
    """Somebody who tries everything."""
    return PlainPlanner(problem, looks_max=LOOKS_MAX)


def is_possible(problem: Problem) -> bool:
    """Whether somebody who tries everything finds a plan."""
    try:
        plan = tried(problem).plan()
    except TooMuch:
        assume(False)
    if plan is not None:
        assert not faults(problem, plan), "what was found by trying does not convince itself"
    return plan is not None


def least(problem: Problem, measure: str) -> int | None:
    """What the best plan costs, found by trying everything."""
    try:
        return tried(problem).least(measure)
    except TooMuch:
        assume(False)
        raise


# Laws


@pytest.mark.parametrize(("name", "mode"), MODES)
@FEW
@given(chance=CHANCE)
def test_the_planner_says_yes_exactly_when_there_is_a_plan(
    name: str, mode: str, chance: Random
) -> None:
    problem = some_problem(chance, name, continuous=mode == "continuous")
    note(str(problem))
    answer = solved(problem)
    assert (answer.status is Status.SOLVED) == is_possible(problem)
    if answer.plan is not None:
        assert not faults(problem, answer.plan)


@FEWER
@given(chance=CHANCE)
def test_looking_near_first_loses_no_plan(chance: Random) -> None:
    problem = any_problem(chance)
    answer = solve(problem, repair=bool(chance.randrange(2)))
    assert (answer.status is Status.SOLVED) == is_possible(problem)
    if answer.plan is not None:
        assert not faults(problem, answer.plan)
    else:
        assert answer.conflict is not None
        assert answer.conflict.why


@given(chance=CHANCE)
def test_what_is_claimed_of_a_problem_too_large_to_be_looked_at_whole_is_true(
    chance: Random,
) -> None:
    problem = any_problem(chance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reach, "SMALL", 0)
        patch.setattr(reach, "LARGEST", 0)
        answer = solve(problem)
    if answer.plan is not None:
        assert not faults(problem, answer.plan)
    elif answer.status is Status.UNSAT:
        assert not is_possible(problem)
        assert answer.conflict is not None


@pytest.mark.parametrize("measure", MEASURES)
@given(chance=CHANCE)
def test_the_best_plan_is_the_best_there_is(measure: str, chance: Random) -> None:
    problem = any_problem(chance).but(objective=(Measure(measure),))
    answer = solved(problem, optimise=True)
    best = least(problem, measure)
    assert answer.goals == (() if best is None else (best,))
    if answer.plan is not None:
        assert answer.optimal
        assert not faults(problem, answer.plan)


@given(chance=CHANCE)
def test_no_more_soft_rules_are_broken_than_must_be(chance: Random) -> None:
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
    broken = {claim.rule.id for claim in answer.broken}
    assert sum(weights.get(name, 1) for name in broken) == expected
    assert not faults(problem, answer.plan, set(soft) - broken)


@FEWER
@given(chance=CHANCE)
def test_what_is_learnt_from_the_judge_alone_loses_nothing_and_lets_nothing_pass(
    chance: Random,
) -> None:
    """As if no formula could be said to the solver."""

    def mute(*_: Any) -> None:
        raise Unsupported("nothing is said")

    problem = any_problem(chance, most=2).but(moves_max=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Translator, "require", mute)
        answer = solved(problem)
    assert (answer.status is Status.SOLVED) == is_possible(problem)


@pytest.mark.parametrize("measure", MEASURES)
@FEW
@given(chance=CHANCE)
def test_one_more_rule_never_makes_the_best_plan_better(measure: str, chance: Random) -> None:
    problem = any_problem(chance).but(objective=(Measure(measure),))
    *fewer, last = problem.cluster.rules
    # A wish opens a way that there was not before: one who is to be killed need not be moved.
    assume(getattr(last, "constraint", "") not in {*VM_WISHES, *HOST_WISHES})
    before = solved(problem.but(cluster=problem.cluster.but(rules=tuple(fewer))), optimise=True)
    after = solved(problem, optimise=True)
    if after.status is Status.SOLVED:
        assert before.status is Status.SOLVED
        assert before.goals <= after.goals


@FEW
@given(chance=CHANCE)
def test_the_same_seed_gives_the_same_plan(chance: Random) -> None:
    problem, optimise = any_problem(chance), bool(chance.randrange(2))
    one, other = solved(problem, optimise=optimise), solved(problem, optimise=optimise)
    assert one.plan == other.plan
    assert one.goals == other.goals
