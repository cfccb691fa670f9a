"""The builder of CP-SAT models: literals, linear sums, and constraints between them.

A literal is an integer: ``TRUE`` and ``FALSE`` are known, any other is undecided, and ``-x`` is the
negation of ``x``. Known values never reach the solver: a model without unknowns needs no solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from ortools.sat.python import cp_model


class LinearSum:
    """A constant and variables with their factors. It is immutable."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: Mapping[int, int]) -> None:
        self.constant = constant
        self.terms = terms

    @classmethod
    def of(cls, number: IntExpression) -> LinearSum:
        """Return a number as a sum."""
        return cls(number, {}) if isinstance(number, int) else number

    @staticmethod
    def plain(constant: int, terms: Mapping[int, int]) -> IntExpression:
        """Return a sum, or a plain number if it has no variables."""
        if all(terms.values()):
            return LinearSum(constant, terms) if terms else constant
        nonzero = {index: factor for index, factor in terms.items() if factor}
        return LinearSum(constant, nonzero) if nonzero else constant

    def __add__(self, other: IntExpression) -> IntExpression:
        if isinstance(other, int):
            return LinearSum(self.constant + other, self.terms)
        terms = dict(self.terms)
        for index, factor in other.terms.items():
            terms[index] = terms.get(index, 0) + factor
        return LinearSum.plain(self.constant + other.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> LinearSum:
        return LinearSum(-self.constant, {index: -factor for index, factor in self.terms.items()})

    def __sub__(self, other: IntExpression) -> IntExpression:
        return self + -other

    def __rsub__(self, other: int) -> IntExpression:
        return -self + other

    def __mul__(self, factor: int) -> IntExpression:
        terms = {index: own_factor * factor for index, own_factor in self.terms.items()}
        return LinearSum.plain(self.constant * factor, terms)

    __rmul__ = __mul__


IntExpression = int | LinearSum
"""A known number, or a sum that the solver decides."""


Literal = int
Interval = tuple[IntExpression, IntExpression, IntExpression]
"""The start, the size and the end of something."""
OptionalUse = tuple[Interval, Literal, int]
"""An interval, the literal that it exists, and the amount that it uses meanwhile."""
TRUE: Final[Literal] = 1
FALSE: Final[Literal] = -1
_FIRST_VARIABLE: Final = 2
"""The index of the first variable; the indices before it stand for known values."""


class CpModelBuilder:
    """A model under construction."""

    def __init__(self) -> None:
        self._variables: list[Any] = [None, None]
        self._bounds: list[tuple[int, int]] = [(0, 0), (1, 1)]
        self._known: dict[Any, Literal] = {}
        self.infeasible = False
        """Whether the model is contradictory, without running the solver."""

    @cached_property
    def model(self) -> cp_model.CpModel:
        """The CP-SAT model; it is made when there is something to decide."""
        return cp_model.CpModel()

    # Literals

    def literal(self) -> Literal:
        """Return a new literal that the solver decides."""
        self._variables.append(self.model.new_bool_var(""))
        self._bounds.append((0, 1))
        return len(self._variables) - 1

    def all(self, literals: Iterable[Literal]) -> Literal:
        """Return the literal that all of them hold; equal conjunctions share one literal."""
        undecided: set[Literal] = set()
        for literal in literals:
            if literal == FALSE or -literal in undecided:
                return FALSE
            if literal != TRUE:
                undecided.add(literal)
        if len(undecided) <= 1:
            return undecided.pop() if undecided else TRUE
        # A conjunction with the same members is made once.
        key = frozenset(undecided)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.literal()
            cp_literals = [self.cp_literal(literal) for literal in undecided]
            whole = self.cp_literal(known)
            for cp_literal in cp_literals:
                self.model.add_implication(whole, cp_literal)
            self.model.add_bool_or([whole, *(cp_literal.negated() for cp_literal in cp_literals)])
        return known

    def any(self, literals: Iterable[Literal]) -> Literal:
        """Return the literal that at least one of them holds."""
        return -self.all(-literal for literal in literals)

    def at_most(self, number: IntExpression, limit: int) -> Literal:
        """Return the literal that a number is at most the limit."""
        if isinstance(number, int):
            return TRUE if number <= limit else FALSE
        least, most = self.bounds(number)
        if most <= limit:
            return TRUE
        if least > limit:
            return FALSE
        # Without its constant, equal comparisons have equal keys.
        number, limit = LinearSum(0, number.terms), limit - number.constant
        if len(number.terms) == 1:
            ((index, _),) = number.terms.items()
            if self._bounds[index] == (0, 1):  # a variable of 0 or 1 is a literal itself
                return index if self.bounds(number)[0] != 0 else -index
        key = (tuple(sorted(number.terms.items())), limit)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.literal()
            cp_literal, expression = self.cp_literal(known), self.expression(number)
            self.model.add(expression <= limit).only_enforce_if(cp_literal)
            self.model.add(expression > limit).only_enforce_if(cp_literal.negated())
        return known

    def equal(self, number: IntExpression, other: IntExpression) -> Literal:
        """Return the literal that two numbers are equal."""
        difference = LinearSum.of(number) - LinearSum.of(other)
        return self.all((self.at_most(difference, 0), self.at_most(-difference, 0)))

    # Numbers

    def number(self, least: int, most: int) -> IntExpression:
        """Return a new number that the solver decides."""
        if least == most:
            return least
        self._variables.append(self.model.new_int_var(least, most, ""))
        self._bounds.append((least, most))
        return LinearSum(0, {len(self._variables) - 1: 1})

    def quotient(self, number: IntExpression, divisor: int) -> IntExpression:
        """Return a number divided by a divisor, rounded down."""
        if isinstance(number, int):
            return number // divisor
        if divisor < 0:
            number, divisor = -number, -divisor
        least, most = self.bounds(number)
        result = self.number(least // divisor, most // divisor)
        self.require_at_most(result * divisor - number, 0)
        self.require_at_most(number - result * divisor, divisor - 1)
        return result

    def bounds(self, number: IntExpression) -> tuple[int, int]:
        """Return a lower and an upper bound of a number, from the bounds of its variables."""
        if isinstance(number, int):
            return number, number
        least = most = number.constant
        for index, factor in number.terms.items():
            low, high = self._bounds[index]
            least += factor * (low if factor > 0 else high)
            most += factor * (high if factor > 0 else low)
        return least, most

    # Constraints

    def require(self, literal: Literal, given: Sequence[Literal] = ()) -> None:
        """Require a literal if all ``given`` literals hold."""
        if literal == TRUE or FALSE in given:
            return
        clause = [-condition for condition in given if condition != TRUE]
        if literal != FALSE:
            clause.append(literal)
        if not clause:
            self.infeasible = True
        elif len(clause) == 1:
            self._fix(clause[0])
        else:
            self.model.add_bool_or([self.cp_literal(member) for member in clause])

    def require_at_most(
        self, number: IntExpression, limit: int, given: Sequence[Literal] = ()
    ) -> None:
        """Require that a number is at most the limit if all ``given`` literals hold."""
        least, most = self.bounds(number)
        if most <= limit or FALSE in given:
            return
        if least > limit:
            self.require(FALSE, given)
            return
        constraint = self.model.add(self.expression(number) <= limit)
        conditions = [self.cp_literal(literal) for literal in given if literal != TRUE]
        if conditions:
            constraint.only_enforce_if(conditions)

    def require_equal(
        self, number: IntExpression, other: IntExpression, given: Sequence[Literal] = ()
    ) -> None:
        """Require that two numbers are equal if all ``given`` literals hold."""
        difference = LinearSum.of(number) - LinearSum.of(other)
        self.require_at_most(difference, 0, given)
        self.require_at_most(-difference, 0, given)

    def require_one(self, literals: Iterable[Literal]) -> None:
        """Require that exactly one literal holds; none of them is known."""
        self.model.add_exactly_one([self.cp_literal(literal) for literal in literals])

    def require_cumulative(self, spans: Sequence[OptionalUse], most: int) -> None:
        """Require that the uses at one time never exceed the capacity."""
        if all(map(_is_known, spans)):
            self.infeasible |= _peak(spans) > most
            return
        intervals = [self._interval(shape, present) for shape, present, _ in spans]
        self.model.add_cumulative(intervals, [need for _, _, need in spans], most)

    def _interval(self, shape: Interval, present: Literal) -> Any:
        start, size, end = map(self.expression, shape)
        return self.model.new_optional_interval_var(start, size, end, self.cp_literal(present), "")

    def _fix(self, literal: Literal) -> None:
        self.model.add_bool_or([self.cp_literal(literal)])

    # The interface to CP-SAT

    def cp_literal(self, literal: Literal) -> Any:
        """Return the CP-SAT form of a literal."""
        if literal in (TRUE, FALSE):
            return self.model.new_constant(int(literal == TRUE))
        return self._variables[literal] if literal > 0 else self._variables[-literal].negated()

    def expression(self, number: IntExpression) -> Any:
        """Return the CP-SAT form of a number."""
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
        """Return the values of a solution, by the indices of the variables."""
        variables = self._variables[_FIRST_VARIABLE:]
        return [0, 1, *(int(solver.value(variable)) for variable in variables)]

    def hint(self, number: IntExpression, value: int) -> None:
        """Give the solver a first value of one variable."""
        if isinstance(number, LinearSum) and len(number.terms) == 1:
            ((index, factor),) = number.terms.items()
            self.model.add_hint(self._variables[index], (value - number.constant) // factor)

    def hint_all(self, values: Sequence[int]) -> None:
        """Give the solver an earlier solution as the first values."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in zip(
            self._variables[_FIRST_VARIABLE:], values[_FIRST_VARIABLE:], strict=False
        ):
            self.model.add_hint(variable, value)


def _is_known(span: OptionalUse) -> bool:
    shape, present, _ = span
    return present in (TRUE, FALSE) and all(isinstance(time, int) for time in shape)


def _peak(spans: Sequence[OptionalUse]) -> int:
    """Return the largest use at any time, if everything is known."""
    changes: list[tuple[int, int]] = []
    for (start, _, end), present, need in spans:
        if present == TRUE and isinstance(start, int) and isinstance(end, int) and start < end:
            changes += ((start, need), (end, -need))
    level = peak = 0
    # At one instant the negative changes sort first: ends come before starts.
    for _, change in sorted(changes):
        level += change
        peak = max(peak, level)
    return peak


def as_number(literal: Literal) -> IntExpression:
    """Return 1 if the literal holds, else 0."""
    if literal in (TRUE, FALSE):
        return int(literal == TRUE)
    return LinearSum(0, {literal: 1}) if literal > 0 else LinearSum(1, {-literal: -1})


def weighted_sum(weighted: Iterable[tuple[int, Literal]]) -> IntExpression:
    """Return the sum of the amounts whose literals hold."""
    constant, terms = 0, dict[int, int]()
    for amount, literal in weighted:
        if literal == TRUE:
            constant += amount
        elif literal > 1:
            terms[literal] = terms.get(literal, 0) + amount
        elif literal < -1:
            constant += amount
            terms[-literal] = terms.get(-literal, 0) - amount
    return LinearSum.plain(constant, terms)
