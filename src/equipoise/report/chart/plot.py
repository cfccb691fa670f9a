"""Plots over time: lines, areas and columns, with the name of each series at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from equipoise.report.chart.frame import (
    LEFT,
    RIGHT,
    TOP,
    ChartFrame,
    Floats,
    LinearScale,
    TimeMark,
    TimeSpan,
    empty_note,
    round_ticks,
)
from equipoise.report.chart.markup import Markup, concat, px, tag, text
from equipoise.report.format import format_number, shorten_middle, with_unit

_LABEL_GAP: Final = 17
_LABEL_LETTERS: Final = 11
_TALL: Final = 120
_COLUMN_MIN: Final = 1.5
_COLUMN_APART: Final = 3
"""Columns at least this wide have a gap between them."""


class SeriesStyle(StrEnum):
    """How a series is drawn."""

    LINE = "line"
    STEP = "step"
    """Each value holds until the next one."""
    AREA = "area"
    COLUMNS = "columns"
    """Columns are stacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotSeries:
    """Figures over time; NaN where there is none."""

    name: str
    values: Floats
    look: SeriesStyle = SeriesStyle.LINE
    colour: int = 1
    """A number of the palette in the style sheet, from 1 to 8; 0 is grey."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The content of a plot."""

    label: str
    span: TimeSpan
    times: Floats
    series: Sequence[PlotSeries]
    unit: str = ""
    height: int = 200
    low: float = 0.0
    high: float | None = None
    """The end of the scale; default: the highest figure."""
    whole: bool = False
    """Whether the figures are counts, so that ticks are integers."""
    levels: Sequence[tuple[float, str]] = ()
    """Horizontal lines, such as a target."""
    marks: Sequence[TimeMark] = ()


def draw(plot: Plot, *, empty: str) -> Markup:
    """Return a plot, or the note ``empty`` if no series has a figure."""
    if not any(np.isfinite(series.values).any() for series in plot.series):
        return empty_note(empty)
    at = round_ticks(
        plot.low, _highest(plot), about=4 if plot.height >= _TALL else 2, whole=plot.whole
    )
    frame = ChartFrame(span=plot.span, height=plot.height, label=plot.label, marks=plot.marks)
    y = LinearScale(at[0], at[-1], frame.bottom, TOP)
    return frame.figure(
        _figure_axis(at, y, plot.unit),
        *_columns(plot, frame.x, y),
        *(
            _path(series, frame.x(plot.times), y)
            for series in plot.series
            if series.look != SeriesStyle.COLUMNS
        ),
        *(_level(value, words, y) for value, words in plot.levels),
        _names(plot, y),
        readings=_readings(plot),
    )


def _highest(plot: Plot) -> float:
    if plot.high is not None:
        return plot.high
    tops = [series.values for series in plot.series if series.look != SeriesStyle.COLUMNS]
    stacked = [
        np.nan_to_num(series.values) for series in plot.series if series.look == SeriesStyle.COLUMNS
    ]
    tops += [np.sum(stacked, axis=0)] if stacked else []
    finite = np.concatenate([top[np.isfinite(top)] for top in tops])
    found = max([float(finite.max(initial=plot.low)), *(value for value, _ in plot.levels)])
    return found if found > plot.low else plot.low + 1.0


def _figure_axis(at: list[float], y: LinearScale, unit: str) -> Markup:
    parts = []
    for place, value in enumerate(at):
        words = with_unit(value, unit) if place == len(at) - 1 else format_number(value)
        parts.append(tag("path", class_="grid", d=f"M{LEFT} {y(value):.1f}H{RIGHT}"))
        parts.append(tag("text", text(words), class_="tick end", x=LEFT - 8, y=y(value) + 4))
    return concat(parts)


# Marks


def _path(series: PlotSeries, x: Floats, y: LinearScale) -> Markup:
    """A line is broken where figures are missing; a figure alone is a dot."""
    parts = []
    for run in _unbroken(series.values):
        across, up = x[run], y(series.values[run])
        if len(across) == 1:
            parts.append(tag("circle", class_=f"dot c{series.colour}", cx=across[0], cy=up[0], r=4))
            continue
        line = _steps(across, up) if series.look is SeriesStyle.STEP else _straight(across, up)
        if series.look is SeriesStyle.AREA:
            area = f"{line}V{px(y.start)}H{px(across[0])}z"
            parts.append(tag("path", class_=f"area c{series.colour}", d=area))
        parts.append(tag("path", class_=f"line c{series.colour}", d=line))
    return concat(parts)


def _unbroken(values: Floats) -> Iterator[slice]:
    known = np.concatenate([[False], np.isfinite(values), [False]])
    turns = np.flatnonzero(known[1:] != known[:-1])
    for start, end in zip(turns[::2], turns[1::2], strict=True):
        yield slice(int(start), int(end))


def _straight(x: Floats, y: Floats) -> str:
    points = (f"{px(a)} {px(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return "M" + "L".join(points)


def _steps(x: Floats, y: Floats) -> str:
    points = [f"H{px(a)}V{px(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return f"M{px(float(x[0]))} {px(float(y[0]))}" + "".join(points[1:])


def sample_edges(times: Floats, span: TimeSpan) -> Floats:
    """Where the time of one sample ends and that of the next one begins: half-way between them."""
    middles = (times[1:] + times[:-1]) / 2
    return np.concatenate([[span.low_s], middles, [span.high_s]])


def _columns(plot: Plot, x: LinearScale, y: LinearScale) -> Iterator[Markup]:
    around = x(sample_edges(plot.times, plot.span))
    floor = np.zeros(len(plot.times))
    for series in plot.series:
        if series.look is not SeriesStyle.COLUMNS:
            continue
        values = np.nan_to_num(series.values)
        pieces = []
        for place in np.flatnonzero(values > 0):
            left, right = float(around[place]), float(around[place + 1])
            gap = 1 if right - left > _COLUMN_APART else 0
            wide = max(right - left - gap, _COLUMN_MIN)
            below, above = y(float(floor[place])), y(float(floor[place] + values[place]))
            across = f"h{px(wide)}V{px(below)}h{px(-wide)}z"
            pieces.append(f"M{px(left)} {px(above)}{across}")
        floor = floor + values
        yield tag("path", class_=f"column c{series.colour}", d="".join(pieces))


def _level(value: float, words: str, y: LinearScale) -> Markup:
    title = tag("title", text(f"{words} {format_number(value)}"))
    line = tag("path", title, class_="level", d=f"M{LEFT} {y(value):.1f}H{RIGHT}")
    return concat([line])


# Labels


def _names(plot: Plot, y: LinearScale) -> Markup:
    """Return the names at the ends of their series, moved apart where they would overlap."""
    wanted = []
    for series in plot.series:
        known = np.flatnonzero(np.isfinite(series.values))
        if len(known):
            last = (
                float(series.values[known[-1]]) if series.look is not SeriesStyle.COLUMNS else 0.0
            )
            wanted.append((y(last), series.name, f"line c{series.colour}"))
    wanted += [(y(value), words, "level") for value, words in plot.levels]
    wanted.sort(key=lambda label: label[0])
    places = _spread_labels([place for place, _, _ in wanted], TOP, y.start)
    parts = []
    for place, (_, name, look) in zip(places, wanted, strict=True):
        parts.append(tag("path", class_=look, d=f"M{RIGHT + 6} {place:.1f}h14"))
        title = tag("title", text(name))
        words = text(shorten_middle(name, _LABEL_LETTERS))
        parts.append(tag("text", title, words, class_="name", x=RIGHT + 25, y=place + 4))
    return concat(parts)


def _spread_labels(wanted: list[float], top: float, bottom: float) -> list[float]:
    """Return positions, sorted from the top, moved apart until labels are readable."""
    gap = min(_LABEL_GAP, (bottom - top) / max(1, len(wanted) - 1))
    placed: list[float] = []
    for place in wanted:
        placed.append(max(place, placed[-1] + gap if placed else top))
    # Back upwards: labels that the first pass moved below the chart return into it.
    limit = bottom
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - gap
    return placed


def _readings(plot: Plot) -> dict[str, Any]:
    named = [
        [series.name, [_reading(value) for value in series.values.tolist()]]
        for series in plot.series
    ]
    return {"times": [round(at_s, 1) for at_s in plot.times.tolist()], "unit": plot.unit,
            "series": named}  # fmt: skip


def _reading(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None
