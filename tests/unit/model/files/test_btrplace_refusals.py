"""Instances of BtrPlace that cannot be used: where, what and the cure; never a crash."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InvalidInput
from equipoise.model.files import parse_problem, to_json
from equipoise.model.files.btrplace import is_instance, read_instance
from unit.model.files.btrplace_texts import (
    NETWORK,
    Record,
    check_sound,
    complaints,
    instance,
    read,
    resource,
    the_complaint,
)

UNCLEAR = [
    (
        {"id": "spred", "vms": []},
        (
            'constraints[0].id: "spred" is not one of the allowed words (did you mean "spread"? '
            "allowed: running, ready, sleeping, killed, online, offline, spread, gather, lonely, "
            "split, among, splitAmong, fence, ban, root, quarantine, maxOnline, runningCapacity, "
            "resourceCapacity, preserve, overbook, seq, noDelay, Sync, Serialize, Precedence, "
            "Deadline)"
        ),
    ),
    ({"id": "running"}, "constraints[0].vm: is missing (a whole number from 0 to 2147483647)"),
    (
        {"id": "running", "vm": "3"},
        (
            'constraints[0].vm: found the text "3" where a whole number is needed '
            "(without quotes: 3)"
        ),
    ),
    (
        {"id": "preserve", "vm": 0, "rc": "cpu", "amount": -1},
        "constraints[0].amount: -1 is below the allowed range (0 to 1000000000000)",
    ),
    (
        {"id": "preserve", "vm": 0, "rc": "cpus", "amount": 1},
        (
            'constraints[0].rc: there is no resource "cpus" (did you mean "cpu"? '
            "the resources are: cpu)"
        ),
    ),
    (
        {"id": "fence", "vm": 0, "nodes": [0, 5], "continuous": False},
        "constraints[0].nodes[1]: there is no node 5 (list it in onlineNodes or in offlineNodes)",
    ),
    (
        {"id": "offline", "node": 7},
        "constraints[0].node: there is no node 7 (list it in onlineNodes or in offlineNodes)",
    ),
    ({"id": "spread", "vms": [0]}, "constraints[0].continuous: is missing (true or false)"),
    (
        {"id": "runningCapacity", "nodes": [0], "amount": 1, "continous": True},
        (
            "constraints[0].continous: this key is not known "
            '(did you mean "continuous"? allowed: id, nodes, amount, continuous)'
        ),
    ),
    (
        {"id": "fence", "vm": 0, "nodes": [0], "continous": True},
        (
            "constraints[0].continous: this key is not known "
            '(did you mean "continuous"? allowed: id, continuous, vm, nodes)'
        ),
    ),
    (
        {"id": "root", "vm": 0, "node": 1},
        "constraints[0].node: this key is not known (allowed: id, vm, continuous)",
    ),
    (
        {"id": "seq", "vms": [0, 0]},
        "constraints[0].vms: the list names a VM twice (every VM once)",
    ),
    (
        {"id": "split", "parts": [[0, 1], [1]], "continuous": False},
        "constraints[0].parts: the VM 1 is in two groups (groups share nothing)",
    ),
    (
        {"id": "among", "vms": [0], "parts": [[0, 1], [1]], "continuous": False},
        "constraints[0].parts: the node 1 is in two groups (groups share nothing)",
    ),
    (
        {"id": "overbook", "node": 0, "rc": "cpu", "ratio": 0.5, "continuous": False},
        "constraints[0].ratio: 0.5 is below the allowed range (1 to 1000000000)",
    ),
    *(
        (
            {"id": "Deadline", "vm": 0, "timestamp": timestamp},
            (
                f"constraints[0].timestamp: without a + {timestamp} is a time of day, and nobody "
                "knows at what time the plan will start "
                "(count from the start of the plan: +0:10:00 is after ten minutes)"
            ),
        )
        for timestamp in ("12:30:00", "99:00", "100:00", "0:00:100")
    ),
    (
        {"id": "Deadline", "vm": 0, "timestamp": "soon"},
        (
            "constraints[0].timestamp: the moment cannot be read "
            "(hours, minutes and seconds from the start of the plan: +0:10:00)"
        ),
    ),
]


@pytest.mark.parametrize(("constraint", "told"), UNCLEAR)
def test_a_constraint_that_makes_no_sense(constraint: Record, told: str) -> None:
    assert the_complaint(instance(constraint)) == told


NOBODY = [
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


@pytest.mark.parametrize(("constraint", "place"), NOBODY)
def test_a_constraint_on_a_vm_that_nothing_is_known_of(constraint: Record, place: str) -> None:
    told = "there is no VM 77 (list it in readyVMs, or demand a state of it)"
    assert the_complaint(instance(constraint)) == f"constraints[0].{place}: {told}"


def test_the_place_of_a_constraint_is_told() -> None:
    fine = {"id": "root", "vm": 0}
    told = the_complaint(instance(fine, fine, {"id": "root", "vm": -1}))
    assert told == "constraints[2].vm: -1 is below the allowed range (0 to 2147483647)"


def online(**nodes: list[int]) -> Record:
    """A mapping in which only these run."""
    there = {
        node.removeprefix("n"): {"runningVMs": vms, "sleepingVMs": []}
        for node, vms in nodes.items()
    }
    return {"readyVMs": [], "onlineNodes": there, "offlineNodes": []}


MODELS: list[tuple[Record, str]] = [
    (
        {"mapping": online(n0=[1, 2], n1=[2])},
        (
            "model.mapping.onlineNodes[\"1\"].runningVMs[0]: the VM 2 is also in "
            "model.mapping.onlineNodes[\"0\"].runningVMs[1] on line 9 (a VM is in one place, once)"
        ),
    ),
    (
        {"mapping": online(n0=[1]) | {"readyVMs": [1]}},
        (
            "model.mapping.onlineNodes[\"0\"].runningVMs[0]: the VM 1 is also in "
            "model.mapping.readyVMs[0] on line 5 (a VM is in one place, once)"
        ),
    ),
    (
        {"mapping": online(n0=[1]) | {"offlineNodes": [0]}},
        (
            "model.mapping.offlineNodes[0]: the node 0 is also in "
            "model.mapping.onlineNodes[\"0\"] on line 6 (a node is online or offline, once)"
        ),
    ),
    (
        {"mapping": online()},
        "model.mapping.onlineNodes: there is no node (list at least one)",
    ),
    (
        {"mapping": {"readyVMs": [], "onlineNodes": {}}},
        "model.mapping.offlineNodes: is missing (a list)",
    ),
    (
        {"mapping": online(nx=[])},
        (
            'model.mapping.onlineNodes.x: "x" is not a whole number '
            "(a whole number from 0 to 2147483647)"
        ),
    ),
    (
        {"attributes": {"nodes": {"9": {"boot": 3}}}},
        (
            'model.attributes.nodes["9"]: there is no node 9 '
            "(list it in onlineNodes or in offlineNodes)"
        ),
    ),
    (
        {"attributes": {"vms": {"0": {"boot": 0}}}},
        'model.attributes.vms["0"].boot: 0 is below the allowed range (1 to 1000000000)',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "told"), MODELS)
def test_a_model_that_makes_no_sense(model: Record, told: str) -> None:
    assert the_complaint(instance(views=[], **model)) == told


def changed_network(**fields: Any) -> Record:
    return NETWORK | fields


VIEWS: list[tuple[list[Record], str]] = [
    (
        [{"id": "powerView"}],
        (
            'model.views[0].id: "powerView" is not one of the allowed words '
            "(allowed: shareableResource, ns, net)"
        ),
    ),
    (
        [resource(nodes={"5": 1})],
        (
            'model.views[0].nodes["5"]: there is no node 5 '
            "(list it in onlineNodes or in offlineNodes)"
        ),
    ),
    (
        [resource(vms={"0": -1})],
        'model.views[0].vms["0"]: -1 is below the allowed range (0 to 1000000000000)',
    ),
    (
        [resource("two words")],
        (
            'model.views[0].rcId: "two words" is not a name that a resource can have here '
            "(letters, digits and _ . : @ / + -, at most 123)"
        ),
    ),
    (
        [resource("cpu_units")],
        (
            'model.views[0].rcId: "cpu_units" is what another resource is called here '
            "(give it another name)"
        ),
    ),
    (
        [resource(), resource()],
        (
            'model.views[1].rcId: the resource "cpu" is also in model.views[0] on line 38 '
            "(keep one)"
        ),
    ),
    (
        [{"id": "ns", "type": "switch", "map": {}}],
        'model.views[0].type: "switch" have no names (vm or node)',
    ),
    (
        [{"id": "ns", "type": "vm", "map": {"a": 0, "b": 0}}],
        'model.views[0].map.b: vm 0 is also called "a" (one name for each)',
    ),
    (
        [{"id": "ns", "type": "node", "map": {"a": 8}}],
        (
            "model.views[0].map.a: there is no node 8 "
            "(list it in onlineNodes or in offlineNodes)"
        ),
    ),
    (
        [changed_network(routing={"type": "static", "routes": []})],
        (
            "model.views[0].routing.type: routes that are given one by one cannot be read: here "
            "they follow from the links (default)"
        ),
    ),
    (
        [changed_network(links=NETWORK["links"][1:])],
        (
            "model.views[0].links: no link leads to node0 "
            "(every host needs one, or there is no network)"
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("views", "told"), VIEWS)
def test_a_view_that_makes_no_sense(views: list[Record], told: str) -> None:
    assert the_complaint(instance(views=views)) == told


def test_links_of_a_switch_that_is_not_there() -> None:
    told = complaints(instance(views=[NETWORK | {"switches": NETWORK["switches"][:1]}]))
    assert [one.partition(": ")[2].partition(" (")[0] for one in told] == [
        'model.views[0].links[2].switch: there is no switch "switch1"',
        'model.views[0].links[3].physicalElement.id: there is no switch "switch1"',
    ]


@pytest.mark.parametrize(
    ("place", "end", "told"),
    [
        (0, {"type": "node", "id": 9}, 'there is no host "node9"'),
        (1, {"type": "node", "id": 0}, 'the host "node0" already has the link'),
        (3, {"type": "switch", "id": 0}, '"switch0" is linked to itself'),
    ],
)
def test_a_link_with_a_wrong_end(place: int, end: Record, told: str) -> None:
    links = copy.deepcopy(NETWORK["links"])
    links[place]["physicalElement"] = end
    said = complaints(instance(views=[NETWORK | {"links": links}]))
    assert any(f"model.views[0].links[{place}].physicalElement.id: {told}" in one for one in said)


def test_a_switch_or_a_link_that_carries_nothing_and_one_that_leads_to_nothing() -> None:
    links, switches = copy.deepcopy(NETWORK["links"]), copy.deepcopy(NETWORK["switches"])
    switches[1]["capacity"] = links[0]["capacity"] = 0
    links[3]["physicalElement"]["type"] = "rack"
    told = complaints(instance(views=[NETWORK | {"links": links, "switches": switches}]))
    cure = "(1 or more, or -1 for no bound)"
    assert [one.partition(": ")[2] for one in told] == [
        f"model.views[0].switches[1].capacity: a switch of 0 Mbit/s carries nothing {cure}",
        f"model.views[0].links[0].capacity: a link of 0 Mbit/s carries nothing {cure}",
        (
            "model.views[0].links[3].physicalElement.type: "
            'a link does not lead to "rack" (node or switch)'
        ),
    ]


WRITTEN = {"hotDirtySize": 100.0, "hotDirtyDuration": 2, "coldDirtyRate": 0.0, "postCopy": True}


@pytest.mark.parametrize("key", WRITTEN)
def test_what_only_counts_in_a_network_is_refused_with_one_and_else_of_no_consequence(
    key: str,
) -> None:
    known = {"vms": {"0": {"memUsed": 1, key: WRITTEN[key]}, "1": {"memUsed": 1}}}
    assert read(instance(attributes=known)) == read(instance())
    told = the_complaint(instance(views=[NETWORK], attributes=known))
    assert told == (
        f'model.attributes.vms["0"].{key}: how the memory of a VM is copied cannot be said here '
        "(leave it out: it is copied once)"
    )


def test_in_a_network_it_must_be_known_how_much_of_a_running_vm_there_is_to_copy() -> None:
    known = {"vms": {"0": {"memUsed": 0}, "2": {"boot": 2}}}
    assert [vm.memory_mib for vm in read(instance(attributes=known)).cluster.vms] == [1] * 4
    told = the_complaint(instance(views=[NETWORK], attributes=known))
    assert told == (
        'model.attributes.vms["1"].memUsed: is missing, and nobody knows how long it takes to move '
        "the VM over the network (the MiB that the VM uses)"
    )


def test_overbooking_beyond_all_measure() -> None:
    big = resource(defCapacity=10**9)
    given = {"id": "overbook", "node": 0, "rc": "cpu", "ratio": 5000.0, "continuous": True}
    told = the_complaint(instance(given, views=[big]))
    assert told == (
        "constraints[0].ratio: 5000.0 times 1000000000 is more than 1000000000000 (at most 1000)"
    )


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong: list[Record]
    wrong = [{"id": "root", "vm": 0}, {"id": "offline", "node": 7}, {"id": "offline", "node": 8}]
    assert len(complaints(instance(*wrong, views=[resource(nodes={"9": 1})]))) == 3
    shapeless: list[Record]
    shapeless = [{"id": "root"}, {"id": "rot", "vm": 0}, {"id": "offline", "node": "1"}]
    assert len(complaints(instance(*shapeless))) == 3
    many = [{"id": "offline", "node": 10 + number} for number in range(3000)]
    told = complaints(instance(*many))
    assert len(told) == 101
    assert told[-1].startswith("... and at least 900 more")


def test_what_is_wrong_again_is_told_again() -> None:
    apart = {"id": "among", "parts": [[0, 1], [1]], "continuous": False}
    astray = {"id": "among", "parts": [[0], [6]], "continuous": False}
    wrong = [{"id": "fence", "vm": vm, "nodes": [0, 5], "continuous": False} for vm in (0, 1)] + [
        given | {"vms": [vm]} for given in (apart, astray) for vm in (0, 1)
    ]
    told = [one.partition(": ")[2].partition(":")[0] for one in complaints(instance(*wrong))]
    assert told == [
        "constraints[0].nodes[1]",
        "constraints[1].nodes[1]",
        "constraints[2].parts",
        "constraints[3].parts",
        "constraints[4].parts[1][0]",
        "constraints[5].parts[1][0]",
    ]


BROKEN = [
    (b"", "the file is empty"),
    (b"\x00{}", "NUL"),
    (b'{"model": "\xff"}', "the byte 0xff is not UTF-8"),
    (b"[]", "found a list where a mapping is needed"),
    (b"{}", "model: is missing"),
    (b'{"model": {', "the file ends too early"),
    (b"{'model': 1}", "this is not JSON"),
    (b"[" * 100_000, "nested deeper than 64 levels"),
    (json.dumps(instance()).encode()[:-40], "the file ends too early"),
    (json.dumps(instance(more=7)).replace("7}", "NaN}").encode(), "this is not JSON"),
    (b'{"model": {"mapping": {"readyVMs": [1e2]}}}', "is not written as a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "what"), BROKEN)
def test_a_file_that_is_no_instance_at_all(content: bytes, what: str) -> None:
    assert any(what in told for told in complaints(content))


def test_a_mark_of_order_and_what_nobody_asks_for_are_passed_over() -> None:
    document = instance({"id": "root", "vm": 0}, colour="red") | {"by": "me"}
    content = b"\xef\xbb\xbf" + json.dumps(document).encode()
    assert is_instance(content)
    assert read_instance(content, "i.json") == read(instance({"id": "root", "vm": 0}))


def test_instances_are_told_from_other_files() -> None:
    content = json.dumps(instance()).encode()
    assert is_instance(content)
    assert is_instance(content[:-30])  # with a slip, and still meant to be one
    for other in (b"", b"{}", b"[1]", b'{"model": 1}', b"cluster: {hosts: []}", b"\xff{"):
        assert not is_instance(other)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with a key of it."""
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
def test_an_instance_with_slips_is_answered(data: st.DataObject) -> None:
    document = copy.deepcopy(EVERYTHING)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(document))))
        slip = data.draw(st.sampled_from(("replace", "remove", "rename", "repeat")))
        if slip == "remove":
            del container[key]
        elif slip == "rename" and isinstance(container, dict):
            container[f"{key}9"] = container.pop(key)
        elif slip == "repeat" and isinstance(container, list):
            container.append(container[key])
        else:
            container[key] = data.draw(STRANGE)
    content = json.dumps(document).encode()
    try:
        problem = read_instance(content, "i.json")
    except InvalidInput as error:
        str(error).encode()  # can be printed
        return
    check_sound(problem)
    assert parse_problem(to_json(problem).encode(), "again.json") == problem


@given(st.data())
def test_an_instance_cut_short_or_scratched_is_answered(data: st.DataObject) -> None:
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
        str(error).encode()  # can be printed
