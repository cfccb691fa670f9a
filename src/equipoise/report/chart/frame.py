"""The frame of a chart: scales, time axis, marks, legend, and the switch between views.

All charts have the same width and margins, so a time has the same position in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from equipoise.report.chart.markup import EMPTY, Markup, concat, embed_json, tag, text, void_tag
from equipoise.report.format import DAY_S, HOUR_S, MINUTE_S, format_moment

Floats = NDArray[np.float64]

_TIME_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(count * MINUTE_S for count in (1, 2, 5, 10, 15, 30)),
    *(count * HOUR_S for count in (1, 2, 3, 6, 12)),
    *(count * DAY_S for count in (1, 2, 7, 14, 28, 91, 364)),
)
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class LinearScale:
    """A straight line from ``low``..``high`` to ``start``..``end``."""

    low: float
    high: float
    start: float
    end: float

    @overload
    def __call__(self, value: float) -> float: ...
    @overload
    def __call__(self, value: Floats) -> Floats: ...
    def __call__(self, value: float | Floats) -> float | Floats:
        """Return the position of one figure or of many."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def round_ticks(low: float, high: float, about: int = 4, *, whole: bool = False) -> list[float]:
    """Return round figures from at or below ``low`` to at or above ``high``."""
    assert low <= high
    wide = high - low or abs(high) or 1.0
    rough = max(wide / about, 1.0) if whole else wide / about
    power = 10.0 ** floor(log10(rough))
    steps = [factor * power for factor in _ROUND if not whole or (factor * power).is_integer()]
    # The tolerances absorb rounding: without them a value on a tick would get one step more.
    step = next(candidate for candidate in steps if candidate >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, max(last, first + 1) + 1)]


def time_step(low_s: float, high_s: float, most: int = 8) -> int:
    """Give the step between the moments on an axis that has room for so many of them."""
    wide = high_s - low_s
    longest = _TIME_STEPS[-1]
    return next(
        (step for step in _TIME_STEPS if wide / step <= most),
        longest * ceil(wide / longest / most),
    )


def time_ticks(low_s: float, high_s: float, most: int = 8) -> list[tuple[int, str]]:
    """Return round times within a span, with their labels."""
    step = time_step(low_s, high_s, most)
    places = range(ceil(low_s / step) * step, floor(high_s) + 1, step)
    return [
        (at_s, f"{at_s // DAY_S} d" if step >= DAY_S else format_moment(at_s)) for at_s in places
    ]


WIDTH: Final = 1000
LEFT: Final = 124
RIGHT: Final = 876
TOP: Final = 12
AXIS: Final = 26
"""The height of the axis labels below the plot."""
_LINES_MAX: Final = 8


class TimeSpan(NamedTuple):
    """The time range of a chart."""

    low_s: float
    high_s: float


class TimeMark(NamedTuple):
    """A time with an event that explains the chart."""

    at_s: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartFrame:
    """The frame around a chart."""

    span: TimeSpan
    height: float
    """The height of the plot without its axis."""
    label: str
    """The text alternative for screen readers."""
    marks: Sequence[TimeMark] = ()
    ticks: Sequence[tuple[float, str]] | None = None
    """Positions and labels of the axis; default: round times. An empty label is a grid line."""
    description: str = ""
    """A longer text alternative."""

    @property
    def x(self) -> LinearScale:
        """The scale from seconds to positions."""
        return LinearScale(self.span.low_s, self.span.high_s, LEFT, RIGHT)

    @property
    def bottom(self) -> float:
        """The lower edge of the plot."""
        return TOP + self.height

    def figure(
        self,
        *content: Markup,
        readings: dict[str, Any] | None,
        legend: Markup = EMPTY,
        kind: str = "lines",
    ) -> Markup:
        """Return the figure, with the readings that the script shows under the pointer.

        A figure without readings is static: the script leaves it alone.
        """
        if readings is None:
            return tag("figure", legend, self._picture(*content), class_=f"chart static {kind}")
        cursor = tag(
            "line",
            class_="cursor", x1=LEFT, x2=LEFT, y1=TOP, y2=self.bottom, visibility="hidden",
        )  # fmt: skip
        picture = self._picture(*content, self._marks(), cursor)
        place = {"left": LEFT, "right": RIGHT, "width": WIDTH, "low": self.span.low_s}
        given = embed_json({**place, "high": self.span.high_s, "kind": kind, **readings})
        readout = tag("p", class_="readout", aria_hidden="true")
        return tag("figure", legend, readout, picture, given, class_=f"chart {kind}")

    def _picture(self, *content: Markup) -> Markup:
        description = [tag("desc", text(self.description))] if self.description else []
        return tag(
            "svg",
            *description,
            self._time_axis(),
            *content,
            viewBox=f"0 0 {WIDTH} {self.bottom + AXIS:.0f}",
            role="img",
            aria_label=self.label,
        )

    def _time_axis(self) -> Markup:
        y = self.bottom
        parts = [tag("path", class_="axis", d=f"M{LEFT} {y:.0f}H{RIGHT}")]
        ticks = time_ticks(*self.span) if self.ticks is None else self.ticks
        for at_s, words in ticks:
            x = self.x(float(at_s))
            parts.append(tag("path", class_="grid", d=f"M{x:.1f} {TOP}V{y + 4:.0f}"))
            if words:
                parts.append(tag("text", text(words), class_="tick middle", x=x, y=y + 19))
        return concat(parts)

    def _marks(self) -> Markup:
        parts = []
        for mark in self.marks:
            x = self.x(mark.at_s)
            title = tag("title", text(mark.words))
            head = tag("path", class_="head", d=f"M{x - 5:.1f} {TOP - 8}h10l-5 8z")
            line = tag("path", d=f"M{x:.1f} {TOP}V{self.bottom:.0f}")
            # Many lines would hide the chart.
            drawn = [head, line] if len(self.marks) <= _LINES_MAX else [head]
            parts.append(tag("g", title, *drawn, class_="mark"))
        return concat(parts)


def legend_entry(look: str, words: str) -> Markup:
    """Return an entry of a legend: a patch in the style of the mark, and its meaning."""
    patch = tag(
        "svg",
        tag("rect", class_=look, width=14, height=12),
        viewBox="0 0 14 12", width=14, height=12, aria_hidden="true",
    )  # fmt: skip
    return tag("li", patch, text(words))


def legend_list(*entries: Markup) -> Markup:
    """Return the legend, one line above the chart."""
    return tag("ul", *entries, class_="legend")


def empty_note(why: str) -> Markup:
    """Return a note that explains why there is no chart."""
    return tag("p", text(why), class_="empty")


def note_line(words: str) -> Markup:
    """Return a note beside a chart or a table, or nothing without words."""
    return tag("p", text(words), class_="note") if words else EMPTY


def view_switch(name: str, views: Sequence[str], picture: Markup) -> Markup:
    """Return a switch between the parts of a picture with the classes ``view v0``, ``view v1``, ...

    ``name`` is unique in the page.
    """
    return tag("div", *(_choice(name, *view) for view in enumerate(views)), picture,
               class_="switched")  # fmt: skip


def _choice(name: str, place: int, words: str) -> Markup:
    given = f"{name}-{place}"
    choice = void_tag(
        "input", type="radio", name=name, id=given, class_=f"v{place}", checked=place == 0
    )
    return concat([choice, tag("label", text(words), for_=given)])
