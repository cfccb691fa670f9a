"""Trials that were drawn together: arrays for the specification, objects for schedulers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import Final

import numpy as np

from equipoise.adapters.targets.trial import Trial
from equipoise.fuzz.generate.case_arrays import DrawnCases, values_of
from equipoise.fuzz.generate.decode import TrialDecoder, TrialSource
from equipoise.fuzz.generate.draw.trial_arrays import TrialArrays
from equipoise.spec.batch.cases import Array, LazySequence, Unbatchable
from equipoise.spec.batch.judge import Arguments, CaseBatch
from equipoise.spec.batch.values import BatchValue
from equipoise.spec.requirement import Case

BATCH_MIN: Final = 16
"""Below this number, single judgements are faster."""
_VERDICTS: Final = frozenset({"keeps", "broken_at_first"})


@dataclass(frozen=True)
class DrawnTrials:
    """Trials of one constraint that were drawn together."""

    source: TrialSource
    out: TrialArrays

    def __len__(self) -> int:
        return len(self.out.counts)

    def trial(self, i: int) -> Trial:
        """The trial with an index."""
        return TrialDecoder(self.source, self.out, i).trial()

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """All trials."""
        return [self.trial(i) for i in range(len(self))]

    def but(self, which: Array, others: DrawnTrials) -> DrawnTrials:
        """A copy with other trials at some indexes; verdicts that both know are kept."""
        changed = DrawnTrials(
            self.source, TrialArrays(*map(_put, self.out, repeat(which), others.out))
        )
        for name in _VERDICTS & vars(self).keys() & vars(others).keys():
            vars(changed)[name] = _put(vars(self)[name], which, vars(others)[name])
        return changed

    def only(self, which: Array) -> DrawnTrials:
        """The trials with some indexes."""
        selected = DrawnTrials(self.source, TrialArrays(*(array[which] for array in self.out)))
        for name in _VERDICTS & vars(self).keys():
            vars(selected)[name] = vars(self)[name][which]
        return selected

    @cached_property
    def keeps(self) -> Array:
        """Whether each plan satisfies the constraint."""
        return self._verdicts(DrawnTrials._keeps, lambda trial: trial.violation is None)

    @cached_property
    def broken_at_first(self) -> Array:
        """Whether the constraint is violated before the plan starts."""
        return self._verdicts(DrawnTrials._broken_at_first, lambda trial: trial.is_broken_at_first)

    def _verdicts(
        self, together: Callable[[DrawnTrials], Array], alone: Callable[[Trial], bool]
    ) -> Array:
        """The verdicts on all trials: judged as arrays where possible, else one by one."""
        verdicts = np.zeros(len(self), np.bool_)
        if len(self) < BATCH_MIN:
            verdicts[:] = list(map(alone, self.trials))
            return verdicts
        for which, group in self._groups:
            try:
                verdicts[which] = together(group)
            except Unbatchable:
                verdicts[which] = [alone(self.trials[i]) for i in which.tolist()]
        return verdicts

    @cached_property
    def _groups(self) -> Sequence[tuple[Array, DrawnTrials]]:
        """Trials that are judged together: in the same mode, with the same names in formulas."""
        parameters = self.source.parameters
        named = [i for i, parameter in enumerate(parameters) if parameter.is_name]
        keys = np.column_stack([self.out.continuous, self.out.arguments[:, named, 0]])
        _, groups = np.unique(keys, axis=0, return_inverse=True)
        indexes = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
        return [(which, self.only(which)) for which in indexes]

    def _keeps(self) -> Array:
        return self._holds(self._cases, continuous=bool(self.out.continuous[0]))

    def _broken_at_first(self) -> Array:
        return ~self._holds(self._cases.without_steps(), continuous=False)

    @cached_property
    def _cases(self) -> DrawnCases:
        return DrawnCases.of_drawn(self.source, self.out, LazySequence(len(self), self._case))

    @cached_property
    def _values(self) -> dict[str, BatchValue]:
        return values_of(self.source, self.out, self._cases)

    def _holds(self, cases: DrawnCases, *, continuous: bool) -> Array:
        source = self.source
        arguments = LazySequence[Arguments](
            len(self), lambda i: TrialDecoder(source, self.out, i).arguments()
        )
        judge = partial(CaseBatch(cases).judge, source.specification, source.name, arguments)
        return judge(continuous=continuous, values=self._values).holds

    def _case(self, i: int) -> Case:
        trial = self.trial(i)
        return Case(trial.initial, trial.steps)


def _put(array: Array, which: Array, part: Array) -> Array:
    """A copy of an array with other values at some indexes."""
    copy = array.copy()
    copy[which] = part
    return copy
