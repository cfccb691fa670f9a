"""Periodic parts of a load: constant, noise, pattern, spike and diurnal wave are one form.

A periodic part is 0 before it begins. From then on it repeats cycles. A cycle has a high phase and,
mostly, a low phase; in each phase the level is drawn once or more often. So a noise is a periodic
part without a low phase, a constant is a noise whose cycle never ends, a spike is 0 in its low
phase, and the level of a diurnal wave follows from the index of the segment instead of a draw.

Segments are the times between two changes, counted from 0; -1 is the time before the beginning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.model.scenario.load import (
    ConstantLoad,
    CyclicLoad,
    Distribution,
    DiurnalLoad,
    NoiseLoad,
    NumberSpec,
    SpikeLoad,
)
from equipoise.sim.load.levels import FOREVER, DemandTable, Floats, Integers, LevelTable
from equipoise.sim.random_streams import draw_uniform

PeriodicKind = ConstantLoad | DiurnalLoad | NoiseLoad | CyclicLoad | SpikeLoad


class CyclePhase(NamedTuple):
    """The high or the low part of a cycle."""

    redraw_ms: int
    draws: int
    """The number of segments in the phase; 0 if the cycle has no such phase."""
    level: int
    drawn: bool


class PeriodicPart(NamedTuple):
    """The cycle of a part. VMs that share the part differ at most in the drawn beginning."""

    begin_ms: int | None
    """At most 0, except for a spike; ``None`` if each VM draws its own."""
    cycle_ms: int
    high_ms: int
    high: CyclePhase
    low: CyclePhase


class PeriodicStreams(NamedTuple):
    """The random streams of a VM for its beginning and its levels; 0 where it draws nothing."""

    begin: int
    high: int
    low: int


def periodic_part(part: PeriodicKind, levels: LevelTable) -> PeriodicPart:
    """Return the cycle of a part."""
    match part:
        case ConstantLoad():
            return _single_phase(0, FOREVER, part.level, levels)
        case NoiseLoad():
            # A fixed level never changes.
            period = part.period_s * 1000 if isinstance(part.level, Distribution) else FOREVER
            return _single_phase(_begin(part.phase_s, period), period, part.level, levels)
        case DiurnalLoad():
            return _single_phase(0, part.every_s * 1000, part, levels)
        case SpikeLoad():
            return _spike(part, levels)
        case CyclicLoad():
            high, low = part.high_s * 1000, part.low_s * 1000
            redraw = None if part.redraw_s is None else part.redraw_s * 1000
            return PeriodicPart(
                begin_ms=_begin(part.phase_s, high + low),
                cycle_ms=high + low,
                high_ms=high,
                high=_phase(part.high, high, redraw, levels),
                low=_phase(part.low, low, redraw, levels),
            )


def _begin(phase_s: int | None, cycle_ms: int) -> int | None:
    """Return the beginning such that the run starts in the first cycle, at the given phase."""
    return None if phase_s is None else -(phase_s * 1000 % cycle_ms)


def _single_phase(
    begin_ms: int | None, cycle_ms: int, level: NumberSpec | DiurnalLoad, levels: LevelTable
) -> PeriodicPart:
    drawn = isinstance(level, Distribution)
    high = CyclePhase(cycle_ms, 1, levels.number(level), drawn)
    return PeriodicPart(begin_ms, cycle_ms, cycle_ms, high, _absent(levels))


def _spike(part: SpikeLoad, levels: LevelTable) -> PeriodicPart:
    cycle = FOREVER if part.every_s is None else part.every_s * 1000
    high = min(part.for_s * 1000, cycle)  # a spike that lasts until the next one has no low phase
    low = _absent(levels) if high == cycle else CyclePhase(cycle, 1, levels.number(0.0), False)
    drawn = isinstance(part.level, Distribution)
    return PeriodicPart(
        part.at_s * 1000, cycle, high, CyclePhase(cycle, 1, levels.number(part.level), drawn), low
    )


def _phase(
    level: NumberSpec, lasts_ms: int, redraw_ms: int | None, levels: LevelTable
) -> CyclePhase:
    drawn = isinstance(level, Distribution)
    # A fixed level has one segment per phase: further ones would be changes without effect.
    every = lasts_ms if redraw_ms is None or not drawn else redraw_ms
    return CyclePhase(every, -(-lasts_ms // every), levels.number(level), drawn)


def _absent(levels: LevelTable) -> CyclePhase:
    return CyclePhase(FOREVER, 0, levels.number(0.0), False)


class PeriodicParts:
    """The periodic parts of all VMs, by part number."""

    def __init__(self, levels: LevelTable) -> None:
        self._levels = levels
        self._table = DemandTable(begin=np.int64, cycle=np.int64, high=np.int64, draws=np.int64)
        # Two rows for each part: the high phase and the low phase.
        self._phases = DemandTable(
            redraw=np.int64, draws=np.int64, level=np.int64, stream=np.uint64
        )

    def write(self, added: dict[int, tuple[PeriodicPart, PeriodicStreams]]) -> None:
        """Write parts under their numbers; a number that was used before is overwritten."""
        numbers = np.array(list(added), dtype=np.int64)
        parts = [part for part, _ in added.values()]
        streams = [streams for _, streams in added.values()]
        cycle = np.array([part.cycle_ms for part in parts])
        uniform = draw_uniform(
            np.array([stream.begin for stream in streams], dtype=np.uint64), np.zeros_like(numbers)
        )
        drawn = -(uniform * cycle).astype(np.int64)
        given = np.array([0 if part.begin_ms is None else part.begin_ms for part in parts])
        self._table.write(
            numbers,
            begin=np.where([part.begin_ms is None for part in parts], drawn, given),
            cycle=cycle,
            high=[part.high_ms for part in parts],
            draws=[part.high.draws + part.low.draws for part in parts],
        )
        high, low = [part.high for part in parts], [part.low for part in parts]
        self._write_phases(2 * numbers, high, [stream.high for stream in streams])
        self._write_phases(2 * numbers + 1, low, [stream.low for stream in streams])

    def _write_phases(self, rows: Integers, phases: list[CyclePhase], streams: list[int]) -> None:
        self._phases.write(
            rows,
            redraw=[phase.redraw_ms for phase in phases],
            draws=[phase.draws for phase in phases],
            level=[phase.level for phase in phases],
            stream=np.array(streams, dtype=np.uint64),
        )

    def segments(self, parts: Integers, at_ms: Integers) -> Integers:
        """Return the segment of each part at the time beside it."""
        cycle, high = self._table["cycle"][parts], self._table["high"][parts]
        since = at_ms - self._table["begin"][parts]
        cycles = since // cycle
        inside = since - cycles * cycle
        is_low = inside >= high
        drawn = (inside - high * is_low) // self._phases["redraw"][2 * parts + is_low]
        before = self._phases["draws"][2 * parts] * is_low
        segment: Integers = cycles * self._table["draws"][parts] + before + drawn
        return np.where(since < 0, -1, segment)

    def starts(self, parts: Integers, segments: Integers) -> Integers:
        """Return when each segment begins; none of them is -1."""
        cycles, position, phases, is_low = self._locate(parts, segments)
        start: Integers = (
            self._table["begin"][parts]
            + cycles * self._table["cycle"][parts]
            + self._table["high"][parts] * is_low
            + position * self._phases["redraw"][phases]
        )
        return start

    def values(self, parts: Integers, segments: Integers) -> Floats:
        """Return the level of each part in the segment beside it."""
        cycles, position, phases, _ = self._locate(parts, segments)
        indexes = cycles * self._phases["draws"][phases] + position
        level, stream = self._phases["level"][phases], self._phases["stream"][phases]
        return np.where(segments < 0, 0.0, self._levels.values(level, stream, indexes))

    def _locate(
        self, parts: Integers, segments: Integers
    ) -> tuple[Integers, Integers, Integers, NDArray[np.bool_]]:
        """Return per segment: its cycle, its position in the phase, the phase row, is it low."""
        draws = self._table["draws"][parts]
        high_draws = self._phases["draws"][2 * parts]
        cycles = segments // draws
        position = segments - cycles * draws
        is_low = position >= high_draws
        return cycles, position - high_draws * is_low, 2 * parts + is_low, is_low
