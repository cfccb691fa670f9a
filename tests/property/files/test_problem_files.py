"""A planning problem is read back unchanged, and random errors in it give a result."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InvalidInput
from equipoise.files import find_problems, parse_problem, to_json, to_yaml
from equipoise.model.inventory import Inventory
from equipoise.model.problem import (
    ActionDuration,
    DesiredHostState,
    DesiredVmState,
    Network,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.problem.problem import ActionKind, NetworkLink, NetworkSwitch, ObjectiveTerm
from equipoise.model.quantity import ResourceName
from equipoise.model.vm import VmState
from property.files.test_files_refusals import places, wrong_values
from strategies import ids, inventories, some

MS = st.integers(1, 10**12)
MBPS = st.integers(1, 10**9)
COUNTS = st.integers(1, 10**7)


@st.composite
def networks(draw: st.DrawFn, cluster: Inventory) -> Network:
    """Switches in a row, and a link to each host from one of them."""
    named = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    switches = [
        NetworkSwitch(id=ResourceName(name), capacity_mbps=draw(st.none() | MBPS)) for name in named
    ]
    ends: list[dict[str, Any]] = [
        {"switch": switch.id, "to": neighbour.id} for switch, neighbour in pairwise(switches)
    ]
    ends += [
        {"switch": draw(st.sampled_from(switches)).id, "host": host.id} for host in cluster.hosts
    ]
    links = [
        NetworkLink(id=ResourceName(f"l{position}"), capacity_mbps=draw(MBPS), **end)
        for position, end in enumerate(ends)
    ]
    return Network(switches=tuple(switches), links=tuple(links))


@st.composite
def durations(draw: st.DrawFn, known: list[str], resources: list[str] | None) -> ActionDuration:
    """The durations of one kind of action, per unit of a resource if it has units."""
    return ActionDuration(
        ms=draw(MS),
        per_unit_ms=draw(st.floats(0, 10**9)) if resources else 0,
        resource=draw(st.sampled_from(resources or ["memory"])),
        of={name: draw(MS) for name in draw(some(known))},
    )


@st.composite
def all_durations(
    draw: st.DrawFn, cluster: Inventory, *, has_network: bool
) -> dict[ActionKind, ActionDuration]:
    vms, hosts = [vm.id for vm in cluster.vms], [host.id for host in cluster.hosts]
    named = [host.capacity for host in cluster.hosts] + [vm.consumption for vm in cluster.vms]
    resources = ["memory", *sorted({name for names in named for name in names})]
    on_hosts = {kind for kind in ActionKind if "power" in kind or "maintenance" in kind}
    unitless = on_hosts | ({ActionKind.MIGRATE} if has_network else set())
    return {
        kind: draw(
            durations(
                list(hosts if kind in on_hosts else vms), None if kind in unitless else resources
            )
        )
        for kind in draw(some(list(ActionKind)))
    }


@st.composite
def objectives(draw: st.DrawFn) -> tuple[ObjectiveTerm, ...]:
    """Each measure at most once, alone or in a weighted sum."""
    measures = list(draw(st.permutations(list(ObjectiveMeasure))))
    terms: list[ObjectiveTerm] = []
    for size in draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)):
        together, measures = measures[:size], measures[size:]
        if together:
            terms.append({measure: draw(COUNTS) for measure in together})
        elif measures:
            terms.append(measures.pop())
    return tuple(terms)


@st.composite
def problems(draw: st.DrawFn) -> PlanningProblem:
    """A consistent problem about any cluster, solvable or not."""
    cluster = draw(inventories())
    vms, hosts = [vm.id for vm in cluster.vms], [host.id for host in cluster.hosts]
    init = {vm.id for vm in cluster.vms if vm.state is VmState.INIT}
    goals = [goal for goal in DesiredVmState if goal is not DesiredVmState.FORGED]
    network = draw(st.none() | networks(cluster))
    soft = [rule.id for rule in cluster.rules if not rule.hard]
    return PlanningProblem(
        cluster=cluster,
        vms={
            vm: draw(st.sampled_from(list(DesiredVmState) if vm in init else goals))
            for vm in draw(some(vms))
        },
        hosts={host: draw(st.sampled_from(DesiredHostState)) for host in draw(some(hosts))},
        durations=draw(all_durations(cluster, has_network=network is not None)),
        network=network,
        horizon_s=draw(st.none() | st.integers(1, 10**9)),
        moves_max=draw(st.integers(1, 4)),
        objective=draw(objectives()),
        weights={rule: draw(COUNTS) for rule in draw(some(soft))},
    )


@given(problems())
def test_a_problem_and_its_cluster_are_read_back_unchanged(problem: PlanningProblem) -> None:
    assert find_problems(problem) == []
    assert parse_problem(to_yaml(problem).encode(), "x.yaml") == problem
    assert parse_problem(to_json(problem).encode(), "x.json") == problem
    alone = PlanningProblem(cluster=problem.cluster)
    assert parse_problem(to_json(problem.cluster).encode(), "x.json") == alone


@given(problems(), st.data())
def test_a_problem_with_random_errors_gives_a_result(
    problem: PlanningProblem, data: st.DataObject
) -> None:
    document = json.loads(to_json(problem))
    for _ in range(data.draw(st.integers(1, 3))):
        known = places(document)
        if not known:
            break
        container, key = data.draw(st.sampled_from(known))
        if data.draw(st.booleans()):
            container[key] = data.draw(wrong_values)
        else:
            del container[key]
    language = data.draw(st.sampled_from(("json", "yaml")))
    if language == "json":
        content = json.dumps(document).encode()
    else:
        content = yaml.dump(document, Dumper=yaml.CSafeDumper, allow_unicode=True).encode()
    try:
        parsed = parse_problem(content, f"x.{language}")
    except InvalidInput as error:
        str(error).encode()  # the message can be printed
    else:
        assert find_problems(parsed) == []
