"""The operators and functions of the language on values that are not decided yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import nlargest
from typing import Any, Final

from equipoise.model.vm import VmState
from equipoise.plan.exact.solver import (
    FALSE,
    TRUE,
    CpModelBuilder,
    IntExpression,
    LinearSum,
    Literal,
    as_number,
    weighted_sum,
)
from equipoise.plan.exact.timeline.states import TimelineState
from equipoise.plan.exact.values import (
    OneOf,
    SymbolicBool,
    SymbolicList,
    SymbolicSet,
    UnsupportedFormula,
    elements_of,
    is_known,
    literal_of,
    members_of,
    membership_literal,
    one_of,
    options_of,
    symbolic_set,
    value_of_literal,
)
from equipoise.spec.evaluate.domains import is_packing
from equipoise.spec.evaluate.view import capacity_of, demand_of
from equipoise.spec.functions import BUILT_IN_FUNCTIONS


class SymbolicOperators:
    """The operators, on one model."""

    def __init__(self, builder: CpModelBuilder) -> None:
        self.builder = builder

    def related(self, operator: str, left: Any, right: Any) -> Literal:
        """Return the literal that an operator relates two values."""
        relation, opposite = RELATIONS[operator]
        if relation is None:
            return self.builder.at_most(*as_upper_bound(operator, left, right))
        literal = relation(self, left, right)
        return -literal if opposite else literal

    def equal(self, left: Any, right: Any) -> Literal:
        """Return the literal that two values are equal."""
        if is_known(left) and is_known(right):
            return TRUE if left == right else FALSE
        if isinstance(left, LinearSum) or isinstance(right, LinearSum):
            return self.builder.equal(_number(left), _number(right))
        if isinstance(left, SymbolicSet) or isinstance(right, SymbolicSet):
            return self.builder.all(
                (self.subset(left, right), self.subset(right, left))
            )  # fmt: skip
        if isinstance(left, SymbolicList) or isinstance(right, SymbolicList):
            return self._equal_lists(left, right)
        left_options, right_options = options_of(left), options_of(right)
        if isinstance(left, SymbolicBool) and isinstance(right, SymbolicBool):
            # Equal if both are true or both are false.
            return self.builder.any(
                self.builder.all((left_options[value], right_options[value]))
                for value in left_options
            )
        # Only values that both sides may have can be equal: loop over the shorter side.
        few, many = sorted((left_options, right_options), key=len)
        return self.builder.any(
            self.builder.all((literal, many[value]))
            for value, literal in few.items()
            if value in many
        )

    def _equal_lists(self, left: Any, right: Any) -> Literal:
        for known, other in ((left, right), (right, left)):
            if is_known(known) and len(known) == 0:  # only the empty list can be compared
                return self.builder.all(-literal for _, literal in elements_of(other))
        raise UnsupportedFormula("two undecided lists are compared")

    def member(self, value: Any, collection: Any) -> Literal:
        """Return the literal that a value is in a set or in a list."""
        if isinstance(value, LinearSum | SymbolicSet | SymbolicList) or isinstance(
            collection, SymbolicList
        ):
            return self.builder.any(
                self.builder.all((literal, self.equal(value, element)))
                for element, literal in elements_of(collection)
            )
        return self.builder.any(
            self.builder.all((literal, membership_literal(option, collection)))
            for option, literal in options_of(value).items()
        )

    def subset(self, left: Any, right: Any) -> Literal:
        """Return the literal that all members of the left set are in the right one."""
        known = is_known(left) and is_known(right)
        if known:
            return TRUE if frozenset(left) <= frozenset(right) else FALSE
        return self.builder.all(
            self.builder.any((-literal, self.member(element, right)))
            for element, literal in elements_of(left)
        )

    def packing(self, groups: Any, domain: Any) -> Literal:
        """Return the literal that groups are disjoint and within a domain."""
        if is_known(groups) and is_known(domain):
            return TRUE if is_packing(groups, domain) else FALSE
        holders: dict[Any, list[Literal]] = {}
        within: list[Literal] = []
        for group, present in elements_of(groups):
            for element, inside in elements_of(group):
                both = self.builder.all((present, inside))
                holders.setdefault(element, []).append(both)
                within.append(self.builder.any((-both, self.member(element, domain))))
        alone = (self._at_most_one(literals) for literals in holders.values())
        return self.builder.all((*within, *alone))

    def _at_most_one(self, literals: list[Literal]) -> Literal:
        return self.builder.at_most(weighted_sum((1, literal) for literal in literals), 1)

    def both(self, left: Any, right: Any) -> Any:
        """Return the intersection of two sets."""
        return symbolic_set(
            {
                element: self.builder.all((literal, membership_literal(element, right)))
                for element, literal in members_of(left).items()
            }
        )

    def either(self, left: Any, right: Any) -> Any:
        """Return the union of two sets."""
        return self.union([members_of(left), members_of(right)])

    def without(self, left: Any, right: Any) -> Any:
        """Return the left set without the members of the right one."""
        return symbolic_set(
            {
                element: self.builder.all((literal, -membership_literal(element, right)))
                for element, literal in members_of(left).items()
            }
        )

    def union(self, sets: list[Mapping[Any, Literal]]) -> Any:
        """Return the union of some sets."""
        literals: dict[Any, list[Literal]] = {}
        for members in sets:
            for member, literal in members.items():
                literals.setdefault(member, []).append(literal)
        return symbolic_set({member: self.builder.any(some) for member, some in literals.items()})

    def count(self, collection: Any) -> IntExpression:
        """Return the number of members."""
        if is_known(collection):
            return len(collection)
        return weighted_sum((1, literal) for _, literal in elements_of(collection))

    def added(self, numbers: Any) -> IntExpression:
        """Return the sum of the numbers of a list."""
        if is_known(numbers):
            known: int = sum(numbers)
            return known
        result: IntExpression = 0
        for number, literal in elements_of(numbers):
            result = result + self.times_literal(number, literal)
        return result

    def times_literal(self, number: IntExpression, literal: Literal) -> IntExpression:
        """Return the number if the literal holds, else 0."""
        if literal == TRUE:
            return number
        if literal == FALSE:
            return 0
        if isinstance(number, int):
            return as_number(literal) * number
        product: IntExpression = as_number(literal) * number.constant
        for index, factor in number.terms.items():
            # A product with a variable other than 0 or 1 is not linear.
            if self.builder.bounds(LinearSum(0, {index: 1})) != (0, 1):
                raise UnsupportedFormula("an undecided number is counted under a condition")
            product = product + as_number(self.builder.all((index, literal))) * factor
        return product

    def merged(self, options: list[tuple[Any, Literal]]) -> Any:
        """Return the value whose literal holds; exactly one of the literals does."""
        options = [(value, literal) for value, literal in options if literal != FALSE]
        first = options[0][0]
        if all(literal == TRUE for _, literal in options) or all(
            # In Python ``True == 1``: a truth value and a number must not merge.
            is_known(value) and value == first and type(value) is type(first)
            for value, _ in options
        ):
            return first
        if isinstance(first, bool | SymbolicBool):
            return value_of_literal(
                self.builder.any(
                    self.builder.all((literal, literal_of(value))) for value, literal in options
                )
            )
        if isinstance(first, int | LinearSum):
            total: IntExpression = 0
            for value, literal in options:
                total = total + self.times_literal(value, literal)
            return total
        if isinstance(first, frozenset | SymbolicSet):
            return self.union(
                [
                    {
                        element: self.builder.all((literal, inside))
                        for element, inside in elements_of(value)
                    }
                    for value, literal in options
                ]
            )
        return self._merged_choices(options)

    def _merged_choices(self, options: list[tuple[Any, Literal]]) -> Any:
        if any(isinstance(value, tuple | SymbolicList) for value, _ in options):
            raise UnsupportedFormula("a list depends on an undecided value")
        literals: dict[Any, list[Literal]] = {}
        for value, literal in options:
            for option, chosen in options_of(value).items():
                literals.setdefault(option, []).append(self.builder.all((literal, chosen)))
        return one_of({option: self.builder.any(some) for option, some in literals.items()})


def _number(value: Any) -> IntExpression:
    if isinstance(value, int | LinearSum):
        return value
    if isinstance(value, OneOf):
        return weighted_sum((number, literal) for number, literal in value.options.items())
    raise UnsupportedFormula(f"{value} is not a number")


def as_upper_bound(operator: str, left: Any, right: Any) -> tuple[Any, int]:
    """Return a comparison as an expression and its upper bound."""
    if isinstance(left, OneOf | SymbolicBool) or isinstance(right, OneOf | SymbolicBool):
        raise UnsupportedFormula("values other than numbers are ordered")
    smaller, larger = (left, right) if operator in ("<=", "<") else (right, left)
    # In whole numbers ``a < b`` is ``a - b <= -1``.
    return smaller - larger, 0 if operator in ("<=", ">=") else -1


_Relation = Callable[[SymbolicOperators, Any, Any], Literal]
RELATIONS: Final[Mapping[str, tuple[_Relation | None, bool]]] = {
    "=": (SymbolicOperators.equal, False),
    "/=": (SymbolicOperators.equal, True),
    ":": (SymbolicOperators.member, False),
    "/:": (SymbolicOperators.member, True),
    "<:": (SymbolicOperators.subset, False),
    "/<:": (SymbolicOperators.subset, True),
    "<<:": (SymbolicOperators.packing, False),
    "/<<:": (SymbolicOperators.packing, True),
    **dict.fromkeys(("<=", "<", ">=", ">"), (None, False)),
}
"""For each operator with a truth value: the relation, and whether the operator negates it.

An order of numbers has no relation here; ``as_upper_bound`` gives it to the builder.
"""


SymbolicFunction = Callable[..., Any]


class SymbolicFunctions:
    """The functions; each takes a state and its arguments, which are known.

    Only ``card`` and ``sum`` take undecided collections.
    """

    def __init__(self, operators: SymbolicOperators) -> None:
        self._operators = operators
        self._of_collections: dict[str, SymbolicFunction] = {
            "card": lambda _, members: operators.count(members),
            "sum": lambda _, numbers: operators.added(numbers),
            "largest": _largest,
            "range": lambda _, elements: tuple(range(len(_known(elements)))),
            "lists": lambda _, members: BUILT_IN_FUNCTIONS["lists"](None, None, _known(members)),
            "runs": self._runs,
            "colocated": self._colocated,
        }

    def named(self, name: str) -> SymbolicFunction:
        """Return a function by its name."""
        function = self._of_collections.get(name) or _STATE_FUNCTIONS.get(name)
        if function is None:
            raise UnsupportedFormula(f"the solver has no form of the function {name}")
        return function

    def _runs(self, state: TimelineState, vm: Any) -> Any:
        return value_of_literal(self._operators.equal(state.vm_state(vm), VmState.RUNNING.value))

    def _colocated(self, state: TimelineState, vm: Any) -> Any:
        """Return the VMs that run on the host of a running VM; empty if the VM does not run."""
        runs = literal_of(self._runs(state, vm))
        all_of = self._operators.builder.all
        return self._operators.union(
            [
                {
                    other: all_of((runs, here, present))
                    for other, present in elements_of(state.running(host))
                }
                for host, here in options_of(state.vm_host(vm)).items()
                if host is not None
            ]
        )


def _known(value: Any) -> Any:
    if not is_known(value):
        raise UnsupportedFormula("a list is undecided")
    return value


def _largest(_: TimelineState, numbers: Any, count: Any) -> Any:
    return tuple(nlargest(_known(count), _known(numbers)))


def _ft_pair(state: TimelineState, vm: Any) -> Any:
    other = state.snapshot.vms[vm].ft_pair
    return frozenset([other]) if other in state.snapshot.vms else frozenset()


_STATE_FUNCTIONS: Final[dict[str, SymbolicFunction]] = {
    "host": lambda state, vm: state.vm_host(vm),
    "hosted": lambda state, host: frozenset() if host is None else state.hosted(host),
    "running": lambda state, host: frozenset() if host is None else state.running(host),
    "vmState": lambda state, vm: state.vm_state(vm),
    "hostState": lambda state, host: None if host is None else state.host_state(host),
    "cons": lambda state, vm, name: state.consumption(vm, name),
    "capa": lambda state, host, name: (
        0 if host is None else capacity_of(state.snapshot.hosts[host], name)
    ),
    "demand": lambda state, vm, name: demand_of(state.snapshot.vms[vm], name),
    "label of vm": lambda state, vm, key: state.snapshot.vms[vm].labels.get(key, ""),
    "label of host": lambda state, host, key: (
        "" if host is None else state.snapshot.hosts[host].labels.get(key, "")
    ),
    "pool": lambda state, vm: state.snapshot.vms[vm].pool or "",
    "tenant": lambda state, vm: state.snapshot.vms[vm].tenant or "",
    "agent": lambda state, vm: state.snapshot.vms[vm].agent,
    "ftPair": _ft_pair,
    "actions of vm": lambda state, vm: state.actions_on(vm),
    "actions of host": lambda state, host: state.actions_at(host),
    "underway of vm": lambda state, vm: state.underway_on(vm),
    "underway of host": lambda state, host: (
        frozenset() if host is None else state.underway_at(host)
    ),
    "kind": lambda _, action: action.kind,
    "source": lambda _, action: action.source,
    "target": lambda _, action: action.target,
    "begin": lambda _, action: action.begin_ms,
    "end": lambda _, action: action.end_ms,
}
"""The functions of a state by name. An action is a ``CandidateAction`` of a schedule."""
