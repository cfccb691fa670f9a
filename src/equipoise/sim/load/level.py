"""Levels: a number, or how to get one from a stream of chance and the place in it.

All levels of a run are kept in one table, each once, so that a million of them, of all forms, are
looked up and drawn at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.model.story.load import Diurnal, Level, Spread
from equipoise.sim.chance import draw
from equipoise.sim.load.sheet import Floats, Integers, Sheet, Streams

_FIXED, _EVEN, _BELL, _ONE_OF, _WAVE = range(5)
_SECOND: Final = 2**60
"""A bell curve needs two draws. The other one is so far along the stream that none comes there."""
_COSINE_DIGITS: Final = 12
"""The last bits of a cosine differ from machine to machine, and would be seen where a wave passes
exactly through a half."""


class Levels:
    """The levels that the loads of a run have."""

    def __init__(self) -> None:
        self._numbers: dict[Level | Diurnal, int] = {}
        self._choices: list[float] = []
        self._choice = np.zeros(0)
        self._sheet = Sheet(
            form=np.int8,
            start=np.float64,
            width=np.float64,
            first=np.int64,
            count=np.int64,
            every=np.int64,
            peak=np.int64,
            period=np.int64,
        )

    def number(self, level: Level | Diurnal) -> int:
        """Under which number a level is kept. A wave is a level too: it follows from the place."""
        found = self._numbers.get(level)
        if found is None:
            found = self._numbers[level] = len(self._numbers)
            self._sheet.write(np.array([found]), **self._figures(level))
        return found

    def _figures(self, level: Level | Diurnal) -> dict[str, float]:
        if isinstance(level, Diurnal):
            return {
                "form": _WAVE, "start": level.low, "width": level.high - level.low,
                "every": level.every_s * 1000, "peak": level.peak_s * 1000,
                "period": level.period_s * 1000,
            }  # fmt: skip
        if not isinstance(level, Spread):
            return {"form": _FIXED, "start": level}
        if level.one_of:
            first = len(self._choices)
            self._choices.extend(level.one_of)
            self._choice = np.array(self._choices)
            return {"form": _ONE_OF, "first": first, "count": len(level.one_of)}
        if level.mean is not None:
            assert level.sd is not None, "a bell curve has a mean and an sd"
            return {"form": _BELL, "start": level.mean, "width": level.sd}
        assert level.low is not None, "a range has a low end"
        assert level.high is not None, "a range has a high end"
        return {"form": _EVEN, "start": level.low, "width": level.high - level.low}

    def values(self, numbers: Integers, streams: Streams, places: Integers) -> Floats:
        """The levels under these numbers, drawn from these places of these streams."""
        forms = self._sheet["form"][numbers]
        out: Floats = self._sheet["start"][numbers]
        for form in np.flatnonzero(np.bincount(forms)):
            if form == _FIXED:
                continue
            chosen = np.flatnonzero(forms == form)
            these, where = numbers[chosen], places[chosen]
            if form == _ONE_OF:
                out[chosen] = self._chosen(these, draw(streams[chosen], where))
                continue
            if form == _WAVE:
                shape = self._wave(these, where)
            elif form == _BELL:
                shape = _bell(streams[chosen], where)
            else:
                shape = draw(streams[chosen], where)
            out[chosen] += self._sheet["width"][these] * shape
        return out

    def _chosen(self, numbers: Integers, drawn: Floats) -> Floats:
        place = (drawn * self._sheet["count"][numbers]).astype(np.int64)
        found: Floats = self._choice[self._sheet["first"][numbers] + place]
        return found

    def _wave(self, numbers: Integers, places: Integers) -> Floats:
        """How high the wave is, from 0 to 1, at the start of the ``places``-th interval."""
        period = self._sheet["period"][numbers]
        since_peak = (
            places * self._sheet["every"][numbers] - self._sheet["peak"][numbers]
        ) % period
        cosine = np.round(np.cos(2 * np.pi * (since_peak / period)), _COSINE_DIGITS)
        height: Floats = (1 + cosine) / 2
        return height


def _bell(streams: Streams, places: Integers) -> Floats:
    """Numbers from a bell curve of mean 0 and standard deviation 1, after Box and Muller."""
    radius = np.sqrt(-2 * np.log1p(-draw(streams, places)))
    bell: Floats = radius * np.cos(2 * np.pi * draw(streams, places + _SECOND))
    return bell
