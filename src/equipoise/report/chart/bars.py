"""Bars from a start to an end, one row per subject: what was done to whom, and when (a Gantt)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from equipoise.report.chart.frame import LEFT, RIGHT, TOP, Frame, Mark, Span
from equipoise.report.chart.markup import EMPTY, Markup, joined, short, tag, text
from equipoise.report.words import cut

_HEIGHT: Final = 480
_ROW_MIN, _ROW_MAX = 12, 22
_LABEL_LETTERS: Final = 15
_TOLD_MAX: Final = 1500
"""With more bars than this they are drawn together, without a title each."""
_WIDE_MIN: Final = 2.5
"""A bar of some seconds in a day would not be seen otherwise."""
_LETTER_WIDE, _LETTER_HIGH = 7.0, 12.0
"""The room that a letter of a bar's name needs."""
_BEND_MIN, _BEND_MAX = 12.0, 60.0
_HEAD_LONG, _HEAD_HIGH = 6, 3


class Bar(NamedTuple):
    """One thing that was done."""

    row: int
    start_s: float
    end_s: float
    look: str
    """A class of the style sheet."""
    words: str
    band: tuple[float, float] = (0.15, 0.85)
    """From where to where, counted in rows from the top of its own."""
    name: str = ""
    """What is written into it, if there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """What is to be drawn."""

    label: str
    span: Span
    rows: Sequence[tuple[str, str]]
    """The name of each row, and what is written at its end; neighbours of one name are a lane."""
    bars: Sequence[Bar]
    marks: Sequence[Mark] = ()
    links: Sequence[tuple[Bar, Bar]] = ()
    """Bars of which the second waits for the first."""


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
        _stripes(given.rows, tall),
        drawn(shown, frame, tall),
        *(_link(_outline(a, frame, tall), _outline(b, frame, tall)) for a, b in given.links),
        _labels(given.rows, tall),
        readings={"rows": [name for name, _ in given.rows], "top": TOP, "tall": round(tall, 3)},
        legend=legend,
        kind="bars",
    )


_Outline = tuple[float, float, float, float]


def _outline(bar: Bar, frame: Frame, tall: float) -> _Outline:
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
        if len(bar.name) * _LETTER_WIDE < wide and high >= _LETTER_HIGH:
            middle, line = left + wide / 2, top + high / 2 + 4
            parts.append(tag("text", text(bar.name), class_="row middle within", x=middle, y=line))
    return joined(parts)


def _link(first: _Outline, second: _Outline) -> Markup:
    """An arrow from the end of one bar to the start of another."""
    x, y = first[0] + first[2], first[1] + first[3] / 2
    to_x, to_y = second[0], second[1] + second[3] / 2
    bend = 0.0 if y == to_y else min(max((to_x - x) / 2, _BEND_MIN), _BEND_MAX)
    curve = (x + bend, y), (to_x - bend, to_y), (to_x, to_y)
    way = " ".join(f"{short(across)} {short(down)}" for across, down in curve)
    head = f"M{short(to_x)} {short(to_y)}l-{_HEAD_LONG} -{_HEAD_HIGH}v{2 * _HEAD_HIGH}z"
    line = f"M{short(x)} {short(y)}C{way}"
    return tag("g", tag("path", d=line), tag("path", class_="head", d=head), class_="link")


def _together(bars: Sequence[Bar], frame: Frame, tall: float) -> Markup:
    """Bars of one look are one path; those that hide each other are drawn once."""
    pieces: dict[str, dict[str, None]] = {}
    for bar in bars:
        left, top, wide, high = _outline(bar, frame, tall)
        outline = f"M{short(left)} {short(top)}h{short(wide)}v{short(high)}h-{short(wide)}z"
        pieces.setdefault(bar.look, {})[outline] = None
    return joined(tag("path", class_=look, d="".join(found)) for look, found in pieces.items())


def _lanes(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """The first row of each lane, and how many it has."""
    first = 0
    for _, found in groupby(rows, key=lambda row: row[0]):
        count = len(list(found))
        yield first, count
        first += count


def _stripes(rows: Sequence[tuple[str, str]], tall: float) -> Markup:
    """Shade every second lane, so that the eye finds its way from the name to the bar."""
    wide = RIGHT - LEFT
    pieces = [
        f"M{LEFT} {short(TOP + first * tall)}h{wide}v{short(count * tall)}h-{wide}z"
        for first, count in list(_lanes(rows))[::2]
    ]
    return tag("path", class_="stripe", d="".join(pieces))


def _labels(rows: Sequence[tuple[str, str]], tall: float) -> Markup:
    parts = []
    for first, count in _lanes(rows):
        name, note = rows[first]
        y = TOP + (first + count / 2) * tall + 4
        title = tag("title", text(name))
        words = text(cut(name, _LABEL_LETTERS))
        parts.append(tag("text", title, words, class_="row end", x=LEFT - 8, y=y))
        parts.append(tag("text", text(note), class_="row", x=RIGHT + 8, y=y))
    return joined(parts)
