"""Trials that were drawn together: arrays for those who judge them, objects for those who ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import Final

import numpy as np

from equipoise.fuzz.generate.as_arrays import DrawnCases, values_of
from equipoise.fuzz.generate.draw.numbers import Trials
from equipoise.fuzz.generate.read import Reader, Source
from equipoise.fuzz.trial.trial import Trial
from equipoise.spec.batch.cases import Array, Made, Unbatchable
from equipoise.spec.batch.judge import Arguments, Batch
from equipoise.spec.batch.values import Value
from equipoise.spec.case import Case

FEW: Final = 16
"""Fewer trials than this are judged faster one by one."""
_VERDICTS: Final = frozenset({"keeps", "broken_at_first"})


@dataclass(frozen=True)
class Drawn:
    """Some trials of one constraint."""

    source: Source
    out: Trials

    def __len__(self) -> int:
        return len(self.out.counts)

    def trial(self, i: int) -> Trial:
        """One of them."""
        return Reader(self.source, self.out, i).trial()

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """All of them."""
        return [self.trial(i) for i in range(len(self))]

    def but(self, which: Array, others: Drawn) -> Drawn:
        """The same with others in some of the places; what both are known for is not lost."""
        changed = Drawn(self.source, Trials(*map(_put, self.out, repeat(which), others.out)))
        for name in _VERDICTS & vars(self).keys() & vars(others).keys():
            vars(changed)[name] = _put(vars(self)[name], which, vars(others)[name])
        return changed

    def only(self, which: Array) -> Drawn:
        """Some of them."""
        some = Drawn(self.source, Trials(*(array[which] for array in self.out)))
        for name in _VERDICTS & vars(self).keys():
            vars(some)[name] = vars(self)[name][which]
        return some

    @cached_property
    def keeps(self) -> Array:
        """Whether each plan keeps the constraint."""
        return self._said(Drawn._keeps, lambda trial: trial.fault is None)

    @cached_property
    def broken_at_first(self) -> Array:
        """Whether the constraint is broken before anything has happened."""
        return self._said(Drawn._broken_at_first, lambda trial: trial.is_broken_at_first)

    def _said(self, together: Callable[[Drawn], Array], alone: Callable[[Trial], bool]) -> Array:
        """What is said of all of them: judged as arrays where possible, else one by one."""
        said = np.zeros(len(self), np.bool_)
        if len(self) < FEW:
            said[:] = list(map(alone, self.trials))
            return said
        for which, some in self._alike:
            try:
                said[which] = together(some)
            except Unbatchable:
                said[which] = [alone(self.trials[place]) for place in which.tolist()]
        return said

    @cached_property
    def _alike(self) -> Sequence[tuple[Array, Drawn]]:
        """Trials that are judged together: in the same mode, with the same names in formulas."""
        named = [place for place, one in enumerate(self.source.parameters) if one.is_name]
        keys = np.column_stack([self.out.continuous, self.out.arguments[:, named, 0]])
        _, groups = np.unique(keys, axis=0, return_inverse=True)
        every = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
        return [(which, self.only(which)) for which in every]

    def _keeps(self) -> Array:
        return self._holds(self._cases, continuous=bool(self.out.continuous[0]))

    def _broken_at_first(self) -> Array:
        return ~self._holds(self._cases.at_first(), continuous=False)

    @cached_property
    def _cases(self) -> DrawnCases:
        return DrawnCases.of_drawn(self.source, self.out, Made(len(self), self._case))

    @cached_property
    def _values(self) -> dict[str, Value]:
        return values_of(self.source, self.out, self._cases)

    def _holds(self, cases: DrawnCases, *, continuous: bool) -> Array:
        source = self.source
        given = Made[Arguments](len(self), lambda i: Reader(source, self.out, i).arguments())
        judge = partial(Batch(cases).judge, source.home, source.name, given)
        return judge(continuous=continuous, values=self._values).holds

    def _case(self, i: int) -> Case:
        trial = self.trial(i)
        return Case(trial.initial, trial.steps)


def _put(array: Array, which: Array, part: Array) -> Array:
    """A copy of an array, with others in some of the places."""
    copy = array.copy()
    copy[which] = part
    return copy
