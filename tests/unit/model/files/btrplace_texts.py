"""Small instances of BtrPlace for tests, and a way to ask what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from equipoise.errors import InvalidInput
from equipoise.model.files import problems_of
from equipoise.model.files.btrplace import read_instance
from equipoise.model.files.findings import Findings
from equipoise.model.problem import Problem
from equipoise.model.rule import Satisfy
from equipoise.spec.library import library_constraints
from equipoise.spec.rules import check_rules

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


def read(document: Record) -> Problem:
    """The problem that an instance stands for."""
    return read_instance(json.dumps(document).encode(), "i.json")


def check_sound(problem: Problem) -> None:
    """It has no problem in the eyes of our own checks, and its rules mean something."""
    assert problems_of(problem) == []
    found = Findings()
    check_rules(problem.cluster, found)
    assert found.all() == ()
    for rule in problem.cluster.rules:
        assert isinstance(rule, Satisfy)
        marks = library_constraints()[rule.constraint].constraints[rule.constraint].marks
        assert ("continuous" if rule.continuous else "discrete") in marks, rule


def rules_of(*constraints: Record) -> list[Satisfy]:
    """The rules that constraints become, without those about the room on hosts."""
    rules = list(read(instance(*constraints)).cluster.rules)
    made = [rule for rule in rules if isinstance(rule, Satisfy) and not rule.id.startswith("room-")]
    assert len(made) == len(rules) - 1
    return made


def complaints(document: Record | bytes) -> list[str]:
    """All that is wrong with an instance, as a person reads it."""
    content = document if isinstance(document, bytes) else json.dumps(document, indent=1).encode()
    with pytest.raises(InvalidInput) as caught:
        read_instance(content, "i.json")
    assert caught.value.source == "i.json"
    return [str(one) for one in caught.value.problems]


def the_complaint(document: Record | bytes) -> str:
    """The only thing that is wrong, without its line, which a document on many lines has."""
    (told,) = complaints(document)
    line, _, rest = told.partition(": ")
    assert line.startswith("line ")
    assert line != "line 1"
    return rest
