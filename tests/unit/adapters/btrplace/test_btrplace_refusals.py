"""Invalid instances of BtrPlace: problems with code and key; the reader never crashes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.btrplace.format import is_instance, read_instance
from equipoise.errors import InvalidInput
from equipoise.files import parse_problem, to_json
from unit.adapters.btrplace.sample_instances import (
    NETWORK,
    Record,
    check_sound,
    instance,
    only_problem,
    problems,
    read,
    resource,
)

CONSTRAINT_CASES = [
    (
        {"id": "spred", "vms": []},
        'constraints[0].id: invalid-value "spred" "spread"',
    ),
    ({"id": "running"}, "constraints[0].vm: missing-key 0 2147483647"),
    (
        {"id": "running", "vm": "3"},
        'constraints[0].vm: wrong-type "3" 3',
    ),
    (
        {"id": "preserve", "vm": 0, "rc": "cpu", "amount": -1},
        "constraints[0].amount: out-of-range -1 0 1000000000000",
    ),
    (
        {"id": "preserve", "vm": 0, "rc": "cpus", "amount": 1},
        'constraints[0].rc: unknown-name "cpus" "cpu"',
    ),
    (
        {"id": "fence", "vm": 0, "nodes": [0, 5], "continuous": False},
        "constraints[0].nodes[1]: unknown-name 5",
    ),
    (
        {"id": "offline", "node": 7},
        "constraints[0].node: unknown-name 7",
    ),
    ({"id": "spread", "vms": [0]}, "constraints[0].continuous: missing-key"),
    (
        {"id": "runningCapacity", "nodes": [0], "amount": 1, "continous": True},
        'constraints[0].continous: unknown-key "continuous"',
    ),
    (
        {"id": "fence", "vm": 0, "nodes": [0], "continous": True},
        'constraints[0].continous: unknown-key "continuous"',
    ),
    (
        {"id": "root", "vm": 0, "node": 1},
        "constraints[0].node: unknown-key",
    ),
    (
        {"id": "seq", "vms": [0, 0]},
        "constraints[0].vms: duplicate-name",
    ),
    (
        {"id": "split", "parts": [[0, 1], [1]], "continuous": False},
        "constraints[0].parts: duplicate-name 1",
    ),
    (
        {"id": "among", "vms": [0], "parts": [[0, 1], [1]], "continuous": False},
        "constraints[0].parts: duplicate-name 1",
    ),
    (
        {"id": "overbook", "node": 0, "rc": "cpu", "ratio": 0.5, "continuous": False},
        "constraints[0].ratio: out-of-range 0.5 1 1000000000",
    ),
    (
        {"id": "Deadline", "vm": 0, "timestamp": "soon"},
        "constraints[0].timestamp: invalid-value 0:10 00",
    ),
]


@pytest.mark.parametrize(("constraint", "expected"), CONSTRAINT_CASES)
def test_an_invalid_constraint_is_reported(constraint: Record, expected: str) -> None:
    assert only_problem(instance(constraint)) == expected


@pytest.mark.parametrize("timestamp", ["12:30:00", "99:00", "100:00", "0:00:100"])
def test_a_deadline_by_time_of_day_is_not_supported(timestamp: str) -> None:
    problem = only_problem(instance({"id": "Deadline", "vm": 0, "timestamp": timestamp}))
    assert problem.startswith("constraints[0].timestamp: unsupported-feature ")


UNKNOWN_VM_CASES = [
    ({"id": "fence", "vm": 77, "nodes": [1], "continuous": False}, "vm"),
    ({"id": "root", "vm": 77}, "vm"),
    ({"id": "noDelay", "vm": 77}, "vm"),
    ({"id": "preserve", "vm": 77, "rc": "cpu", "amount": 1}, "vm"),
    ({"id": "Deadline", "vm": 77, "timestamp": "+5"}, "vm"),
    ({"id": "Precedence", "vm1": 77, "vm2": 0}, "vm1"),
    ({"id": "Precedence", "vm1": 0, "vm2": 77}, "vm2"),
    ({"id": "spread", "vms": [0, 77], "continuous": False}, "vms[1]"),
    ({"id": "seq", "vms": [77, 0]}, "vms[0]"),
    ({"id": "Sync", "vms": [77]}, "vms[0]"),
    ({"id": "among", "vms": [77], "parts": [[0], [1]], "continuous": False}, "vms[0]"),
    ({"id": "split", "parts": [[0], [1, 77]], "continuous": False}, "parts[1][1]"),
    ({"id": "splitAmong", "vParts": [[77]], "pParts": [[0]], "continuous": False}, "vParts[0][0]"),
]


@pytest.mark.parametrize(("constraint", "key"), UNKNOWN_VM_CASES)
def test_a_constraint_on_an_unknown_vm_is_reported(constraint: Record, key: str) -> None:
    assert only_problem(instance(constraint)) == f"constraints[0].{key}: unknown-name 77"


def test_a_problem_has_the_position_of_its_constraint() -> None:
    valid = {"id": "root", "vm": 0}
    problem = only_problem(instance(valid, valid, {"id": "root", "vm": -1}))
    assert problem == "constraints[2].vm: out-of-range -1 0 2147483647"


def online(**nodes: list[int]) -> Record:
    """A mapping in which only these VMs run."""
    nodes_online = {
        node.removeprefix("n"): {"runningVMs": vms, "sleepingVMs": []}
        for node, vms in nodes.items()
    }
    return {"readyVMs": [], "onlineNodes": nodes_online, "offlineNodes": []}


MODEL_CASES: list[tuple[Record, str]] = [
    (
        {"mapping": online(n0=[1, 2], n1=[2])},
        (
            'model.mapping.onlineNodes["1"].runningVMs[0]: duplicate-name 2 '
            'model.mapping.onlineNodes["0"].runningVMs[1] 9'
        ),
    ),
    (
        {"mapping": online(n0=[1]) | {"readyVMs": [1]}},
        (
            'model.mapping.onlineNodes["0"].runningVMs[0]: duplicate-name 1 '
            "model.mapping.readyVMs[0] 5"
        ),
    ),
    (
        {"mapping": online(n0=[1]) | {"offlineNodes": [0]}},
        'model.mapping.offlineNodes[0]: duplicate-name 0 model.mapping.onlineNodes["0"] 6',
    ),
    (
        {"mapping": online()},
        "model.mapping.onlineNodes: empty-value",
    ),
    (
        {"mapping": {"readyVMs": [], "onlineNodes": {}}},
        "model.mapping.offlineNodes: missing-key",
    ),
    (
        {"mapping": online(nx=[])},
        'model.mapping.onlineNodes.x: wrong-type "x" 0 2147483647',
    ),
    (
        {"attributes": {"nodes": {"9": {"boot": 3}}}},
        'model.attributes.nodes["9"]: unknown-name 9',
    ),
    (
        {"attributes": {"vms": {"0": {"boot": 0}}}},
        'model.attributes.vms["0"].boot: out-of-range 0 1 1000000000',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "expected"), MODEL_CASES)
def test_an_invalid_model_is_reported(model: Record, expected: str) -> None:
    assert only_problem(instance(views=[], **model)) == expected


def changed_network(**fields: Any) -> Record:
    return NETWORK | fields


VIEW_CASES: list[tuple[list[Record], str]] = [
    (
        [{"id": "powerView"}],
        'model.views[0].id: invalid-value "powerView"',
    ),
    (
        [resource(nodes={"5": 1})],
        'model.views[0].nodes["5"]: unknown-name 5',
    ),
    (
        [resource(vms={"0": -1})],
        'model.views[0].vms["0"]: out-of-range -1 0 1000000000000',
    ),
    (
        [resource("two words")],
        'model.views[0].rcId: invalid-name "two words" 123',
    ),
    (
        [resource("cpu_units")],
        'model.views[0].rcId: duplicate-name "cpu_units"',
    ),
    (
        [resource(), resource()],
        'model.views[1].rcId: duplicate-name "cpu" model.views[0] 38',
    ),
    (
        [{"id": "ns", "type": "switch", "map": {}}],
        'model.views[0].type: invalid-value "switch"',
    ),
    (
        [{"id": "ns", "type": "vm", "map": {"a": 0, "b": 0}}],
        'model.views[0].map.b: duplicate-name 0 "a"',
    ),
    (
        [{"id": "ns", "type": "node", "map": {"a": 8}}],
        "model.views[0].map.a: unknown-name 8",
    ),
    (
        [changed_network(routing={"type": "static", "routes": []})],
        "model.views[0].routing.type: unsupported-feature",
    ),
    (
        [changed_network(links=NETWORK["links"][1:])],
        "model.views[0].links: disconnected",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("views", "expected"), VIEW_CASES)
def test_an_invalid_view_is_reported(views: list[Record], expected: str) -> None:
    assert only_problem(instance(views=views)) == expected


def without_line(problem: str) -> str:
    return problem.partition(": ")[2]


def test_links_of_an_unknown_switch_are_reported() -> None:
    found = problems(instance(views=[NETWORK | {"switches": NETWORK["switches"][:1]}]))
    assert list(map(without_line, found)) == [
        'model.views[0].links[2].switch: unknown-name "switch1" "switch0"',
        'model.views[0].links[3].physicalElement.id: unknown-name "switch1" "switch0"',
    ]


@pytest.mark.parametrize(
    ("position", "end", "expected"),
    [
        (0, {"type": "node", "id": 9}, 'unknown-name "node9"'),
        (1, {"type": "node", "id": 0}, 'duplicate-name "node0"'),
        (3, {"type": "switch", "id": 0}, 'cycle "switch0"'),
    ],
)
def test_an_invalid_end_of_a_link_is_reported(position: int, end: Record, expected: str) -> None:
    links = copy.deepcopy(NETWORK["links"])
    links[position]["physicalElement"] = end
    found = problems(instance(views=[NETWORK | {"links": links}]))
    start = f"model.views[0].links[{position}].physicalElement.id: {expected}"
    assert any(start in problem for problem in found)


def test_a_capacity_of_zero_and_an_unknown_end_of_a_link_are_reported() -> None:
    links, switches = copy.deepcopy(NETWORK["links"]), copy.deepcopy(NETWORK["switches"])
    switches[1]["capacity"] = links[0]["capacity"] = 0
    links[3]["physicalElement"]["type"] = "rack"
    found = problems(instance(views=[NETWORK | {"links": links, "switches": switches}]))
    assert list(map(without_line, found)) == [
        "model.views[0].switches[1].capacity: out-of-range 0 1 -1",
        "model.views[0].links[0].capacity: out-of-range 0 1 -1",
        'model.views[0].links[3].physicalElement.type: invalid-value "rack"',
    ]


COPY_ATTRIBUTES = {
    "hotDirtySize": 100.0,
    "hotDirtyDuration": 2,
    "coldDirtyRate": 0.0,
    "postCopy": True,
}


@pytest.mark.parametrize("key", COPY_ATTRIBUTES)
def test_an_attribute_of_copying_is_rejected_with_a_network_and_ignored_without(key: str) -> None:
    known = {"vms": {"0": {"memUsed": 1, key: COPY_ATTRIBUTES[key]}, "1": {"memUsed": 1}}}
    assert read(instance(attributes=known)) == read(instance())
    problem = only_problem(instance(views=[NETWORK], attributes=known))
    assert problem == f'model.attributes.vms["0"].{key}: unsupported-feature'


def test_a_network_needs_the_used_memory_of_every_running_vm() -> None:
    known = {"vms": {"0": {"memUsed": 0}, "2": {"boot": 2}}}
    assert [vm.memory_mib for vm in read(instance(attributes=known)).cluster.vms] == [1] * 4
    problem = only_problem(instance(views=[NETWORK], attributes=known))
    assert problem == 'model.attributes.vms["1"].memUsed: missing-key'


def test_an_overbooking_above_the_largest_quantity_is_reported() -> None:
    big = resource(defCapacity=10**9)
    overbook = {"id": "overbook", "node": 0, "rc": "cpu", "ratio": 5000.0, "continuous": True}
    assert only_problem(instance(overbook, views=[big])) == (
        "constraints[0].ratio: out-of-range 5000.0 1000000000 1000000000000 1000"
    )


def test_all_problems_are_listed_at_once() -> None:
    wrong: list[Record]
    wrong = [{"id": "root", "vm": 0}, {"id": "offline", "node": 7}, {"id": "offline", "node": 8}]
    assert len(problems(instance(*wrong, views=[resource(nodes={"9": 1})]))) == 3
    wrong_types: list[Record]
    wrong_types = [{"id": "root"}, {"id": "rot", "vm": 0}, {"id": "offline", "node": "1"}]
    assert len(problems(instance(*wrong_types))) == 3
    many = [{"id": "offline", "node": 10 + number} for number in range(3000)]
    found = problems(instance(*many))
    assert len(found) == 101
    assert found[-1] == "more-problems 900"


def test_a_repeated_problem_is_reported_each_time() -> None:
    overlapping = {"id": "among", "parts": [[0, 1], [1]], "continuous": False}
    unknown = {"id": "among", "parts": [[0], [6]], "continuous": False}
    wrong = [{"id": "fence", "vm": vm, "nodes": [0, 5], "continuous": False} for vm in (0, 1)] + [
        constraint | {"vms": [vm]} for constraint in (overlapping, unknown) for vm in (0, 1)
    ]
    found = [without_line(problem).partition(":")[0] for problem in problems(instance(*wrong))]
    assert found == [
        "constraints[0].nodes[1]",
        "constraints[1].nodes[1]",
        "constraints[2].parts",
        "constraints[3].parts",
        "constraints[4].parts[1][0]",
        "constraints[5].parts[1][0]",
    ]


INVALID_FILES = [
    (b"", "empty-value"),
    (b"\x00{}", "unreadable-file"),
    (b'{"model": "\xff"}', "unreadable-file"),
    (b"[]", "wrong-type"),
    (b"{}", "model: missing-key"),
    (b'{"model": {', "syntax-error"),
    (b"{'model': 1}", "syntax-error"),
    (b"[" * 100_000, "too-large"),
    (json.dumps(instance()).encode()[:-40], "syntax-error"),
    (json.dumps(instance(more=7)).replace("7}", "NaN}").encode(), "syntax-error"),
    (b'{"model": {"mapping": {"readyVMs": [1e2]}}}', "wrong-type"),
]


@pytest.mark.parametrize(("content", "expected"), INVALID_FILES)
def test_a_file_that_is_no_instance_is_rejected(content: bytes, expected: str) -> None:
    assert any(expected in problem for problem in problems(content))


def test_a_byte_order_mark_and_unknown_keys_are_ignored() -> None:
    document = instance({"id": "root", "vm": 0}, colour="red") | {"by": "me"}
    content = b"\xef\xbb\xbf" + json.dumps(document).encode()
    assert is_instance(content)
    assert read_instance(content, "i.json") == read(instance({"id": "root", "vm": 0}))


def test_an_instance_is_recognised() -> None:
    content = json.dumps(instance()).encode()
    assert is_instance(content)
    assert is_instance(content[:-30])  # damaged, but meant to be one
    for other in (b"", b"{}", b"[1]", b'{"model": 1}', b"cluster: {hosts: []}", b"\xff{"):
        assert not is_instance(other)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document, with each of its keys."""
    for key, part in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(part, dict | list):
            yield from places(part)


EVERYTHING = instance(
    {"id": "among", "vms": [0], "parts": [[0, 1], [2]], "continuous": True},
    {"id": "splitAmong", "vParts": [[0], [1]], "pParts": [[0], [1]], "continuous": False},
    {"id": "fence", "vm": 0, "nodes": [0, 1], "continuous": False},
    {"id": "resourceCapacity", "nodes": [0], "rc": "cpu", "amount": 9, "continuous": False},
    {"id": "overbook", "node": 1, "rc": "cpu", "ratio": 1.5, "continuous": True},
    {"id": "Deadline", "vm": 0, "timestamp": "+0:01:05"},
    {"id": "seq", "vms": [0, 1]},
    {"id": "offline", "node": 2},
    {"id": "running", "vm": 3},
    views=[
        resource(),
        NETWORK,
        {"id": "ns", "type": "vm", "map": {"a": 0}},
        {"id": "ns", "type": "node", "map": {"b": 0}},
    ],
    attributes={
        "vms": {"0": {"boot": 3, "template": "t", "memUsed": 5}, "1": {"memUsed": 0}},
        "nodes": {"1": {"shutdown": 2}},
    },
)

STRANGE = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 4), st.integers(10**9, 10**25), st.floats(),
    st.sampled_from(("", "cpu", "cpu_units", "a b", "vm", "switch", "static", "\ud800", "+1:")),
    st.lists(st.integers(0, 3), max_size=3), st.builds(dict),
    st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2),
    st.dictionaries(st.sampled_from(("0", "7", "-1", "x")), st.integers(-1, 3), max_size=2),
)  # fmt: skip


@given(st.data())
def test_an_instance_with_random_errors_gives_a_result(data: st.DataObject) -> None:
    document = copy.deepcopy(EVERYTHING)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(document))))
        error_kind = data.draw(st.sampled_from(("replace", "remove", "rename", "repeat")))
        if error_kind == "remove":
            del container[key]
        elif error_kind == "rename" and isinstance(container, dict):
            container[f"{key}9"] = container.pop(key)
        elif error_kind == "repeat" and isinstance(container, list):
            container.append(container[key])
        else:
            container[key] = data.draw(STRANGE)
    content = json.dumps(document).encode()
    try:
        problem = read_instance(content, "i.json")
    except InvalidInput as error:
        str(error).encode()  # the message can be printed
        return
    check_sound(problem)
    assert parse_problem(to_json(problem).encode(), "again.json") == problem


@given(st.data())
def test_a_damaged_instance_gives_a_result(data: st.DataObject) -> None:
    content = bytearray(json.dumps(EVERYTHING).encode())
    at = data.draw(st.integers(0, len(content)))
    content[at : at + data.draw(st.integers(0, 50))] = data.draw(
        st.sampled_from(
            (b"", b"[", b"}", b'"', b"-1", b"\xff", b"\x00", b"1e99", b"null", b"9" * 30)
        )
    )
    is_instance(bytes(content))
    try:
        check_sound(read_instance(bytes(content), "i.json"))
    except InvalidInput as error:
        str(error).encode()  # the message can be printed
