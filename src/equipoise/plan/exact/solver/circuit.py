"""The one place that talks to CP-SAT: truths, numbers, and what must hold between them.

A truth is a whole number: ``YES`` and ``NO`` are known, any other is undecided, and ``-t`` is the
opposite of ``t``. What is known is never given to the solver: a model of which everything is known
is no model at all, and its answer is there at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from ortools.sat.python import cp_model

from equipoise.plan.exact.solver.number import Number, Sum

Truth = int
Shape = tuple[Number, Number, Number]
"""When something starts, how long it takes, and when it ends."""
Span = tuple[Shape, Truth, int]
"""When something happens, if it does, and how much it needs meanwhile."""
YES: Final[Truth] = 1
NO: Final[Truth] = -1
_FIRST: Final = 2
"""The first place of a variable; those before it are taken by what is known."""


class Circuit:
    """A model that is being built."""

    def __init__(self) -> None:
        self._variables: list[Any] = [None, None]
        self._bounds: list[tuple[int, int]] = [(0, 0), (1, 1)]
        self._known: dict[Any, Truth] = {}
        self.refuted = False
        """Whether what must hold is known not to, without asking the solver."""

    @cached_property
    def model(self) -> cp_model.CpModel:
        """What the solver is given; not made before there is something to decide."""
        return cp_model.CpModel()

    # Truths

    def truth(self) -> Truth:
        """A new truth that the solver decides on."""
        self._variables.append(self.model.new_bool_var(""))
        self._bounds.append((0, 1))
        return len(self._variables) - 1

    def all(self, some: Iterable[Truth]) -> Truth:
        """Whether all of them hold."""
        found: set[Truth] = set()
        for one in some:
            if one == NO or -one in found:
                return NO
            if one != YES:
                found.add(one)
        if len(found) <= 1:
            return found.pop() if found else YES
        key = frozenset(found)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.truth()
            literals = [self.literal(one) for one in found]
            whole = self.literal(known)
            for literal in literals:
                self.model.add_implication(whole, literal)
            self.model.add_bool_or([whole, *(literal.negated() for literal in literals)])
        return known

    def any(self, some: Iterable[Truth]) -> Truth:
        """Whether one of them holds."""
        return -self.all(-one for one in some)

    def at_most(self, number: Number, limit: int) -> Truth:
        """Whether a number is at most that large."""
        if isinstance(number, int):
            return YES if number <= limit else NO
        least, most = self.bounds(number)
        if most <= limit:
            return YES
        if least > limit:
            return NO
        number, limit = Sum(0, number.terms), limit - number.constant
        if len(number.terms) == 1:
            ((index, _),) = number.terms.items()
            if self._bounds[index] == (0, 1):  # it can only be the one or the other
                return index if self.bounds(number)[0] != 0 else -index
        key = (tuple(sorted(number.terms.items())), limit)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.truth()
            literal, expression = self.literal(known), self.expression(number)
            self.model.add(expression <= limit).only_enforce_if(literal)
            self.model.add(expression > limit).only_enforce_if(literal.negated())
        return known

    def equal(self, number: Number, other: Number) -> Truth:
        """Whether two numbers are the same."""
        difference = Sum.of(number) - Sum.of(other)
        return self.all((self.at_most(difference, 0), self.at_most(-difference, 0)))

    # Numbers

    def number(self, least: int, most: int) -> Number:
        """A new number that the solver decides on."""
        if least == most:
            return least
        self._variables.append(self.model.new_int_var(least, most, ""))
        self._bounds.append((least, most))
        return Sum(0, {len(self._variables) - 1: 1})

    def quotient(self, number: Number, divisor: int) -> Number:
        """How many times a divisor is contained in a number, rounded down."""
        if isinstance(number, int):
            return number // divisor
        if divisor < 0:
            number, divisor = -number, -divisor
        least, most = self.bounds(number)
        found = self.number(least // divisor, most // divisor)
        self.require_at_most(found * divisor - number, 0)
        self.require_at_most(number - found * divisor, divisor - 1)
        return found

    def bounds(self, number: Number) -> tuple[int, int]:
        """Between which two numbers a number lies, as far as is plain to see."""
        if isinstance(number, int):
            return number, number
        least = most = number.constant
        for index, factor in number.terms.items():
            low, high = self._bounds[index]
            least += factor * (low if factor > 0 else high)
            most += factor * (high if factor > 0 else low)
        return least, most

    # What must hold

    def require(self, truth: Truth, given: Sequence[Truth] = ()) -> None:
        """It must hold, if everything given holds."""
        if truth == YES or NO in given:
            return
        clause = [-one for one in given if one != YES]
        if truth != NO:
            clause.append(truth)
        if not clause:
            self.refuted = True
        elif len(clause) == 1:
            self._fix(clause[0])
        else:
            self.model.add_bool_or([self.literal(one) for one in clause])

    def require_at_most(self, number: Number, limit: int, given: Sequence[Truth] = ()) -> None:
        """A number must not be larger, if everything given holds."""
        least, most = self.bounds(number)
        if most <= limit or NO in given:
            return
        if least > limit:
            self.require(NO, given)
            return
        made = self.model.add(self.expression(number) <= limit)
        needed = [self.literal(one) for one in given if one != YES]
        if needed:
            made.only_enforce_if(needed)

    def require_equal(self, number: Number, other: Number, given: Sequence[Truth] = ()) -> None:
        """Two numbers must be the same, if everything given holds."""
        difference = Sum.of(number) - Sum.of(other)
        self.require_at_most(difference, 0, given)
        self.require_at_most(-difference, 0, given)

    def require_one(self, some: Iterable[Truth]) -> None:
        """Exactly one of them must hold; none is known."""
        self.model.add_exactly_one([self.literal(one) for one in some])

    def require_in_turn(self, spans: Sequence[Span], most: int) -> None:
        """What is needed at the same time must not be more than there is."""
        if all(map(_is_known, spans)):
            self.refuted |= _peak(spans) > most
            return
        intervals = [self._interval(shape, there) for shape, there, _ in spans]
        self.model.add_cumulative(intervals, [need for _, _, need in spans], most)

    def _interval(self, shape: Shape, there: Truth) -> Any:
        start, size, end = map(self.expression, shape)
        return self.model.new_optional_interval_var(start, size, end, self.literal(there), "")

    def _fix(self, truth: Truth) -> None:
        self.model.add_bool_or([self.literal(truth)])

    # What the solver sees and says

    def literal(self, truth: Truth) -> Any:
        """What CP-SAT calls a truth."""
        if truth in (YES, NO):
            return self.model.new_constant(int(truth == YES))
        return self._variables[truth] if truth > 0 else self._variables[-truth].negated()

    def expression(self, number: Number) -> Any:
        """What CP-SAT calls a number."""
        if isinstance(number, int):
            return number
        variables = [self._variables[index] for index in number.terms]
        weighted = cp_model.LinearExpr.weighted_sum(variables, list(number.terms.values()))
        return weighted + number.constant if number.constant else weighted

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to decide."""
        return "model" not in self.__dict__

    def values(self, solver: Any) -> list[int]:
        """What a solver has decided, by the places of the variables."""
        return [0, 1, *(int(solver.value(one)) for one in self._variables[_FIRST:])]

    def hint(self, number: Number, value: int) -> None:
        """Tell the solver where to look first: for one variable."""
        if isinstance(number, Sum) and len(number.terms) == 1:
            ((index, factor),) = number.terms.items()
            self.model.add_hint(self._variables[index], (value - number.constant) // factor)

    def hint_all(self, values: Sequence[int]) -> None:
        """Tell the solver where to look first: at what it had decided before."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in zip(self._variables[_FIRST:], values[_FIRST:], strict=False):
            self.model.add_hint(variable, value)


def _is_known(span: Span) -> bool:
    shape, there, _ = span
    return there in (YES, NO) and all(isinstance(one, int) for one in shape)


def _peak(spans: Sequence[Span]) -> int:
    """The most that is needed at any time, if everything is known."""
    changes: list[tuple[int, int]] = []
    for (start, _, end), there, need in spans:
        if there == YES and isinstance(start, int) and isinstance(end, int) and start < end:
            changes += ((start, need), (end, -need))
    level = peak = 0
    for _, change in sorted(changes):  # at one instant, who leaves does so first
        level += change
        peak = max(peak, level)
    return peak


def as_number(truth: Truth) -> Number:
    """1 if it holds, else 0."""
    if truth in (YES, NO):
        return int(truth == YES)
    return Sum(0, {truth: 1}) if truth > 0 else Sum(1, {-truth: -1})


def total(some: Iterable[tuple[int, Truth]]) -> Number:
    """The sum of the amounts whose truths hold."""
    constant, terms = 0, dict[int, int]()
    for amount, truth in some:
        if truth == YES:
            constant += amount
        elif truth > 1:
            terms[truth] = terms.get(truth, 0) + amount
        elif truth < -1:
            constant += amount
            terms[-truth] = terms.get(-truth, 0) - amount
    return Sum.plain(constant, terms)
