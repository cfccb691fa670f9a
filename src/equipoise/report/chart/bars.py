"""Bars from a start to an end, one row per subject: what was done to whom, and when (a Gantt)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from equipoise.report.chart.frame import LEFT, RIGHT, TOP, Frame, Mark, Span
from equipoise.report.chart.markup import EMPTY, Markup, joined, short, tag, text
from equipoise.report.words import cut

_HEIGHT: Final = 480
_ROW_MIN, _ROW_MAX = 12, 22
_LABEL_GAP: Final = 12
_LABEL_LETTERS: Final = 15
_TOLD_MAX: Final = 1500
"""With more bars than this they are drawn together, without a title each."""
_WIDE_MIN: Final = 2.5
"""A bar of some seconds in a day would not be seen otherwise."""


class Bar(NamedTuple):
    """One thing that was done."""

    row: int
    start_s: float
    end_s: float
    look: str
    """A class of the style sheet."""
    words: str
    band: tuple[float, float] = (0.15, 0.85)
    """From where to where in the height of its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """What is to be drawn."""

    label: str
    span: Span
    rows: Sequence[tuple[str, str]]
    """The name of each row, and what is written at its end."""
    bars: Sequence[Bar]
    marks: Sequence[Mark] = ()


def draw(given: Bars, legend: Markup = EMPTY) -> Markup:
    """Draw bars in rows."""
    tall = min(max(_HEIGHT / len(given.rows), _ROW_MIN), _ROW_MAX)
    frame = Frame(
        span=given.span, height=tall * len(given.rows), label=given.label, marks=given.marks
    )
    drawn = _told if len(given.bars) <= _TOLD_MAX else _together
    # A short one is never hidden behind a long one.
    shown = sorted(given.bars, key=lambda bar: bar.start_s - bar.end_s)
    return frame.figure(
        _stripes(len(given.rows), tall),
        drawn(shown, frame, tall),
        _labels(given.rows, tall),
        readings={"rows": [name for name, _ in given.rows], "top": TOP, "tall": round(tall, 3)},
        legend=legend,
        kind="bars",
    )


def _outline(bar: Bar, frame: Frame, tall: float) -> tuple[float, float, float, float]:
    left = frame.x(bar.start_s)
    wide = max(frame.x(bar.end_s) - left, _WIDE_MIN)
    # What begins at the very end is still to be seen, inside the plot.
    left = min(left, RIGHT - wide)
    top = TOP + (bar.row + bar.band[0]) * tall
    return left, top, wide, (bar.band[1] - bar.band[0]) * tall


def _told(bars: Sequence[Bar], frame: Frame, tall: float) -> Markup:
    parts = []
    for bar in bars:
        left, top, wide, high = _outline(bar, frame, tall)
        title = tag("title", text(bar.words))
        parts.append(tag("rect", title, class_=bar.look, x=left, y=top, width=wide, height=high))
    return joined(parts)


def _together(bars: Sequence[Bar], frame: Frame, tall: float) -> Markup:
    """Bars of one look are one path; those that hide each other are drawn once."""
    pieces: dict[str, dict[str, None]] = {}
    for bar in bars:
        left, top, wide, high = _outline(bar, frame, tall)
        outline = f"M{short(left)} {short(top)}h{short(wide)}v{short(high)}h-{short(wide)}z"
        pieces.setdefault(bar.look, {})[outline] = None
    return joined(tag("path", class_=look, d="".join(found)) for look, found in pieces.items())


def _stripes(count: int, tall: float) -> Markup:
    """Shade every second row, so that the eye finds its way from the name to the bar."""
    wide = RIGHT - LEFT
    pieces = [
        f"M{LEFT} {short(TOP + row * tall)}h{wide}v{short(tall)}h-{wide}z"
        for row in range(0, count, 2)
    ]
    return tag("path", class_="stripe", d="".join(pieces))


def _labels(rows: Sequence[tuple[str, str]], tall: float) -> Markup:
    every = -int(-_LABEL_GAP // tall)
    parts = []
    for place in range(0, len(rows), every):
        name, note = rows[place]
        y = TOP + (place + 0.5) * tall + 4
        title = tag("title", text(name))
        words = text(cut(name, _LABEL_LETTERS))
        parts.append(tag("text", title, words, class_="row end", x=LEFT - 8, y=y))
        parts.append(tag("text", text(note), class_="row", x=RIGHT + 8, y=y))
    return joined(parts)
