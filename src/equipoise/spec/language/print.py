"""From syntax back to text: parsing the printed text gives the same syntax again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Constraint, Term

# From the loosest to the tightest; grammar.lark has the same order.
_LOOSE, _EQUIVALENT, _IMPLIES, _OR, _AND, _NOT, _COMPARE, _SET, _SUM, _PRODUCT, _UNARY, _TIGHT = (
    range(12)
)
_LEVELS: Final = {
    "<-->": _EQUIVALENT,
    "-->": _IMPLIES,
    "|": _OR,
    "&": _AND,
    **dict.fromkeys(("=", "/=", "<", "<=", ">", ">="), _COMPARE),
    **dict.fromkeys((":", "<:", "<<:", "/:", "/<:", "/<<:"), _COMPARE),
    **dict.fromkeys(("/\\", "\\/"), _SET),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/"), _PRODUCT),
}


def print_constraint(constraint: Constraint) -> str:
    """Return the text of a declaration."""
    doc = f'"""{_comment_lines(constraint.doc)}"""\n' if constraint.doc else ""
    marks = "".join(f" {mark}" for mark in constraint.marks)
    parameters = ", ".join(
        f"{parameter.name} {parameter.binding} {_at_level(parameter.domain, _SET)}"
        for parameter in constraint.parameters
    )
    head = f"{constraint.name}({parameters})" if parameters else constraint.name
    return f"{doc}{head}{marks} ::=\n    {print_term(constraint.formula)}\n"


def _comment_lines(doc: str) -> str:
    """Separate a quote at the end of a doc string from the quotes around it."""
    return f" {doc} " if doc.startswith('"') or doc.endswith('"') else doc


def print_file(constraints: Iterable[Constraint]) -> str:
    """Return the text of a whole file."""
    return "\n".join(map(print_constraint, constraints))


def print_term(term: Term) -> str:
    """Return the text of a term with as few parentheses as it needs."""
    return _at_level(term, _LOOSE)


def _at_level(term: Term, level: int) -> str:
    """Return the text of a term, in parentheses if it binds more loosely than a level."""
    own, text = _printed(term)
    return text if own >= level else f"({text})"


def _printed(term: Term) -> tuple[int, str]:
    match term:
        case syntax.Operation():
            return _operation(term)
        case syntax.ForAll() | syntax.Exists():
            sign = "!" if isinstance(term, syntax.ForAll) else "?"
            return _LOOSE, f"{sign}({_binders(term.binders)}) {_at_level(term.body, _LOOSE)}"
        case syntax.Let():
            value, body = _at_level(term.value, _SET), _at_level(term.body, _LOOSE)
            return _LOOSE, f"let {term.name} = {value} in {body}"
        case syntax.Always() | syntax.Sometime():
            word = "always" if isinstance(term, syntax.Always) else "sometime"
            return _LOOSE, f"{word} {_at_level(term.body, _LOOSE)}"
        case syntax.Not():
            return _NOT, f"not {_at_level(term.term, _NOT)}"
        case syntax.Minus():
            return _UNARY, f"-{_at_level(term.term, _UNARY)}"
        case syntax.Index():
            return _TIGHT, f"{_at_level(term.sequence, _TIGHT)}[{_at_level(term.position, _LOOSE)}]"
        case _:
            return _TIGHT, _atom(term)


def _operation(term: syntax.Operation) -> tuple[int, str]:
    level = _LEVELS[term.operator]
    # Implication groups to the right, comparisons do not group, all others group to the left.
    left = level + (term.operator == "-->" or level == _COMPARE)
    right = level + (term.operator != "-->")
    return level, f"{_at_level(term.left, left)} {term.operator} {_at_level(term.right, right)}"


def _atom(term: Term) -> str:
    match term:
        case syntax.Name():
            return term.name
        case syntax.Number():
            return str(term.value)
        case syntax.Text():
            return '"' + term.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case syntax.Boolean():
            return "true" if term.value else "false"
        case syntax.Call():
            return f"{term.moment}{term.function}({_listed(term.arguments)})"
        case syntax.SetOf():
            return f"{{{_listed(term.members)}}}"
        case syntax.ListOf():
            return f"[{_listed(term.elements)}]"
        case syntax.SetWhere():
            return f"{{{_rule(term)}}}"
        case syntax.ListWhere():
            return f"[{_rule(term)}]"
        case _:
            raise AssertionError(f"{term} is not an atom")


def _rule(term: syntax.SetWhere | syntax.ListWhere) -> str:
    conditions = "".join(f", {print_term(condition)}" for condition in term.conditions)
    return f"{print_term(term.term)} . {_binders(term.binders)}{conditions}"


def _binders(binders: Iterable[syntax.Binder]) -> str:
    return "; ".join(
        f"{', '.join(binder.names)} {binder.binding} {_at_level(binder.domain, _SET)}"
        for binder in binders
    )


def _listed(terms: Iterable[Term]) -> str:
    return ", ".join(map(print_term, terms))
