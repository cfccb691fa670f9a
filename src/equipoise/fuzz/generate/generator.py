"""Trials for constraints, each from the seed and its number alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.fuzz.generate.draw import Stages, draw_stages, draw_trials, mix
from equipoise.fuzz.generate.draw.numbers import ONE_HOST, ONE_VM
from equipoise.fuzz.generate.drawn import Drawn
from equipoise.fuzz.generate.options import USUAL, Options, Plans
from equipoise.fuzz.generate.parameters import drawables
from equipoise.fuzz.generate.read import Source
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.inventory import Inventory
from equipoise.model.snapshot import Snapshot
from equipoise.spec.batch.cases import Array
from equipoise.spec.specification import Specification

TRIES_MAX: Final = 3_000
"""How often a trial is drawn anew that is not as it was asked for."""
TOGETHER: Final = 1_000
"""How many are drawn anew at a time, at the most."""
_ATTEMPT: Final = np.uint64(1 << 48)
"""Far enough apart that no trial is the second attempt of another."""
_MODES: Final = frozenset({"discrete", "continuous"})
_SETTINGS: Final = Snapshot.of(Inventory(hosts=())).settings


class Impossible(InvalidInput):
    """There are no trials of a constraint as they are asked for, though of others there may be."""


class Generator:
    """Trials for one constraint. The same seed and number give the same trial, wherever it is."""

    def __init__(
        self, home: Specification, name: str, options: Options = USUAL, seed: int = 0
    ) -> None:
        constraint = home.constraints[name]
        self._source = Source(home, name, options, drawables(constraint, options), _SETTINGS)
        self._options = options
        self._seed = seed
        self._modes = [mode == "continuous" for mode in constraint.marks if mode in _MODES]
        # Every moment, three of four times if there is a choice: more can go wrong then.
        self._modes += [True in self._modes] * 2
        if options.continuous is not None:
            if options.continuous not in self._modes:
                mode = "continuous" if options.continuous else "discrete"
                raise _refused("continuous", f"{name} is never {mode}")
            self._modes = [options.continuous]
        self.least = tuple(map(self._least, (ONE_HOST, ONE_VM), ("hosts", "vms")))
        """How many hosts and VMs there must be, so that it finds somebody to name."""

    def trial(self, number: int) -> Trial:
        """The trial of a number."""
        return self.block([number]).trial(0)

    def block(self, numbers: Sequence[int]) -> Drawn:
        """The trials of some numbers."""
        ((_, drawn),) = draw_in_turn([self], self._options, self._seed, numbers)
        return drawn

    def play(self, stages: Stages) -> Drawn:
        """The trials on some stages, be they wanted or not."""
        source = self._source
        return Drawn(source, draw_trials(stages, self._options, source.parameters, self._modes))

    def _least(self, what: int, kind: str) -> int:
        if all(one.what != what for one in self._source.parameters):
            return 0
        if getattr(self._options, kind)[1] == 0:
            raise _refused(
                kind, f"{self._source.name} finds nobody whom it could name", "1 or more"
            )
        return 1

    def wanted(self, drawn: Drawn) -> Array:
        """Which trials are as they were asked for."""
        found = np.ones(len(drawn), np.bool_)
        if self._options.broken_at_first is not None:
            found &= drawn.broken_at_first == self._options.broken_at_first
        if self._options.plans is Plans.REJECTED:
            found &= np.array([not trial.objections for trial in drawn.trials])
        return found

    def refusal(self) -> Impossible:
        """What is said if no trial is as it was asked for."""
        what = f"none of {TRIES_MAX:,} trials of {self._source.name} is as it was asked for"
        return _refused("", what, "more hosts or VMs, fewer wishes, or other constraints")


class _Lot:
    """The trials of one generator, of which some are to be drawn anew until all are wanted."""

    def __init__(self, generator: Generator, numbers: Array, stages: Stages) -> None:
        self.generator, self.numbers = generator, numbers
        self.drawn = generator.play(stages)
        self.left = np.flatnonzero(~generator.wanted(self.drawn))
        self._attempt, self._tries = 1, 1

    def again(self) -> tuple[Array, Array]:
        """The numbers to be drawn anew, and which attempt each is."""
        if self._attempt >= TRIES_MAX:
            raise self.generator.refusal()
        # The fewer are left and the longer it takes, the harder they are to find: so many
        # attempts at once. How many it is changes nothing: the first that is wanted counts.
        few = max(1, TOGETHER // len(self.left))
        self._tries = min(few, 4 * self._attempt, TRIES_MAX - self._attempt)
        attempts = np.arange(self._attempt, self._attempt + self._tries)
        return np.tile(self.numbers[self.left], self._tries), np.repeat(attempts, len(self.left))

    def take(self, stages: Stages) -> None:
        """Keep what is wanted of the trials that were drawn anew."""
        left, again = self.left, self.generator.play(stages)
        wanted = self.generator.wanted(again).reshape(self._tries, len(left))
        found, first = wanted.any(axis=0), wanted.argmax(axis=0)
        chosen = (first * len(left) + np.arange(len(left)))[found]
        self.drawn = self.drawn.but(left[found], again.only(chosen))
        self.left, self._attempt = left[~found], self._attempt + self._tries


def stages_of(
    options: Options,
    seed: int,
    numbers: Array,
    least: Array,
    attempts: int | Array = 0,
) -> Stages:
    """The clusters and plans of some numbers."""
    base = int.from_bytes(blake2b(str(seed).encode(), digest_size=8).digest())
    with np.errstate(over="ignore"):
        keys = numbers.astype(np.uint64) + np.array(attempts, np.uint64) * _ATTEMPT
        keys = mix(mix(keys) + np.uint64(base))
    return draw_stages(keys, options, least, _SETTINGS.limits)


def draw_in_turn(
    generators: Sequence[Generator], options: Options, seed: int, numbers: Sequence[int]
) -> Iterator[tuple[Sequence[int], Drawn]]:
    """The trials of some numbers, of which each is for one generator, in turn: by generator."""
    every = np.array(numbers, np.int64)
    turns = every % len(generators)
    least = np.array([one.least for one in generators]).reshape(-1, 2)
    stages = stages_of(options, seed, every, least[turns])
    lots = []
    for turn in range(min(len(generators), len(numbers))):
        which = np.flatnonzero(turns == turns[turn])
        lots.append(_Lot(generators[turns[turn]], every[which], stages.only(which)))
    while unfinished := [lot for lot in lots if lot.left.size]:
        # All at once: to draw a few stages takes about as long as to draw many.
        asked = [lot.again() for lot in unfinished]
        anew, attempts = (np.concatenate(some) for some in zip(*asked, strict=True))
        stages = stages_of(options, seed, anew, least[anew % len(generators)], attempts)
        ends = np.cumsum([0, *(len(one) for one, _ in asked)])
        for lot, first, end in zip(unfinished, ends, ends[1:], strict=False):
            lot.take(stages.only(np.arange(first, end)))
    for lot in lots:
        yield lot.numbers.tolist(), lot.drawn


def _refused(key: str, what: str, cure: str = "") -> Impossible:
    return Impossible("options", [Mistake(key=key, what=what, cure=cure)])
