"""From text to syntax. An error shows the line, a caret, and the tokens that are allowed there.

The parser never guesses: an unknown character is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta, Tree

from equipoise.errors import InvalidInput
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import (
    Binder,
    Binding,
    Constraint,
    Parameter,
    SourcePosition,
    SourceText,
    StateRef,
)

DEPTH_MAX: Final = 100
"""Deepest nesting of terms; deeper ones are a mistake, or an attack on the stack."""
DIGITS_MAX: Final = 1000
"""Largest number of digits; Python refuses to print much longer numbers."""


def parse(text: str, source: str = "specification") -> tuple[Constraint, ...]:
    """Return the constraints of a ``.spec`` file."""
    where = SourceText(source, text)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(where, error) from None
    # Before the transformation, which walks the tree by recursion too.
    _check_size(where, tree)
    constraints: tuple[Constraint, ...] = _SyntaxBuilder().transform(tree)
    return constraints


@cache
def _parser() -> Lark:
    grammar = (files("equipoise.spec.language") / "grammar.lark").read_text()
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _check_size(where: SourceText, tree: Tree[Any]) -> None:
    """Refuse trees that are too deep or too large; later passes walk the tree by recursion."""
    # A list instead of recursion: the tree may be deeper than Python's stack.
    rest: list[tuple[Any, int]] = [(tree, 0)]
    while rest:
        node, depth = rest.pop()
        if not isinstance(node, Tree):
            if _is(node, "NUMBER") and len(node) > DIGITS_MAX:
                place = SourcePosition(node.line, node.column, len(node))
                cure = f"write at most {DIGITS_MAX} digits"
                raise where.refused(place, "this number is too large", cure, "number-too-large")
            continue
        if depth > DEPTH_MAX:
            cure = (
                f"nest at most {DEPTH_MAX} levels: name a part with let, "
                "or make it a constraint of its own"
            )
            what = "this formula is nested too deeply"
            raise where.refused(_place(node.meta), what, cure, "too-deeply-nested")
        rest.extend((child, depth + 1) for child in node.children)


def _unexpected(where: SourceText, error: UnexpectedInput) -> InvalidInput:
    place = SourcePosition(max(error.line, 1), max(error.column, 1))
    at = error.pos_in_stream or 0
    # An unclosed text or comment runs to the end; name it instead of the token after it.
    if where.text.startswith('"', at) or where.text.startswith("/*", at):
        noun = "comment" if where.text.startswith("/*", at) else "text"
        cure = "close it with */" if noun == "comment" else 'close it with "'
        return where.refused(place, f"this {noun} is not closed", cure)
    if isinstance(error, UnexpectedCharacters):
        return where.refused(place, f"the character {error.char!r} is not allowed here", "")
    if not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        return where.refused(where.end(), "the text ends too early", _expected(error))
    place = place._replace(width=max(1, len(error.token)))
    return where.refused(place, f"{str(error.token)!r} is not allowed here", _expected(error))


def _expected(error: UnexpectedInput) -> str:
    names = getattr(error, "accepts", None) or getattr(error, "expected", None) or ()
    words = sorted({_TOKEN_NAMES[name] for name in names if name in _TOKEN_NAMES})
    return f"allowed: {', '.join(words)}" if words else ""


_TOKEN_NAMES: Final = {
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


_WRAPPED_CHILDREN: Final[dict[str, Callable[..., Any]]] = {
    "for_all": syntax.ForAll,
    "exists": syntax.Exists,
    "always": syntax.Always,
    "sometime": syntax.Sometime,
    "not": syntax.Not,
    "minus": syntax.Minus,
    "index": syntax.Index,
}
"""The rules whose children are the fields of a node, in their order."""


class _SyntaxBuilder(Transformer[Token, Any]):
    """Builds syntax from Lark's tree: a node of the table, or a method named after the rule."""

    def _call_userfunc(self, tree: Tree[Any], new_children: Any = None) -> Any:
        """Build the node of a rule from its children and its position."""
        # Lark's own callbacks do not pass the position, which the messages need.
        children = new_children if new_children is not None else tree.children
        place = _place(tree.meta)
        wrap = _WRAPPED_CHILDREN.get(tree.data)
        if wrap is not None:
            return wrap(*children, place=place)
        return getattr(self, f"_make_{tree.data}")(children, place)

    def _make_start(self, children: list[Any], _: SourcePosition) -> tuple[Any, ...]:
        return tuple(children)

    _make_binders = _make_start

    def _make_constraint(self, children: list[Any], _: SourcePosition) -> Constraint:
        *head, formula = children
        doc = head.pop(0) if _is(head[0], "DOC") else ""
        name = head.pop(0)
        return Constraint(
            str(name),
            tuple(child for child in head if isinstance(child, Parameter)),
            formula,
            marks=tuple(str(child) for child in head if _is(child, "MARK")),
            # Line breaks and indentation of the source are no part of the sentence.
            doc=" ".join(str(doc).strip('"').split()),
            place=SourcePosition(name.line or 0, name.column or 0, len(name)),
        )

    def _make_parameter(self, children: list[Any], place: SourcePosition) -> Parameter:
        name, binding, domain = children
        return Parameter(str(name), Binding(binding), domain, place=place)

    def _make_binder(self, children: list[Any], place: SourcePosition) -> Binder:
        *names, binding, domain = children
        return Binder(tuple(map(str, names)), Binding(binding), domain, place=place)

    _make_one_binder = _make_binder

    def _make_binding_part(self, children: list[Any], _: SourcePosition) -> tuple[Binder, ...]:
        (part,) = children
        return (part,) if isinstance(part, Binder) else part

    def _make_let(self, children: list[Any], place: SourcePosition) -> syntax.Let:
        name, value, body = children
        return syntax.Let(str(name), value, body, place=place)

    def _operation(self, children: list[Any], place: SourcePosition) -> syntax.Operation:
        left, operator, right = children
        # The position of an operation is its operator: that is what a type error is about.
        at = (
            SourcePosition(operator.line, operator.column, len(operator))
            if operator.line
            else place
        )
        return syntax.Operation(str(operator), left, right, place=at)

    _make_equivalence = _make_implication = _make_disjunction = _make_conjunction = _operation
    _make_comparison = _make_term_set = _make_sum_ = _make_product = _operation

    def _make_name(self, children: list[Any], place: SourcePosition) -> syntax.Name:
        return syntax.Name(str(children[0]), place=place)

    def _make_number(self, children: list[Any], place: SourcePosition) -> syntax.Number:
        return syntax.Number(int(children[0]), place=place)

    def _make_text(self, children: list[Any], place: SourcePosition) -> syntax.Text:
        # A backslash takes the next character as it is: a quote or another backslash.
        return syntax.Text(re.sub(r"\\(.)", r"\1", children[0][1:-1]), place=place)

    def _make_true(self, _: list[Any], place: SourcePosition) -> syntax.Boolean:
        return syntax.Boolean(True, place=place)

    def _make_false(self, _: list[Any], place: SourcePosition) -> syntax.Boolean:
        return syntax.Boolean(False, place=place)

    def _make_call(self, children: list[Any], place: SourcePosition) -> syntax.Call:
        moment = StateRef(children.pop(0)) if _is(children[0], "MOMENT") else StateRef.NOW
        name, *arguments = children
        return syntax.Call(str(name), tuple(arguments), moment, place=place)

    def _make_set_of(self, children: list[Any], place: SourcePosition) -> syntax.SetOf:
        return syntax.SetOf(tuple(children), place=place)

    def _make_list_of(self, children: list[Any], place: SourcePosition) -> syntax.ListOf:
        return syntax.ListOf(tuple(children), place=place)

    def _make_set_where(self, children: list[Any], place: SourcePosition) -> syntax.SetWhere:
        term, binders, *conditions = children
        return syntax.SetWhere(term, binders, tuple(conditions), place=place)

    def _make_list_where(self, children: list[Any], place: SourcePosition) -> syntax.ListWhere:
        term, binders, *conditions = children
        return syntax.ListWhere(term, binders, tuple(conditions), place=place)


def _is(child: Any, kind: str) -> bool:
    return isinstance(child, Token) and child.type == kind


def _place(meta: Meta) -> SourcePosition:
    if meta.empty:
        return SourcePosition(1, 1)
    one_line = meta.line == meta.end_line
    return SourcePosition(meta.line, meta.column, meta.end_column - meta.column if one_line else 1)
