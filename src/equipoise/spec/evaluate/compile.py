"""From syntax to closures: each term becomes a function, so evaluation looks up no names.

A variable is an index into the list of bindings, fixed when the closure is made. Inner names hide
outer ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from equipoise.errors import InvalidInput
from equipoise.spec.evaluate.domains import cached_members, choices, is_packing, members
from equipoise.spec.evaluate.incremental import (
    CollectionOverlay,
    Comprehension,
    IncrementalCollection,
)
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.functions import implementations
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Binding, Constraint, SourceText, StateRef, Term
from equipoise.spec.language.vocabulary import SETS, canonical_name

Closure = Callable[[EvaluationContext, list[Any]], Any]
Scope = Mapping[str, int]
CollectionLookup = Callable[
    [EvaluationContext, list[Any]], IncrementalCollection | CollectionOverlay | None
]

_BINARY_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "/=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "*": operator.mul,
    "-": operator.sub,
    ":": lambda value, members: value in members,
    "/:": lambda value, members: value not in members,
    "<:": lambda left, right: frozenset(left) <= frozenset(right),
    "/<:": lambda left, right: not frozenset(left) <= frozenset(right),
    "<<:": is_packing,
    "/<<:": lambda groups, members: not is_packing(groups, members),
    "/\\": operator.and_,
    "\\/": operator.or_,
    "<-->": operator.eq,
}


class Compiler:
    """Compiles the terms of one file, which may call its other constraints."""

    def __init__(
        self,
        source: SourceText,
        declared: Mapping[str, Constraint],
        overloads: Mapping[int, str],
        foreign: Mapping[str, Closure],
    ) -> None:
        self._source = source
        self.declared = declared
        """The constraints of the file, by name."""
        self._overloads = overloads
        self._foreign = foreign
        self._formulas: dict[str, Closure] = {}

    def constraint(self, constraint: Constraint) -> Closure:
        """Return the closure of a constraint; its arguments are the first bindings."""
        closure = self._formulas.get(constraint.name)
        if closure is None:
            scope = {parameter.name: index for index, parameter in enumerate(constraint.parameters)}
            closure = self._formulas[constraint.name] = self.term(constraint.formula, scope)
        return closure

    def function_of(self, call: syntax.Call) -> str:
        """Return the function of a call; one name may mean a function of VMs and one of hosts."""
        return self._overloads.get(id(call)) or canonical_name(call.function)

    def term(self, term: Term, scope: Scope) -> Closure:
        """Return the closure of a term; the scope maps names to indices of the bindings."""
        match term:
            case syntax.Name():
                return self._name(term, scope)
            case syntax.Number() | syntax.Text() | syntax.Boolean():
                value = term.value
                return lambda _context, _bindings: value
            case syntax.Call():
                return self._call(term, scope)
            case syntax.Operation():
                return self._operation(term, scope)
            case syntax.ForAll() | syntax.Exists():
                return self._quantified(term, scope)
            case syntax.SetWhere() | syntax.ListWhere():
                return self._where(term, scope)[0]
            case _:
                return self._rest(term, scope)

    def _rest(self, term: Term, scope: Scope) -> Closure:
        match term:
            case syntax.Not(term=inner):
                opposite = self.term(inner, scope)
                return lambda context, bindings: not opposite(context, bindings)
            case syntax.Minus(term=inner):
                number = self.term(inner, scope)
                return lambda context, bindings: -number(context, bindings)
            case syntax.SetOf(members=terms):
                members = [self.term(member, scope) for member in terms]
                return lambda context, bindings: frozenset(
                    member(context, bindings) for member in members
                )
            case syntax.ListOf(elements=terms):
                elements = [self.term(element, scope) for element in terms]
                return lambda context, bindings: tuple(
                    element(context, bindings) for element in elements
                )
            case syntax.Index():
                return self._index(term, scope)
            case syntax.Let():
                value = self.term(term.value, scope)
                body = self.term(term.body, {**scope, term.name: _next_index(scope)})
                return lambda context, bindings: body(
                    context, [*bindings, value(context, bindings)]
                )
            case syntax.Always() | syntax.Sometime():
                return self._during(term, scope)
            case _:
                raise AssertionError(f"no closure for {term}")

    def _name(self, term: syntax.Name, scope: Scope) -> Closure:
        index = scope.get(term.name)
        if index is not None:
            return lambda _context, bindings: bindings[index]
        name = canonical_name(term.name)
        if name in SETS:
            return lambda context, _bindings: context.now.names(name)
        return lambda _context, _bindings: name

    def _call(self, term: syntax.Call, scope: Scope) -> Closure:
        name = canonical_name(term.function)
        # An incremental collection keeps its size and sum; building the collection would cost more.
        if name in ("card", "sum") and isinstance(
            term.arguments[0], syntax.SetWhere | syntax.ListWhere
        ):
            return self._summed_up(name, term.arguments[0], scope)
        arguments = [self.term(argument, scope) for argument in term.arguments]
        state_of = _STATE_OF[term.moment]
        function = implementations().get(self.function_of(term))
        if function is None:
            own = self.declared.get(term.function)
            formula = self._foreign[term.function] if own is None else self.constraint(own)
            return lambda context, bindings: formula(
                context.at(state_of(context)),
                [argument(context, bindings) for argument in arguments],
            )
        if len(arguments) == 1:  # the common case, in the innermost loop
            (only,) = arguments
            return lambda context, bindings: function(
                state_of(context), context, only(context, bindings)
            )
        return self._guarded(
            term,
            lambda context, bindings: function(
                state_of(context), context, *(argument(context, bindings) for argument in arguments)
            ),
        )

    def _operation(self, term: syntax.Operation, scope: Scope) -> Closure:
        left, right = self.term(term.left, scope), self.term(term.right, scope)
        match term.operator:
            case "&":
                return lambda context, bindings: (
                    left(context, bindings) and right(context, bindings)
                )
            case "|":
                return lambda context, bindings: left(context, bindings) or right(context, bindings)
            case "-->":
                return lambda context, bindings: (
                    not left(context, bindings) or right(context, bindings)
                )
            case "+":
                return lambda context, bindings: _add(
                    left(context, bindings), right(context, bindings)
                )
            case "/":
                return self._guarded(
                    term,
                    lambda context, bindings: _divide(
                        left(context, bindings), right(context, bindings)
                    ),
                )
            case other:
                act = _BINARY_OPERATORS[other]
                return lambda context, bindings: act(
                    left(context, bindings), right(context, bindings)
                )

    def _index(self, term: syntax.Index, scope: Scope) -> Closure:
        sequence, position = self.term(term.sequence, scope), self.term(term.position, scope)

        def pick(context: EvaluationContext, bindings: list[Any]) -> Any:
            at, elements = position(context, bindings), sequence(context, bindings)
            if not 0 <= at < len(elements):
                raise IndexError(f"the list has no position {at}")
            return elements[at]

        return self._guarded(term, pick)

    def _quantified(self, term: syntax.ForAll | syntax.Exists, scope: Scope) -> Closure:
        inner, each = self._each(term.binders, scope)
        body = self.term(term.body, inner)
        # ``all`` and ``any`` stop at the first value that decides, as the language requires.
        if isinstance(term, syntax.ForAll):
            return lambda context, bindings: all(
                body(context, now) for now in each(context, bindings, 0)
            )
        return lambda context, bindings: any(
            body(context, now) for now in each(context, bindings, 0)
        )

    def _where(
        self, term: syntax.SetWhere | syntax.ListWhere, scope: Scope
    ) -> tuple[Closure, CollectionLookup]:
        """Return the closure of a collection by rule, and the lookup of its cached form."""
        inner, each = self._each(term.binders, scope)
        domain = self.term(term.binders[0].domain, scope)
        body = self.term(term.term, inner)
        conditions = [self.term(condition, inner) for condition in term.conditions]
        gather = frozenset if isinstance(term, syntax.SetWhere) else tuple

        def values(
            context: EvaluationContext, bindings: list[Any], bound: int = 0
        ) -> Iterator[Any]:
            return (
                body(context, now)
                for now in each(context, bindings, bound)
                if all(condition(context, now) for condition in conditions)
            )

        # The cache asks for one member of the first domain at a time, so that binder is bound
        # already.
        def contribution(context: EvaluationContext, bindings: list[Any]) -> tuple[Any, ...]:
            return tuple(values(context, bindings, 1))

        comprehension = Comprehension(id(term), isinstance(term, syntax.SetWhere), contribution)

        def lookup(
            context: EvaluationContext, bindings: list[Any]
        ) -> IncrementalCollection | CollectionOverlay | None:
            # Members come and go one by one. A changed member changes many subsets or packings, so
            # a cache of those would save nothing.
            if context.collections is None or term.binders[0].binding is not Binding.MEMBER:
                return None
            return context.collections.lookup(
                comprehension, domain(context, bindings), bindings, context
            )

        def collect(context: EvaluationContext, bindings: list[Any]) -> Any:
            cached = lookup(context, bindings)
            return gather(values(context, bindings)) if cached is None else cached.whole()

        return collect, lookup

    def _summed_up(
        self, name: str, term: syntax.SetWhere | syntax.ListWhere, scope: Scope
    ) -> Closure:
        """Return the closure of a count or a sum; a cached collection knows it at once."""
        collect, lookup = self._where(term, scope)
        aggregate: Callable[[Any], int] = len if name == "card" else sum

        def closure(context: EvaluationContext, bindings: list[Any]) -> int:
            cached = lookup(context, bindings)
            if cached is None:
                return aggregate(collect(context, bindings))
            return cached.card() if name == "card" else cached.total()

        return closure

    def _each(
        self, binders: tuple[syntax.Binder, ...], scope: Scope
    ) -> tuple[Scope, Callable[[EvaluationContext, list[Any], int], Iterator[list[Any]]]]:
        """Return the scope inside some binders, and an iterator over all extended bindings."""
        inner = dict(scope)
        loops: list[tuple[Callable[[Any], Iterable[Any]], Closure, int]] = []
        for binder in binders:
            domain = self._guarded(binder, self.term(binder.domain, inner))
            known = _next_index(inner)
            chosen = self._choices(binder)
            for name in binder.names:
                loops.append((chosen, domain, known))
                inner[name] = _next_index(inner)
        last = len(loops) - 1

        def each(
            context: EvaluationContext, bindings: list[Any], depth: int
        ) -> Iterator[list[Any]]:
            if depth > last:
                yield bindings
                return
            chosen, domain, known = loops[depth]
            # The names of one binder do not see each other, so its domain must not see them either.
            values = chosen(domain(context, bindings[:known]))
            if depth == last:  # the innermost loop runs most often
                for value in values:
                    yield [*bindings, value]
            else:
                for value in values:
                    yield from each(context, [*bindings, value], depth + 1)

        return inner, each

    def _choices(self, binder: syntax.Binder) -> Callable[[Any], Iterable[Any]]:
        """Return the function from a collection to the values of a variable that ranges over it."""
        if binder.binding is Binding.MEMBER:
            # A named set comes back for each outer value; a computed one is rarely the same twice.
            return cached_members if isinstance(binder.domain, syntax.Name) else members

        def chosen(domain: Any) -> Iterator[Any]:
            try:
                yield from choices(binder.binding, domain)
            except ValueError as error:
                raise self._source.refused(
                    binder.place, str(error), code="evaluation-failed"
                ) from None

        return chosen

    def _during(self, term: syntax.Always | syntax.Sometime, scope: Scope) -> Closure:
        body = self.term(term.body, scope)
        judge = all if isinstance(term, syntax.Always) else any

        def during(context: EvaluationContext, bindings: list[Any]) -> bool:
            if context.temporal_cache is None or not context.moments:
                views = context.moments or (context.now,)
                return judge(body(context.at(view), bindings) for view in views)
            # The value does not depend on the current moment, only on the bindings.
            key = (id(term), *bindings)
            if key not in context.temporal_cache:
                context.temporal_cache[key] = judge(
                    body(context.at(view), bindings) for view in context.moments
                )
            return context.temporal_cache[key]

        return during

    def _guarded(
        self, node: syntax.Call | syntax.Operation | syntax.Index | syntax.Binder, closure: Closure
    ) -> Closure:
        """Raise an error with the position if a value is undefined, such as a division by zero."""

        def guarded(context: EvaluationContext, bindings: list[Any]) -> Any:
            try:
                return closure(context, bindings)
            except (ArithmeticError, IndexError, ValueError) as error:
                raise self._refused(node, error) from None

        return guarded

    def _refused(
        self, node: syntax.Call | syntax.Operation | syntax.Index | syntax.Binder, error: Exception
    ) -> InvalidInput:
        what = f"it has no value: {error}"
        return self._source.refused(node.place, what, code="evaluation-failed")


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise ZeroDivisionError(f"{left} is divided by zero")
    return left // right


def _add(left: Any, right: Any) -> Any:
    return left | right if isinstance(left, frozenset) else left + right


def _next_index(scope: Scope) -> int:
    """Return the next free index; a hidden name keeps its own."""
    return max(scope.values(), default=-1) + 1


_STATE_OF: Final[dict[StateRef, Callable[[EvaluationContext], StateView]]] = {
    StateRef.NOW: lambda context: context.now,
    StateRef.INITIAL: lambda context: context.initial,
    StateRef.FINAL: lambda context: context.final,
}
