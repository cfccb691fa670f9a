"""Laws of networks: judge and planner agree with a list of all paths and moments."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.model.action import Migrate
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.exact.accept import accepts_plan
from equipoise.plan.exact.task import PlanningTask
from equipoise.plan.exact.timeline.schedules import Routes
from equipoise.plan.network import COPY_TOO_FAST, NETWORK_OVERLOADED, NetworkJudge, NetworkPaths
from equipoise.plan.verify import replay_violations
from plain_network import network_violations, plain_path
from small_networks import a_network

CHANCE = st.randoms(use_true_random=False)
HOSTS = ("h1", "h2", "h3", "h4")
NEEDS_MS = {1000: 1074, 2000: 537, 3000: 358, 4000: 269}
"""Duration of a copy of 128 MiB, rounded up to a millisecond."""


def moving(chance: Random) -> tuple[Snapshot, tuple[Step, ...]]:
    """Return VMs of 128 MiB that migrate once, at times that often barely fit or barely do not."""
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
def test_the_judge_agrees_with_the_list(chance: Random) -> None:
    network, (initial, steps) = a_network(chance, HOSTS), moving(chance)
    plan = Plan(id=PlanId("p"), base_version=initial.version, steps=steps)
    found = replay_violations(initial, plan, [NetworkJudge(NetworkPaths(network))])
    known = {
        "no way": NETWORK_OVERLOADED,
        "too much": NETWORK_OVERLOADED,
        "too fast": COPY_TOO_FAST,
    }
    assert {violation.constraint for violation in found} == {
        known[kind] for kind in network_violations(network, initial, steps)
    }


@given(CHANCE)
def test_the_planner_agrees_with_the_list(chance: Random) -> None:
    network, (initial, steps) = a_network(chance, HOSTS), moving(chance)
    plan = Plan(id=PlanId("p"), base_version=initial.version, steps=steps)
    task = PlanningTask(PlanningProblem(cluster=initial.inventory(), network=network), initial, ())
    assert accepts_plan(task, plan) == (not network_violations(network, initial, steps))


@given(CHANCE)
def test_judge_and_planner_use_the_same_path(chance: Random) -> None:
    network = a_network(chance, HOSTS)
    ways, routes = NetworkPaths(network), Routes(network)
    for source in map(HostId, HOSTS):
        for target in map(HostId, HOSTS):
            if source == target:
                continue
            way, route = ways.between(source, target), routes.between(source, target)
            plain = plain_path(network, source, target)
            assert (way is None) == (route is None) == (plain is None)
            if way is None or route is None or plain is None:
                continue
            assert way.mbps == route.mbps
            links = [link.id for link, _ in plain]
            assert [lane.split()[1] for lane in way.lanes if lane.startswith("link")] == links
            assert [name for name, turn in route.lanes if turn != "through"] == links
