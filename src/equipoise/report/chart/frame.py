"""The frame of a chart: where its plot lies, the axis of time, marks, the cursor and the wrapping.

All charts have the same width and the same margins, so that a moment is at the same place in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from equipoise.report.chart.markup import EMPTY, Markup, carried, joined, tag, text
from equipoise.report.chart.scale import Scale, time_ticks

WIDTH: Final = 1000
LEFT: Final = 124
RIGHT: Final = 876
TOP: Final = 12
AXIS: Final = 26
"""The room below the plot for the words of the axis."""
_LINES_MAX: Final = 8


class Span(NamedTuple):
    """From when to when a chart reaches."""

    low_s: float
    high_s: float


class Mark(NamedTuple):
    """A moment at which something happened that explains what is seen."""

    at_s: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a chart is put into."""

    span: Span
    height: float
    """Of the plot, without its axis."""
    label: str
    """What is seen, for those who cannot see it."""
    marks: Sequence[Mark] = ()

    @property
    def x(self) -> Scale:
        """From seconds to a place."""
        return Scale(self.span.low_s, self.span.high_s, LEFT, RIGHT)

    @property
    def bottom(self) -> float:
        """Where the plot ends."""
        return TOP + self.height

    def figure(
        self,
        *content: Markup,
        readings: dict[str, Any],
        legend: Markup = EMPTY,
        kind: str = "lines",
    ) -> Markup:
        """Wrap what was drawn, with what the script needs to read values under the pointer."""
        cursor = tag(
            "line",
            class_="cursor", x1=LEFT, x2=LEFT, y1=TOP, y2=self.bottom, visibility="hidden",
        )  # fmt: skip
        picture = tag(
            "svg",
            self._time_axis(),
            *content,
            self._marks(),
            cursor,
            viewBox=f"0 0 {WIDTH} {self.bottom + AXIS:.0f}",
            role="img",
            aria_label=self.label,
        )
        place = {"left": LEFT, "right": RIGHT, "width": WIDTH, "low": self.span.low_s}
        given = carried({**place, "high": self.span.high_s, "kind": kind, **readings})
        readout = tag("p", class_="readout", aria_hidden="true")
        return tag("figure", legend, readout, picture, given, class_=f"chart {kind}")

    def _time_axis(self) -> Markup:
        y = self.bottom
        parts = [tag("path", class_="axis", d=f"M{LEFT} {y:.0f}H{RIGHT}")]
        for at_s, words in time_ticks(*self.span):
            x = self.x(float(at_s))
            parts.append(tag("path", class_="grid", d=f"M{x:.1f} {TOP}V{y + 4:.0f}"))
            parts.append(tag("text", text(words), class_="tick middle", x=x, y=y + 19))
        return joined(parts)

    def _marks(self) -> Markup:
        parts = []
        for mark in self.marks:
            x = self.x(mark.at_s)
            title = tag("title", text(mark.words))
            head = tag("path", class_="head", d=f"M{x - 5:.1f} {TOP - 8}h10l-5 8z")
            line = tag("path", d=f"M{x:.1f} {TOP}V{self.bottom:.0f}")
            # Many lines would hide what they are to explain.
            drawn = [head, line] if len(self.marks) <= _LINES_MAX else [head]
            parts.append(tag("g", title, *drawn, class_="mark"))
        return joined(parts)


def swatch(look: str, words: str) -> Markup:
    """One entry of a legend: a patch in the look of the mark, and what it means."""
    patch = tag(
        "svg",
        tag("rect", class_=look, width=14, height=12),
        viewBox="0 0 14 12", width=14, height=12, aria_hidden="true",
    )  # fmt: skip
    return tag("li", patch, text(words))


def legend(*entries: Markup) -> Markup:
    """Put the entries of a legend into a line above the chart."""
    return tag("ul", *entries, class_="legend")


def nothing(why: str) -> Markup:
    """Say why there is no chart, rather than show blank axes."""
    return tag("p", text(why), class_="empty")
