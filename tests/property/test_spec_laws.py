"""Laws of the language: what is printed reads back, and formulas mean what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.check import check
from equipoise.spec.library import library
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
LICENCES = ResourceName("licences")
CONSTRAINTS = [(origin, name) for origin, some in library().items() for name in some.constraints]


def worlds() -> list[Snapshot]:
    """Every state of two VMs and two hosts; one VM takes twice what the other takes."""
    places: list[tuple[VmState, HostId | None]] = [
        (state, None) for state in (VmState.INIT, VmState.READY, VmState.TERMINATED)
    ]
    places += [(state, host) for state in (VmState.RUNNING, VmState.SLEEPING) for host in HOSTS]
    found = []
    for states, spots in product(
        product((HostState.ON, HostState.STANDBY), repeat=2), product(places, repeat=2)
    ):
        hosts = [
            a_host(h, state=s, capacity={LICENCES: 2}) for h, s in zip(HOSTS, states, strict=True)
        ]
        vms = [
            a_vm(v, h, state=s, consumption={LICENCES: number})
            for number, (v, (s, h)) in enumerate(zip(VMS, spots, strict=True), start=1)
        ]
        found.append(a_cluster(*hosts, vms=vms))
    return found


WORLDS = worlds()


def groups(members: list[VmId] | list[HostId]) -> list[frozenset[str]]:
    return [frozenset(some) for size in range(3) for some in combinations(members, size)]


def packings_of(members: list[VmId] | list[HostId]) -> list[frozenset[frozenset[str]]]:
    one, two = (frozenset([name]) for name in members)
    return [frozenset(some) for some in ((), (one,), (two,), (one, two), (one | two,))]


def running(world: Snapshot, vms: Collection[str]) -> list[Vm]:
    return [vm for vm in world.vms.values() if vm.id in vms and vm.state is VmState.RUNNING]


def on(world: Snapshot, host: str) -> list[Vm]:
    return [vm for vm in running(world, frozenset(VMS)) if vm.host == host]


DOMAINS: dict[tuple[str, str], list[Any]] = {
    (":", "vms"): VMS,
    (":", "hosts"): HOSTS,
    ("<:", "vms"): groups(VMS),
    ("<:", "hosts"): groups(HOSTS),
    ("<<:", "vms"): packings_of(VMS),
    ("<<:", "hosts"): packings_of(HOSTS),
    (":", "int"): [0, 1, 2, 3],
    (":", "string"): ["licences"],
}


def arguments_of(constraint: Constraint) -> Iterator[dict[str, Any]]:
    """Everything a constraint may be asked with in these worlds."""
    names = [one.name for one in constraint.parameters]
    domains = [DOMAINS[one.binding, print_term(one.domain)] for one in constraint.parameters]
    return (dict(zip(names, values, strict=True)) for values in product(*domains))


def spread_out(now: Snapshot, parts: frozenset[frozenset[str]]) -> bool:
    used = [{vm.host for vm in running(now, part)} for part in parts]
    return sum(map(len, used)) == len(set().union(*used))


def within(now: Snapshot, vs: frozenset[str], parts: frozenset[frozenset[str]]) -> bool:
    hosts = {vm.host for vm in running(now, vs)}
    return not hosts or any(hosts <= part for part in parts)


def taken(now: Snapshot, host: str) -> int:
    return sum(vm.consumption[LICENCES] for vm in on(now, host))


# Each meaning is written from the sentence that documents the constraint, without its formula.
MEANINGS: dict[str, Callable[[Snapshot, Snapshot, Any], bool]] = {
    "Spread": lambda now, _, a: spread_out(now, frozenset(frozenset([v]) for v in a["vs"])),
    "Gather": lambda now, _, a: len({vm.host for vm in running(now, a["vs"])}) < 2,
    "Lonely": lambda now, _, a: all(
        other.id in a["vs"] for vm in running(now, a["vs"]) for other in on(now, vm.host or "")
    ),
    "Split": lambda now, _, a: spread_out(now, a["parts"]),
    "Among": lambda now, _, a: within(now, a["vs"], a["parts"]),
    "SplitAmong": lambda now, _, a: (
        spread_out(now, a["vs"]) and all(within(now, group, a["parts"]) for group in a["vs"])
    ),
    "Fence": lambda now, _, a: all(vm.host in a["ns"] for vm in running(now, {a["v"]})),
    "Ban": lambda now, _, a: not any(vm.host in a["ns"] for vm in running(now, {a["v"]})),
    "Root": lambda now, then, a: all(
        vm.host == before.host
        for vm in running(now, {a["v"]})
        for before in running(then, {a["v"]})
    ),
    "Quarantine": lambda now, then, a: all(
        (vm.host == a["n"]) == (then.vms[vm.id].host == a["n"]) for vm in running(now, VMS)
    ),
    "Running": lambda now, _, a: now.vms[a["v"]].state is VmState.RUNNING,
    "Ready": lambda now, _, a: now.vms[a["v"]].state is VmState.READY,
    "Sleeping": lambda now, _, a: now.vms[a["v"]].state is VmState.SLEEPING,
    "Killed": lambda now, _, a: now.vms[a["v"]].state is VmState.TERMINATED,
    "Online": lambda now, _, a: now.hosts[a["n"]].state is HostState.ON,
    "Offline": lambda now, _, a: now.hosts[a["n"]].state is HostState.STANDBY,
    "MaxOnline": lambda now, _, a: (
        len([n for n in a["ns"] if now.hosts[n].state is HostState.ON]) <= a["nb"]
    ),
    "RunningCapacity": lambda now, _, a: sum(len(on(now, n)) for n in a["ns"]) <= a["nb"],
    "ResourceCapacity": lambda now, _, a: sum(taken(now, n) for n in a["ns"]) <= a["qty"],
    "ShareableResource": lambda now, _, __: all(taken(now, n) <= 2 for n in HOSTS),
    "Preserve": lambda now, _, a: all(
        vm.consumption[LICENCES] >= a["amount"] for vm in running(now, {a["v"]})
    ),
    "MostlySpread": lambda now, _, a: (
        len({vm.host for vm in running(now, a["vs"])}) >= min(a["nb"], len(running(now, a["vs"])))
    ),
    "toRunning": lambda now, then, _: all(
        then.vms[vm.id].state.value in {"ready", "running", "sleeping"} for vm in running(now, VMS)
    ),
    "toReady": lambda now, then, _: all(
        then.vms[vm.id].state.value in {"init", "ready", "running"}
        for vm in now.vms.values()
        if vm.state is VmState.READY
    ),
    "toSleeping": lambda now, then, _: all(
        then.vms[vm.id].state.value in {"running", "sleeping"}
        for vm in now.vms.values()
        if vm.state is VmState.SLEEPING
    ),
    "staysTerminated": lambda now, then, _: all(
        now.vms[vm.id].state is VmState.TERMINATED
        for vm in then.vms.values()
        if vm.state is VmState.TERMINATED
    ),
    "noVMsOnOfflineNodes": lambda now, _, __: all(
        not on(now, host.id) for host in now.hosts.values() if host.state is not HostState.ON
    ),
}


@pytest.mark.parametrize(("origin", "name"), CONSTRAINTS)
def test_a_constraint_of_the_library_means_what_its_sentence_says(origin: str, name: str) -> None:
    specification, meaning = library()[origin], MEANINGS[name]
    constraint = specification.constraints[name]
    compares = "^" in print_term(constraint.formula)
    answers: set[bool] = set()
    for values in arguments_of(constraint):
        fitting = specification.arguments(name, values, WORLDS[0])
        for now in WORLDS:
            for then in WORLDS[::5] if compares else WORLDS[:1]:
                found = specification.holds(name, fitting, frame_of(now, initial=then))
                assert found == meaning(now, then, values), f"{values}: {now.vms}"
                answers.add(found)
    assert answers == {True, False}, "it is true somewhere and false somewhere"


def test_every_constraint_of_the_library_is_documented_and_short() -> None:
    lengths = []
    for origin, name in CONSTRAINTS:
        constraint = library()[origin].constraints[name]
        assert constraint.doc.endswith("."), name
        assert {"discrete", "continuous"} & set(constraint.marks), name
        lengths.append(len(print_term(constraint.formula)))
    assert sorted(lengths)[len(lengths) // 2] < 60


def value_of(text: str, world: Snapshot | None = None) -> object:
    """Judge a formula that stands alone."""
    spec = Specification.read(f"a ::= {text}")
    return spec.holds("a", {}, frame_of(world or WORLDS[0]))


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


BTRPLACE = library()["btrplace"]


def test_arguments_that_do_not_fit_are_all_told() -> None:
    world = WORLDS[0]
    with pytest.raises(InvalidInput) as caught:
        BTRPLACE.arguments("Fence", {"v": "v9", "ns": ["h1", "h9"], "x": 1}, world)
    assert [(p.key, p.what) for p in caught.value.problems] == [
        ("Fence.x", "is not an argument"),
        ("Fence.v", "there is no vm v9"),
        ("Fence.ns", "not among hosts: h9"),
    ]
    with pytest.raises(InvalidInput, match="overlap"):
        BTRPLACE.arguments("Split", {"parts": [["v1"], ["v1", "v2"]]}, world)
    with pytest.raises(InvalidInput, match="no such constraint"):
        BTRPLACE.arguments("Nothing", {}, world)
