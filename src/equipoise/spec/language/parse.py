"""From text to syntax. A mistake is shown with its line, a caret, and what could stand there.

Never guesses: a character it does not know is an error, not a gap.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta, Tree

from equipoise.errors import InvalidInput
from equipoise.spec.language.place import Source
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
    Place,
    SetOf,
    SetWhere,
    Sometime,
    Term,
    Text,
    Truth,
)

DEPTH_MAX: Final = 100
"""How deeply terms may be nested; deeper ones are a mistake, or an attack on the stack."""
DIGITS_MAX: Final = 1000
"""How long a number may be; longer ones are neither counted nor printed by Python."""


def parse(text: str, source: str = "specification") -> tuple[Constraint, ...]:
    """Read the constraints of a ``.spec`` file."""
    built: tuple[Constraint, ...] = _read(Source(source, text), "start")
    return built


def parse_term(text: str, source: str = "term") -> Term:
    """Read a single term or formula."""
    built: Term = _read(Source(source, text), "term")
    return built


def _read(where: Source, start: str) -> Any:
    try:
        tree = _parser(start).parse(where.text)
    except UnexpectedInput as error:
        raise _unexpected(where, error) from None
    _refuse_monsters(where, tree)
    return _Builder().transform(tree)


@cache
def _parser(start: str) -> Lark:
    grammar = (files("equipoise.spec.language") / "grammar.lark").read_text()
    return Lark(
        grammar, parser="lalr", start=start, propagate_positions=True, maybe_placeholders=False
    )


def _refuse_monsters(where: Source, tree: Tree[Any]) -> None:
    """Look at the tree before anybody walks it by recursion."""
    rest: list[tuple[Any, int]] = [(tree, 0)]
    while rest:
        node, depth = rest.pop()
        if not isinstance(node, Tree):
            if _is(node, "NUMBER") and len(node) > DIGITS_MAX:
                place = Place(node.line, node.column, len(node))
                raise where.refused(place, "is too large a number", f"at most {DIGITS_MAX} digits")
            continue
        if depth > DEPTH_MAX:
            cure = f"at most {DEPTH_MAX}; name a part with let, or make it a constraint of its own"
            raise where.refused(_place(node.meta), "is nested too deeply", cure)
        rest.extend((child, depth + 1) for child in node.children)


def _unexpected(where: Source, error: UnexpectedInput) -> InvalidInput:
    place = Place(max(error.line, 1), max(error.column, 1))
    at = error.pos_in_stream or 0
    if where.text.startswith('"', at) or where.text.startswith("/*", at):
        noun = "comment" if where.text.startswith("/*", at) else "text"
        return where.refused(place, f"this {noun} is not closed", "")
    if isinstance(error, UnexpectedCharacters):
        return where.refused(place, f"the character {error.char!r} means nothing here", "")
    if not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        return where.refused(where.end(), "the text ends too early", _expected(error))
    place = place._replace(width=max(1, len(error.token)))
    return where.refused(place, f"did not expect {str(error.token)!r} here", _expected(error))


def _expected(error: UnexpectedInput) -> str:
    names = getattr(error, "accepts", None) or getattr(error, "expected", None) or ()
    words = sorted({_WORDS[name] for name in names if name in _WORDS})
    return f"could be: {', '.join(words)}" if words else ""


_WORDS: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "RPAR": ")",
    "RBRACE": "}",
    "RSQB": "]",
    "COMMA": ",",
    "DOT": ".",
    "BINDING": ": or <: or <<:",
    "COMPARE": "a comparison",
    "IMPLIES": "-->",
    "AND": "&",
    "OR": "|",
    "__ANON_0": "::=",
    "MARK": "a mark",
}


class _Builder(Transformer[Token, Any]):
    """Makes syntax of Lark's tree. The methods bear the names of the grammar's rules."""

    def _call_userfunc(self, tree: Tree[Any], new_children: Any = None) -> Any:
        """Give each rule its children and the place it stood at."""
        children = new_children if new_children is not None else tree.children
        place = _place(tree.meta)
        return getattr(self, f"_make_{tree.data}")(children, place)

    def _make_start(self, children: list[Any], _: Place) -> tuple[Constraint, ...]:
        return tuple(children)

    def _make_constraint(self, children: list[Any], place: Place) -> Constraint:
        *head, formula = children
        doc = head.pop(0) if _is(head[0], "DOC") else ""
        name = head.pop(0)
        return Constraint(
            str(name),
            tuple(one for one in head if isinstance(one, Parameter)),
            formula,
            marks=tuple(str(one) for one in head if _is(one, "MARK")),
            doc=" ".join(str(doc).strip('"').split()),
            place=Place(name.line or 0, name.column or 0, len(name)),
        )

    def _make_parameter(self, children: list[Any], place: Place) -> Parameter:
        name, binding, domain = children
        return Parameter(str(name), Binding(binding), domain, place=place)

    def _make_binder(self, children: list[Any], place: Place) -> Binder:
        *names, binding, domain = children
        return Binder(tuple(map(str, names)), Binding(binding), domain, place=place)

    _make_one_binder = _make_binder

    def _make_binders(self, children: list[Any], _: Place) -> tuple[Binder, ...]:
        return tuple(children)

    def _make_binding_part(self, children: list[Any], _: Place) -> tuple[Binder, ...]:
        (found,) = children
        return (found,) if isinstance(found, Binder) else found

    def _make_for_all(self, children: list[Any], place: Place) -> ForAll:
        return ForAll(*children, place=place)

    def _make_exists(self, children: list[Any], place: Place) -> Exists:
        return Exists(*children, place=place)

    def _make_let(self, children: list[Any], place: Place) -> Let:
        name, value, body = children
        return Let(str(name), value, body, place=place)

    def _make_always(self, children: list[Any], place: Place) -> Always:
        return Always(*children, place=place)

    def _make_sometime(self, children: list[Any], place: Place) -> Sometime:
        return Sometime(*children, place=place)

    def _operation(self, children: list[Any], place: Place) -> Operation:
        left, operator, right = children
        at = Place(operator.line, operator.column, len(operator)) if operator.line else place
        return Operation(str(operator), left, right, place=at)

    _make_equivalence = _make_implication = _make_disjunction = _make_conjunction = _operation
    _make_comparison = _make_term_set = _make_sum_ = _make_product = _operation

    def _make_not(self, children: list[Any], place: Place) -> Not:
        return Not(*children, place=place)

    def _make_minus(self, children: list[Any], place: Place) -> Minus:
        return Minus(*children, place=place)

    def _make_index(self, children: list[Any], place: Place) -> Index:
        return Index(*children, place=place)

    def _make_name(self, children: list[Any], place: Place) -> Name:
        return Name(str(children[0]), place=place)

    def _make_number(self, children: list[Any], place: Place) -> Number:
        return Number(int(children[0]), place=place)

    def _make_text(self, children: list[Any], place: Place) -> Text:
        return Text(re.sub(r"\\(.)", r"\1", children[0][1:-1]), place=place)

    def _make_true(self, _: list[Any], place: Place) -> Truth:
        return Truth(True, place=place)

    def _make_false(self, _: list[Any], place: Place) -> Truth:
        return Truth(False, place=place)

    def _make_call(self, children: list[Any], place: Place) -> Call:
        moment = Moment(children.pop(0)) if _is(children[0], "MOMENT") else Moment.NOW
        name, *arguments = children
        return Call(str(name), tuple(arguments), moment, place=place)

    def _make_set_of(self, children: list[Any], place: Place) -> SetOf:
        return SetOf(tuple(children), place=place)

    def _make_list_of(self, children: list[Any], place: Place) -> ListOf:
        return ListOf(tuple(children), place=place)

    def _make_set_where(self, children: list[Any], place: Place) -> SetWhere:
        term, binders, *conditions = children
        return SetWhere(term, binders, tuple(conditions), place=place)

    def _make_list_where(self, children: list[Any], place: Place) -> ListWhere:
        term, binders, *conditions = children
        return ListWhere(term, binders, tuple(conditions), place=place)


def _is(child: Any, kind: str) -> bool:
    return isinstance(child, Token) and child.type == kind


def _place(meta: Meta) -> Place:
    if meta.empty:
        return Place(1, 1)
    one_line = meta.line == meta.end_line
    return Place(meta.line, meta.column, meta.end_column - meta.column if one_line else 1)
