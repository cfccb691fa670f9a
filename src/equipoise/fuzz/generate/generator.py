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

TRIES_MAX: Final = 1_000
"""How often a trial is drawn anew that is not as it was asked for."""
TOGETHER: Final = 256
"""How many are drawn anew at a time, once some were tried."""
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
        return self.play(self._stages(numbers), numbers)

    def play(self, stages: Stages, numbers: Sequence[int]) -> Drawn:
        """The trials of some numbers, on the stages that were drawn for them."""
        drawn = self._drawn(stages)
        if self._options.broken_at_first is None and self._options.plans is not Plans.REJECTED:
            return drawn
        left = np.flatnonzero(~self._is_wanted(drawn))
        attempt = 1
        while left.size and attempt < TRIES_MAX:
            # The fewer are left, the harder they are to find: so many attempts at once, but never
            # more than there were, for what is found soon is found at the first ones.
            tries = min(max(1, TOGETHER // len(left)), attempt, TRIES_MAX - attempt)
            attempts = np.repeat(np.arange(attempt, attempt + tries), len(left))
            again = self._drawn(self._stages(np.tile(np.array(numbers)[left], tries), attempts))
            wanted = self._is_wanted(again).reshape(tries, len(left))
            found, first = wanted.any(axis=0), wanted.argmax(axis=0)
            chosen = (first * len(left) + np.arange(len(left)))[found]
            drawn = drawn.but(left[found], again.only(chosen))
            left, attempt = left[~found], attempt + tries
        if not left.size:
            return drawn
        what = f"none of {TRIES_MAX} trials of {self._source.name} is as it was asked for"
        raise _refused("", what, "more hosts or VMs, fewer wishes, or other constraints")

    def _drawn(self, stages: Stages) -> Drawn:
        source = self._source
        return Drawn(source, draw_trials(stages, self._options, source.parameters, self._modes))

    def _stages(self, numbers: Sequence[int] | Array, attempts: int | Array = 0) -> Stages:
        least = np.tile(self.least, (len(numbers), 1))
        return stages_of(self._options, self._seed, numbers, least, attempts)

    def _least(self, what: int, kind: str) -> int:
        if all(one.what != what for one in self._source.parameters):
            return 0
        if getattr(self._options, kind)[1] == 0:
            raise _refused(
                kind, f"{self._source.name} finds nobody whom it could name", "1 or more"
            )
        return 1

    def _is_wanted(self, drawn: Drawn) -> Array:
        """Which trials are as they were asked for."""
        found = np.ones(len(drawn), np.bool_)
        if self._options.broken_at_first is not None:
            found &= drawn.said.broken_at_first == self._options.broken_at_first
        if self._options.plans is Plans.REJECTED:
            found &= np.array([not trial.objections for trial in drawn.trials])
        return found


def stages_of(
    options: Options,
    seed: int,
    numbers: Sequence[int] | Array,
    least: Array,
    attempts: int | Array = 0,
) -> Stages:
    """The clusters and plans of some numbers."""
    base = int.from_bytes(blake2b(str(seed).encode(), digest_size=8).digest())
    with np.errstate(over="ignore"):
        keys = np.array(numbers, np.uint64) + np.array(attempts, np.uint64) * _ATTEMPT
        keys = mix(mix(keys) + np.uint64(base))
    return draw_stages(keys, options, least, _SETTINGS.limits)


def draw_in_turn(
    generators: Sequence[Generator], options: Options, seed: int, numbers: range
) -> Iterator[tuple[Sequence[int], Drawn]]:
    """The trials of some numbers, of which each is for one generator, in turn: by generator."""
    turns = np.array(numbers) % len(generators)
    least = np.array([one.least for one in generators])[turns]
    stages = stages_of(options, seed, numbers, least)
    for turn in range(min(len(generators), len(numbers))):
        which = np.flatnonzero(turns == turns[turn])
        some = [numbers[place] for place in which.tolist()]
        yield some, generators[turns[turn]].play(stages.only(which), some)


def _refused(key: str, what: str, cure: str = "") -> Impossible:
    return Impossible("options", [Mistake(key=key, what=what, cure=cure)])
