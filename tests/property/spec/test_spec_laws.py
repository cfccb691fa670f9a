"""Laws of the language: printed syntax is parsed back unchanged; formulas have their meaning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm, suggested
from equipoise.errors import InvalidInput
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.language.parse import parse
from equipoise.spec.language.print import print_file, print_term
from equipoise.spec.language.syntax import (
    Always,
    Binder,
    Binding,
    Boolean,
    Call,
    Constraint,
    Exists,
    ForAll,
    Index,
    Let,
    ListOf,
    ListWhere,
    Minus,
    Name,
    Not,
    Number,
    Operation,
    Parameter,
    SetOf,
    SetWhere,
    Sometime,
    SourceText,
    StateRef,
    Term,
    Text,
)
from equipoise.spec.library import library, library_constraints
from equipoise.spec.specification import Specification, context_of
from equipoise.spec.typecheck import check_types
from formulas import parse_term

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
        st.builds(Call, names, some, st.sampled_from(StateRef)),
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
        st.builds(Boolean, st.booleans()),
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
def test_the_checker_has_an_answer_for_every_parsed_file(
    file: tuple[Constraint, ...],
) -> None:
    text = print_file(file)
    for problem in check_types(parse(text), SourceText("x", text)).problems:
        assert problem.what
        assert "^" in problem.excerpt


@given(st.text(st.sampled_from("abv:<>!?(){}[]|&=-/\\.,;^$\"'1 \n§"), max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        constraints = parse(text)
    except InvalidInput:
        return
    assert parse(print_file(constraints)) == constraints


# The meaning of formulas

CONSTRAINTS = [(origin, name) for origin, spec in library().items() for name in spec.constraints]
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
    """Return the value of a formula without arguments."""
    spec = Specification.read(f"a ::= {text}")
    return spec.holds("a", {}, context_of(world or WORLD))


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
def test_simple_formulas_have_their_value(text: str, expected: bool) -> None:
    assert value_of(text) is expected


@pytest.mark.parametrize("text", ["1 / 0 = 1", "[1][1] = 1", "[1][-1] = 1"])
def test_a_term_without_a_value_is_an_error_with_its_position(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        value_of(text)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("evaluation-failed", 1)


def refused(name: str, **given: Any) -> list[tuple[str, str]]:
    """Return the keys and codes of the problems with the arguments of a constraint."""
    with pytest.raises(InvalidInput) as caught:
        library_constraints()[name].arguments(name, given, WORLD)
    return [(problem.key, problem.code) for problem in caught.value.problems]


def why_refused(name: str, **given: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        library_constraints()[name].arguments(name, given, WORLD)
    return caught.value.problems[0].what


def test_all_problems_of_arguments_are_reported() -> None:
    assert refused("Fence", v="v9", ns=["h1", "h9"], x=1) == [
        ("x", "unknown-argument"),
        ("v", "invalid-argument"),
        ("ns", "invalid-argument"),
    ]
    assert refused("Fence", v=3) == [("v", "invalid-argument"), ("ns", "missing-argument")]
    assert refused("Overbook", n="h1", id=1, percent=True) == [
        ("id", "invalid-argument"),
        ("percent", "invalid-argument"),
    ]
    with pytest.raises(InvalidInput) as caught:
        library()["btrplace"].arguments("Spraed", {}, WORLD)
    (problem,) = caught.value.problems
    assert (problem.code, suggested(problem.cure)) == ("unknown-constraint", "Spread")


@pytest.mark.parametrize(
    ("name", "given", "part"),
    [
        ("Fence", {"v": "v9", "ns": []}, "v9"),
        ("Fence", {"v": "v1", "ns": ["h1", "h9"]}, "no such hosts: h9"),
        ("Split", {"parts": [["v1"], ["v1", "v2"]]}, "the groups overlap"),
        ("Split", {"parts": [["v1"], ["v1"]]}, "the groups overlap"),
        ("Split", {"parts": ["v1"]}, "a list of groups"),
        ("Overbook", {"n": "h1", "id": 1, "percent": 3}, "1 is not text"),
        ("Overbook", {"n": "h1", "id": "x", "percent": True}, "True is not a number"),
        ("Seq", {"vs": ["v1", "v1"]}, "twice"),
        ("Seq", {"vs": "v1"}, "'v1' is not a list"),
        ("NodeAffinity", {"v": "v1", "key": "zone", "values": ["a", 1]}, "1 is not text"),
        ("Spread", {"vs": "v1"}, "v1 is not a list"),
        ("Running", {"v": ["v1"]}, "one of the vms, not a list"),
        ("Spread", {"vs": [["v1"]]}, "no such vms: {v1}"),
    ],
)
def test_an_invalid_argument_is_named(name: str, given: dict[str, Any], part: str) -> None:
    assert part in why_refused(name, **given)


def test_empty_and_extreme_arguments_are_allowed() -> None:
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
        assert home.holds(name, home.arguments(name, values, WORLD), context_of(WORLD)), name
