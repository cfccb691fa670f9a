"""The verdicts on many cases: which plans satisfy a constraint, and when the others violate it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.spec.batch.cases import Array, CaseArrays
from equipoise.spec.batch.compile import BatchCompiler, BatchView
from equipoise.spec.batch.moments import execute_plans
from equipoise.spec.batch.values import (
    BatchBitSet,
    BatchScalar,
    BatchValue,
    Mask,
    MaskedItems,
    number_value,
)
from equipoise.spec.language.syntax import Binding, Constraint, Parameter, StateRef, names_in
from equipoise.spec.language.vocabulary import START_SENSITIVE_FUNCTIONS, canonical_name
from equipoise.spec.requirement import Case, Requirement, judge_case
from equipoise.spec.specification import Specification

CHUNK_CASES: Final = 1024
"""Cases in one batch: few enough for the arrays to stay in the processor's cache."""

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchVerdicts:
    """The verdicts on many cases."""

    holds: Array
    """For each case, whether the constraint holds."""
    broken_ms: Array
    """When it is first violated; -1 where it holds."""


def broken_ms_of(requirement: Requirement, case: Case) -> int:
    """Return when a case first violates a requirement; -1 if it never does."""
    violation = judge_case(requirement, case)
    return -1 if violation is None else violation.at_ms


class CaseBatch:
    """Cases that are judged together, by any number of constraints."""

    def __init__(self, cases: Sequence[Case] | CaseArrays) -> None:
        self.cases = cases if isinstance(cases, CaseArrays) else CaseArrays.of(cases)
        self._views: dict[bool, BatchView] = {}

    def judge(
        self,
        specification: Specification,
        name: str,
        arguments: Sequence[Arguments],
        *,
        continuous: bool,
        values: Mapping[str, BatchValue] | None = None,
    ) -> BatchVerdicts:
        """Judge a constraint with the arguments of each case, at all moments or at the end.

        ``values`` are the same arguments as arrays, if the caller has them.
        """
        constraint = specification.constraints[name]
        formula = BatchCompiler(specification.declared()).constraint(constraint)
        whole = self._view(
            starts=not START_SENSITIVE_FUNCTIONS.isdisjoint(specification.calls(name))
        )
        values = self._values(constraint, arguments) if values is None else values
        # Cached terms are found by identity, and another formula may get the identity of this one.
        whole.forget()
        view = whole if continuous else whole.at(StateRef.FINAL)
        answer = formula(view, values)
        assert isinstance(answer, BatchScalar)
        timeline = whole.timeline
        shown, at_ms = timeline.shown, timeline.at_ms
        if not continuous:
            shown, at_ms = shown[-1:], at_ms[-1:]
        # Of the rows of one instant only the last is shown; a violation elsewhere does not count.
        broken = np.broadcast_to(~np.asarray(answer.value), shown.shape) & shown
        holds = np.asarray(~broken.any(axis=0))
        first = np.argmax(broken, axis=0)
        at = np.take_along_axis(at_ms, first[None], axis=0)[0]
        broken_ms = np.where(holds, -1, at)
        # Where a term had no value, the evaluator of single cases decides whether it mattered.
        for case in np.flatnonzero(timeline.uncertain).tolist():
            requirement = Requirement(specification, name, arguments[case], continuous)
            broken_ms[case] = broken_ms_of(requirement, self.cases.cases[case])
        return BatchVerdicts(broken_ms < 0, broken_ms)

    def _view(self, *, starts: bool) -> BatchView:
        view = self._views.get(starts)
        if view is None:
            view = self._views[starts] = BatchView.whole(execute_plans(self.cases, starts=starts))
        return view

    def _values(
        self, constraint: Constraint, arguments: Sequence[Arguments]
    ) -> dict[str, BatchValue]:
        return {
            parameter.name: self._value(parameter, [given[parameter.name] for given in arguments])
            for parameter in constraint.parameters
        }

    def _value(self, parameter: Parameter, given: Sequence[Any]) -> BatchValue:
        """Return an argument of all cases, from the argument of each case."""
        names = {canonical_name(name) for name in names_in(parameter.domain)}
        if "vms" in names or "hosts" in names:
            kind = "vm" if "vms" in names else "host"
            every: Sequence[Mapping[Any, int]]
            every = self.cases.names.vms if kind == "vm" else self.cases.names.hosts
            return _elements(kind, every, parameter.binding, given)
        if parameter.binding is not Binding.MEMBER:
            return self._words(given)
        if isinstance(given[0], str):
            return _scalar("string", [self.cases.text_code(text) for text in given])
        most = max(map(abs, given))
        return number_value(_scalar("int", given).value, most)

    def _words(self, given: Sequence[Collection[Any]]) -> BatchValue:
        """Return a set of texts or numbers: an item for each that is in one of the sets."""
        items = []
        for word in sorted({word for words in given for word in words}):
            mask = np.array([[word in words for words in given]])
            value = word if isinstance(word, int) else self.cases.text_code(word)
            kind, most = ("int", abs(word)) if isinstance(word, int) else ("string", 0)
            items.append((mask, BatchScalar(kind, value, most)))
        return MaskedItems(tuple(items), is_list=False)


def _scalar(kind: str, values: Sequence[int]) -> BatchScalar:
    # A constant costs one operation for all cases and lets formulas cache by its value.
    if len(set(values)) == 1:
        return BatchScalar(kind, values[0])
    return BatchScalar(kind, np.array([values], np.int64))


def _elements(
    kind: str, every: Sequence[Mapping[Any, int]], binding: Binding, given: Sequence[Any]
) -> BatchValue:
    if isinstance(given[0], tuple):
        return _lists(kind, every, given)
    if binding is Binding.MEMBER:
        return _scalar(kind, [names[name] for names, name in zip(every, given, strict=True)])
    if binding is Binding.SUBSET:
        return BatchBitSet(kind, _bits(every, given))
    most = max((len(groups) for groups in given), default=0)
    # A fixed order: sets of sets have none, and equal inputs must give equal arrays.
    rows = [sorted(groups, key=sorted) for groups in given]
    items: list[tuple[Mask, BatchValue]] = []
    for index in range(most):
        group = [row[index] if index < len(row) else frozenset() for row in rows]
        present = np.array([[index < len(row) for row in rows]])
        items.append((present, BatchBitSet(kind, _bits(every, group))))
    return MaskedItems(tuple(items), is_list=False)


def _bits(every: Sequence[Mapping[Any, int]], groups: Sequence[Collection[Any]]) -> Array:
    pairs = zip(every, groups, strict=True)
    bits = [[sum(1 << names[name] for name in group) for names, group in pairs]]
    return np.array(bits, np.uint64)


def _lists(kind: str, every: Sequence[Mapping[Any, int]], given: Sequence[Any]) -> BatchValue:
    items: list[tuple[Mask, BatchValue]] = []
    for index in range(max(map(len, given))):
        present = np.array([[index < len(row) for row in given]])
        values = [
            names[row[index]] if index < len(row) else 0
            for names, row in zip(every, given, strict=True)
        ]
        items.append((present, _scalar(kind, values)))
    return MaskedItems(tuple(items), is_list=True)
