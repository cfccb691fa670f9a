"""How fast the planner says whether it accepts a given plan, beside the judge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any, Final

from equipoise.bench.measure import BenchmarkRow, best_time_s
from equipoise.model.action import Boot, Migrate, Shutdown, VmAction
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, PlanId, ResourceName, RuleId, StepId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.accept import accepts_plan
from equipoise.plan.exact.judge import judge_plan
from equipoise.plan.exact.task import PlanningTask

CASES: Final = 400
HOSTS: Final = [HostId(f"h{number}") for number in range(10)]
VMS: Final = [VmId(f"v{number}") for number in range(10)]
RESOURCE: Final = ResourceName("x")
CONSTRAINTS: Final[dict[str, dict[str, Any]]] = {
    "Spread": {"vs": VMS[:3]},
    "Gather": {"vs": VMS[:2]},
    "Lonely": {"vs": VMS[:2]},
    "Split": {"parts": [VMS[:2], VMS[2:4]]},
    "Among": {"vs": VMS[:3], "parts": [HOSTS[:5], HOSTS[5:]]},
    "Fence": {"v": VMS[0], "ns": HOSTS[:5]},
    "MaxOnline": {"ns": HOSTS, "nb": 10},
    "RunningCapacity": {"ns": HOSTS[:5], "nb": 5},
}


def rows() -> Iterator[BenchmarkRow]:
    """Measure, and check that the planner and the judge agree."""
    rng = Random(7)
    cases = [_case(rng) for _ in range(CASES)]
    said = [accepts_plan(PlanningTask.of(problem), plan) for problem, plan in cases]
    judged = [not judge_plan(PlanningTask.of(problem), plan) for problem, plan in cases]
    assert said == judged, "the planner and the judge disagree"
    yield BenchmarkRow(
        "plan imposed, 10 VMs x 10 hosts: would the planner accept it",
        best_time_s(partial(_ask_planner, cases), tries=3),
        "the judge, one case at a time",
        best_time_s(partial(_ask_judge, cases), tries=3),
        count=CASES,
        figures={"accepted": sum(said)},
    )


def _ask_planner(cases: list[tuple[PlanningProblem, Plan]]) -> None:
    for problem, plan in cases:
        accepts_plan(PlanningTask.of(problem), plan)


def _ask_judge(cases: list[tuple[PlanningProblem, Plan]]) -> None:
    for problem, plan in cases:
        judge_plan(PlanningTask.of(problem), plan)


def _case(rng: Random) -> tuple[PlanningProblem, Plan]:
    """Ten VMs, most of them with an action that can be executed, and one constraint."""
    hosts = tuple(
        Host(id=host, cores=8, mhz_per_core=2400, memory_mib=32768, capacity={RESOURCE: 8})
        for host in HOSTS
    )
    vms, steps = list[Vm](), list[Step]()
    for vm in VMS:
        home = rng.choice(HOSTS) if rng.randrange(3) else None
        state = VmState.READY if home is None else VmState.RUNNING
        taken = {RESOURCE: rng.randint(0, 2)}
        vms.append(Vm(id=vm, vcpus=1, memory_mib=1024, state=state, host=home, consumption=taken))
        if rng.randrange(5):
            start = rng.randrange(6) * 1000
            end = start + rng.randint(1, 3) * 1000
            action = _action(rng, vm, home)
            steps.append(Step(id=StepId(f"s-{vm}"), action=action, start_ms=start, end_ms=end))
    name = rng.choice(list(CONSTRAINTS))
    rule = Satisfy(
        id=RuleId("r"),
        constraint=name,
        arguments=CONSTRAINTS[name],
        continuous=bool(rng.randrange(2)),
    )
    inventory = Inventory(hosts=hosts, vms=tuple(vms), rules=(rule,))
    return PlanningProblem(cluster=inventory), Plan(id=PlanId("p"), steps=tuple(steps))


def _action(rng: Random, vm: VmId, home: HostId | None) -> VmAction:
    if home is None:
        return Boot(vm=vm, target=rng.choice(HOSTS))
    if not rng.randrange(5):
        return Shutdown(vm=vm, source=home)
    return Migrate(vm=vm, source=home, target=rng.choice([host for host in HOSTS if host != home]))
