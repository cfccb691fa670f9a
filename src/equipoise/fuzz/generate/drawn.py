"""Trials that were drawn together: arrays for those who judge them, objects for those who ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from equipoise.fuzz.generate.as_arrays import DrawnCases, values_of
from equipoise.fuzz.generate.draw.numbers import Trials
from equipoise.fuzz.generate.read import Reader, Source
from equipoise.fuzz.trial.trial import Trial
from equipoise.spec.batch.cases import Array, Made, Unbatchable
from equipoise.spec.batch.judge import Arguments, Batch
from equipoise.spec.case import Case

FEW: Final = 16
"""Fewer trials than this are judged faster one by one."""


class Said(NamedTuple):
    """What the specification says of some trials."""

    keeps: Array
    """Whether the plan keeps the constraint."""
    broken_at_first: Array
    """Whether it is broken before anything has happened."""


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
        """The same with others in some of the places."""
        changed = Drawn(self.source, Trials(*_put(self.out, which, others.out)))
        vars(changed)["said"] = Said(*_put(self.said, which, others.said))  # not judged again
        return changed

    def only(self, which: Array) -> Drawn:
        """Some of them."""
        some = Drawn(self.source, Trials(*(array[which] for array in self.out)))
        if "said" in vars(self):
            vars(some)["said"] = Said(*(array[which] for array in self.said))
        return some

    @cached_property
    def said(self) -> Said:
        """What is said of all of them: judged as arrays where possible, else one by one."""
        if len(self) < FEW:
            return self._one_by_one()
        said = Said(np.zeros(len(self), np.bool_), np.zeros(len(self), np.bool_))
        for which in self._alike():
            for whole, part in zip(said, self.only(which)._judged(), strict=True):
                whole[which] = part
        return said

    def _alike(self) -> Iterator[Array]:
        """Trials that are judged together: in the same mode, with the same names in formulas."""
        named = [place for place, one in enumerate(self.source.parameters) if one.is_name]
        keys = np.column_stack([self.out.continuous, self.out.arguments[:, named, 0]])
        _, groups = np.unique(keys, axis=0, return_inverse=True)
        for group in range(int(groups.max(initial=-1)) + 1):
            yield np.flatnonzero(groups == group)

    def _judged(self) -> Said:
        try:
            return self._as_arrays(continuous=bool(self.out.continuous[0]))
        except Unbatchable:
            return self._one_by_one()

    def _one_by_one(self) -> Said:
        keeps = [trial.fault is None for trial in self.trials]
        broken = [trial.is_broken_at_first for trial in self.trials]
        return Said(np.array(keeps, np.bool_), np.array(broken, np.bool_))

    def _as_arrays(self, *, continuous: bool) -> Said:
        source, count = self.source, len(self)
        given = Made[Arguments](count, lambda i: Reader(source, self.out, i).arguments())
        cases = DrawnCases.of_drawn(source, self.out, Made(count, self._case))
        values = values_of(source, self.out, cases)

        def holds(cases: DrawnCases, *, continuous: bool) -> Array:
            return (
                Batch(cases)
                .judge(source.home, source.name, given, continuous=continuous, values=values)
                .holds
            )

        return Said(holds(cases, continuous=continuous), ~holds(cases.at_first(), continuous=False))

    def _case(self, i: int) -> Case:
        trial = self.trial(i)
        return Case(trial.initial, trial.steps)


def _put(arrays: Iterable[Array], which: Array, parts: Iterable[Array]) -> Iterator[Array]:
    """Copies of arrays, with others in some of the places."""
    for array, part in zip(arrays, parts, strict=True):
        copy = array.copy()
        copy[which] = part
        yield copy
