"""Mutations of constraints: each differs from the original at one point.

Every part of a formula is replaced in every possible way, even by terms of wrong types; the type
checker rejects those. A test that does not detect the remaining ones is too weak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from equipoise.errors import InvalidInput
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Always,
    Binder,
    Boolean,
    Call,
    Constraint,
    Exists,
    ForAll,
    Let,
    ListOf,
    ListWhere,
    Name,
    Not,
    Number,
    Operation,
    SetOf,
    SetWhere,
    Sometime,
    SourceText,
    StateRef,
    Term,
    Text,
)
from equipoise.spec.language.vocabulary import SETS, SIGNATURES, STATES
from equipoise.spec.specification import Specification

Scope = tuple[str, ...]
"""The names that are bound at a place of a formula."""

CONNECTIVES: Final = ("<-->", "-->", "|", "&")
RELATED_OPERATORS: Final = (
    ("=", "/="),
    ("=", ">", ">=", "<=", "<"),
    CONNECTIVES,
    ("+", "-", "*"),
    ("/\\", "\\/", "-"),
    (":", "/:"),
    ("<:", "/<:"),
    ("<<:", "/<<:"),
)
"""Operators that may replace each other; later ones of a row are harder to detect."""
NEGATED: Final = ("=", "/=", "<", "<=", ">", ">=", ":", "/:", "<:", "/<:", "<<:", "/<<:")
"""Operators whose negation is another operator of their row."""
ONE_WAY: Final = ("-->", "-", "/", "<:", "/<:")
"""Operators that are not symmetric and have no mirrored operator."""
RELATED_TEXTS: Final = (
    ("migrate", "boot", "shutdown", "suspend", "resume", "allocate", "forge", "kill"),
    ("power_on", "power_off", "enter_maintenance", "leave_maintenance"),
    ("", "a", "zone", "subnet", "rack", "filter_tenant_id", "instance_type", "flavor"),
    ("pods", "instances", "licences"),
)
"""Texts that may replace each other."""
CHANGING_FUNCTIONS: Final = (
    *("host", "hosted", "running", "colocated", "runs", "vmState", "hostState"),
    *("cons", "demand", "underway"),
)
"""Functions whose value may change during a plan; no action changes a label."""


class MutationRule(StrEnum):
    """The kind of a mutation."""

    ARITHMETIC = "arithmetic"
    """Another operator combines numbers or sets."""
    COMPARISON = "comparison"
    """A comparison is weakened, strengthened or negated."""
    CONDITION = "condition"
    """A collection loses a condition or a member."""
    CONNECTIVE = "connective"
    """Another logical connective, such as or instead of and."""
    FUNCTION = "function"
    """Another function is called."""
    KEPT = "kept"
    """A set becomes a list, which keeps equal values apart, or a list a set."""
    MOMENT = "moment"
    """A function reads the initial state instead of the current one, or the other way round."""
    NAME = "name"
    """Another variable or set."""
    NEGATION = "negation"
    """A statement is negated."""
    NUMBER = "number"
    """A number is off by one."""
    PART = "part"
    """Only one side of an operation remains: a conjunct or a guard is dropped."""
    QUANTIFIER = "quantifier"
    """A universal quantifier becomes existential, or the other way round."""
    TURNED = "turned"
    """The two sides are swapped."""
    WORD = "word"
    """Another text."""


Replacement = tuple[MutationRule, Term]
"""A rule and the term that replaces another term."""


class Mutation(NamedTuple):
    """A change at one point."""

    rule: MutationRule
    old: Term | Binder
    """The smallest part of the original that shows the change."""
    new: Term | Binder
    whole: Any
    """The whole changed value: a term, some terms or some binders."""


class Mutant(NamedTuple):
    """A constraint with one mutation."""

    rule: MutationRule
    description: str
    specification: Specification
    """A specification with this constraint alone, under its original name."""


def mutations_of(constraint: Constraint) -> Iterator[tuple[MutationRule, str, Constraint]]:
    """All mutations of a constraint, each once, well-typed or not."""
    seen, described = {constraint.formula}, Counter[str]()
    scope = tuple(parameter.name for parameter in constraint.parameters)
    for rule, old, new, formula in _changed(constraint.formula, scope):
        # Different replacements can give the same formula, and one can give the original.
        if formula not in seen:
            seen.add(formula)
            what = f"{_term_text(old)} becomes {_term_text(new)}"
            described[what] += 1
            repeated = f" (place {described[what]})" if described[what] > 1 else ""
            yield rule, what + repeated, replace(constraint, formula=formula)


def well_typed_mutants(specification: Specification, name: str) -> Iterator[Mutant]:
    """The mutants of a constraint that the type checker accepts."""
    others = {other: specification for other in specification.constraints if other != name}
    for rule, description, constraint in mutations_of(specification.constraints[name]):
        try:
            typed = Specification(SourceText(name, ""), [constraint], others)
        except InvalidInput:
            continue
        yield Mutant(rule, description, typed)


# Mutations of parts, put back into the whole


def _changed(term: Term, scope: Scope) -> Iterator[Mutation]:
    """All mutations of a term and of its parts."""
    yield from (Mutation(rule, term, other, other) for rule, other in _replacements(term, scope))
    for field in fields(term):
        value: Any = getattr(term, field.name)
        if field.name == "binders":
            changes = _changed_binders(value, scope)
        elif isinstance(value, Term):
            changes = _changed(value, scope + _names_for(term, field.name))
        elif isinstance(value, tuple) and field.name != "place":
            changes = _changed_parts(value, scope + _names_for(term, field.name))
        else:
            continue
        for rule, old, new, whole in changes:
            around: Any = replace(term, **{field.name: whole})
            of_word = _is_word(old)
            yield Mutation(rule, term if of_word else old, around if of_word else new, around)


def _changed_parts(parts: tuple[Term, ...], scope: Scope) -> Iterator[Mutation]:
    for number, part in enumerate(parts):
        for rule, old, new, whole in _changed(part, scope):
            yield Mutation(rule, old, new, (*parts[:number], whole, *parts[number + 1 :]))


def _changed_binders(binders: tuple[Binder, ...], scope: Scope) -> Iterator[Mutation]:
    for number, binder in enumerate(binders):
        for rule, old, new, domain in _changed(binder.domain, scope):
            other = replace(binder, domain=domain)
            whole = (*binders[:number], other, *binders[number + 1 :])
            of_word = _is_word(old)
            yield Mutation(rule, binder if of_word else old, other if of_word else new, whole)
        scope += binder.names


def _is_word(term: Term | Binder) -> bool:
    """Whether a description of the mutation must show the surrounding term."""
    return isinstance(term, Name | Number | Text)


def _names_for(term: Term, field: str) -> Scope:
    """The names that a term binds in one of its fields."""
    if isinstance(term, Let) and field == "body":
        return (term.name,)
    if isinstance(term, ForAll | Exists | SetWhere | ListWhere):
        return tuple(name for binder in term.binders for name in binder.names)
    return ()


# Mutations at one point


def _replacements(term: Term, scope: Scope) -> Iterator[Replacement]:
    """The terms that may replace a term: of the same kind, or its negation."""
    match term:
        case Name():
            states = term.name in STATES and term.name not in scope
            names = dict.fromkeys(STATES if states else (*scope, *SETS))
            yield from ((MutationRule.NAME, Name(other)) for other in names)
        case Number():
            yield from ((MutationRule.NUMBER, Number(term.value + delta)) for delta in (1, -1))
        case Text():
            yield from (
                (MutationRule.WORD, Text(other)) for other in _related(term.value, RELATED_TEXTS)
            )
        case Call():
            yield from _other_calls(term)
        case Operation():
            yield from _other_operations(term)
        case SetOf() | ListOf() | SetWhere() | ListWhere():
            yield from _other_collections(term)
        case _:
            yield from _other_statements(term)
    # A negated comparison is already among the related operators.
    if not isinstance(term, Operation) or term.operator not in NEGATED:
        yield MutationRule.NEGATION, Not(term)


def _related(word: str, groups: tuple[tuple[str, ...], ...]) -> list[str]:
    related = [other for group in groups if word in group for other in group]
    return [other for other in related if other != word]


def _other_calls(term: Call) -> Iterator[Replacement]:
    if term.moment is not StateRef.NOW:
        yield MutationRule.MOMENT, replace(term, moment=StateRef.NOW)
    elif term.function in CHANGING_FUNCTIONS or term.function not in SIGNATURES:
        yield MutationRule.MOMENT, replace(term, moment=StateRef.INITIAL)
    if term.function in SIGNATURES:
        yield from ((MutationRule.FUNCTION, replace(term, function=other)) for other in SIGNATURES)
    yield MutationRule.PART, Boolean(value=True)


def _other_operations(term: Operation) -> Iterator[Replacement]:
    rule = _rule_of(term.operator)
    yield from (
        (rule, replace(term, operator=other))
        for other in _related(term.operator, RELATED_OPERATORS)
    )
    yield from ((MutationRule.PART, side) for side in (term.left, term.right))
    if term.operator in ONE_WAY:
        yield MutationRule.TURNED, replace(term, left=term.right, right=term.left)
    if term.operator == "-->":
        # What remains of an implication without its conclusion.
        yield MutationRule.PART, Not(term.left)


def _rule_of(operator: str) -> MutationRule:
    if operator in NEGATED:
        return MutationRule.COMPARISON
    return MutationRule.CONNECTIVE if operator in CONNECTIVES else MutationRule.ARITHMETIC


def _other_collections(term: SetOf | ListOf | SetWhere | ListWhere) -> Iterator[Replacement]:
    match term:
        case SetOf():
            yield from (
                (MutationRule.CONDITION, SetOf(rest)) for rest in _without_one(term.members)
            )
        case ListOf():
            yield from (
                (MutationRule.CONDITION, ListOf(rest)) for rest in _without_one(term.elements)
            )
        case SetWhere() | ListWhere():
            kinds = (ListWhere, SetWhere)
            other = kinds[isinstance(term, ListWhere)]
            yield MutationRule.KEPT, other(term.term, term.binders, term.conditions)
            for rest in _without_one(term.conditions):
                yield MutationRule.CONDITION, replace(term, conditions=rest)


def _without_one(terms: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    return (terms[:number] + terms[number + 1 :] for number in range(len(terms)))


def _other_statements(term: Term) -> Iterator[Replacement]:
    match term:
        case ForAll():
            yield MutationRule.QUANTIFIER, Exists(term.binders, term.body)
        case Exists():
            yield MutationRule.QUANTIFIER, ForAll(term.binders, term.body)
        case Always():
            yield MutationRule.QUANTIFIER, Sometime(term.body)
        case Sometime():
            yield MutationRule.QUANTIFIER, Always(term.body)
        case Boolean():
            yield MutationRule.NEGATION, Boolean(value=not term.value)
        case Not():
            yield MutationRule.NEGATION, term.term
        case _:
            return


# Descriptions


def _term_text(term: Term | Binder, width: int = 70) -> str:
    """The source text of a term, shortened in the middle to a width."""
    if isinstance(term, Binder):
        return f"{', '.join(term.names)} {term.binding} {print_term(term.domain)}"
    text = print_term(term)
    if len(text) <= width:
        return text
    if isinstance(term, Operation):
        left, right = _term_text(term.left, width // 2), _term_text(term.right, width // 2)
        return f"{left} {term.operator} {right}"
    return f"{text[: width // 2]}..{text[-width // 4 :]}"
