"""What the operators of the language mean between values that are not decided yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from equipoise.plan.exact.formula.values import (
    Maybe,
    MaybeList,
    OneOf,
    Undecided,
    Unsupported,
    as_value,
    elements_of,
    is_known,
    maybe,
    members_of,
    one_of,
    options_of,
    truth_in,
    truth_of,
)
from equipoise.plan.exact.solver.circuit import NO, YES, Circuit, Truth, as_number, total
from equipoise.plan.exact.solver.number import Number, Sum
from equipoise.spec.choose import is_packing


class Operators:
    """The operators, on one circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit

    def related(self, operator: str, left: Any, right: Any) -> Truth:
        """Whether two values are related as an operator says."""
        relation, opposite = RELATIONS[operator]
        if relation is None:
            return self.circuit.at_most(*ordered(operator, left, right))
        truth = relation(self, left, right)
        return -truth if opposite else truth

    def equal(self, left: Any, right: Any) -> Truth:
        """Whether two values are the same."""
        if is_known(left) and is_known(right):
            return YES if left == right else NO
        if isinstance(left, Sum) or isinstance(right, Sum):
            return self.circuit.equal(_number(left), _number(right))
        if isinstance(left, Maybe) or isinstance(right, Maybe):
            return self.circuit.all(
                (self.subset(left, right), self.subset(right, left))
            )  # fmt: skip
        if isinstance(left, MaybeList) or isinstance(right, MaybeList):
            return self._equal_lists(left, right)
        ours, theirs = options_of(left), options_of(right)
        if isinstance(left, Undecided) and isinstance(right, Undecided):
            # the same whether both hold or neither does
            return self.circuit.any(self.circuit.all((ours[one], theirs[one])) for one in ours)
        few, many = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
        return self.circuit.any(
            self.circuit.all((truth, many[value])) for value, truth in few.items() if value in many
        )

    def _equal_lists(self, left: Any, right: Any) -> Truth:
        for one, other in ((left, right), (right, left)):
            if is_known(one) and len(one) == 0:  # the only list that one can tell from the outside
                return self.circuit.all(-truth for _, truth in elements_of(other))
        raise Unsupported("two lists that are not decided are compared")

    def member(self, value: Any, some: Any) -> Truth:
        """Whether a value is in a set or in a list."""
        if isinstance(value, Sum | Maybe | MaybeList) or isinstance(some, MaybeList):
            return self.circuit.any(
                self.circuit.all((truth, self.equal(value, one)))
                for one, truth in elements_of(some)
            )
        return self.circuit.any(
            self.circuit.all((truth, truth_in(one, some)))
            for one, truth in options_of(value).items()
        )

    def subset(self, left: Any, right: Any) -> Truth:
        """Whether all of the one are in the other."""
        known = is_known(left) and is_known(right)
        if known:
            return YES if frozenset(left) <= frozenset(right) else NO
        return self.circuit.all(
            self.circuit.any((-truth, self.member(one, right))) for one, truth in elements_of(left)
        )

    def packing(self, groups: Any, domain: Any) -> Truth:
        """Whether groups lie within a domain and have nothing in common."""
        if is_known(groups) and is_known(domain):
            return YES if is_packing(groups, domain) else NO
        holders: dict[Any, list[Truth]] = {}
        within: list[Truth] = []
        for group, there in elements_of(groups):
            for one, inside in elements_of(group):
                both = self.circuit.all((there, inside))
                holders.setdefault(one, []).append(both)
                within.append(self.circuit.any((-both, self.member(one, domain))))
        alone = (self._at_most_one(some) for some in holders.values())
        return self.circuit.all((*within, *alone))

    def _at_most_one(self, some: list[Truth]) -> Truth:
        return self.circuit.at_most(total((1, one) for one in some), 1)

    def both(self, left: Any, right: Any) -> Any:
        """What is in both sets."""
        return maybe(
            {
                one: self.circuit.all((truth, truth_in(one, right)))
                for one, truth in members_of(left).items()
            }
        )

    def either(self, left: Any, right: Any) -> Any:
        """What is in one set or the other."""
        return self.united([members_of(left), members_of(right)])

    def without(self, left: Any, right: Any) -> Any:
        """What is in one set and not in the other."""
        return maybe(
            {
                one: self.circuit.all((truth, -truth_in(one, right)))
                for one, truth in members_of(left).items()
            }
        )

    def united(self, some: list[Mapping[Any, Truth]]) -> Any:
        """Everything that is in some set."""
        found: dict[Any, list[Truth]] = {}
        for members in some:
            for one, truth in members.items():
                found.setdefault(one, []).append(truth)
        return maybe({one: self.circuit.any(truths) for one, truths in found.items()})

    def count(self, some: Any) -> Number:
        """How many there are."""
        if is_known(some):
            return len(some)
        return total((1, truth) for _, truth in elements_of(some))

    def added(self, numbers: Any) -> Number:
        """All numbers of a list together."""
        if is_known(numbers):
            known: int = sum(numbers)
            return known
        result: Number = 0
        for number, truth in elements_of(numbers):
            result = result + self.times_truth(number, truth)
        return result

    def times_truth(self, number: Number, truth: Truth) -> Number:
        """A number if something holds, else nothing."""
        if truth == YES:
            return number
        if truth == NO:
            return 0
        if isinstance(number, int):
            return as_number(truth) * number
        found: Number = as_number(truth) * number.constant
        for index, factor in number.terms.items():
            if self.circuit.bounds(Sum(0, {index: 1})) != (0, 1):
                raise Unsupported("a number that is not decided is counted or not")
            found = found + as_number(self.circuit.all((index, truth))) * factor
        return found

    def merged(self, options: list[tuple[Any, Truth]]) -> Any:
        """The value that belongs to whichever of some truths holds; exactly one of them does."""
        options = [(value, truth) for value, truth in options if truth != NO]
        first = options[0][0]
        if all(truth == YES for _, truth in options) or all(
            is_known(value) and value == first and type(value) is type(first)
            for value, _ in options
        ):
            return first
        if isinstance(first, bool | Undecided):
            return as_value(
                self.circuit.any(
                    self.circuit.all((truth, truth_of(value))) for value, truth in options
                )
            )
        if isinstance(first, int | Sum):
            found: Number = 0
            for value, truth in options:
                found = found + self.times_truth(value, truth)
            return found
        if isinstance(first, frozenset | Maybe):
            return self.united(
                [
                    {one: self.circuit.all((truth, inside)) for one, inside in elements_of(value)}
                    for value, truth in options
                ]
            )
        return self._merged_choices(options)

    def _merged_choices(self, options: list[tuple[Any, Truth]]) -> Any:
        if any(isinstance(value, tuple | MaybeList) for value, _ in options):
            raise Unsupported("a list depends on what is not decided")
        found: dict[Any, list[Truth]] = {}
        for value, truth in options:
            for one, chosen in options_of(value).items():
                found.setdefault(one, []).append(self.circuit.all((truth, chosen)))
        return one_of({one: self.circuit.any(truths) for one, truths in found.items()})


def _number(value: Any) -> Number:
    if isinstance(value, int | Sum):
        return value
    if isinstance(value, OneOf):
        return total((number, truth) for number, truth in value.options.items())
    raise Unsupported(f"{value} is not a number")


def ordered(operator: str, left: Any, right: Any) -> tuple[Any, int]:
    """A comparison as a number and the most it may be."""
    if isinstance(left, OneOf | Undecided) or isinstance(right, OneOf | Undecided):
        raise Unsupported("an order of values that are not numbers")
    smaller, larger = (left, right) if operator in ("<=", "<") else (right, left)
    return smaller - larger, 0 if operator in ("<=", ">=") else -1


_Relation = Callable[[Operators, Any, Any], Truth]
RELATIONS: Final[Mapping[str, tuple[_Relation | None, bool]]] = {
    "=": (Operators.equal, False),
    "/=": (Operators.equal, True),
    ":": (Operators.member, False),
    "/:": (Operators.member, True),
    "<:": (Operators.subset, False),
    "/<:": (Operators.subset, True),
    "<<:": (Operators.packing, False),
    "/<<:": (Operators.packing, True),
    **dict.fromkeys(("<=", "<", ">=", ">"), (None, False)),
}
"""Of each operator that gives a truth, what tells it and whether it is the opposite of that.

Nothing tells an order of numbers: that is for the circuit.
"""
