"""From syntax to a function: each term becomes a closure, so nothing is looked up while judging.

A variable is a place in a list, decided when the closure is made; inner names hide outer ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from equipoise.errors import InvalidInput
from equipoise.spec.choose import choices, is_packing, known_members, members
from equipoise.spec.extend import meanings
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
    SetOf,
    SetWhere,
    Sometime,
    Term,
    Text,
    Truth,
)
from equipoise.spec.language.vocabulary import SETS, plain
from equipoise.spec.tally import Changes, Rule, Tally
from equipoise.spec.view import Frame, View

Closure = Callable[[Frame, list[Any]], Any]
Scope = Mapping[str, int]
Recall = Callable[[Frame, list[Any]], Tally | Changes | None]

_SIMPLE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "/=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "*": operator.mul,
    "-": operator.sub,
    ":": lambda one, some: one in some,
    "/:": lambda one, some: one not in some,
    "<:": lambda one, some: frozenset(one) <= frozenset(some),
    "/<:": lambda one, some: not frozenset(one) <= frozenset(some),
    "<<:": is_packing,
    "/<<:": lambda groups, some: not is_packing(groups, some),
    "/\\": operator.and_,
    "\\/": operator.or_,
    "<-->": operator.eq,
}


class Compiler:
    """Makes closures of the terms of one file, which may call its other constraints."""

    def __init__(
        self,
        source: Source,
        declared: Mapping[str, Constraint],
        asked: Mapping[int, str],
        foreign: Mapping[str, Closure],
    ) -> None:
        self._source = source
        self.declared = declared
        """The constraints of the file, by name."""
        self._asked = asked
        self._foreign = foreign
        self._formulas: dict[str, Closure] = {}

    def constraint(self, constraint: Constraint) -> Closure:
        """The formula of a constraint; its arguments are the first places of the list."""
        found = self._formulas.get(constraint.name)
        if found is None:
            scope = {one.name: place for place, one in enumerate(constraint.parameters)}
            found = self._formulas[constraint.name] = self.term(constraint.formula, scope)
        return found

    def function_of(self, call: Call) -> str:
        """Which function a call asks: those of VMs and of hosts have one name."""
        return self._asked.get(id(call)) or plain(call.function)

    def term(self, term: Term, scope: Scope) -> Closure:
        """The closure of a term in which some names mean places."""
        match term:
            case Name():
                return self._name(term, scope)
            case Number() | Text() | Truth():
                value = term.value
                return lambda _frame, _places: value
            case Call():
                return self._call(term, scope)
            case Operation():
                return self._operation(term, scope)
            case ForAll() | Exists():
                return self._quantified(term, scope)
            case SetWhere() | ListWhere():
                return self._where(term, scope)[0]
            case _:
                return self._rest(term, scope)

    def _rest(self, term: Term, scope: Scope) -> Closure:
        match term:
            case Not(term=inner):
                opposite = self.term(inner, scope)
                return lambda frame, places: not opposite(frame, places)
            case Minus(term=inner):
                number = self.term(inner, scope)
                return lambda frame, places: -number(frame, places)
            case SetOf(members=terms):
                members = [self.term(one, scope) for one in terms]
                return lambda frame, places: frozenset(one(frame, places) for one in members)
            case ListOf(elements=terms):
                elements = [self.term(one, scope) for one in terms]
                return lambda frame, places: tuple(one(frame, places) for one in elements)
            case Index():
                return self._index(term, scope)
            case Let():
                value = self.term(term.value, scope)
                body = self.term(term.body, {**scope, term.name: _width(scope)})
                return lambda frame, places: body(frame, [*places, value(frame, places)])
            case Always() | Sometime():
                return self._during(term, scope)
            case _:
                raise AssertionError(f"no closure for {term}")

    def _name(self, term: Name, scope: Scope) -> Closure:
        place = scope.get(term.name)
        if place is not None:
            return lambda _frame, places: places[place]
        name = plain(term.name)
        if name in SETS:
            return lambda frame, _places: frame.now.names(name)
        return lambda _frame, _places: name

    def _call(self, term: Call, scope: Scope) -> Closure:
        name = plain(term.function)
        if name in ("card", "sum") and isinstance(term.arguments[0], SetWhere | ListWhere):
            return self._summed_up(name, term.arguments[0], scope)
        arguments = [self.term(one, scope) for one in term.arguments]
        look = _LOOKS[term.moment]
        function = meanings().get(self.function_of(term))
        if function is None:
            own = self.declared.get(term.function)
            formula = self._foreign[term.function] if own is None else self.constraint(own)
            return lambda frame, places: formula(
                frame.at(look(frame)), [one(frame, places) for one in arguments]
            )
        if len(arguments) == 1:  # most have one, and this is the innermost loop
            (only,) = arguments
            return lambda frame, places: function(look(frame), frame, only(frame, places))
        return self._guarded(
            term,
            lambda frame, places: function(
                look(frame), frame, *(one(frame, places) for one in arguments)
            ),
        )

    def _operation(self, term: Operation, scope: Scope) -> Closure:
        left, right = self.term(term.left, scope), self.term(term.right, scope)
        match term.operator:
            case "&":
                return lambda frame, places: left(frame, places) and right(frame, places)
            case "|":
                return lambda frame, places: left(frame, places) or right(frame, places)
            case "-->":
                return lambda frame, places: not left(frame, places) or right(frame, places)
            case "+":
                return lambda frame, places: _plus(left(frame, places), right(frame, places))
            case "/":
                return self._guarded(
                    term, lambda frame, places: _over(left(frame, places), right(frame, places))
                )
            case other:
                act = _SIMPLE[other]
                return lambda frame, places: act(left(frame, places), right(frame, places))

    def _index(self, term: Index, scope: Scope) -> Closure:
        sequence, position = self.term(term.sequence, scope), self.term(term.position, scope)

        def pick(frame: Frame, places: list[Any]) -> Any:
            at, some = position(frame, places), sequence(frame, places)
            if not 0 <= at < len(some):
                raise IndexError(f"there is no position {at}")
            return some[at]

        return self._guarded(term, pick)

    def _quantified(self, term: ForAll | Exists, scope: Scope) -> Closure:
        inner, each = self._each(term.binders, scope)
        body = self.term(term.body, inner)
        if isinstance(term, ForAll):
            return lambda frame, places: all(body(frame, now) for now in each(frame, places, 0))
        return lambda frame, places: any(body(frame, now) for now in each(frame, places, 0))

    def _where(self, term: SetWhere | ListWhere, scope: Scope) -> tuple[Closure, Recall]:
        """A collection by rule, and the tally that may be kept of it."""
        inner, each = self._each(term.binders, scope)
        domain = self.term(term.binders[0].domain, scope)
        body = self.term(term.term, inner)
        conditions = [self.term(one, inner) for one in term.conditions]
        gather = frozenset if isinstance(term, SetWhere) else tuple

        def values(frame: Frame, places: list[Any], bound: int = 0) -> Iterator[Any]:
            return (
                body(frame, now)
                for now in each(frame, places, bound)
                if all(condition(frame, now) for condition in conditions)
            )

        def share(frame: Frame, places: list[Any]) -> tuple[Any, ...]:
            return tuple(values(frame, places, 1))

        rule = Rule(id(term), isinstance(term, SetWhere), share)

        def recall(frame: Frame, places: list[Any]) -> Tally | Changes | None:
            if frame.memory is None or term.binders[0].binding is not Binding.MEMBER:
                return None
            return frame.memory.recall(rule, domain(frame, places), places, frame)

        def found(frame: Frame, places: list[Any]) -> Any:
            known = recall(frame, places)
            return gather(values(frame, places)) if known is None else known.whole()

        return found, recall

    def _summed_up(self, name: str, term: SetWhere | ListWhere, scope: Scope) -> Closure:
        """How many, or how much together: a tally knows it without going through all."""
        found, recall = self._where(term, scope)
        plainly: Callable[[Any], int] = len if name == "card" else sum

        def closure(frame: Frame, places: list[Any]) -> int:
            known = recall(frame, places)
            if known is None:
                return plainly(found(frame, places))
            return known.card() if name == "card" else known.total()

        return closure

    def _each(
        self, binders: tuple[Binder, ...], scope: Scope
    ) -> tuple[Scope, Callable[[Frame, list[Any], int], Iterator[list[Any]]]]:
        """The scope inside some binders, and all the ways to fill the places not yet filled."""
        inner = dict(scope)
        loops: list[tuple[Callable[[Any], Iterable[Any]], Closure, int]] = []
        for binder in binders:
            domain = self._guarded(binder, self.term(binder.domain, inner))
            known = _width(inner)
            chosen = self._choices(binder)
            for name in binder.names:
                loops.append((chosen, domain, known))
                inner[name] = _width(inner)
        last = len(loops) - 1

        def each(frame: Frame, places: list[Any], depth: int) -> Iterator[list[Any]]:
            if depth > last:
                yield places
                return
            chosen, domain, known = loops[depth]
            # The names of one binder do not see each other, so neither may its domain.
            values = chosen(domain(frame, places[:known]))
            if depth == last:  # the innermost loop runs most often
                for value in values:
                    yield [*places, value]
            else:
                for value in values:
                    yield from each(frame, [*places, value], depth + 1)

        return inner, each

    def _choices(self, binder: Binder) -> Callable[[Any], Iterable[Any]]:
        """What a variable may stand for, given the collection that it ranges over."""
        if binder.binding is Binding.MEMBER:
            return known_members if isinstance(binder.domain, Name) else members

        def chosen(domain: Any) -> Iterator[Any]:
            try:
                yield from choices(binder.binding, domain)
            except ValueError as error:
                raise self._source.refused(binder.place, str(error)) from None

        return chosen

    def _during(self, term: Always | Sometime, scope: Scope) -> Closure:
        body = self.term(term.body, scope)
        judge = all if isinstance(term, Always) else any

        def during(frame: Frame, places: list[Any]) -> bool:
            if frame.eternal is None or not frame.moments:
                views = frame.moments or (frame.now,)
                return judge(body(frame.at(view), places) for view in views)
            key = (id(term), *places)
            if key not in frame.eternal:
                frame.eternal[key] = judge(body(frame.at(one), places) for one in frame.moments)
            return frame.eternal[key]

        return during

    def _guarded(self, node: Call | Operation | Index | Binder, closure: Closure) -> Closure:
        """Say where it happened if a value makes no sense: a division by zero, a missing place."""

        def guarded(frame: Frame, places: list[Any]) -> Any:
            try:
                return closure(frame, places)
            except (ArithmeticError, IndexError, ValueError) as error:
                raise self._refused(node, error) from None

        return guarded

    def _refused(self, node: Call | Operation | Index | Binder, error: Exception) -> InvalidInput:
        return self._source.refused(node.place, f"cannot be computed: {error}")


def _over(left: int, right: int) -> int:
    if right == 0:
        raise ZeroDivisionError(f"{left} divided by zero")
    return left // right


def _plus(left: Any, right: Any) -> Any:
    return left | right if isinstance(left, frozenset) else left + right


def _width(scope: Scope) -> int:
    """The next free place; a hidden name keeps its own."""
    return max(scope.values(), default=-1) + 1


_LOOKS: Final[dict[Moment, Callable[[Frame], View]]] = {
    Moment.NOW: lambda frame: frame.now,
    Moment.INITIAL: lambda frame: frame.initial,
    Moment.FINAL: lambda frame: frame.final,
}
