"""Laws of the load in plans, on small worlds, against every final placement."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_host, a_vm, an_inventory
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import RequestedHostState
from equipoise.model.problem import DesiredVmState, ObjectiveMeasure, PlanningProblem
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart
from equipoise.model.vm import Demand
from equipoise.plan.exact.objectives import host_loads, total_overload
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import PlanningTask

Places = dict[VmId, HostId]


@st.composite
def problems(draw: st.DrawFn) -> PlanningProblem:
    """A host to drain, VMs to start, and a rule; every action may run at any time."""
    hosts = [
        a_host(
            f"h{n}",
            cores=draw(st.integers(2, 4)),
            requested=RequestedHostState.MAINTENANCE if n == 0 else None,
        )
        for n in range(draw(st.integers(2, 4)))
    ]
    on = [host.id for host in hosts]
    vms = [
        a_vm(
            f"v{n}",
            draw(st.sampled_from([*on, on[0], None])),
            demand=Demand(
                cpu_mhz=draw(st.sampled_from([0, 500, 1200, 1900])),
                memory_mib=draw(st.sampled_from([0, 1024])),
            ),
        )
        for n in range(draw(st.integers(1, 4)))
    ]
    starting = {vm.id: DesiredVmState.RUNNING for vm in vms if vm.host is None}
    pair = tuple(vm.id for vm in vms[:2])
    rules = (KeepApart(id=RuleId("r"), vms=pair),) if draw(st.booleans()) and len(pair) > 1 else ()
    objective = draw(st.sampled_from([(ObjectiveMeasure.MIGRATIONS,), (ObjectiveMeasure.MTTR,)]))
    inventory = an_inventory(*hosts, vms=vms, rules=rules)
    return PlanningProblem(cluster=inventory, vms=starting, objective=objective)


def final_placements(problem: PlanningProblem) -> list[Places]:
    """Every placement that the conditions of the problem allow."""
    cluster = problem.cluster
    open_hosts = [host.id for host in cluster.hosts if host.requested is None]
    found = []
    for chosen in product(open_hosts, repeat=len(cluster.vms)):
        places = {vm.id: host for vm, host in zip(cluster.vms, chosen, strict=True)}
        if all(
            len({places[VmId(vm)] for vm in rule.vms}) == len(rule.vms)
            for rule in cluster.rules
            if isinstance(rule, KeepApart)
        ):
            found.append(places)
    return found


def moves_of(problem: PlanningProblem, places: Places) -> int:
    return sum(vm.host not in (None, places[vm.id]) for vm in problem.cluster.vms)


def overload_of(problem: PlanningProblem, places: Places) -> int:
    """The demand above the capacity of hosts, in thousandths of a host, rounded up for each."""
    total = 0
    for host in problem.cluster.hosts:
        there = [vm.demand for vm in problem.cluster.vms if places[vm.id] == host.id]
        for demand, capacity in (
            (sum(known.cpu_mhz for known in there), host.usable_cpu_mhz),
            (sum(known.memory_mib for known in there), host.usable_memory_mib),
        ):
            total += -(-max(0, demand - capacity) * 1000 // capacity)
    return total


@given(st.booleans(), problems())
def test_no_plan_that_serves_the_goals_as_well_has_less_overload(
    optimise: bool, problem: PlanningProblem
) -> None:
    result = solve(problem, optimise=optimise)
    allowed = final_placements(problem)
    if result.plan is None:
        assert not allowed
        return
    task = PlanningTask.of(problem)
    loads = host_loads(task.snapshot, result.plan, task.demands)
    assert (result.overload or 0) == total_overload(loads)
    actions = [step.action for step in result.plan.steps]
    targets = {action.vm: action.target for action in actions if isinstance(action, Migrate | Boot)}
    reached = {
        vm.id: targets[vm.id] if vm.id in targets else HostId(str(vm.host))
        for vm in problem.cluster.vms
    }
    assert reached in allowed
    assert (result.overload or 0) == overload_of(problem, reached)
    # All VMs have the same size and every action may start at once: the number of moves decides
    # both objectives.
    moves = moves_of(problem, reached)
    equal = [places for places in allowed if moves_of(problem, places) == moves]
    assert (result.overload or 0) == min(overload_of(problem, places) for places in equal)
    if optimise:
        assert moves == min(moves_of(problem, places) for places in allowed)


@settings(max_examples=20)
@given(problems())
def test_without_demand_the_plan_says_nothing_about_load(problem: PlanningProblem) -> None:
    idle = tuple(vm.but(demand=Demand()) for vm in problem.cluster.vms)
    result = solve(problem.but(cluster=problem.cluster.but(vms=idle)))
    assert result.overload is None
