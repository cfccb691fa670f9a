"""Where the planner looks first: who may be misplaced."""

from __future__ import annotations

from builders import a_host, a_vm
from equipoise.plan.exact.near.misplaced import as_wished, misplaced
from equipoise.plan.exact.near.reach import SMALL
from equipoise.plan.exact.near.sketch import Sketcher
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.task import Task
from planning import a_problem, a_rule, fence


def test_who_grows_beyond_what_many_hosts_may_give_together_is_misplaced_with_all_others() -> None:
    """A sum over many is remembered share by share; what is wished must not be judged by memory."""
    names = [f"h{place}" for place in range(20)]
    hosts = [a_host(name, capacity={"x": 10}) for name in (*names, "spare")]
    vms = [a_vm(f"v-{name}", name, consumption={"x": 1}) for name in names]
    rules = [
        a_rule("ResourceCapacity", "few", ns=names, id="x", qty=20),
        a_rule("Preserve", "more", v="v-h3", id="x", amount=2),
    ]
    task = Task.of(a_problem(hosts, vms, *rules))
    found = misplaced(task, as_wished(task))
    assert found == {vm.id for vm in vms}


def test_a_large_problem_in_which_nobody_reserves_anything_has_a_plan() -> None:
    hosts = [a_host(f"h{place}") for place in range(50)]
    vms = [a_vm(f"v{place}", f"h{place}") for place in range(50)]
    assert len(hosts) * len(vms) > SMALL
    answer = solve(a_problem(hosts, vms, fence("v1", "h7")))
    assert answer.plan is not None
    assert [step.footprint.target for step in answer.plan.steps] == ["h7"]


def test_a_host_that_is_too_full_is_short_of_nothing_for_who_needs_nothing() -> None:
    hosts = [a_host("h1", capacity={"x": 1}), a_host("h2", capacity={"x": 3})]
    vms = [a_vm("v1", "h1", consumption={"x": 2}), a_vm("v2", "h2"), a_vm("v3", "h2")]
    task = Task.of(a_problem(hosts, vms))
    sketcher = Sketcher(task, as_wished(task))
    assert sketcher.least_short(vms[1].id, 2) == ["h1", "h2"]
    assert sketcher.least_short(vms[0].id, 2) == ["h2"]
