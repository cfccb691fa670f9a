"""Small instances of BtrPlace for tests, and functions that return what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from equipoise.adapters.btrplace.format import read_instance
from equipoise.errors import InvalidInput
from equipoise.files import find_problems
from equipoise.model.diagnostics import Diagnostics
from equipoise.model.problem import PlanningProblem
from equipoise.model.rule import Satisfy
from equipoise.spec.library import library_constraints
from equipoise.spec.rules import check_rules
from unit.files.sample_files import brief

Record = dict[str, Any]

NETWORK: Record = {
    "id": "net",
    "switches": [{"id": 0, "capacity": -1}, {"id": 1, "capacity": 500}],
    "links": [
        {"id": 0, "capacity": 10, "switch": 0, "physicalElement": {"type": "node", "id": 0}},
        {"id": 1, "capacity": -1, "switch": 0, "physicalElement": {"type": "node", "id": 1}},
        {"id": 2, "capacity": 30, "switch": 1, "physicalElement": {"type": "node", "id": 2}},
        {"id": 3, "capacity": 2**30, "switch": 0, "physicalElement": {"type": "switch", "id": 1}},
    ],
    "routing": {"type": "default"},
}  # fmt: skip


def resource(name: str = "cpu", **fields: Any) -> Record:
    """A view: a node has 8 of a resource and node 1 has 16, a VM takes 1 of it and VM 2 takes 3."""
    given: Record = {
        "id": "shareableResource",
        "rcId": name,
        "defCapacity": 8,
        "defConsumption": 1,
        "nodes": {"1": 16},
        "vms": {"2": 3},
    }
    return given | fields


def instance(*constraints: Record, views: list[Record] | None = None, **model: Any) -> Record:
    """Nodes 0 and 1 are on, 2 is off. VMs 0 and 1 run on 0, 2 sleeps on 1, 3 is ready."""
    mapping = {
        "readyVMs": [3],
        "onlineNodes": {
            "1": {"runningVMs": [], "sleepingVMs": [2]},
            "0": {"runningVMs": [1, 0], "sleepingVMs": []},
        },
        "offlineNodes": [2],
    }
    given = {
        "mapping": mapping,
        "attributes": {"vms": {"0": {"memUsed": 1}, "1": {"memUsed": 1}}, "nodes": {}},
        "views": [resource()] if views is None else views,
    }
    return {
        "model": given | model,
        "constraints": list(constraints),
        "objective": {"id": "minimizeMTTR"},
    }


def read(document: Record) -> PlanningProblem:
    """The problem that an instance stands for."""
    return read_instance(json.dumps(document).encode(), "i.json")


def check_sound(problem: PlanningProblem) -> None:
    """The problem passes all checks, and its rules use constraints of the library."""
    assert find_problems(problem) == []
    diagnostics = Diagnostics()
    check_rules(problem.cluster, diagnostics)
    assert diagnostics.all() == ()
    for rule in problem.cluster.rules:
        assert isinstance(rule, Satisfy)
        marks = library_constraints()[rule.constraint].constraints[rule.constraint].marks
        assert ("continuous" if rule.continuous else "discrete") in marks, rule


def rules_of(*constraints: Record) -> list[Satisfy]:
    """The rules that constraints become, without the capacity rules."""
    rules = list(read(instance(*constraints)).cluster.rules)
    others = [
        rule for rule in rules if isinstance(rule, Satisfy) and not rule.id.startswith("room-")
    ]
    assert len(others) == len(rules) - 1
    return others


def problems(document: Record | bytes) -> list[str]:
    """All problems of an instance, in brief."""
    content = document if isinstance(document, bytes) else json.dumps(document, indent=1).encode()
    with pytest.raises(InvalidInput) as caught:
        read_instance(content, "i.json")
    assert caught.value.source == "i.json"
    return [brief(problem) for problem in caught.value.problems]


def only_problem(document: Record | bytes) -> str:
    """The only problem of an instance, in brief and without its line."""
    (problem,) = problems(document)
    line, _, rest = problem.partition(": ")
    assert line.startswith("line ")
    assert line != "line 1"
    return rest
