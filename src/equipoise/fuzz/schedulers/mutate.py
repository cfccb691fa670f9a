"""Constraints that say something slightly else: each differs from the original at one point.

Every part of a formula is changed in every way there is, also where it makes no sense; the type
checker refuses what does not. Whoever cannot tell the others from the original looks too little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from equipoise.errors import InvalidInput
from equipoise.spec.language.place import Source
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Always,
    Binder,
    Call,
    Constraint,
    Exists,
    ForAll,
    Let,
    ListOf,
    ListWhere,
    Moment,
    Name,
    Not,
    Number,
    Operation,
    SetOf,
    SetWhere,
    Sometime,
    Term,
    Text,
    Truth,
)
from equipoise.spec.language.vocabulary import SETS, SIGNATURES, STATES
from equipoise.spec.specification import Specification

Scope = tuple[str, ...]
"""The names that mean something somewhere in a formula."""

CONNECTIVES: Final = ("<-->", "-->", "|", "&")
RELATIVES: Final = (
    ("=", "/="),
    ("=", ">", ">=", "<=", "<"),
    CONNECTIVES,
    ("+", "-", "*"),
    ("/\\", "\\/", "-"),
    (":", "/:"),
    ("<:", "/<:"),
    ("<<:", "/<<:"),
)
"""Operators that may stand for each other; the later in its row, the harder to see."""
NEGATED: Final = ("=", "/=", "<", "<=", ">", ">=", ":", "/:", "<:", "/<:", "<<:", "/<<:")
"""Operators of which a relative says the opposite."""
ONE_WAY: Final = ("-->", "-", "/", "<:", "/<:")
"""Operators whose sides cannot be exchanged, and that have no relative that does the same."""
WORDS: Final = (
    ("migrate", "boot", "shutdown", "suspend", "resume", "allocate", "forge", "kill"),
    ("power_on", "power_off", "enter_maintenance", "leave_maintenance"),
    ("", "a", "zone", "subnet", "rack", "filter_tenant_id", "instance_type", "flavor"),
    ("pods", "instances", "licences"),
)
"""Texts that may stand for each other."""
CHANGING: Final = (
    *("host", "hosted", "running", "colocated", "runs", "vmState", "hostState"),
    *("cons", "demand", "underway"),
)
"""Functions that may answer otherwise at another moment of a plan; no action changes a label."""


class Rule(StrEnum):
    """In which way something is changed."""

    ARITHMETIC = "arithmetic"
    """Numbers or sets are put together in another way."""
    COMPARISON = "comparison"
    """It is weakened, strengthened or turned into its opposite."""
    CONDITION = "condition"
    """Of what makes a collection, a condition or a member is left out."""
    CONNECTIVE = "connective"
    """And becomes or, and the like."""
    FUNCTION = "function"
    """Another function is asked."""
    KEPT = "kept"
    """A set becomes a list, which keeps equal values apart, or a list a set."""
    MOMENT = "moment"
    """It is asked of the initial state instead of the present one, or the other way round."""
    NAME = "name"
    """It is said of something else."""
    NEGATION = "negation"
    """The opposite is said."""
    NUMBER = "number"
    """It is off by one."""
    PART = "part"
    """Only one side is left: a conjunct or a guard is dropped."""
    QUANTIFIER = "quantifier"
    """For all becomes for some, or the other way round."""
    TURNED = "turned"
    """The sides are exchanged."""
    WORD = "word"
    """Another text is compared with."""


Instead = tuple[Rule, Term]
"""What may stand in the place of a term, and by which rule."""


class Change(NamedTuple):
    """A change at one point."""

    rule: Rule
    old: Term | Binder
    """The smallest part that shows what stood there."""
    new: Term | Binder
    whole: Any
    """All of what was changed: a term, some terms or some binders."""


class Mutant(NamedTuple):
    """A constraint that was changed at one point."""

    rule: Rule
    description: str
    specification: Specification
    """It alone, under its old name."""


def changed(constraint: Constraint) -> Iterator[tuple[Rule, str, Constraint]]:
    """Every constraint that differs from one at a single point; each once, sound or not."""
    seen, told = {constraint.formula}, Counter[str]()
    scope = tuple(one.name for one in constraint.parameters)
    for rule, old, new, formula in _changed(constraint.formula, scope):
        if formula not in seen:
            seen.add(formula)
            what = f"{_told(old)} becomes {_told(new)}"
            told[what] += 1
            again = f" (place {told[what]})" if told[what] > 1 else ""
            yield rule, what + again, replace(constraint, formula=formula)


def sound_mutants(specification: Specification, name: str) -> Iterator[Mutant]:
    """The mutants of a constraint that the type checker accepts."""
    others = {other: specification for other in specification.constraints if other != name}
    for rule, description, constraint in changed(specification.constraints[name]):
        try:
            sound = Specification(Source(name, ""), [constraint], others)
        except InvalidInput:
            continue
        yield Mutant(rule, description, sound)


# From the parts to the whole


def _changed(term: Term, scope: Scope) -> Iterator[Change]:
    """Change each part of a term."""
    yield from (Change(rule, term, other, other) for rule, other in _instead_of(term, scope))
    for one in fields(term):
        value: Any = getattr(term, one.name)
        if one.name == "binders":
            changes = _changed_binders(value, scope)
        elif isinstance(value, Term):
            changes = _changed(value, scope + _names_for(term, one.name))
        elif isinstance(value, tuple) and one.name != "place":
            changes = _changed_parts(value, scope + _names_for(term, one.name))
        else:
            continue
        for rule, old, new, whole in changes:
            around: Any = replace(term, **{one.name: whole})
            of_word = _is_word(old)
            yield Change(rule, term if of_word else old, around if of_word else new, around)


def _changed_parts(parts: tuple[Term, ...], scope: Scope) -> Iterator[Change]:
    for number, part in enumerate(parts):
        for rule, old, new, whole in _changed(part, scope):
            yield Change(rule, old, new, (*parts[:number], whole, *parts[number + 1 :]))


def _changed_binders(binders: tuple[Binder, ...], scope: Scope) -> Iterator[Change]:
    for number, binder in enumerate(binders):
        for rule, old, new, domain in _changed(binder.domain, scope):
            other = replace(binder, domain=domain)
            whole = (*binders[:number], other, *binders[number + 1 :])
            of_word = _is_word(old)
            yield Change(rule, binder if of_word else old, other if of_word else new, whole)
        scope += binder.names


def _is_word(term: Term | Binder) -> bool:
    """Whether a term says so little that one must see what is around it."""
    return isinstance(term, Name | Number | Text)


def _names_for(term: Term, field: str) -> Scope:
    """The names that a term gives to one of its fields."""
    if isinstance(term, Let) and field == "body":
        return (term.name,)
    if isinstance(term, ForAll | Exists | SetWhere | ListWhere):
        return tuple(name for binder in term.binders for name in binder.names)
    return ()


# One point


def _instead_of(term: Term, scope: Scope) -> Iterator[Instead]:
    """What may stand in the place of a term: of its own kind, or its opposite."""
    match term:
        case Name():
            states = term.name in STATES and term.name not in scope
            names = dict.fromkeys(STATES if states else (*scope, *SETS))
            yield from ((Rule.NAME, Name(other)) for other in names)
        case Number():
            yield from ((Rule.NUMBER, Number(term.value + one)) for one in (1, -1))
        case Text():
            yield from ((Rule.WORD, Text(other)) for other in _relatives(term.value, WORDS))
        case Call():
            yield from _other_calls(term)
        case Operation():
            yield from _other_operations(term)
        case SetOf() | ListOf() | SetWhere() | ListWhere():
            yield from _other_collections(term)
        case _:
            yield from _other_statements(term)
    if not isinstance(term, Operation) or term.operator not in NEGATED:
        yield Rule.NEGATION, Not(term)


def _relatives(one: str, groups: tuple[tuple[str, ...], ...]) -> list[str]:
    found = [other for group in groups if one in group for other in group]
    return [other for other in found if other != one]


def _other_calls(term: Call) -> Iterator[Instead]:
    if term.moment is not Moment.NOW:
        yield Rule.MOMENT, replace(term, moment=Moment.NOW)
    elif term.function in CHANGING or term.function not in SIGNATURES:
        yield Rule.MOMENT, replace(term, moment=Moment.INITIAL)
    if term.function in SIGNATURES:
        yield from ((Rule.FUNCTION, replace(term, function=other)) for other in SIGNATURES)
    yield Rule.PART, Truth(value=True)


def _other_operations(term: Operation) -> Iterator[Instead]:
    rule = _rule_of(term.operator)
    yield from (
        (rule, replace(term, operator=other)) for other in _relatives(term.operator, RELATIVES)
    )
    yield from ((Rule.PART, side) for side in (term.left, term.right))
    if term.operator in ONE_WAY:
        yield Rule.TURNED, replace(term, left=term.right, right=term.left)
    if term.operator == "-->":
        yield Rule.PART, Not(term.left)


def _rule_of(operator: str) -> Rule:
    if operator in NEGATED:
        return Rule.COMPARISON
    return Rule.CONNECTIVE if operator in CONNECTIVES else Rule.ARITHMETIC


def _other_collections(term: SetOf | ListOf | SetWhere | ListWhere) -> Iterator[Instead]:
    match term:
        case SetOf():
            yield from ((Rule.CONDITION, SetOf(some)) for some in _without_one(term.members))
        case ListOf():
            yield from ((Rule.CONDITION, ListOf(some)) for some in _without_one(term.elements))
        case SetWhere() | ListWhere():
            kinds = (ListWhere, SetWhere)
            other = kinds[isinstance(term, ListWhere)]
            yield Rule.KEPT, other(term.term, term.binders, term.conditions)
            for some in _without_one(term.conditions):
                yield Rule.CONDITION, replace(term, conditions=some)


def _without_one(terms: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    return (terms[:number] + terms[number + 1 :] for number in range(len(terms)))


def _other_statements(term: Term) -> Iterator[Instead]:
    match term:
        case ForAll():
            yield Rule.QUANTIFIER, Exists(term.binders, term.body)
        case Exists():
            yield Rule.QUANTIFIER, ForAll(term.binders, term.body)
        case Always():
            yield Rule.QUANTIFIER, Sometime(term.body)
        case Sometime():
            yield Rule.QUANTIFIER, Always(term.body)
        case Truth():
            yield Rule.NEGATION, Truth(value=not term.value)
        case Not():
            yield Rule.NEGATION, term.term
        case _:
            return


# For people


def _told(term: Term | Binder, room: int = 70) -> str:
    """A term as it is written; of what is too long, the ends."""
    if isinstance(term, Binder):
        return f"{', '.join(term.names)} {term.binding} {print_term(term.domain)}"
    text = print_term(term)
    if len(text) <= room:
        return text
    if isinstance(term, Operation):
        return f"{_told(term.left, room // 2)} {term.operator} {_told(term.right, room // 2)}"
    return f"{text[: room // 2]}..{text[-room // 4 :]}"
