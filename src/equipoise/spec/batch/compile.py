"""From syntax to a function over arrays.

A variable that ranges over VMs or hosts stands for each of them in turn, as a plain number, under a
mask that says in which cases it is a member. What depends on few variables is computed once for
their values, however many others are bound around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from equipoise.model.columns import HOST_STATES, VM_STATES
from equipoise.spec.batch.cases import Unbatchable
from equipoise.spec.batch.choose import choices, is_in_order, picked
from equipoise.spec.batch.functions import FUNCTIONS
from equipoise.spec.batch.moments import Rows, Timeline
from equipoise.spec.batch.operators import OPERATORS, mask_of
from equipoise.spec.batch.values import (
    Bits,
    Entries,
    Mask,
    Plain,
    Value,
    both,
    either,
    gathered,
    nowhere_true,
    number,
    opposite,
    truth,
)
from equipoise.spec.language.syntax import (
    Always,
    Binder,
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
    names_in,
)
from equipoise.spec.language.vocabulary import SETS, plain


class Scene:
    """What is looked at: some moments of a timeline, and what is known about them already."""

    def __init__(self, timeline: Timeline, rows: slice, scenes: dict[Any, Scene]) -> None:
        self.timeline = timeline
        self.rows: Rows = timeline.rows.only(rows)
        self.known: dict[Any, tuple[Value, Any]] = {}
        """By term and the values of its variables; they are kept, for they are told by identity."""
        self._scenes = scenes

    @classmethod
    def whole(cls, timeline: Timeline) -> Scene:
        """All moments."""
        scenes: dict[Any, Scene] = {}
        scenes[Moment.NOW] = cls(timeline, slice(None), scenes)
        return scenes[Moment.NOW]

    def at(self, moment: Moment) -> Scene:
        """The same timeline, looked at from the first or the last moment."""
        return self if moment is Moment.NOW else self._scene(moment)

    def always(self) -> Scene:
        """The same timeline, looked at from all moments."""
        return self._scene(Moment.NOW)

    def forget(self) -> None:
        """Be ready for another formula: what is known and doubted belongs to the one before."""
        self.timeline.doubtful = np.zeros_like(self.timeline.doubtful)
        for scene in self._scenes.values():
            scene.known.clear()

    def _scene(self, moment: Moment) -> Scene:
        found = self._scenes.get(moment)
        if found is None:
            one = slice(0, 1) if moment is Moment.INITIAL else slice(-1, None)
            found = self._scenes[moment] = Scene(self.timeline, one, self._scenes)
        return found


Names = Mapping[str, Value]
Formula = Callable[[Scene, Names], Value]


class BatchCompiler:
    """Makes array functions of the terms of one file."""

    def __init__(self, declared: Mapping[str, Constraint]) -> None:
        self._declared = declared
        self._formulas: dict[str, Formula] = {}
        self._places: frozenset[tuple[Name, Name]] = frozenset()
        """Variables that are places of a list, each with its list, in the term at hand."""

    def constraint(self, constraint: Constraint) -> Formula:
        """The formula of a constraint; its arguments are given by name."""
        found = self._formulas.get(constraint.name)
        if found is None:
            found = self._formulas[constraint.name] = self.term(constraint.formula)
        return found

    def term(self, term: Term) -> Formula:
        """The function of a term; what it gives is kept as long as its variables are plain."""
        compute = self._compute(term)
        if not isinstance(term, Call | Operation | SetWhere | ListWhere):
            return compute
        names = tuple(sorted(names_in(term)))

        def remembered(scene: Scene, values: Names) -> Value:
            given = [values.get(name) for name in names]
            key = (id(term), *map(_identity, given))
            found = scene.known.get(key)
            if found is None:
                found = scene.known[key] = compute(scene, values), given
            return found[0]

        return remembered

    def _compute(self, term: Term) -> Formula:
        match term:
            case Name():
                return self._name(term)
            case Number() | Text() | Truth():
                return _constant(term)
            case Call():
                return self._call(term)
            case Operation():
                return self._operation(term)
            case ForAll() | Exists():
                return self._quantified(term)
            case SetWhere() | ListWhere():
                return self._where(term)
            case _:
                return self._rest(term)

    def _rest(self, term: Term) -> Formula:
        match term:
            case Not(term=inner):
                one = self.term(inner)
                return lambda scene, names: truth(opposite(mask_of(one(scene, names))))
            case Minus(term=inner):
                value = self.term(inner)
                return lambda scene, names: _negative(value(scene, names))
            case SetOf(members=terms) | ListOf(elements=terms):
                parts, is_list = [self.term(one) for one in terms], isinstance(term, ListOf)
                return lambda scene, names: gathered(
                    [(True, one(scene, names)) for one in parts], is_list=is_list, in_order=True
                )
            case Index():
                return self._index(term)
            case Let():
                value, body, name = self.term(term.value), self.term(term.body), term.name
                return lambda scene, names: body(scene, {**names, name: value(scene, names)})
            case Always() | Sometime():
                return self._during(term)
            case _:
                raise AssertionError(f"no function for {term}")

    def _name(self, term: Name) -> Formula:
        name, own = term.name, plain(term.name)

        def look(scene: Scene, names: Names) -> Value:
            found = names.get(name)
            if found is not None:
                return found
            if own in SETS:
                cases = scene.rows.cases
                present = cases.vm_present if own == "vms" else cases.host_present
                return Bits(own.removesuffix("s"), present[None])
            return _STATES[own]

        return look

    def _call(self, term: Call) -> Formula:
        arguments = [self.term(one) for one in term.arguments]
        moment, name = term.moment, plain(term.function)
        function = FUNCTIONS.get(name)
        if function is None and term.function not in self._declared:
            raise Unbatchable(f"{name} is only known for one case at a time")
        if function is None:
            declared = self._declared[term.function]
            formula = self.constraint(declared)
            places = [one.name for one in declared.parameters]
            return lambda scene, names: formula(
                scene.at(moment),
                dict(zip(places, (one(scene, names) for one in arguments), strict=True)),
            )
        return lambda scene, names: function(
            scene.at(moment).rows, *(one(scene, names) for one in arguments)
        )

    def _operation(self, term: Operation) -> Formula:
        left, right = self.term(term.left), self.term(term.right)
        if term.operator == "/":
            return lambda scene, names: _quotient(scene, left(scene, names), right(scene, names))
        act = OPERATORS[term.operator]
        return lambda scene, names: act(left(scene, names), right(scene, names))

    def _index(self, term: Index) -> Formula:
        sequence, position = self.term(term.sequence), self.term(term.position)
        # Where a place is bound at all, it is one of the list that it was taken from.
        inside = (term.position, term.sequence) in self._places

        def pick(scene: Scene, names: Names) -> Value:
            some, at = sequence(scene, names), position(scene, names)
            assert isinstance(some, Entries)
            assert isinstance(at, Plain)
            value, outside = picked(some, at)
            if not inside:
                scene.timeline.doubt(outside)
            return value

        return pick

    def _quantified(self, term: ForAll | Exists) -> Formula:
        with self._scope():
            each, body = self._each(term.binders), self.term(term.body)

        def for_all(scene: Scene, names: Names) -> Value:
            found: Mask = True
            for mask, inner, _ in each(scene, names):
                found = both(found, either(opposite(mask), mask_of(body(scene, inner))))
            return truth(found)

        def exists(scene: Scene, names: Names) -> Value:
            found: Mask = False
            for mask, inner, _ in each(scene, names):
                found = either(found, both(mask, mask_of(body(scene, inner))))
            return truth(found)

        return for_all if isinstance(term, ForAll) else exists

    def _where(self, term: SetWhere | ListWhere) -> Formula:
        with self._scope():
            each, body = self._each(term.binders), self.term(term.term)
            conditions = [self.term(one) for one in term.conditions]
        is_list = isinstance(term, ListWhere)

        def found(scene: Scene, names: Names) -> Value:
            items, in_order = [], True
            for mask, inner, ordered in each(scene, names):
                here = mask
                for condition in conditions:
                    here = both(here, mask_of(condition(scene, inner)))
                if not nowhere_true(here):
                    items.append((here, body(scene, inner)))
                    in_order = in_order and ordered
            return gathered(items, is_list=is_list, in_order=in_order)

        return found

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Forget afterwards which variables are bound in a term."""
        before = self._places
        yield
        self._places = before

    def _bind(self, binder: Binder) -> None:
        """Note whether variables are places of a list: ``i : range(vs)``."""
        names = set(binder.names)
        kept = {pair for pair in self._places if names.isdisjoint(one.name for one in pair)}
        match binder.domain:
            case Call(function="range", arguments=(Name() as some,)):
                kept |= {(Name(name), some) for name in names}
        self._places = frozenset(kept)

    def _each(
        self, binders: tuple[Binder, ...]
    ) -> Callable[[Scene, Names], Iterator[tuple[Mask, Names, bool]]]:
        """All the ways to fill the places of some binders, and whether their order is known."""
        loops = []
        for binder in binders:
            loops.append((binder, self.term(binder.domain)))
            self._bind(binder)

        def each(
            scene: Scene, names: Names, mask: Mask = True, depth: int = 0
        ) -> Iterator[tuple[Mask, Names, bool]]:
            if depth == len(loops):
                yield mask, names, True
                return
            binder, domain = loops[depth]
            some = domain(scene, names)  # its own names do not see each other
            ordered = is_in_order(some)
            for here, values in _tuples(binder, some, mask):
                inner = {**names, **dict(zip(binder.names, values, strict=True))}
                for deeper, innermost, also in each(scene, inner, here, depth + 1):
                    yield deeper, innermost, ordered and also

        return each

    def _during(self, term: Always | Sometime) -> Formula:
        body = self.term(term.body)
        names_of = names_in(term.body)
        is_always = isinstance(term, Always)

        def during(scene: Scene, names: Names) -> Value:
            for name in names_of:
                if _differs_in_time(names.get(name)):
                    raise Unbatchable("a value of one moment is compared with other moments")
            shown = scene.timeline.shown
            found = np.broadcast_to(mask_of(body(scene.always(), names)), shown.shape)
            if is_always:
                return truth((found | ~shown).all(axis=0, keepdims=True))
            return truth((found & shown).any(axis=0, keepdims=True))

        return during


def _tuples(
    binder: Binder, some: Value, mask: Mask, before: tuple[Value, ...] = ()
) -> Iterator[tuple[Mask, tuple[Value, ...]]]:
    """The values that the names of one binder may have together."""
    if len(before) == len(binder.names):
        yield mask, before
        return
    for there, value in choices(binder.binding, some):
        here = both(mask, there)
        if not nowhere_true(here):
            yield from _tuples(binder, some, here, (*before, value))


_STATES: Final = {
    **{state.value: Plain("vm state", code) for code, state in enumerate(VM_STATES)},
    **{state.value: Plain("host state", code) for code, state in enumerate(HOST_STATES)},
}


def _identity(value: Value | None) -> Any:
    if isinstance(value, Plain) and value.constant:
        return value.kind, value.value
    return id(value)


def _constant(term: Number | Text | Truth) -> Formula:
    value = term.value
    if isinstance(value, bool):
        return lambda _scene, _names: truth(value)
    if isinstance(value, int):
        return lambda _scene, _names: number(value, abs(value))
    return lambda scene, _names: Plain("string", scene.rows.cases.word(value))


def _quotient(scene: Scene, one: Value, other: Value) -> Value:
    assert isinstance(one, Plain)
    assert isinstance(other, Plain)
    zero = np.asarray(other.value == 0)
    scene.timeline.doubt(zero)
    return number(one.value // np.where(zero, 1, other.value), one.most + 1)


def _negative(value: Value) -> Value:
    assert isinstance(value, Plain)
    return number(-value.value, value.most)


def _differs_in_time(value: Value | None) -> bool:
    match value:
        case Plain() | Bits():
            array = value.value
            return isinstance(array, np.ndarray) and array.ndim > 1 and array.shape[0] > 1
        case Entries():
            return any(
                _differs_in_time(one) or _differs_in_time(Plain("bool", mask))
                for mask, one in value.items
            )
        case _:
            return False
