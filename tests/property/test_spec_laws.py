"""Laws of the language: what is printed reads back, and formulas mean what they say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.check import check
from equipoise.spec.parse import parse, parse_term
from equipoise.spec.place import Source
from equipoise.spec.print import print_file, print_term
from equipoise.spec.specification import Specification, frame_of
from equipoise.spec.syntax import (
    Always,
    Binder,
    Binding,
    Call,
    Constraint,
    Exists,
    ForAll,
    Index,
    Let,
    ListOf,
    ListWhere,
    Minus,
    Moment,
    Name,
    Not,
    Number,
    Operation,
    Parameter,
    SetOf,
    SetWhere,
    Sometime,
    Term,
    Text,
    Truth,
)

WORDS = ["x", "y", "vms", "hosts", "ready", "f", "_a1", "Among"]
SIGNS = "+ - * / /\\ \\/ < <= > >= = /= & | --> <--> : <: <<: /: /<: /<<:"
OPERATORS = SIGNS.split()
names = st.sampled_from(WORDS)


def compound(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    some = st.lists(inner, max_size=3).map(tuple)
    binder = st.builds(
        Binder,
        st.lists(names, min_size=1, max_size=2).map(tuple),
        st.sampled_from(Binding),
        inner,
    )
    binders = st.lists(binder, min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(Call, names, some, st.sampled_from(Moment)),
        st.builds(Operation, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Not, inner),
        st.builds(Minus, inner),
        st.builds(Index, inner, inner),
        st.builds(SetOf, some),
        st.builds(ListOf, some),
        st.builds(SetWhere, inner, binders, some),
        st.builds(ListWhere, inner, binders, some),
        st.builds(ForAll, binders, inner),
        st.builds(Exists, binders, inner),
        st.builds(Let, names, inner, inner),
        st.builds(Always, inner),
        st.builds(Sometime, inner),
    )


terms: st.SearchStrategy[Term] = st.recursive(
    st.one_of(
        st.builds(Name, names),
        st.builds(Number, st.integers(0, 10**30)),
        st.builds(Text, st.text("ab \"\\'{§", max_size=4)),
        st.builds(Truth, st.booleans()),
    ),
    compound,
    max_leaves=12,
)
constraints = st.builds(
    Constraint,
    names,
    st.lists(st.builds(Parameter, names, st.sampled_from(Binding), terms), max_size=2).map(tuple),
    terms,
    marks=st.lists(st.sampled_from(["hard", "soft", "discrete", "continuous"]), max_size=2).map(
        tuple
    ),
    doc=st.sampled_from(["", "What it is.", "It's 100 % \\ fine"]),
)


@given(terms)
def test_a_printed_term_reads_back(term: Term) -> None:
    assert parse_term(print_term(term)) == term


@given(st.lists(constraints, max_size=3).map(tuple))
def test_a_printed_file_reads_back(file: tuple[Constraint, ...]) -> None:
    assert parse(print_file(file)) == file


@given(st.lists(constraints, max_size=3).map(tuple))
def test_the_checker_has_an_answer_for_everything_that_can_be_read(
    file: tuple[Constraint, ...],
) -> None:
    text = print_file(file)
    for problem in check(parse(text), Source("x", text)).problems:
        assert problem.what
        assert "^" in problem.excerpt


@given(st.text(st.sampled_from("abv:<>!?(){}[]|&=-/\\.,;^$\"'1 \n§"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except InvalidInput:
        return
    assert parse(print_file(found)) == found


# What formulas mean, against plain Python on every small world

VMS, HOSTS = [VmId("v1"), VmId("v2")], [HostId("h1"), HostId("h2")]
LIBRARY = Specification.read(
    """
    Spread(vs <: vms) ::= !(x, y : vs) x /= y & vmState(x) = running & vmState(y) = running
                          --> host(x) /= host(y)
    Gather(vs <: vms) ::= !(x, y : vs) vmState(x) = running & vmState(y) = running
                          --> host(x) = host(y)
    Lonely(vs <: vms) ::= !(v : vs) vmState(v) = running --> running(host(v)) <: vs
    Fence(v : vms, ns <: nodes) ::= vmState(v) = running --> host(v) : ns
    Ban(v : vms, ns <: nodes) ::= vmState(v) = running --> host(v) /: ns
    Root(v : vms) ::= vmState(v) = running & ^vmState(v) = running --> host(v) = ^host(v)
    MaxOnline(ns <: nodes, nb : int) ::= card({n. n : ns, nodeState(n) = online}) <= nb
    RunningCapacity(ns <: nodes, nb : int) ::= sum([card(running(n)). n : ns]) <= nb
    Split(part <<: vms) ::= [{host(v). v : p, vmState(v) = running}. p : part] <<: nodes
    Among(vs <: vms, parts <<: nodes) ::=
        {host(v). v : vs, vmState(v) = running} = {} | ?(g : parts)
        {host(v). v : vs, vmState(v) = running} <: g
    noVMsOnOfflineNodes ::= !(n : nodes) nodeState(n) /= online --> card(hosted(n)) = 0
    """
)


def worlds() -> Iterator[Snapshot]:
    """Every state of two VMs and two hosts."""
    places = [
        (VmState.READY, None),
        *((state, host) for state in (VmState.RUNNING, VmState.SLEEPING) for host in HOSTS),
    ]
    for states in product((HostState.ON, HostState.STANDBY), repeat=2):
        hosts = [a_host(h, state=s) for h, s in zip(HOSTS, states, strict=True)]
        for spots in product(places, repeat=2):
            vms = [a_vm(v, h, state=s) for v, (s, h) in zip(VMS, spots, strict=True)]
            yield a_cluster(*hosts, vms=vms)


def groups(members: list[VmId] | list[HostId]) -> list[frozenset[str]]:
    return [frozenset(some) for size in range(3) for some in combinations(members, size)]


def running(world: Snapshot, vms: frozenset[str]) -> list[Vm]:
    return [vm for vm in world.vms.values() if vm.id in vms and vm.state is VmState.RUNNING]


def on(world: Snapshot, host: str) -> list[Vm]:
    return [vm for vm in running(world, frozenset(VMS)) if vm.host == host]


def arguments_of(name: str) -> Iterator[dict[str, Any]]:
    """All arguments a constraint may have in these worlds, or those that matter."""
    singles = [frozenset(frozenset([one]) for one in some) for some in (VMS, HOSTS)]
    match name:
        case "Spread" | "Gather" | "Lonely":
            yield from ({"vs": vs} for vs in groups(VMS))
        case "Fence" | "Ban":
            yield from ({"v": v, "ns": ns} for v, ns in product(VMS, groups(HOSTS)))
        case "Root":
            yield from ({"v": v} for v in VMS)
        case "MaxOnline" | "RunningCapacity":
            yield from ({"ns": ns, "nb": nb} for ns, nb in product(groups(HOSTS), range(3)))
        case "Split":
            whole = frozenset([frozenset(VMS)])
            yield from ({"part": part} for part in (singles[0], whole, frozenset()))
        case "Among":
            for vs in groups(VMS):
                yield from ({"vs": vs, "parts": parts} for parts in (singles[1], frozenset()))
        case _:
            yield {}


def expected(name: str, values: dict[str, Any], now: Snapshot, then: Snapshot) -> bool:
    """What a constraint should say, in plain Python."""
    hosts = [vm.host for vm in running(now, values.get("vs", frozenset(VMS)))]
    match name:
        case "Spread":
            return len(hosts) == len(set(hosts))
        case "Gather":
            return len(set(hosts)) <= 1
        case "Lonely":
            return all({vm.id for vm in on(now, host or "")} <= values["vs"] for host in hosts)
        case "Fence" | "Ban":
            moved = running(now, frozenset([values["v"]]))
            return all((vm.host in values["ns"]) == (name == "Fence") for vm in moved)
        case "Root":
            one = frozenset([values["v"]])
            both = zip(running(now, one), running(then, one), strict=False)
            return all(vm.host == before.host for vm, before in both)
        case "MaxOnline":
            return bool(
                sum(now.hosts[n].state is HostState.ON for n in values["ns"]) <= values["nb"]
            )
        case "RunningCapacity":
            return bool(sum(len(on(now, n)) for n in values["ns"]) <= values["nb"])
        case "Split":
            return len(values["part"]) < 2 or len(hosts) == len(set(hosts))
        case "Among":
            return len(set(hosts)) <= (1 if values["parts"] else 0)
        case _:
            on_hosts = [vm.host for vm in now.vms.values() if vm.host is not None]
            return all(now.hosts[host].state is HostState.ON for host in on_hosts)


@pytest.mark.parametrize("name", list(LIBRARY.constraints))
def test_a_formula_means_what_plain_python_says(name: str) -> None:
    answers: set[bool] = set()
    everything = list(worlds())
    for values in arguments_of(name):
        fitting = LIBRARY.arguments(name, values, everything[0])
        for now, then in product(everything, everything if name == "Root" else everything[:1]):
            found = LIBRARY.holds(name, fitting, frame_of(now, initial=then))
            assert found == expected(name, values, now, then), f"{values} in {now.vms}"
            answers.add(found)
    assert answers == {True, False}, "every formula is true somewhere and false somewhere"


def value_of(text: str, world: Snapshot | None = None) -> object:
    """Judge a formula that stands alone."""
    spec = Specification.read(f"a ::= {text}")
    return spec.holds("a", {}, frame_of(world or next(worlds())))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 = 7", True),
        ("7 / 2 = 3", True),
        ("-3 + 3 = 0", True),
        ("{1, 2} + {2, 3} - {1} = {2, 3}", True),
        ("{1, 2} /\\ {2, 3} = {2} & {1} \\/ {2} = {1, 2}", True),
        ("[1, 1] = [1]", False),
        ("card([1, 1]) = 2 & card({1, 1}) = 1", True),
        ("sum([x. x : {2, 3}]) = 5", True),
        ("[5, 6][1] = 6", True),
        ("{1} <: {1, 2} & {3} /<: {1}", True),
        ("[{1}, {2}] <<: {1, 2, 3} & [{1}, {1}] /<<: {1}", True),
        ("card({s. s <: {1, 2, 3}}) = 8", True),
        ("card({p. p <<: {1, 2}}) = 5", True),
        ("card(lists({1, 2, 3})) = 6", True),
        ("!(x : {}) false", True),
        ("?(x : {}) true", False),
        ("let x = 1 in (let x = 2 in x = 2) & x = 1", True),
        ("!(x : {1, 2}) ?(x : {3}) x = 3", True),
        ("(true <--> false) <--> false", True),
        ("range([4, 4]) = [0, 1]", True),
        ("not (true --> false)", True),
    ],
)
def test_small_sums(text: str, expected: bool) -> None:
    assert value_of(text) is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0 = 1", "cannot be computed: integer division or modulo by zero"),
        ("[1][1] = 1", "cannot be computed: tuple index out of range"),
        ("[1][-1] = 1", "cannot be computed: there is no position -1"),
    ],
)
def test_what_has_no_value_is_an_error_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        value_of(text)
    assert caught.value.problems[0].what == said


def test_arguments_that_do_not_fit_are_all_told() -> None:
    world = next(worlds())
    with pytest.raises(InvalidInput) as caught:
        LIBRARY.arguments("Fence", {"v": "v9", "ns": ["h1", "h9"], "x": 1}, world)
    assert [(p.key, p.what) for p in caught.value.problems] == [
        ("Fence.x", "is not an argument"),
        ("Fence.v", "there is no vm v9"),
        ("Fence.ns", "not among hosts: h9"),
    ]
    with pytest.raises(InvalidInput, match="overlap"):
        LIBRARY.arguments("Split", {"part": [["v1"], ["v1", "v2"]]}, world)
    with pytest.raises(InvalidInput, match="no such constraint"):
        LIBRARY.arguments("Nothing", {}, world)
