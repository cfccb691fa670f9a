"""Lines, areas and columns over time, with the name of each series beside its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from equipoise.report.chart.frame import LEFT, RIGHT, TOP, Frame, Mark, Span, nothing
from equipoise.report.chart.markup import Markup, joined, short, tag, text
from equipoise.report.chart.scale import Figures, Scale, ticks
from equipoise.report.words import cut, number, with_unit

_LABEL_GAP: Final = 17
_LABEL_LETTERS: Final = 11
_TALL: Final = 120
_COLUMN_MIN: Final = 1.5
_COLUMN_APART: Final = 3
"""Columns at least this wide need not touch each other."""


class Look(StrEnum):
    """How a series is drawn."""

    LINE = "line"
    STEP = "step"
    """Each figure holds until the next one."""
    AREA = "area"
    COLUMNS = "columns"
    """One on top of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Figures over time; where there is none, ``nan``."""

    name: str
    values: Figures
    look: Look = Look.LINE
    colour: int = 1
    """A number of the palette in the style sheet, from 1 to 8; 0 is grey."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What is to be drawn."""

    label: str
    span: Span
    times: Figures
    series: Sequence[Series]
    unit: str = ""
    height: int = 200
    low: float = 0.0
    high: float | None = None
    """The end of the scale; left out, as far as the figures need."""
    whole: bool = False
    """Whether the figures are counts, of which there are no halves."""
    levels: Sequence[tuple[float, str]] = ()
    """Figures to draw across the plot, such as a target."""
    marks: Sequence[Mark] = ()


def draw(plot: Plot, *, empty: str) -> Markup:
    """Draw a plot, or say why there is nothing to draw."""
    if not any(np.isfinite(one.values).any() for one in plot.series):
        return nothing(empty)
    at = ticks(plot.low, _highest(plot), about=4 if plot.height >= _TALL else 2, whole=plot.whole)
    frame = Frame(span=plot.span, height=plot.height, label=plot.label, marks=plot.marks)
    y = Scale(at[0], at[-1], frame.bottom, TOP)
    return frame.figure(
        _figure_axis(at, y, plot.unit),
        *_columns(plot, frame.x, y),
        *(_path(one, frame.x(plot.times), y) for one in plot.series if one.look != Look.COLUMNS),
        *(_level(value, words, y) for value, words in plot.levels),
        _names(plot, y),
        readings=_readings(plot),
    )


def _highest(plot: Plot) -> float:
    if plot.high is not None:
        return plot.high
    tops = [one.values for one in plot.series if one.look != Look.COLUMNS]
    stacked = [np.nan_to_num(one.values) for one in plot.series if one.look == Look.COLUMNS]
    tops += [np.sum(stacked, axis=0)] if stacked else []
    finite = np.concatenate([one[np.isfinite(one)] for one in tops])
    found = max([float(finite.max(initial=plot.low)), *(value for value, _ in plot.levels)])
    return found if found > plot.low else plot.low + 1.0


def _figure_axis(at: list[float], y: Scale, unit: str) -> Markup:
    parts = []
    for place, value in enumerate(at):
        words = with_unit(value, unit) if place == len(at) - 1 else number(value)
        parts.append(tag("path", class_="grid", d=f"M{LEFT} {y(value):.1f}H{RIGHT}"))
        parts.append(tag("text", text(words), class_="tick end", x=LEFT - 8, y=y(value) + 4))
    return joined(parts)


# Marks


def _path(series: Series, x: Figures, y: Scale) -> Markup:
    """A line is broken where figures are missing; a figure alone is a dot."""
    parts = []
    for run in _unbroken(series.values):
        across, up = x[run], y(series.values[run])
        if len(across) == 1:
            parts.append(tag("circle", class_=f"dot c{series.colour}", cx=across[0], cy=up[0], r=4))
            continue
        line = _steps(across, up) if series.look is Look.STEP else _straight(across, up)
        if series.look is Look.AREA:
            area = f"{line}V{short(y.start)}H{short(across[0])}z"
            parts.append(tag("path", class_=f"area c{series.colour}", d=area))
        parts.append(tag("path", class_=f"line c{series.colour}", d=line))
    return joined(parts)


def _unbroken(values: Figures) -> Iterator[slice]:
    known = np.concatenate([[False], np.isfinite(values), [False]])
    turns = np.flatnonzero(known[1:] != known[:-1])
    for start, end in zip(turns[::2], turns[1::2], strict=True):
        yield slice(int(start), int(end))


def _straight(x: Figures, y: Figures) -> str:
    points = (f"{short(a)} {short(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return "M" + "L".join(points)


def _steps(x: Figures, y: Figures) -> str:
    points = [f"H{short(a)}V{short(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return f"M{short(float(x[0]))} {short(float(y[0]))}" + "".join(points[1:])


def edges(times: Figures, span: Span) -> Figures:
    """Where the time of one sample ends and that of the next one begins: half-way between them."""
    middles = (times[1:] + times[:-1]) / 2
    return np.concatenate([[span.low_s], middles, [span.high_s]])


def _columns(plot: Plot, x: Scale, y: Scale) -> Iterator[Markup]:
    around = x(edges(plot.times, plot.span))
    floor = np.zeros(len(plot.times))
    for one in plot.series:
        if one.look is not Look.COLUMNS:
            continue
        values = np.nan_to_num(one.values)
        pieces = []
        for place in np.flatnonzero(values > 0):
            left, right = float(around[place]), float(around[place + 1])
            gap = 1 if right - left > _COLUMN_APART else 0
            wide = max(right - left - gap, _COLUMN_MIN)
            below, above = y(float(floor[place])), y(float(floor[place] + values[place]))
            across = f"h{short(wide)}V{short(below)}h{short(-wide)}z"
            pieces.append(f"M{short(left)} {short(above)}{across}")
        floor = floor + values
        yield tag("path", class_=f"column c{one.colour}", d="".join(pieces))


def _level(value: float, words: str, y: Scale) -> Markup:
    title = tag("title", text(f"{words} {number(value)}"))
    line = tag("path", title, class_="level", d=f"M{LEFT} {y(value):.1f}H{RIGHT}")
    return joined([line])


# Words


def _names(plot: Plot, y: Scale) -> Markup:
    """Write each name where its series ends, and push apart those that would overlap."""
    wanted = []
    for one in plot.series:
        known = np.flatnonzero(np.isfinite(one.values))
        if len(known):
            last = float(one.values[known[-1]]) if one.look is not Look.COLUMNS else 0.0
            wanted.append((y(last), one.name, f"line c{one.colour}"))
    wanted += [(y(value), words, "level") for value, words in plot.levels]
    wanted.sort(key=lambda each: each[0])
    places = _apart([place for place, _, _ in wanted], TOP, y.start)
    parts = []
    for place, (_, name, look) in zip(places, wanted, strict=True):
        parts.append(tag("path", class_=look, d=f"M{RIGHT + 6} {place:.1f}h14"))
        title = tag("title", text(name))
        words = text(cut(name, _LABEL_LETTERS))
        parts.append(tag("text", title, words, class_="name", x=RIGHT + 25, y=place + 4))
    return joined(parts)


def _apart(wanted: list[float], top: float, bottom: float) -> list[float]:
    """Move places, given from top to bottom, as little as is needed for each to be readable."""
    gap = min(_LABEL_GAP, (bottom - top) / max(1, len(wanted) - 1))
    placed: list[float] = []
    for place in wanted:
        placed.append(max(place, placed[-1] + gap if placed else top))
    limit = bottom
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - gap
    return placed


def _readings(plot: Plot) -> dict[str, Any]:
    named = [[one.name, [_reading(value) for value in one.values.tolist()]] for one in plot.series]
    return {"times": [round(at_s, 1) for at_s in plot.times.tolist()], "unit": plot.unit,
            "series": named}  # fmt: skip


def _reading(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None
