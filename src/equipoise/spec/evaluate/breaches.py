"""The breaches of a false formula: each violated element, and how far a number misses its limit.

Two states that both violate a formula can be compared by their breaches. A state is worse than an
earlier one if it has a breach that the earlier one lacks, or a larger one:

- ``!(x : s) p`` has a breach for each value of ``x`` for which ``p`` is false, ``p & q`` those of
  both sides, and ``p --> q`` those of ``q`` if ``p`` is true.
- A comparison of numbers has one breach, whose size is the miss. An inclusion or equality of sets
  has one for each member too many or too few. Anything else is a plain no of size 1.
- ``p | q`` and ``?(x : s) p`` have one breach with the breaches of every side. It is larger if
  every side that measures something is worse. A side that says only yes or no, or whose value no
  plan changes, does not count beside one that measures.
- A number is not an element. Variables that range over computed numbers share one breach, whose
  size is the largest of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Protocol

from equipoise.errors import InvalidInput
from equipoise.model.plan import Step
from equipoise.spec.evaluate.compile import Closure
from equipoise.spec.evaluate.domains import choices, in_order
from equipoise.spec.evaluate.explain import FormulaFailure
from equipoise.spec.evaluate.view import EvaluationContext
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Constraint, StateRef, Term, names_in, subterms
from equipoise.spec.language.vocabulary import PLAN_CONSTANT_FUNCTIONS, canonical_name

BreachKey = tuple[Hashable, ...]
Breaches = Mapping[BreachKey, "Breach"]

UNDEFINED: Final[BreachKey] = ("undefined",)
"""The key of the breach of a formula that has no value."""


class BreachSource(Protocol):
    """The specification of a formula, and the constraints that it calls."""

    constraints: dict[str, Constraint]

    def owner(self, name: str) -> BreachSource | None:
        """Return the specification that declares a constraint; ``None`` for a function."""
        ...

    def closure_of(self, term: Term, names: Mapping[str, Any]) -> Closure:
        """Return the compiled form of a part of a formula, in which these names are bound."""
        ...

    def explain(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> FormulaFailure:
        """Return why one of its formulas is false."""
        ...


@dataclass(frozen=True, slots=True)
class Breach:
    """One violated element of a formula."""

    owner: BreachSource | None
    """The specification of the part that is false; ``None`` if the formula has no value."""
    term: Term | None = None
    """The part that is false, or that must be false if ``negated``."""
    names: Mapping[str, Any] | None = None
    """The variables of the part, with their values."""
    negated: bool = False
    size: int = 1
    measured: bool = False
    """Whether a change of the state for the worse shows in the breaches."""
    sides: Mapping[Hashable, Breaches] | None = None
    """Of a disjunction: the breaches of each side."""

    def explain(self, context: EvaluationContext) -> FormulaFailure | None:
        """Return why the part is false in the same context; ``None`` if it has no value."""
        if self.owner is None or self.term is None or self.names is None:
            return None
        term = syntax.Not(self.term) if self.negated else self.term
        return self.owner.explain(term, self.names, context)


NO_BREACHES: Final[Breaches] = {}


def is_larger(after: Breach, before: Breach) -> bool:
    """Whether a breach is larger than the same one in an earlier state."""
    if after.sides is None or before.sides is None:
        return after.size > before.size
    measured = [
        name
        for name, side in before.sides.items()
        if any(breach.measured for breach in side.values())
    ]
    return bool(measured) and not any(
        name in after.sides and not worse_breaches(after.sides[name], before.sides[name])
        for name in measured
    )


def worse_breaches(after: Breaches, before: Breaches) -> list[BreachKey]:
    """Return the breaches that an earlier state did not have or that were smaller in it."""
    return [
        key for key, breach in after.items() if key not in before or is_larger(breach, before[key])
    ]


class BreachFinder:
    """Finds the breaches of formulas of one specification in one context."""

    def __init__(self, owner: BreachSource, context: EvaluationContext) -> None:
        self._owner = owner
        self._context = context

    def find(self, term: Term, names: Mapping[str, Any]) -> Breaches:
        """Return the breaches of a formula; none if it holds."""
        return self._find(_Part(term, names))

    def _find(self, part: _Part) -> Breaches:
        try:
            return self.of(part)
        except InvalidInput:
            return {UNDEFINED: Breach(None)}

    def weakened(
        self, term: Term, names: Mapping[str, Any]
    ) -> Iterator[tuple[Term, Mapping[str, Any]]]:
        """Yield formulas that hold now and that any state satisfies which is no worse.

        They are what a planner can demand of a violated formula: the parts that hold, and limits
        of comparisons widened by their miss. They say less than the breaches do.
        """
        return ((part.term, part.names) for part in self._weakened(_Part(term, names)))

    def _weakened(self, part: _Part) -> Iterator[_Part]:
        breaches = self._find(part)
        if not breaches:
            yield part
            return
        match part.term:
            case syntax.Operation(operator="&"):
                yield from self._weakened(part.but(part.term.left))
                yield from self._weakened(part.but(part.term.right))
            case syntax.Operation(operator="-->"):
                for inner in self._weakened(part.but(part.term.right)):
                    yield inner.but(replace(part.term, right=inner.term))
            case syntax.Operation() if part.term.operator in _LIMITS and () in breaches:
                yield part.but(_widened(part.term, breaches[()].size))
            case syntax.Let():
                bound = self._bound(part, part.term)
                for inner in self._weakened(bound):
                    # A part that binds further variables cannot be read outside of them.
                    if inner.names.keys() == bound.names.keys():
                        yield part.but(replace(part.term, body=inner.term))
            case syntax.ForAll():
                yield from self._weakened_values(part, part.term, breaches)

    def _weakened_values(
        self, part: _Part, term: syntax.ForAll, breaches: Breaches
    ) -> Iterator[_Part]:
        body = term.body
        if not any(_changes(binder.domain, part.changing) for binder in term.binders):
            for _, inner in self._values(part, term):
                yield from self._weakened(inner)
        elif (
            isinstance(body, syntax.Operation)
            and body.operator in _LIMITS
            and list(breaches) == [()]  # numbers, which share one breach
        ):
            yield part.but(replace(term, body=_widened(body, breaches[()].size)))

    def of(self, part: _Part) -> Breaches:
        """Return the breaches of a part of a formula; raise if it has no value."""
        match part.term:
            case syntax.Not(term=inner):
                return self.of(part.but(inner, negated=not part.negated))
            case syntax.Operation(operator="&" | "|" | "-->"):
                return self._connected(part, part.term)
            case syntax.ForAll() | syntax.Exists():
                if isinstance(part.term, syntax.ForAll) is part.negated:
                    return self._any_value(part, part.term)
                return self._every_value(part, part.term)
            case syntax.Let():
                return self.of(self._bound(part, part.term))
            case syntax.Call(moment=StateRef.NOW) if (
                owner := self._owner.owner(part.term.function)
            ) is not None:
                return self._called(part, part.term, owner)
            case syntax.Always(body=body) if not part.negated:
                return self._always(part.but(body))
            case _:
                return self._leaf(part)

    def _bound(self, part: _Part, term: syntax.Let) -> _Part:
        """Return the body of a ``let`` with its name bound."""
        changing = part.changing - {term.name}
        if _changes(term.value, part.changing):
            changing |= {term.name}
        names = {**part.names, term.name: self._value(term.value, part.names)}
        return replace(part, term=term.body, names=names, changing=changing)

    def _connected(self, part: _Part, term: syntax.Operation) -> Breaches:
        left, right = part.but(term.left), part.but(term.right)
        if term.operator == "-->":
            left = left.but(term.left, negated=not part.negated)
        # By the laws of De Morgan, a negated conjunction is a disjunction, and the reverse.
        if (term.operator == "&") is not part.negated:
            return self._both(left, right)
        return self._either(left, right, part)

    def _both(self, left: _Part, right: _Part) -> Breaches:
        found = {("left", *key): breach for key, breach in self.of(left).items()}
        try:
            found |= {("right", *key): breach for key, breach in self.of(right).items()}
        except InvalidInput:
            # The language stops at the side that is false: the other needs no value then.
            if not found:
                raise
        return found

    def _either(self, left: _Part, right: _Part, part: _Part) -> Breaches:
        first = self.of(left)
        if not first:
            return NO_BREACHES
        second = self.of(right)
        if part.is_implication:  # the condition is true; what it demands is violated
            return second
        return self._sides(part, {"left": first, "right": second}) if second else NO_BREACHES

    def _sides(self, part: _Part, sides: Mapping[Hashable, Breaches]) -> Breaches:
        measured = any(breach.measured for side in sides.values() for breach in side.values())
        return {(): self._breach(part, measured=measured, sides=sides)}

    def _every_value(self, part: _Part, term: syntax.ForAll | syntax.Exists) -> Breaches:
        found: dict[BreachKey, Breach] = {}
        for element, inner in self._values(part, term):
            try:
                breaches = self.of(inner)
            except InvalidInput:
                if not found:
                    raise
                continue
            for key, breach in breaches.items():
                known = found.get((*element, *key))
                if known is None or breach.size > known.size:
                    # A new element shows in the keys.
                    shows = breach.measured or bool(element)
                    found[*element, *key] = replace(breach, measured=shows)
        return found

    def _any_value(self, part: _Part, term: syntax.ForAll | syntax.Exists) -> Breaches:
        sides: dict[Hashable, Breaches] = {}
        for element, inner in self._values(part, term):
            breaches = self.of(inner)
            if not breaches:
                return NO_BREACHES
            sides[element] = breaches
        return self._sides(part, sides)

    def _values(
        self, part: _Part, term: syntax.ForAll | syntax.Exists
    ) -> Iterator[tuple[BreachKey, _Part]]:
        """Yield the body for all values of the variables, each with its elements."""
        todo: list[tuple[BreachKey, _Part]] = [((), part.but(term.body))]
        for binder in term.binders:
            changes = _changes(binder.domain, part.changing)
            todo = [
                (
                    (*element, *_elements(values, numbers=not changes)),
                    inner.bind(binder.names, values, changes=changes),
                )
                for element, inner in todo
                for values in self._choices(binder, inner.names)
            ]
        return iter(todo)

    def _choices(self, binder: syntax.Binder, names: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        # The names of one binder do not see each other.
        domain = self._value(binder.domain, names)
        values = list(choices(binder.binding, domain))
        return list(product(values, repeat=len(binder.names)))

    def _called(self, part: _Part, term: syntax.Call, owner: BreachSource) -> Breaches:
        constraint = owner.constraints[term.function]
        given = {
            parameter.name: self._value(argument, part.names)
            for parameter, argument in zip(constraint.parameters, term.arguments, strict=True)
        }
        changing = frozenset(
            parameter.name
            for parameter, argument in zip(constraint.parameters, term.arguments, strict=True)
            if _changes(argument, part.changing)
        )
        finder = BreachFinder(owner, self._context)
        return finder.of(_Part(constraint.formula, given, part.negated, changing))

    def _always(self, part: _Part) -> Breaches:
        found: dict[BreachKey, Breach] = {}
        for view in self._context.moments or (self._context.now,):
            finder = BreachFinder(self._owner, self._context.at(view))
            for key, breach in finder.of(part).items():
                if key not in found or is_larger(breach, found[key]):
                    found[key] = breach
        return found

    def _leaf(self, part: _Part) -> Breaches:
        term = part.term
        if bool(self._value(term, part.names)) is not part.negated:
            return NO_BREACHES
        if isinstance(term, syntax.Operation):
            operator = _OPPOSITE.get(term.operator, "") if part.negated else term.operator
            left = self._value(term.left, part.names)
            right = self._value(term.right, part.names)
            measured = _changes(term.left, part.changing) or _changes(term.right, part.changing)
            if operator in _MISS and isinstance(left, int) and isinstance(right, int):
                # Of two different numbers, neither is better, unless they have an order.
                shows = measured and operator != "="
                size = _MISS[operator](left, right)
                return {(): self._breach(part, size=size, measured=shows)}
            members = _wrong_members(operator, left, right)
            if members and not any(isinstance(member, int) for member in members):
                return {
                    (_name_of(member),): self._breach(part, size=size, measured=measured)
                    for member, size in members.items()
                }
            if members:
                return {(): self._breach(part, size=sum(members.values()), measured=measured)}
        return {(): self._breach(part)}

    def _breach(
        self,
        part: _Part,
        *,
        size: int = 1,
        measured: bool = False,
        sides: Mapping[Hashable, Breaches] | None = None,
    ) -> Breach:
        return Breach(self._owner, part.term, part.names, part.negated, size, measured, sides)

    def _value(self, term: Term, names: Mapping[str, Any]) -> Any:
        return self._owner.closure_of(term, names)(self._context, list(names.values()))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a formula that must hold, or must not hold if it is negated."""

    term: Term
    names: Mapping[str, Any]
    negated: bool = False
    changing: frozenset[str] = frozenset()
    """The names whose values a plan may change."""

    @property
    def is_implication(self) -> bool:
        return isinstance(self.term, syntax.Operation) and self.term.operator == "-->"

    def but(self, term: Term, *, negated: bool | None = None) -> _Part:
        """Return another part with the same names."""
        return replace(self, term=term, negated=self.negated if negated is None else negated)

    def bind(self, names: tuple[str, ...], values: tuple[Any, ...], *, changes: bool) -> _Part:
        """Return the same part with more names."""
        bound = dict(zip(names, values, strict=True))
        # An element belongs to the key of the breach. A computed number is none, so it changes.
        numbers = {name for name, value in bound.items() if changes and isinstance(value, int)}
        changing = (self.changing - bound.keys()) | numbers
        return replace(self, names={**self.names, **bound}, changing=changing)


_OPPOSITE: Final = {"<=": ">", ">": "<=", "<": ">=", ">=": "<", "/=": "=", "/<:": "<:"} | {
    "/<<:": "<<:"
}
"""The comparison that must hold if one must not; of the others only yes or no is known."""
_LIMITS: Final = ("<=", "<", ">=", ">")
_MISS: Final = {
    "<=": lambda left, right: left - right,
    "<": lambda left, right: left - right + 1,
    ">=": lambda left, right: right - left,
    ">": lambda left, right: right - left + 1,
    "=": lambda left, right: abs(left - right),
}


def _widened(term: syntax.Operation, amount: int) -> syntax.Operation:
    """Return a comparison of numbers whose limit is wider by an amount."""
    smaller_left = term.operator in ("<=", "<")
    limit = term.right if smaller_left else term.left
    wider = syntax.Operation("+", limit, syntax.Number(amount))
    return replace(term, right=wider) if smaller_left else replace(term, left=wider)


def _changes(term: Term, changing: frozenset[str]) -> bool:
    """Whether a plan may change the value of a term."""
    if not changing.isdisjoint(names_in(term)):
        return True
    called = (part.function for part in subterms(term) if isinstance(part, syntax.Call))
    return any(canonical_name(name) not in PLAN_CONSTANT_FUNCTIONS for name in called)


def _elements(values: Iterable[Any], *, numbers: bool) -> Iterator[Hashable]:
    """Yield those values that tell one breach from another."""
    return (_name_of(value) for value in values if numbers or not isinstance(value, int))


def _name_of(value: Any) -> Hashable:
    """Return a hashable name of a value; the times of an action may change."""
    if isinstance(value, Step):
        return value.id
    return tuple(map(_name_of, value)) if isinstance(value, tuple) else value


def _wrong_members(operator: str, left: Any, right: Any) -> dict[Any, int]:
    """Return the members too many or too few in a false comparison of collections."""
    if not isinstance(left, frozenset | tuple) or not isinstance(right, frozenset | tuple):
        return {}
    match operator:
        case "<:":
            return dict.fromkeys(in_order(frozenset(left) - frozenset(right)), 1)
        case "=" if isinstance(left, frozenset) and isinstance(right, frozenset):
            return dict.fromkeys(in_order(left ^ right), 1)
        case "<<:":  # groups that must be disjoint and within a collection
            counts = Counter(member for group in left for member in group)
            allowed = dict.fromkeys(right, 1)
            excess = {name: count - allowed.get(name, 0) for name, count in counts.items()}
            return {name: excess[name] for name in in_order(excess.keys()) if excess[name] > 0}
        case _:
            return {}
