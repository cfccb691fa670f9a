"""Beats: parts that change in a steady rhythm. All kinds of them are one.

A beat is nothing before it begins. From then on it goes in cycles; a cycle has a high phase and,
mostly, a low one; and in each phase the level is drawn once or more often. So a noise is a beat
with no low phase, a constant a noise whose cycle never ends, a spike a beat that is zero when low,
and a diurnal wave a noise whose level follows from the place instead of being drawn.

The stretches between the changes are counted from 0; -1 is the time before the beginning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.model.story.load import Constant, Diurnal, Level, Noise, Pattern, Spike, Spread
from equipoise.sim.chance import draw
from equipoise.sim.load.level import Levels
from equipoise.sim.load.sheet import FOREVER, Floats, Integers, Sheet

BeatPart = Constant | Diurnal | Noise | Pattern | Spike


class Phase(NamedTuple):
    """The high or the low part of a cycle."""

    redraw_ms: int
    draws: int
    """How many stretches the phase has; 0 if the cycle has no such phase."""
    level: int
    drawn: bool


class Beat(NamedTuple):
    """The rhythm of a part, the same for all VMs that have it but for the drawn beginning."""

    begin_ms: int | None
    """Not after 0 unless there is nothing before it; ``None`` if each VM draws its own."""
    cycle_ms: int
    high_ms: int
    high: Phase
    low: Phase


class BeatStreams(NamedTuple):
    """Where a VM draws its beginning and its levels from; 0 where it draws nothing."""

    begin: int
    high: int
    low: int


def beat_of(part: BeatPart, levels: Levels) -> Beat:
    """The rhythm of a part."""
    match part:
        case Constant():
            return _plain(0, FOREVER, part.level, levels)
        case Noise():
            # A level that is not drawn never changes.
            period = part.period_s * 1000 if isinstance(part.level, Spread) else FOREVER
            return _plain(_begin(part.phase_s, period), period, part.level, levels)
        case Diurnal():
            return _plain(0, part.every_s * 1000, part, levels)
        case Spike():
            return _spike(part, levels)
        case Pattern():
            high, low = part.high_s * 1000, part.low_s * 1000
            redraw = None if part.redraw_s is None else part.redraw_s * 1000
            return Beat(
                begin_ms=_begin(part.phase_s, high + low),
                cycle_ms=high + low,
                high_ms=high,
                high=_phase(part.high, high, redraw, levels),
                low=_phase(part.low, low, redraw, levels),
            )


def _begin(phase_s: int | None, cycle_ms: int) -> int | None:
    """So that stretch 0 is the one that the run begins in, or one of the same cycle."""
    return None if phase_s is None else -(phase_s * 1000 % cycle_ms)


def _plain(begin_ms: int | None, cycle_ms: int, level: Level | Diurnal, levels: Levels) -> Beat:
    drawn = isinstance(level, Spread)
    high = Phase(cycle_ms, 1, levels.number(level), drawn)
    return Beat(begin_ms, cycle_ms, cycle_ms, high, _absent(levels))


def _spike(part: Spike, levels: Levels) -> Beat:
    cycle = FOREVER if part.every_s is None else part.every_s * 1000
    high = min(part.for_s * 1000, cycle)  # one that lasts until the next never comes down
    low = _absent(levels) if high == cycle else Phase(cycle, 1, levels.number(0.0), False)
    drawn = isinstance(part.level, Spread)
    return Beat(
        part.at_s * 1000, cycle, high, Phase(cycle, 1, levels.number(part.level), drawn), low
    )


def _phase(level: Level, lasts_ms: int, redraw_ms: int | None, levels: Levels) -> Phase:
    drawn = isinstance(level, Spread)
    every = lasts_ms if redraw_ms is None or not drawn else redraw_ms
    return Phase(every, -(-lasts_ms // every), levels.number(level), drawn)


def _absent(levels: Levels) -> Phase:
    return Phase(FOREVER, 0, levels.number(0.0), False)


class Beats:
    """The beats of all VMs, under the numbers of their parts."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._sheet = Sheet(begin=np.int64, cycle=np.int64, high=np.int64, draws=np.int64)
        # Two rows for each part, the high phase and the low one.
        self._phases = Sheet(redraw=np.int64, draws=np.int64, level=np.int64, stream=np.uint64)

    def write(self, added: dict[int, tuple[Beat, BeatStreams]]) -> None:
        """Take up some beats, or put them in the place of others."""
        parts = np.array(list(added), dtype=np.int64)
        beats = [beat for beat, _ in added.values()]
        streams = [stream for _, stream in added.values()]
        cycle = np.array([beat.cycle_ms for beat in beats])
        chance = draw(np.array([it.begin for it in streams], dtype=np.uint64), np.zeros_like(parts))
        drawn = -(chance * cycle).astype(np.int64)
        given = np.array([0 if beat.begin_ms is None else beat.begin_ms for beat in beats])
        self._sheet.write(
            parts,
            begin=np.where([beat.begin_ms is None for beat in beats], drawn, given),
            cycle=cycle,
            high=[beat.high_ms for beat in beats],
            draws=[beat.high.draws + beat.low.draws for beat in beats],
        )
        for phase, rows, who in (
            ([beat.high for beat in beats], 2 * parts, [it.high for it in streams]),
            ([beat.low for beat in beats], 2 * parts + 1, [it.low for it in streams]),
        ):
            self._phases.write(
                rows,
                redraw=[it.redraw_ms for it in phase],
                draws=[it.draws for it in phase],
                level=[it.level for it in phase],
                stream=np.array(who, dtype=np.uint64),
            )

    def stretches(self, parts: Integers, at_ms: Integers) -> Integers:
        """In which stretch each part is at the time beside it."""
        cycle, high = self._sheet["cycle"][parts], self._sheet["high"][parts]
        since = at_ms - self._sheet["begin"][parts]
        cycles = since // cycle
        inside = since - cycles * cycle
        is_low = inside >= high
        drawn = (inside - high * is_low) // self._phases["redraw"][2 * parts + is_low]
        before = self._phases["draws"][2 * parts] * is_low
        found: Integers = cycles * self._sheet["draws"][parts] + before + drawn
        return np.where(since < 0, -1, found)

    def starts(self, parts: Integers, stretches: Integers) -> Integers:
        """When each of the stretches, none of them -1, begins."""
        cycles, place, phases, is_low = self._found(parts, stretches)
        start: Integers = (
            self._sheet["begin"][parts]
            + cycles * self._sheet["cycle"][parts]
            + self._sheet["high"][parts] * is_low
            + place * self._phases["redraw"][phases]
        )
        return start

    def values(self, parts: Integers, stretches: Integers) -> Floats:
        """The level of each part in the stretch beside it."""
        cycles, place, phases, _ = self._found(parts, stretches)
        places = cycles * self._phases["draws"][phases] + place
        level, stream = self._phases["level"][phases], self._phases["stream"][phases]
        return np.where(stretches < 0, 0.0, self._levels.values(level, stream, places))

    def _found(
        self, parts: Integers, stretches: Integers
    ) -> tuple[Integers, Integers, Integers, NDArray[np.bool_]]:
        """Of each stretch the cycle, the place in the phase, the row of the phase, and which."""
        draws = self._sheet["draws"][parts]
        high_draws = self._phases["draws"][2 * parts]
        cycles = stretches // draws
        place = stretches - cycles * draws
        is_low = place >= high_draws
        return cycles, place - high_draws * is_low, 2 * parts + is_low, is_low
