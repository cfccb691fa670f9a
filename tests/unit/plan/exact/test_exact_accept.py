"""Whether the planner accepts a given plan: it must agree with the judge."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from builders import a_host, a_step, a_vm
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import DesiredHostState, DesiredVmState, PlanningProblem
from equipoise.model.quantity import HostId, PlanId, ResourceName, VmId
from equipoise.model.vm import VmState
from equipoise.plan.exact.accept import FixedTimeline, accepts_plan
from equipoise.plan.exact.judge import judge_plan
from equipoise.plan.exact.model import PlanningModel
from equipoise.plan.exact.task import PlanningTask, RuleCondition
from equipoise.plan.exact.values import UnsupportedFormula
from equipoise.plan.verify import replay_violations
from equipoise.spec.judge import Charge, SpecificationJudge
from planning import a_problem, a_rule

HOSTS = [HostId(f"h{number}") for number in range(4)]
VMS = [VmId(f"v{number}") for number in range(5)]
X = ResourceName("x")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Spread": {"vs": VMS[:3]},
    "Gather": {"vs": VMS[:2]},
    "Lonely": {"vs": VMS[:2]},
    "Split": {"parts": [VMS[:2], VMS[2:4]]},
    "Among": {"vs": VMS[:3], "parts": [HOSTS[:2], HOSTS[2:]]},
    "Fence": {"v": VMS[0], "ns": HOSTS[:2]},
    "Ban": {"v": VMS[0], "ns": HOSTS[:1]},
    "Root": {"v": VMS[0]},
    "Quarantine": {"n": HOSTS[0]},
    "MaxOnline": {"ns": HOSTS, "nb": 3},
    "RunningCapacity": {"ns": HOSTS[:2], "nb": 2},
    "ResourceCapacity": {"ns": HOSTS[:2], "id": "x", "qty": 3},
    "ShareableResource": {"id": "x"},
    "Seq": {"vs": VMS[:3]},
    "Sync": {"vs": VMS[:3]},
    "NoDelay": {"v": VMS[0]},
    "MaxConcurrent": {"ns": HOSTS, "kind": "migrate", "nb": 1},
    "MaxDisturbed": {"vs": VMS, "nb": 2},
    "Failover": {"nb": 1, "id": "x"},
}


def a_case(chance: Random, name: str) -> tuple[PlanningProblem, Plan]:
    """Return a random cluster with one rule, and a plan that may or may not be valid."""
    states = [HostState.STANDBY if chance.random() < 0.2 else HostState.ON for _ in HOSTS]
    hosts = [
        a_host(
            host, capacity={X: chance.randint(1, 4)}, state=state, cores=chance.choice((1, 8, 8, 8))
        )
        for host, state in zip(HOSTS, states, strict=True)
    ]
    awake = [host for host, state in zip(HOSTS, states, strict=True) if state is HostState.ON]
    vms, steps = [], list[Step]()
    for index, name_of_vm in enumerate(VMS):
        home = chance.choice(awake) if awake and chance.random() < 0.7 else None
        asleep = home is not None and chance.random() < 0.2
        state = VmState.SLEEPING if asleep else VmState.RUNNING if home else VmState.READY
        taken = {X: chance.randint(0, 2)}
        size = 2 if chance.random() < 0.04 else 1
        vms.append(a_vm(name_of_vm, home, state=state, consumption=taken, template="t", vcpus=size))
        for number in range(chance.choice((0, 0, 0, 1, 1, 2))):
            start = chance.randrange(4) * 1000
            action = an_action(chance, name_of_vm, home)
            end = start + chance.randint(1, 2) * 1000
            steps.append(a_step(f"s{index}-{number}", action, start, end))
    for host, host_state in zip(HOSTS, states, strict=True):
        if chance.random() < 0.15:
            switch = PowerOff(host=host) if host_state is HostState.ON else PowerOn(host=host)
            start = chance.randrange(4) * 1000
            steps.append(a_step(f"s{host}", switch, start, start + 1000))
    rule = a_rule(name, continuous=chance.random() < 0.5, **ARGUMENTS[name])
    return a_problem(hosts, vms, rule), Plan(id=PlanId("p"), steps=tuple(steps))


def an_action(chance: Random, vm: VmId, home: HostId | None) -> Action:
    source, target = home or HOSTS[0], chance.choice(HOSTS)
    likely: list[Action] = [Migrate(vm=vm, source=source, target=target)] * 3
    if home is None:
        likely = [Boot(vm=vm, target=target)] * 3
    return chance.choice(
        [
            *likely,
            *likely,
            Shutdown(vm=vm, source=source),
            Suspend(vm=vm, source=source),
            Resume(vm=vm, source=source, target=target),
            Allocate(vm=vm, resource=X, amount=chance.randint(0, 3)),
            Kill(vm=vm),
            Forge(vm=vm),
        ]
    )


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_planner_accepts_what_the_judge_accepts(name: str) -> None:
    chance = Random(f"imposing {name}")
    answers = []
    for _ in range(150):
        problem, plan = a_case(chance, name)
        task = PlanningTask.of(problem)
        accepted = accepts_plan(task, plan)
        assert accepted == (not judge_plan(task, plan)), (problem, plan)
        answers.append(accepted)
    assert any(answers), "the cases must include accepted and refused plans"
    assert not all(answers)


def test_a_fixed_plan_needs_no_solver() -> None:
    step = a_step("s1", Migrate(vm=VMS[0], source=HOSTS[0], target=HOSTS[1]))
    rule = a_rule("Spread", vs=VMS[:2], continuous=True)
    vms = [a_vm(VMS[0], HOSTS[0]), a_vm(VMS[1], HOSTS[2])]
    task = PlanningTask.of(a_problem(map(a_host, HOSTS), vms, rule))
    plan = Plan(id=PlanId("p"), steps=(step,))
    assert PlanningModel(task, FixedTimeline(task, plan)).builder.is_empty
    assert accepts_plan(task, plan)


def test_desired_states_count() -> None:
    problem = a_problem(map(a_host, HOSTS), [a_vm(VMS[0])], vms={VMS[0]: DesiredVmState.RUNNING})
    nothing = Plan(id=PlanId("p"), steps=())
    assert not accepts_plan(PlanningTask.of(problem), nothing)
    boots = nothing.but(steps=(a_step("s1", Boot(vm=VMS[0], target=HOSTS[0])),))
    assert accepts_plan(PlanningTask.of(problem), boots)
    off = a_problem(map(a_host, HOSTS), [], hosts={HOSTS[0]: DesiredHostState.OFFLINE})
    assert not accepts_plan(PlanningTask.of(off), nothing)


def test_a_host_that_is_switched_twice_is_not_supported() -> None:
    steps = (
        a_step("s1", PowerOff(host=HOSTS[0])),
        a_step("s2", PowerOn(host=HOSTS[0]), 1000, 2000),
    )
    task = PlanningTask.of(a_problem(map(a_host, HOSTS), []))
    with pytest.raises(UnsupportedFormula):
        accepts_plan(task, Plan(id=PlanId("p"), steps=steps))


def test_a_vm_resumes_only_on_a_host_with_enough_cores() -> None:
    asleep = a_vm("v0", "h0", state=VmState.SLEEPING, vcpus=2)
    problem = a_problem([a_host("h0", cores=1)], [asleep])
    wakes = Resume(vm=VMS[0], source=HOSTS[0], target=HOSTS[0])
    plan = Plan(id=PlanId("p"), steps=(a_step("s1", wakes, 0, 1000),))
    task = PlanningTask.of(problem)
    assert judge_plan(task, plan)
    assert not accepts_plan(task, plan)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_judge_misses_nothing_that_the_plan_does_not_touch(name: str) -> None:
    """The judge of plans skips rules that cannot change, and finds the same violations."""
    chance = Random(f"untouched {name}")
    for _ in range(60):
        problem, plan = a_case(chance, name)
        task = PlanningTask.of(problem)
        hard = (condition for condition in task.hard if isinstance(condition, RuleCondition))
        requirements = [condition.requirement for condition in hard]
        every = SpecificationJudge(requirements, plan.steps, charge=Charge.EVERYTHING)
        rules = {str(requirement) for requirement in requirements}
        found = [violation for violation in judge_plan(task, plan) if violation.constraint in rules]
        assert found == [
            violation
            for violation in replay_violations(task.snapshot, plan, [every])
            if violation.constraint in rules
        ]
