"""Laws of networks: the judge and the planner say what listing all ways and moments says."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.model.action import Migrate
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import Problem
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.exact.impose import accepts
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.routes import Routes
from equipoise.plan.network import HURRIED, OVERLOADED, NetworkJudge, Ways
from equipoise.plan.verify import judged
from plain_network import complaints, the_way
from small_networks import a_network

CHANCE = st.randoms(use_true_random=False)
HOSTS = ("h1", "h2", "h3", "h4")
NEEDS_MS = {1000: 1074, 2000: 537, 3000: 358, 4000: 269}
"""How long 128 MiB take, to the millisecond that is begun."""


def moving(chance: Random) -> tuple[Snapshot, tuple[Step, ...]]:
    """VMs of 128 MiB, each of which migrates once, at times that often just fit or just do not."""
    vms, steps = [], []
    for number in range(1, chance.randint(1, 5) + 1):
        source, target = chance.sample(HOSTS, 2)
        vms.append(a_vm(f"v{number}", source, memory_mib=128))
        start_ms = chance.choice([0, 0, *NEEDS_MS.values()])
        lasts_ms = chance.choice([1074, 1074, *NEEDS_MS.values()]) - chance.choice([0] * 7 + [1])
        action = Migrate(vm=VmId(f"v{number}"), source=HostId(source), target=HostId(target))
        step = Step(
            id=StepId(f"s{number}"), action=action, start_ms=start_ms, end_ms=start_ms + lasts_ms
        )
        steps.append(step)
    hosts = [a_host(name, memory_mib=2**20) for name in HOSTS]
    return a_cluster(*hosts, vms=vms), tuple(steps)


@given(CHANCE)
def test_the_judge_says_what_listing_everything_says(chance: Random) -> None:
    network, (initial, steps) = a_network(chance, HOSTS), moving(chance)
    plan = Plan(id=PlanId("p"), base_version=initial.version, steps=steps)
    said = judged(initial, plan, [NetworkJudge(Ways(network))])
    known = {"no way": OVERLOADED, "too much": OVERLOADED, "too fast": HURRIED}
    assert {one.constraint for one in said} == {
        known[one] for one in complaints(network, initial, steps)
    }


@given(CHANCE)
def test_the_planner_accepts_what_listing_everything_accepts(chance: Random) -> None:
    network, (initial, steps) = a_network(chance, HOSTS), moving(chance)
    plan = Plan(id=PlanId("p"), base_version=initial.version, steps=steps)
    task = Task(Problem(cluster=initial.inventory(), network=network), initial, ())
    assert accepts(task, plan) == (not complaints(network, initial, steps))


@given(CHANCE)
def test_judge_and_planner_go_the_same_way(chance: Random) -> None:
    network = a_network(chance, HOSTS)
    ways, routes = Ways(network), Routes(network)
    for source in map(HostId, HOSTS):
        for target in map(HostId, HOSTS):
            if source == target:
                continue
            way, route = ways.between(source, target), routes.between(source, target)
            plain = the_way(network, source, target)
            assert (way is None) == (route is None) == (plain is None)
            if way is None or route is None or plain is None:
                continue
            assert way.mbps == route.mbps
            links = [link.id for link, _ in plain]
            assert [one.split()[1] for one in way.lanes if one.startswith("link")] == links
            assert [name for name, turn in route.lanes if turn != "through"] == links
