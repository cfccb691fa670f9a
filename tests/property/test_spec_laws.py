"""Laws of the language: what is printed reads back, and formulas mean what they say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.snapshot import Snapshot
from equipoise.spec.check import check
from equipoise.spec.language.parse import parse, parse_term
from equipoise.spec.language.place import Source
from equipoise.spec.language.print import print_file, print_term
from equipoise.spec.language.syntax import (
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
from equipoise.spec.library import library, library_constraints
from equipoise.spec.specification import Specification, frame_of

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
    doc=st.sampled_from(["", "What it is.", "It's 100 % \\ fine", '"', 'a "quote"', '"" b']),
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


# What formulas mean

CONSTRAINTS = [(origin, name) for origin, some in library().items() for name in some.constraints]
WORLD = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2"), a_vm("v3", "h2")])


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
    return spec.holds("a", {}, frame_of(world or WORLD))


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
        ("!(x : {1}) !(a, b : [y . y : {x, 2}]) a = b | a + b = 3", True),
        ("let x = 3 in card([1 . x, y : [z . z : {x, 4}]]) = 4", True),
        ("range([4, 4]) = [0, 1]", True),
        ("not (true --> false)", True),
    ],
)
def test_small_sums(text: str, expected: bool) -> None:
    assert value_of(text) is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0 = 1", "cannot be computed: 1 divided by zero"),
        ("[1][1] = 1", "cannot be computed: there is no position 1"),
        ("[1][-1] = 1", "cannot be computed: there is no position -1"),
    ],
)
def test_what_has_no_value_is_an_error_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        value_of(text)
    assert caught.value.problems[0].what == said


def refused(name: str, **given: Any) -> list[tuple[str, str]]:
    """What is wrong with the arguments of a constraint."""
    with pytest.raises(InvalidInput) as caught:
        library_constraints()[name].arguments(name, given, WORLD)
    return [(problem.key, problem.what) for problem in caught.value.problems]


def test_arguments_that_do_not_fit_are_all_told() -> None:
    assert refused("Fence", v="v9", ns=["h1", "h9"], x=1) == [
        ("x", "is not an argument of Fence"),
        ("v", "there is no vm v9"),
        ("ns", "not among hosts: h9"),
    ]
    assert refused("Fence", v=3) == [("v", "there is no vm 3"), ("ns", "is missing")]
    overlap = "the groups overlap or are not known"
    assert refused("Split", parts=[["v1"], ["v1", "v2"]]) == [("parts", overlap)]
    assert refused("Split", parts=[["v1"], ["v1"]]) == [("parts", "the groups overlap")]
    assert refused("Split", parts=["v1"]) == [("parts", "a packing is a list of groups")]
    assert refused("Overbook", n="h1", id=1, percent=True) == [
        ("id", "1 is not text"),
        ("percent", "True is not a number"),
    ]
    assert refused("Seq", vs=["v1", "v1"]) == [("vs", "the list names something twice")]
    assert refused("Seq", vs="v1") == [("vs", "'v1' is not a list")]
    assert refused("NodeAffinity", v="v1", key="zone", values=["a", 1]) == [
        ("values", "1 is not text")
    ]
    assert refused("Spread", vs="v1") == [("vs", "v1 is not a list")]
    assert refused("Running", v=["v1"]) == [("v", "is one of the vms, not a list of them")]
    assert refused("Spread", vs=[["v1"]]) == [("vs", "not among vms: {v1}")]
    with pytest.raises(InvalidInput, match="did you mean Spread"):
        library()["btrplace"].arguments("Spraed", {}, WORLD)


def test_degenerate_arguments_are_fine() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("Spread", {"vs": []}),
        ("Split", {"parts": []}),
        ("Seq", {"vs": []}),
        ("Among", {"vs": ["v1"], "parts": [[], ["h1"]]}),
        ("Failover", {"nb": 0, "id": "memory"}),
        ("Failover", {"nb": 99, "id": "nothing"}),
    ]
    for name, values in cases:
        home = library_constraints()[name]
        assert home.holds(name, home.arguments(name, values, WORLD), frame_of(WORLD)), name
