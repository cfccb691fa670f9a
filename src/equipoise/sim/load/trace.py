"""Traces: what was measured somewhere, read and checked before a run relies on it.

Everything that is wrong with a file is said at once, with its lines. The public traces of Bitbrains
(GWA-T-12) are read as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files.words import figure, shown
from equipoise.model.story.load import Trace
from equipoise.sim.load.columns import Measured, read_columns, refused, source
from equipoise.sim.load.sheet import Floats, Integers

_SHOWN_MAX: Final = 20
_LEVEL_MAX: Final = 10**12
_LENGTH_MS_MAX: Final = 10**15
_NUMBERS: Final = "write plain numbers, with a dot for the fraction"


class TraceReader:
    """Reads the traces beside a scenario, each file once for the same columns."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._measured: dict[tuple[str, str, str], Measured] = {}

    def read(self, part: Trace) -> tuple[Integers, Floats]:
        """The times in milliseconds, of which the first is 0, and the levels from then on."""
        if self._folder is None:
            what = "traces stand beside the file of a scenario, and this one comes from no file"
            raise refused(Path(part.file), what, "write the scenario to a file")
        path = self._folder / part.file
        key = (part.file, part.time, part.value)
        if key not in self._measured:
            self._measured[key] = read_columns(path, part.time, part.value)
        return _checked(path, self._measured[key], part)


class _Fault(NamedTuple):
    """A kind of problem: in which rows it is, and how it is said."""

    rows: NDArray[np.bool_]
    key: str
    say: Callable[[int], str]
    cure: str


def _checked(path: Path, measured: Measured, part: Trace) -> tuple[Integers, Floats]:
    if not len(measured.time):
        raise refused(path, "has no rows", "a trace has at least one")
    with np.errstate(over="ignore", invalid="ignore"):
        levels = measured.value * part.scale
        time = np.where(np.isfinite(measured.time), measured.time, np.nan)
        since_ms = np.rint((time - _origin(time)) * 1000 / part.time_per_s)
        faults = list(_faults(measured, levels, since_ms, part))
    if any(fault.rows.any() for fault in faults):
        raise InvalidInput(source(path), _problems(measured, faults))
    return since_ms.astype(np.int64), levels


def _origin(time: Floats) -> float:
    """The first time; if it is none, the first that is one, so that the others can be judged."""
    sound = np.flatnonzero(np.isfinite(time))
    return float(time[sound[0]]) if sound.size else 0.0


def _faults(measured: Measured, levels: Floats, since_ms: Floats, part: Trace) -> Iterator[_Fault]:
    step_ms = np.diff(since_ms, prepend=since_ms[0] - 1)  # nothing is before the first row
    say = _Sayings(measured, part, step_ms)
    is_number = np.isfinite(measured.value)
    yield _Fault(~np.isfinite(measured.time), part.time, say.no_time, _NUMBERS)
    yield _Fault(~is_number, part.value, say.no_value, _NUMBERS)
    yield _Fault(is_number & (levels < 0), part.value, say.negative, "a demand is not below 0")
    much = f"at most {_LEVEL_MAX}; see scale"
    yield _Fault(is_number & (levels > _LEVEL_MAX), part.value, say.much, much)
    yield _Fault(step_ms < 0, part.time, say.back, "sort the rows by time")
    yield _Fault(step_ms == 0, part.time, say.still, "leave one row out, or see time_per_s")
    gap = (step_ms > part.gap_s_max * 1000) | (since_ms > _LENGTH_MS_MAX)
    long = f"gap_s_max is {part.gap_s_max}; see time_per_s too"
    yield _Fault(gap, part.time, say.gap, long)


class _Sayings:
    """How the faults of a row are said."""

    def __init__(self, measured: Measured, part: Trace, step_ms: Floats) -> None:
        self._measured = measured
        self._part = part
        self._step_ms = step_ms

    def no_time(self, row: int) -> str:
        return self._no_number(row, self._part.time, self._measured.time)

    def no_value(self, row: int) -> str:
        return self._no_number(row, self._part.value, self._measured.value)

    def _no_number(self, row: int, name: str, column: Floats) -> str:
        text = self._measured.texts.get((row, name))
        if text is None:
            return f"{shown(float(column[row]))} is not a number to work with"
        text = text.strip()
        return f"{shown(text)} is not a number" if text else "there is no number"

    def negative(self, row: int) -> str:
        return f"{self._scaled(row)} is negative"

    def much(self, row: int) -> str:
        return f"{self._scaled(row)} is too much"

    def _scaled(self, row: int) -> str:
        scale = self._part.scale
        times = "" if scale == 1 else f" times {figure(float(scale))}"
        return f"{figure(float(self._measured.value[row]))}{times}"

    def back(self, row: int) -> str:
        return f"time goes back: {self._after(row)}"

    def still(self, row: int) -> str:
        return f"time stands still: {self._after(row)} is less than a millisecond"

    def gap(self, row: int) -> str:
        return f"a gap of {figure(float(self._step_ms[row] / 1000))} s: {self._after(row)}"

    def _after(self, row: int) -> str:
        earlier, later = (float(self._measured.time[place]) for place in (row - 1, row))
        return f"{figure(later)} after {figure(earlier)}"


def _problems(measured: Measured, faults: list[_Fault]) -> list[Problem]:
    """The first faults in the order of the rows, and how many there are besides."""
    found = sorted(
        (int(row), place)
        for place, fault in enumerate(faults)
        for row in np.flatnonzero(fault.rows)[:_SHOWN_MAX]
    )
    problems = []
    for row, place in found[:_SHOWN_MAX]:
        fault = faults[place]
        line = None if measured.lines is None else measured.lines[row]
        key = fault.key if line is not None else f"row {row + 1}: {fault.key}"
        problems.append(Problem(key=key, what=fault.say(row), cure=fault.cure, line=line))
    more = sum(int(fault.rows.sum()) for fault in faults) - len(problems)
    if more:
        problems.append(Problem(key="", what=f"and {more} more"))
    return problems
