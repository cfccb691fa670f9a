"""Laws of existing faults: the gate compares with the empty plan, and unrelated work goes on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.model.action import Action, Boot, Migrate, PowerOn, Shutdown
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.problem import DesiredHostState, DesiredVmState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import MemorySettings, Vm
from equipoise.plan import VerifiedPlan, verify
from equipoise.plan.exact.broken_rules import judge_with_broken_rules, solve_with_broken_rules
from equipoise.plan.exact.result import PlanningStatus
from equipoise.spec.evaluate.breaches import worse_breaches
from equipoise.spec.requirement import Requirement
from equipoise.spec.rules import broken_rules, requirements_of
from equipoise.spec.specification import context_of
from plain_breaches import CONSTRAINTS, Misses, misses
from planning import a_problem

HOSTS = tuple(HostId(f"h{n}") for n in range(3))
VMS = tuple(VmId(f"v{n}") for n in range(5))
R = RuleId("r")
PLAIN = ("KeepApart", "KeepTogether", "StayWithin", "StayOff")
CHANCE = st.randoms(use_true_random=False)
CONTINUOUS = st.booleans()


def some_state(chance: Random, rule: Rule) -> Snapshot:
    """Return three hosts in any state and five VMs in any place, with a rule."""
    states = [HostState.ON, HostState.ON, HostState.STANDBY, HostState.FAILED]
    hosts = [
        a_host(host, memory_mib=chance.choice([1024, 4096]), state=chance.choice(states))
        for host in HOSTS
    ]
    on = [host.id for host in hosts if host.state is HostState.ON]
    return a_cluster(*hosts, vms=[some_vm(chance, vm, on) for vm in VMS], rules=(rule,))


def some_vm(chance: Random, name: VmId, on: list[HostId]) -> Vm:
    host = chance.choice([*on, None])
    pairs = {"v0": "v1", "v1": "v0"}
    reserved = MemorySettings(reservation_mib=chance.choice([0, 512, 1024]))
    agent = host is not None and not chance.randrange(4)
    return a_vm(name, host, memory=reserved, ft_pair=pairs.get(name), agent=agent)


def some_rule(chance: Random, name: str, *, continuous: bool = True) -> Rule:
    """Return a rule of this kind or constraint about some of the VMs and hosts."""
    vms = tuple(sorted(chance.sample(VMS, chance.randint(2, 4))))
    hosts = tuple(sorted(chance.sample(HOSTS, chance.randint(1, 2))))
    given: dict[str, Any] = {"id": R, "continuous": continuous}
    match name:
        case "KeepApart":
            return KeepApart(vms=vms, **given)
        case "KeepTogether":
            return KeepTogether(vms=vms, **given)
        case "StayWithin":
            return StayWithin(vms=vms, hosts=hosts, **given)
        case "StayOff":
            return StayOff(vms=vms, hosts=hosts, **given)
    number = chance.randint(0, 3)
    arguments: dict[str, dict[str, Any]] = {
        "Lonely": {"vs": vms},
        "Fence": {"v": vms[0], "ns": hosts},
        "Isolated": {"vs": vms, "ns": hosts},
        "FailoverPercentage": {"id": "memory", "percent": 10 * chance.randint(1, 9)},
        "Failover": {"id": "memory", "nb": number},
        "FtApart": {},
        "AgentsRun": {},
        **{key: {"vs": vms, "nb": number} for key in ("MaxPerHost", "MinRunning")},
        **{
            key: {"ns": hosts, "nb": number}
            for key in ("RunningCapacity", "MaxOnline", "MinOnline")
        },
    }
    return Satisfy(constraint=name, arguments=arguments[name], **given)


KINDS = (*PLAIN, *CONSTRAINTS)


def requirement(rule: Rule, state: Snapshot) -> Requirement:
    (found,) = requirements_of(state.settings.but(rules=(rule,)), state).valid
    return found


def is_plainly_worse(now: Misses, before: Misses) -> bool:
    return any(key not in before or size > before[key] for key, size in now.items())


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40)
@given(chance=CHANCE)
def test_breaches_agree_with_what_the_sentence_of_a_rule_says(name: str, chance: Random) -> None:
    rule = some_rule(chance, name)
    before, now = some_state(chance, rule), some_state(chance, rule)
    known = requirement(rule, before)
    owner, formula = known.specification, known.specification.constraints[known.name].formula
    then, after = (
        owner.breaches(formula, known.arguments, context_of(state)) for state in (before, now)
    )
    plain = [misses(rule, state.hosts, state.vms) for state in (before, now)]
    assert [bool(then), bool(after)] == [bool(found) for found in plain]
    assert bool(worse_breaches(after, then)) == is_plainly_worse(plain[1], plain[0])
    assert not worse_breaches(then, then)


def some_plan(chance: Random, state: Snapshot) -> Plan:
    """Return one to three actions that may follow each other."""
    steps = []
    for number, name in enumerate(chance.sample(VMS, chance.randint(1, 3))):
        vm, target = state.vms[name], chance.choice(HOSTS)
        action: Action = Boot(vm=name, target=target)
        if vm.host is not None and not chance.randrange(3):
            action = Shutdown(vm=name, source=vm.host)
        elif vm.host is not None:
            action = Migrate(vm=name, source=vm.host, target=target)
        steps.append(a_step(f"s{number}", action, 1000 * number, 1000 * number + 1000))
    asleep = [host.id for host in state.hosts.values() if host.state is HostState.STANDBY]
    if asleep and not chance.randrange(3):
        steps.append(a_step("wake", PowerOn(host=asleep[0]), 0, 10_000))
    return a_plan(*steps)


def is_accepted(state: Snapshot, plan: Plan) -> bool:
    return isinstance(verify(state, plan), VerifiedPlan)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40)
@given(chance=CHANCE)
def test_a_plan_that_makes_no_old_violation_worse_is_accepted_as_without_the_rule(
    name: str, chance: Random
) -> None:
    """The liveness twin: the rule costs nothing but what it forbids."""
    rule = some_rule(chance, name)
    state = some_state(chance, rule)
    before = misses(rule, state.hosts, state.vms)
    free = Snapshot.of(state.inventory().but(rules=()))
    plan = some_plan(chance, state)
    if not is_accepted(free, plan):
        assert not is_accepted(state, plan)
        return
    on_the_way = [misses_at(state, plan, rule, step.end_ms) for step in plan.steps]
    if all(now == before for now in on_the_way):
        assert is_accepted(state, plan)
    elif is_accepted(state, plan):
        assert not any(is_plainly_worse(now, before) for now in on_the_way)


def misses_at(state: Snapshot, plan: Plan, rule: Rule, at_ms: int) -> Misses:
    """Return what violates the rule once all steps that end by then have ended."""
    vms, hosts = dict(state.vms), dict(state.hosts)
    for step in plan.steps:
        if step.end_ms > at_ms:
            continue
        match step.action:
            case Boot() | Migrate():
                vms[step.action.vm] = a_running(vms[step.action.vm], step.action.target)
            case Shutdown():
                vms[step.action.vm] = a_vm(step.action.vm).but(
                    memory=vms[step.action.vm].memory, ft_pair=vms[step.action.vm].ft_pair
                )
            case PowerOn():
                hosts[step.action.host] = hosts[step.action.host].but(state=HostState.ON)
    return misses(rule, hosts, vms)


def a_running(vm: Vm, host: HostId) -> Vm:
    return a_vm(vm.id, host, memory=vm.memory, ft_pair=vm.ft_pair, agent=vm.agent)


@settings(max_examples=25, deadline=None)
@given(CHANCE, CONTINUOUS)
def test_a_start_is_solved_although_an_unrelated_rule_stays_broken(
    chance: Random, continuous: bool
) -> None:
    """Agents cannot be moved, so no plan repairs a rule that is broken about them."""
    name = chance.choice(["KeepApart", "StayOff", "MaxPerHost", "RunningCapacity", "Lonely"])
    rule = some_rule(chance, name, continuous=continuous)
    fixed = [a_vm(vm, chance.choice(HOSTS[:2]), agent=True) for vm in VMS]
    hosts = [a_host(host) for host in HOSTS]
    problem = a_problem(
        hosts,
        [*fixed, a_vm("new")],
        rule,
        vms={VmId("new"): DesiredVmState.RUNNING},
        hosts=dict.fromkeys(HOSTS, DesiredHostState.ONLINE),
    )
    result = solve_with_broken_rules(problem)
    assert result.status is PlanningStatus.SOLVED
    assert result.plan is not None
    state = Snapshot.of(problem.cluster)
    broken = {rule_id for rule_id, _ in broken_rules(state, [R])}
    assert set(result.unrepaired) == broken
    assert judge_with_broken_rules(problem, result.plan) == ()
    assert is_accepted(state, result.plan)


@settings(max_examples=25, deadline=None)
@given(CHANCE)
def test_a_plan_of_the_planner_passes_the_gate_with_the_repairs_that_it_names(
    chance: Random,
) -> None:
    name = chance.choice(["KeepApart", "KeepTogether", "StayWithin", "MaxPerHost", "Isolated"])
    rule = some_rule(chance, name)
    vms = [a_vm(vm, chance.choice(HOSTS)) for vm in VMS]
    problem = a_problem([a_host(host) for host in HOSTS], vms, rule)
    result = solve_with_broken_rules(problem)
    if result.plan is None:
        return
    assert judge_with_broken_rules(problem, result.plan) == ()
    assert is_accepted(Snapshot.of(problem.cluster), result.plan)
    assert result.unrepaired or not any(broken_rules(after(problem.cluster, result.plan), [R]))


def after(cluster: Any, plan: Plan) -> Snapshot:
    state = Snapshot.of(cluster)
    vms = dict(state.vms)
    for step in plan.steps:
        match step.action:
            case Migrate():
                vms[step.action.vm] = vms[step.action.vm].but(host=step.action.target)
            case Shutdown():
                vms[step.action.vm] = a_vm(step.action.vm)
    return Snapshot.of(cluster.but(vms=tuple(vms.values())))
