"""From syntax to a function over arrays.

A variable that ranges over VMs or hosts stands for each of them in turn, as a plain number, under a
mask that marks the cases in which it is a member. A term that depends on few variables is computed
once for their values, however many other variables are bound around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from equipoise.model.host import HOST_STATES
from equipoise.model.vm import VM_STATES
from equipoise.spec.batch.cases import Unbatchable
from equipoise.spec.batch.functions import BATCH_FUNCTIONS, BATCH_OPERATORS, mask_of
from equipoise.spec.batch.moments import BatchTimeline, StateRows
from equipoise.spec.batch.values import (
    BatchBitSet,
    BatchScalar,
    BatchValue,
    Mask,
    MaskedItems,
    as_collection,
    bool_value,
    choices,
    element_at,
    is_in_order,
    is_never_true,
    mask_and,
    mask_not,
    mask_or,
    number_value,
)
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Constraint, StateRef, Term, names_in
from equipoise.spec.language.vocabulary import SETS, canonical_name


class BatchView:
    """Some moments of a timeline, with the values that were computed for them."""

    def __init__(self, timeline: BatchTimeline, rows: slice, views: dict[Any, BatchView]) -> None:
        self.timeline = timeline
        self.rows: StateRows = timeline.rows.only(rows)
        self.known: dict[Any, tuple[BatchValue, Any]] = {}
        """By term and the values of its variables, which are kept because ids identify them."""
        self._views = views

    @classmethod
    def whole(cls, timeline: BatchTimeline) -> BatchView:
        """Return a view of all moments."""
        views: dict[Any, BatchView] = {}
        views[StateRef.NOW] = cls(timeline, slice(None), views)
        return views[StateRef.NOW]

    def at(self, moment: StateRef) -> BatchView:
        """Return the same timeline at the initial or the final moment."""
        return self if moment is StateRef.NOW else self._view(moment)

    def always(self) -> BatchView:
        """Return the same timeline at all moments."""
        return self._view(StateRef.NOW)

    def forget(self) -> None:
        """Drop the values and uncertainties of the previous formula."""
        self.timeline.uncertain = np.zeros_like(self.timeline.uncertain)
        for view in self._views.values():
            view.known.clear()

    def _view(self, moment: StateRef) -> BatchView:
        view = self._views.get(moment)
        if view is None:
            rows = slice(0, 1) if moment is StateRef.INITIAL else slice(-1, None)
            view = self._views[moment] = BatchView(self.timeline, rows, self._views)
        return view


BatchNames = Mapping[str, BatchValue]
BatchFormula = Callable[[BatchView, BatchNames], BatchValue]


class BatchCompiler:
    """Compiles the terms of one file to functions over arrays."""

    def __init__(self, declared: Mapping[str, Constraint]) -> None:
        self._declared = declared
        self._formulas: dict[str, BatchFormula] = {}
        self._positions: frozenset[tuple[syntax.Name, syntax.Name]] = frozenset()
        """Variables that range over the positions of a list, each with its list."""

    def constraint(self, constraint: Constraint) -> BatchFormula:
        """Return the function of a constraint; its arguments are given by name."""
        formula = self._formulas.get(constraint.name)
        if formula is None:
            formula = self._formulas[constraint.name] = self.term(constraint.formula)
        return formula

    def term(self, term: Term) -> BatchFormula:
        """Return the function of a term; the view caches its results by the bound values."""
        compute = self._compute(term)
        if not isinstance(
            term, syntax.Call | syntax.Operation | syntax.SetWhere | syntax.ListWhere
        ):
            return compute
        # Only the names that occur in the term: a value is shared by all bindings of other names.
        names = tuple(sorted(names_in(term)))

        def cached(view: BatchView, values: BatchNames) -> BatchValue:
            given = [values.get(name) for name in names]
            key = (id(term), *map(_identity, given))
            entry = view.known.get(key)
            if entry is None:
                # The entry keeps the given values alive, so that their ids stay unique.
                entry = view.known[key] = compute(view, values), given
            return entry[0]

        return cached

    def _compute(self, term: Term) -> BatchFormula:
        match term:
            case syntax.Name():
                return self._name(term)
            case syntax.Number() | syntax.Text() | syntax.Boolean():
                return _constant(term)
            case syntax.Call():
                return self._call(term)
            case syntax.Operation():
                return self._operation(term)
            case syntax.ForAll() | syntax.Exists():
                return self._quantified(term)
            case syntax.SetWhere() | syntax.ListWhere():
                return self._where(term)
            case _:
                return self._rest(term)

    def _rest(self, term: Term) -> BatchFormula:
        match term:
            case syntax.Not(term=inner):
                negated = self.term(inner)
                return lambda view, names: bool_value(mask_not(mask_of(negated(view, names))))
            case syntax.Minus(term=inner):
                value = self.term(inner)
                return lambda view, names: _negative(value(view, names))
            case syntax.SetOf(members=terms) | syntax.ListOf(elements=terms):
                parts, is_list = (
                    [self.term(part) for part in terms],
                    isinstance(term, syntax.ListOf),
                )
                return lambda view, names: as_collection(
                    [(True, part(view, names)) for part in parts], is_list=is_list, in_order=True
                )
            case syntax.Index():
                return self._index(term)
            case syntax.Let():
                value, body, name = self.term(term.value), self.term(term.body), term.name
                return lambda view, names: body(view, {**names, name: value(view, names)})
            case syntax.Always() | syntax.Sometime():
                return self._during(term)
            case _:
                raise AssertionError(f"no function for {term}")

    def _name(self, term: syntax.Name) -> BatchFormula:
        name, own = term.name, canonical_name(term.name)

        def look(view: BatchView, names: BatchNames) -> BatchValue:
            bound = names.get(name)
            if bound is not None:
                return bound
            if own in SETS:
                cases = view.rows.cases
                present = cases.vm_present if own == "vms" else cases.host_present
                return BatchBitSet(own.removesuffix("s"), present[None])
            return _STATES[own]

        return look

    def _call(self, term: syntax.Call) -> BatchFormula:
        arguments = [self.term(argument) for argument in term.arguments]
        moment, name = term.moment, canonical_name(term.function)
        function = BATCH_FUNCTIONS.get(name)
        if function is None and term.function not in self._declared:
            raise Unbatchable(f"{name} has no form for arrays")
        if function is None:
            declared = self._declared[term.function]
            formula = self.constraint(declared)
            parameters = [parameter.name for parameter in declared.parameters]
            return lambda view, names: formula(
                view.at(moment),
                dict(
                    zip(parameters, (argument(view, names) for argument in arguments), strict=True)
                ),
            )
        return lambda view, names: function(
            view.at(moment).rows, *(argument(view, names) for argument in arguments)
        )

    def _operation(self, term: syntax.Operation) -> BatchFormula:
        left, right = self.term(term.left), self.term(term.right)
        if term.operator == "/":
            return lambda view, names: _quotient(view, left(view, names), right(view, names))
        act = BATCH_OPERATORS[term.operator]
        return lambda view, names: act(left(view, names), right(view, names))

    def _index(self, term: syntax.Index) -> BatchFormula:
        sequence, position = self.term(term.sequence), self.term(term.position)
        # A variable over range(list) is always a position of that list.
        inside = (term.position, term.sequence) in self._positions

        def pick(view: BatchView, names: BatchNames) -> BatchValue:
            elements, at = sequence(view, names), position(view, names)
            assert isinstance(elements, MaskedItems)
            assert isinstance(at, BatchScalar)
            value, outside = element_at(elements, at)
            # An index outside the list has no value: the case is judged again by itself.
            if not inside:
                view.timeline.mark_uncertain(outside)
            return value

        return pick

    def _quantified(self, term: syntax.ForAll | syntax.Exists) -> BatchFormula:
        with self._scope():
            each, body = self._each(term.binders), self.term(term.body)

        def for_all(view: BatchView, names: BatchNames) -> BatchValue:
            # No early end: other cases of the batch may still be undecided.
            result: Mask = True
            for mask, inner, _ in each(view, names):
                result = mask_and(result, mask_or(mask_not(mask), mask_of(body(view, inner))))
            return bool_value(result)

        def exists(view: BatchView, names: BatchNames) -> BatchValue:
            result: Mask = False
            for mask, inner, _ in each(view, names):
                result = mask_or(result, mask_and(mask, mask_of(body(view, inner))))
            return bool_value(result)

        return for_all if isinstance(term, syntax.ForAll) else exists

    def _where(self, term: syntax.SetWhere | syntax.ListWhere) -> BatchFormula:
        with self._scope():
            each, body = self._each(term.binders), self.term(term.term)
            conditions = [self.term(condition) for condition in term.conditions]
        is_list = isinstance(term, syntax.ListWhere)

        def collect(view: BatchView, names: BatchNames) -> BatchValue:
            items, in_order = [], True
            for mask, inner, ordered in each(view, names):
                here = mask
                for condition in conditions:
                    here = mask_and(here, mask_of(condition(view, inner)))
                if not is_never_true(here):
                    items.append((here, body(view, inner)))
                    in_order = in_order and ordered
            return as_collection(items, is_list=is_list, in_order=in_order)

        return collect

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Forget after the block which variables are positions."""
        before = self._positions
        yield
        self._positions = before

    def _bind(self, binder: syntax.Binder) -> None:
        """Record variables that range over the positions of a list: ``i : range(vs)``."""
        names = set(binder.names)
        kept = {
            pair for pair in self._positions if names.isdisjoint(member.name for member in pair)
        }
        match binder.domain:
            case syntax.Call(function="range", arguments=(syntax.Name() as sequence,)):
                kept |= {(syntax.Name(name), sequence) for name in names}
        self._positions = frozenset(kept)

    def _each(
        self, binders: tuple[syntax.Binder, ...]
    ) -> Callable[[BatchView, BatchNames], Iterator[tuple[Mask, BatchNames, bool]]]:
        """Return an iterator over all values of some binders, and whether their order is known."""
        loops = []
        for binder in binders:
            loops.append((binder, self.term(binder.domain)))
            self._bind(binder)

        def each(
            view: BatchView, names: BatchNames, mask: Mask = True, depth: int = 0
        ) -> Iterator[tuple[Mask, BatchNames, bool]]:
            if depth == len(loops):
                yield mask, names, True
                return
            binder, domain = loops[depth]
            members = domain(view, names)  # the names of one binder do not see each other
            ordered = is_in_order(members)
            for here, values in _tuples(binder, members, mask):
                inner = {**names, **dict(zip(binder.names, values, strict=True))}
                for deeper, innermost, also in each(view, inner, here, depth + 1):
                    yield deeper, innermost, ordered and also

        return each

    def _during(self, term: syntax.Always | syntax.Sometime) -> BatchFormula:
        body = self.term(term.body)
        names_of = names_in(term.body)
        is_always = isinstance(term, syntax.Always)

        def during(view: BatchView, names: BatchNames) -> BatchValue:
            for name in names_of:
                if _differs_in_time(names.get(name)):
                    raise Unbatchable("a value of one moment is compared with other moments")
            # Rows inside one instant are no moments, so they must not count.
            shown = view.timeline.shown
            holds = np.broadcast_to(mask_of(body(view.always(), names)), shown.shape)
            if is_always:
                return bool_value((holds | ~shown).all(axis=0, keepdims=True))
            return bool_value((holds & shown).any(axis=0, keepdims=True))

        return during


def _tuples(
    binder: syntax.Binder, members: BatchValue, mask: Mask, before: tuple[BatchValue, ...] = ()
) -> Iterator[tuple[Mask, tuple[BatchValue, ...]]]:
    """Yield the values that the names of one binder may have together."""
    if len(before) == len(binder.names):
        yield mask, before
        return
    for present, value in choices(binder.binding, members):
        here = mask_and(mask, present)
        if not is_never_true(here):
            yield from _tuples(binder, members, here, (*before, value))


_STATES: Final = {
    **{state.value: BatchScalar("vm state", code) for code, state in enumerate(VM_STATES)},
    **{state.value: BatchScalar("host state", code) for code, state in enumerate(HOST_STATES)},
}


def _identity(value: BatchValue | None) -> Any:
    if isinstance(value, BatchScalar) and value.constant:
        return value.kind, value.value
    return id(value)


def _constant(term: syntax.Number | syntax.Text | syntax.Boolean) -> BatchFormula:
    value = term.value
    if isinstance(value, bool):
        return lambda _view, _names: bool_value(value)
    if isinstance(value, int):
        return lambda _view, _names: number_value(value, abs(value))
    return lambda view, _names: BatchScalar("string", view.rows.cases.text_code(value))


def _quotient(view: BatchView, left: BatchValue, right: BatchValue) -> BatchValue:
    assert isinstance(left, BatchScalar)
    assert isinstance(right, BatchScalar)
    # A division by zero has no value: the exact evaluator decides whether it matters.
    zero = np.asarray(right.value == 0)
    view.timeline.mark_uncertain(zero)
    return number_value(left.value // np.where(zero, 1, right.value), left.most + 1)


def _negative(value: BatchValue) -> BatchValue:
    assert isinstance(value, BatchScalar)
    return number_value(-value.value, value.most)


def _differs_in_time(value: BatchValue | None) -> bool:
    match value:
        case BatchScalar() | BatchBitSet():
            array = value.value
            return isinstance(array, np.ndarray) and array.ndim > 1 and array.shape[0] > 1
        case MaskedItems():
            return any(
                _differs_in_time(item) or _differs_in_time(BatchScalar("bool", mask))
                for mask, item in value.items
            )
        case _:
            return False
