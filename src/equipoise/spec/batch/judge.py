"""The verdicts on many cases: which plans keep a constraint, and when the others first break it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.cases import Array, Cases, Unbatchable
from equipoise.spec.batch.compile import BatchCompiler, Scene
from equipoise.spec.batch.functions import SEE_STARTS
from equipoise.spec.batch.moments import carry_out
from equipoise.spec.batch.values import Bits, Entries, Mask, Plain, Value, number
from equipoise.spec.case import Case, judge_case
from equipoise.spec.demand import Demand
from equipoise.spec.language.syntax import Binding, Constraint, Moment, Parameter, names_in
from equipoise.spec.language.vocabulary import plain
from equipoise.spec.specification import Specification

CHUNK: Final = 1024
"""How many cases are best looked at together: few enough for the arrays to stay in the cache."""

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What came of judging many cases."""

    holds: Array
    """For each case, whether the constraint holds."""
    broken_ms: Array
    """When it is first broken; -1 where it holds."""


def judge_cases(
    specification: Specification,
    name: str,
    cases: Sequence[Case],
    arguments: Sequence[Arguments],
    *,
    continuous: bool,
) -> Verdicts:
    """Judge any number of cases by a constraint: as arrays where possible, else one by one."""
    found = []
    for first in range(0, len(cases), CHUNK):
        some, given = cases[first : first + CHUNK], arguments[first : first + CHUNK]
        try:
            found.append(
                Batch(some).judge(specification, name, given, continuous=continuous).broken_ms
            )
        except Unbatchable:
            demands = [Demand(specification, name, one, continuous) for one in given]
            found.append(np.array(list(map(_broken_ms, demands, some)), np.int64))
    broken_ms = np.concatenate([np.empty(0, np.int64), *found])
    return Verdicts(broken_ms < 0, broken_ms)


def _broken_ms(demand: Demand, case: Case) -> int:
    fault = judge_case(demand, case)
    return -1 if fault is None else fault.at_ms


class Batch:
    """Cases that are judged together, by as many constraints as you like."""

    def __init__(self, cases: Sequence[Case] | Cases) -> None:
        self.cases = cases if isinstance(cases, Cases) else Cases.of(cases)
        self._scenes: dict[bool, Scene] = {}

    def judge(
        self,
        specification: Specification,
        name: str,
        arguments: Sequence[Arguments],
        *,
        continuous: bool,
        values: Mapping[str, Value] | None = None,
    ) -> Verdicts:
        """Judge a constraint, with arguments for each case, over the plans or on their ends.

        ``values`` are the same arguments as arrays, for those who have them.
        """
        constraint = specification.constraints[name]
        formula = BatchCompiler(specification.declared()).constraint(constraint)
        whole = self._scene(starts=not SEE_STARTS.isdisjoint(specification.calls(name)))
        values = self._values(constraint, arguments) if values is None else values
        whole.forget()
        scene = whole if continuous else whole.at(Moment.FINAL)
        answer = formula(scene, values)
        assert isinstance(answer, Plain)
        timeline = whole.timeline
        shown, at_ms = timeline.shown, timeline.at_ms
        if not continuous:
            shown, at_ms = shown[-1:], at_ms[-1:]
        broken = np.broadcast_to(~np.asarray(answer.value), shown.shape) & shown
        holds = np.asarray(~broken.any(axis=0))
        first = np.argmax(broken, axis=0)
        at = np.take_along_axis(at_ms, first[None], axis=0)[0]
        broken_ms = np.where(holds, -1, at)
        for place in np.flatnonzero(timeline.doubtful).tolist():
            demand = Demand(specification, name, arguments[place], continuous)
            broken_ms[place] = _broken_ms(demand, self.cases.cases[place])
        return Verdicts(broken_ms < 0, broken_ms)

    def _scene(self, *, starts: bool) -> Scene:
        found = self._scenes.get(starts)
        if found is None:
            found = self._scenes[starts] = Scene.whole(carry_out(self.cases, starts=starts))
        return found

    def _values(self, constraint: Constraint, arguments: Sequence[Arguments]) -> dict[str, Value]:
        return {
            one.name: self._value(one, [given[one.name] for given in arguments])
            for one in constraint.parameters
        }

    def _value(self, parameter: Parameter, given: Sequence[Any]) -> Value:
        """An argument of all cases, from what each of them was given."""
        names = {plain(one) for one in names_in(parameter.domain)}
        if "vms" in names or "hosts" in names:
            kind = "vm" if "vms" in names else "host"
            every: Sequence[Mapping[Any, int]]
            every = self.cases.names.vms if kind == "vm" else self.cases.names.hosts
            return _elements(kind, every, parameter.binding, given)
        if parameter.binding is not Binding.MEMBER:
            return self._words(given)
        if isinstance(given[0], str):
            return _plain("string", [self.cases.word(one) for one in given])
        most = max(map(abs, given))
        return number(_plain("int", given).value, most)

    def _words(self, given: Sequence[Collection[Any]]) -> Value:
        """A set of texts or numbers: an entry for each that is in some of the sets."""
        found = []
        for one in sorted({one for some in given for one in some}):
            mask = np.array([[one in some for some in given]])
            value = one if isinstance(one, int) else self.cases.word(one)
            kind, most = ("int", abs(one)) if isinstance(one, int) else ("string", 0)
            found.append((mask, Plain(kind, value, most)))
        return Entries(tuple(found), is_list=False)


def _plain(kind: str, values: Sequence[int]) -> Plain:
    if len(set(values)) == 1:
        return Plain(kind, values[0])
    return Plain(kind, np.array([values], np.int64))


def _elements(
    kind: str, every: Sequence[Mapping[Any, int]], binding: Binding, given: Sequence[Any]
) -> Value:
    if isinstance(given[0], tuple):
        return _lists(kind, every, given)
    if binding is Binding.MEMBER:
        return _plain(kind, [names[one] for names, one in zip(every, given, strict=True)])
    if binding is Binding.SUBSET:
        return Bits(kind, _bits(every, given))
    most = max((len(groups) for groups in given), default=0)
    rows = [sorted(groups, key=sorted) for groups in given]
    found: list[tuple[Mask, Value]] = []
    for place in range(most):
        group = [row[place] if place < len(row) else frozenset() for row in rows]
        there = np.array([[place < len(row) for row in rows]])
        found.append((there, Bits(kind, _bits(every, group))))
    return Entries(tuple(found), is_list=False)


def _bits(every: Sequence[Mapping[Any, int]], groups: Sequence[Collection[Any]]) -> Array:
    pairs = zip(every, groups, strict=True)
    return np.array([[sum(1 << names[one] for one in group) for names, group in pairs]], np.uint64)


def _lists(kind: str, every: Sequence[Mapping[Any, int]], given: Sequence[Any]) -> Value:
    found: list[tuple[Mask, Value]] = []
    for place in range(max(map(len, given))):
        there = np.array([[place < len(row) for row in given]])
        values = [
            names[row[place]] if place < len(row) else 0
            for names, row in zip(every, given, strict=True)
        ]
        found.append((there, _plain(kind, values)))
    return Entries(tuple(found), is_list=True)
