from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.spec.language.parse import parse, parse_term
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import Call, ForAll, Moment, Name, Not, Number, Operation, Text


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


def test_all_operators_are_read() -> None:
    operators = "+ - * / /\\ \\/ < <= > >= = /= & | --> <--> : <: <<: /: /<: /<<:"
    for operator in operators.split():
        term = parse_term(f"a {operator} b")
        assert isinstance(term, Operation)
        assert term.operator == operator


def test_calls_look_at_the_state_now_before_or_at_the_end() -> None:
    moments = [parse_term(text) for text in ("f(x)", "^f(x)", "$f(x)")]
    assert [one.moment for one in moments if isinstance(one, Call)] == list(Moment)


def test_words_numbers_and_comments() -> None:
    assert parse_term('"a \\"b\\" \\\\"') == Text('a "b" \\')
    assert parse_term("1234567890123456789012") == Number(1234567890123456789012)
    assert parse_term("a // comment\n & /* more\n */ b") == parse_term("a & b")
    assert parse_term("not notable") == Not(Name("notable"))


def test_a_declaration_has_a_doc_marks_and_several_variables_in_a_binder() -> None:
    (one,) = parse(
        '"""No two of\n them."""\n'
        "Spread(vs <: vms) continuous discrete ::= !(x, y : vs; h : hosts) x /= y --> true"
    )
    assert (one.name, one.doc, one.marks) == (
        "Spread",
        "No two of them.",
        ("continuous", "discrete"),
    )
    assert isinstance(one.formula, ForAll)
    assert [binder.names for binder in one.formula.binders] == [("x", "y"), ("h",)]


@pytest.mark.parametrize(
    ("text", "what", "caret"),
    [
        ("a ::= 1 +", "the text ends too early", "         ^"),
        ("a ::= (b", "the text ends too early", "        ^"),
        ("a ::= b § c", "the character '§' means nothing here", "        ^"),
        ("a ::= b $", "did not expect '$' here", "        ^"),
        ("a ::= !(x y) b", "did not expect 'y' here", "          ^"),
        ("a ::= b ; c", "did not expect ';' here", "        ^"),
        ('a ::= "b', "this text is not closed", "      ^"),
        ("::= b", "did not expect ':' here", "^"),
    ],
)
def test_a_mistake_is_shown_with_its_line_and_a_caret(text: str, what: str, caret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "x.spec")
    (problem,) = caught.value.problems
    assert problem.what == what
    assert problem.excerpt == f"{text}\n{caret}"
    assert str(caught.value).startswith("x.spec: line 1, column ")


def test_endless_nesting_is_refused() -> None:
    for term in (
        "{" * 10_000 + "}" * 10_000,
        "f(" * 5_000 + "1" + ")" * 5_000,
        "not " * 5_000 + "true",
        "true & " * 5_000 + "true",
        '")" = "(" & ' * 5_000 + "true",
    ):
        with pytest.raises(InvalidInput, match="nested too deeply"):
            parse(f"a ::= {term}")
    assert parse(f"a ::= {'(' * 5_000}true{')' * 5_000}") == parse("a ::= true")


def test_a_number_that_nobody_can_count_with_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too large a number"):
        parse(f"a ::= 1 = {'1' * 5_000}")


def test_of_a_long_line_only_the_part_around_the_mistake_is_shown() -> None:
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
