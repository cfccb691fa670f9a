"""Gantt charts: bars from a start to an end, one row per subject, and arrows between bars.

This is the only Gantt renderer; runs, plans, upgrades and placements all use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from equipoise.report.chart.frame import LEFT, RIGHT, TOP, ChartFrame, TimeMark, TimeSpan
from equipoise.report.chart.markup import EMPTY, Markup, concat, px, tag, text
from equipoise.report.format import shorten_middle

_HEIGHT: Final = 480
_ROW_MIN, _ROW_MAX = 12, 22
_LABEL_LETTERS: Final = 15
_TITLED_MAX: Final = 1500
"""More bars are drawn as one path per class, without titles."""
_WIDTH_MIN: Final = 2.5
"""Smallest width of a bar, so that seconds of a day are visible."""
_LETTER_WIDE, _LETTER_HIGH = 7.0, 12.0
"""The size of a letter of the name of a bar."""
_BEND_MIN, _BEND_MAX = 12.0, 60.0
_HEAD_LONG, _HEAD_HIGH = 6, 3


class GanttBar(NamedTuple):
    """One bar: an action or a step."""

    row: int
    start_s: float
    end_s: float
    look: str
    """A class of the style sheet."""
    words: str
    band: tuple[float, float] = (0.15, 0.85)
    """Upper and lower edge, in rows from the top of its own row."""
    name: str = ""
    """The text inside the bar, if it fits."""
    suffix: str = ""
    """Text after the name, in a lighter weight."""


class GanttBackground(NamedTuple):
    """A shaded area behind the bars, over some rows."""

    first_row: int
    rows: int
    start_s: float
    end_s: float
    look: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GanttChart:
    """The content of a Gantt chart."""

    label: str
    span: TimeSpan
    rows: Sequence[tuple[str, str]]
    """The name and the note of each row; neighbours with the same name are one lane."""
    bars: Sequence[GanttBar]
    marks: Sequence[TimeMark] = ()
    links: Sequence[tuple[GanttBar, GanttBar]] = ()
    """Pairs of bars; the second waits for the first."""
    backgrounds: Sequence[GanttBackground] = ()
    flag: TimeMark | None = None
    """A time with a text over the bars, such as the first violation."""
    ticks: Sequence[tuple[float, str]] | None = None
    """Positions and labels of the axis; default: round times."""
    description: str = ""
    row_height: float | None = None
    """Height of a row; default: as much as a chart of limited height allows."""
    titled_max: int = _TITLED_MAX
    """More bars than this are one path per class, without titles."""
    static: bool = False
    """Whether the chart has no readout under the pointer; its names are shortened to fit."""


def draw(given: GanttChart, legend: Markup = EMPTY) -> Markup:
    """Return a Gantt chart as a figure."""
    tall = given.row_height or min(max(_HEIGHT / len(given.rows), _ROW_MIN), _ROW_MAX)
    frame = ChartFrame(
        span=given.span,
        height=tall * len(given.rows),
        label=given.label,
        marks=given.marks,
        ticks=given.ticks,
        description=given.description,
    )
    drawn = _bars_with_titles if len(given.bars) <= given.titled_max else _bars_as_paths
    # Long bars first, so that they never hide short ones.
    shown = sorted(given.bars, key=lambda bar: bar.start_s - bar.end_s)
    readings = {"rows": [name for name, _ in given.rows], "top": TOP, "tall": round(tall, 3)}
    return frame.figure(
        _stripes(given.rows, tall),
        *(_background(area, frame, tall) for area in given.backgrounds),
        drawn(shown, frame, tall, shorten=given.static),
        *(_link(_outline(a, frame, tall), _outline(b, frame, tall)) for a, b in given.links),
        _flag(given.flag, frame),
        _labels(given.rows, tall),
        readings=None if given.static else readings,
        legend=legend,
        kind="bars",
    )


def _background(area: GanttBackground, frame: ChartFrame, tall: float) -> Markup:
    left = frame.x(area.start_s)
    return tag(
        "rect", tag("title", text(area.words)), class_=area.look, x=left,
        y=TOP + area.first_row * tall, width=max(frame.x(area.end_s) - left, _WIDTH_MIN),
        height=area.rows * tall,
    )  # fmt: skip


def _flag(flag: TimeMark | None, frame: ChartFrame) -> Markup:
    """Return a line at the time of the flag, with its text on the side that has more space."""
    if flag is None:
        return EMPTY
    x = frame.x(flag.at_s)
    is_late = x > (LEFT + RIGHT) / 2
    line = tag("line", x1=x, x2=x, y1=TOP, y2=frame.bottom)
    words = tag(
        "text", text(flag.words), class_="end" if is_late else None, x=x, y=TOP - 2,
        dx=-5 if is_late else 5,
    )  # fmt: skip
    return tag("g", tag("title", text(flag.words)), line, words, class_="flag")


_Outline = tuple[float, float, float, float]


def _outline(bar: GanttBar, frame: ChartFrame, tall: float) -> _Outline:
    left = frame.x(bar.start_s)
    wide = max(frame.x(bar.end_s) - left, _WIDTH_MIN)
    # A bar that starts at the very end stays visible inside the plot.
    left = min(left, RIGHT - wide)
    top = TOP + (bar.row + bar.band[0]) * tall
    return left, top, wide, (bar.band[1] - bar.band[0]) * tall


def _bars_with_titles(
    bars: Sequence[GanttBar], frame: ChartFrame, tall: float, *, shorten: bool
) -> Markup:
    parts = []
    for bar in bars:
        left, top, wide, high = _outline(bar, frame, tall)
        title = tag("title", text(bar.words))
        parts.append(tag("rect", title, class_=bar.look, x=left, y=top, width=wide, height=high))
        name, suffix = bar.name, f" {bar.suffix}" if bar.suffix else ""
        if shorten:
            letters = max(1, int(wide / _LETTER_WIDE))
            name = shorten_middle(name, letters)
            suffix = suffix if len(name) + len(suffix) <= letters else ""
        if (shorten or len(name) * _LETTER_WIDE < wide) and high >= _LETTER_HIGH:
            middle, line = left + wide / 2, top + high / 2 + 4
            label = (
                [text(name), tag("tspan", text(suffix), class_="suffix")]
                if suffix
                else [text(name)]
            )
            parts.append(tag("text", *label, class_="row middle within", x=middle, y=line))
    return concat(parts)


def _link(first: _Outline, second: _Outline) -> Markup:
    """Return an arrow from the end of one bar to the start of another."""
    x, y = first[0] + first[2], first[1] + first[3] / 2
    to_x, to_y = second[0], second[1] + second[3] / 2
    bend = 0.0 if y == to_y else min(max((to_x - x) / 2, _BEND_MIN), _BEND_MAX)
    curve = (x + bend, y), (to_x - bend, to_y), (to_x, to_y)
    way = " ".join(f"{px(across)} {px(down)}" for across, down in curve)
    head = f"M{px(to_x)} {px(to_y)}l-{_HEAD_LONG} -{_HEAD_HIGH}v{2 * _HEAD_HIGH}z"
    line = f"M{px(x)} {px(y)}C{way}"
    return tag("g", tag("path", d=line), tag("path", class_="head", d=head), class_="link")


def _bars_as_paths(
    bars: Sequence[GanttBar], frame: ChartFrame, tall: float, *, shorten: bool
) -> Markup:
    """Return one path per class; equal bars are drawn once, without names."""
    del shorten
    pieces: dict[str, dict[str, None]] = {}
    for bar in bars:
        left, top, wide, high = _outline(bar, frame, tall)
        outline = f"M{px(left)} {px(top)}h{px(wide)}v{px(high)}h-{px(wide)}z"
        pieces.setdefault(bar.look, {})[outline] = None
    return concat(
        tag("path", class_=look, d="".join(outlines)) for look, outlines in pieces.items()
    )


def _lanes(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each lane."""
    first = 0
    for _, lane in groupby(rows, key=lambda row: row[0]):
        count = len(list(lane))
        yield first, count
        first += count


def _stripes(rows: Sequence[tuple[str, str]], tall: float) -> Markup:
    """Return the shading of every second lane, which guides the eye from the name to the bar."""
    wide = RIGHT - LEFT
    pieces = [
        f"M{LEFT} {px(TOP + first * tall)}h{wide}v{px(count * tall)}h-{wide}z"
        for first, count in list(_lanes(rows))[::2]
    ]
    return tag("path", class_="stripe", d="".join(pieces))


def _labels(rows: Sequence[tuple[str, str]], tall: float) -> Markup:
    parts = []
    for first, count in _lanes(rows):
        name, note = rows[first]
        y = TOP + (first + count / 2) * tall + 4
        title = tag("title", text(name))
        words = text(shorten_middle(name, _LABEL_LETTERS))
        parts.append(tag("text", title, words, class_="row end", x=LEFT - 8, y=y))
        parts.append(tag("text", text(note), class_="row", x=RIGHT + 8, y=y))
    return concat(parts)
