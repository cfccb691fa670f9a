from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.spec.language.parse import parse
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Call,
    ForAll,
    Name,
    Not,
    Number,
    Operation,
    StateRef,
    Text,
)
from formulas import parse_term


@pytest.mark.parametrize(
    ("written", "grouped"),
    [
        ("a | b & c", "a | (b & c)"),
        ("a & b --> c | d", "(a & b) --> (c | d)"),
        ("a --> b --> c", "a --> (b --> c)"),
        ("a <--> b --> c", "a <--> (b --> c)"),
        ("not a & b", "(not a) & b"),
        ("not a = b", "not (a = b)"),
        ("a + b * c = d", "(a + (b * c)) = d"),
        ("a - b - c", "(a - b) - c"),
        ("a /\\ b + c : d", "(a /\\ (b + c)) : d"),
        ("!(x : s) a --> b", "!(x : s) (a --> b)"),
        ("a & !(x : s) b | c", "a & (!(x : s) (b | c))"),
        ("-a * b", "(-a) * b"),
        ("!x : s . p", "!(x : s) p"),
        ("let x = a in x = x & b", "let x = a in ((x = x) & b)"),
        ("always a | b", "always (a | b)"),
    ],
)
def test_precedence(written: str, grouped: str) -> None:
    assert parse_term(written) == parse_term(grouped)


def test_all_operators_are_parsed() -> None:
    operators = "+ - * / /\\ \\/ < <= > >= = /= & | --> <--> : <: <<: /: /<: /<<:"
    for operator in operators.split():
        term = parse_term(f"a {operator} b")
        assert isinstance(term, Operation)
        assert term.operator == operator


def test_a_call_reads_the_current_initial_or_final_state() -> None:
    moments = [parse_term(text) for text in ("f(x)", "^f(x)", "$f(x)")]
    assert [call.moment for call in moments if isinstance(call, Call)] == list(StateRef)


def test_texts_numbers_and_comments_are_parsed() -> None:
    assert parse_term('"a \\"b\\" \\\\"') == Text('a "b" \\')
    assert parse_term("1234567890123456789012") == Number(1234567890123456789012)
    assert parse_term("a // comment\n & /* more\n */ b") == parse_term("a & b")
    assert parse_term("not notable") == Not(Name("notable"))


def test_a_declaration_has_a_doc_marks_and_several_variables_in_a_binder() -> None:
    (declaration,) = parse(
        '"""No two of\n them."""\n'
        "Spread(vs <: vms) continuous discrete ::= !(x, y : vs; h : hosts) x /= y --> true"
    )
    assert (declaration.name, declaration.doc, declaration.marks) == (
        "Spread",
        "No two of them.",
        ("continuous", "discrete"),
    )
    assert isinstance(declaration.formula, ForAll)
    assert [binder.names for binder in declaration.formula.binders] == [("x", "y"), ("h",)]


@pytest.mark.parametrize(
    ("text", "caret"),
    [
        ("a ::= 1 +", "         ^"),
        ("a ::= (b", "        ^"),
        ("a ::= b § c", "        ^"),
        ("a ::= b $", "        ^"),
        ("a ::= !(x y) b", "          ^"),
        ("a ::= b ; c", "        ^"),
        ('a ::= "b', "      ^"),
        ("::= b", "^"),
    ],
)
def test_a_syntax_error_is_shown_with_its_line_and_a_caret(text: str, caret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "x.spec")
    (problem,) = caught.value.problems
    assert problem.code == "syntax-error"
    assert problem.excerpt == f"{text}\n{caret}"
    assert str(caught.value).startswith("x.spec: line 1, column ")


def test_deep_nesting_is_refused() -> None:
    for term in (
        "{" * 10_000 + "}" * 10_000,
        "f(" * 5_000 + "1" + ")" * 5_000,
        "not " * 5_000 + "true",
        "true & " * 5_000 + "true",
        '")" = "(" & ' * 5_000 + "true",
    ):
        with pytest.raises(InvalidInput) as caught:
            parse(f"a ::= {term}")
        assert [problem.code for problem in caught.value.problems] == ["too-deeply-nested"]
    assert parse(f"a ::= {'(' * 5_000}true{')' * 5_000}") == parse("a ::= true")


def test_a_very_long_number_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(f"a ::= 1 = {'1' * 5_000}")
    assert [problem.code for problem in caught.value.problems] == ["number-too-large"]


def test_of_a_long_line_only_the_part_around_the_error_is_shown() -> None:
    text = "a ::= " + "true & " * 90 + "§ & true" * 90
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    line, caret = caught.value.problems[0].excerpt.split("\n")
    assert len(line) < 120
    assert line[len(caret) - 1] == "§"


def test_an_empty_file_declares_nothing() -> None:
    assert parse("") == ()
    assert parse("// only words\n") == ()


def test_printing_uses_as_few_parentheses_as_it_needs() -> None:
    for text in ("a & b | c", "a --> b --> c", "(a --> b) --> c", "!(x : s) a & b", "(a | b) & c"):
        assert print_term(parse_term(text)) == text
