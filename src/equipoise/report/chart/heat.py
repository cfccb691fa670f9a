"""A heat map: one row per subject, one column per moment, darker or brighter where there is more.

Cells of one look are one path, and neighbours in a row are one piece of it, so that even a large
map stays small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.report.chart.frame import LEFT, RIGHT, TOP, Frame, Span, legend, swatch
from equipoise.report.chart.markup import Markup, joined, short, tag, text
from equipoise.report.chart.scale import Figures
from equipoise.report.chart.switch import switched
from equipoise.report.words import cut, with_unit

STEPS: Final = 10
"""How many shades there are; the last one is a warning colour, for those who want one."""
STATES: Final = {-1: "failed", -2: "maintenance", -3: "standby"}
ABSENT: Final = -4
_LETTERS: Final = {-1: "f", -2: "m", -3: "s", ABSENT: "."}
_LABEL_GAP: Final = 12
_LABEL_LETTERS: Final = 15
_HEIGHT: Final = 480
_ROW_MIN, _ROW_MAX = 12, 24

Cells = NDArray[np.int32]
"""Whole figures in the unit of the ramp, or one of ``STATES``, or ``ABSENT``."""


class Ramp(NamedTuple):
    """What the shades mean, from the lowest to the highest figure."""

    low: int
    high: int
    unit: str
    words: str = ""
    """What to add to the highest figure in the legend."""
    warns: bool = False
    """Whether the highest figures are in a warning colour."""

    @property
    def steps(self) -> int:
        """How many shades it has."""
        return STEPS if self.warns else STEPS - 1

    def shades(self, cells: Cells) -> Cells:
        """The shade of each figure; states stay as they are."""
        above = np.maximum(cells.astype(np.int64) - self.low, 0)
        shade = above * self.steps // max(self.high - self.low, 1)
        return np.where(cells >= 0, np.minimum(shade, self.steps - 1), cells).astype(np.int32)


PERCENT: Final = Ramp(0, 100, "%", "of capacity, from 90 % on in orange", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """What is to be drawn."""

    label: str
    span: Span
    edges: Figures
    """Where the columns begin and end: one more than there are columns."""
    rows: Sequence[str]
    views: Mapping[str, Cells]
    """The same rows and columns seen in different ways; a switch chooses one."""
    flaws: NDArray[np.bool_]
    """Cells in which something is wrong that their mean does not show."""
    ramp: Ramp = PERCENT


def draw(heat: HeatMap, *, name: str) -> Markup:
    """Draw a heat map with its switch and legend; ``name`` tells its switch from others."""
    tall = float(np.clip(_HEIGHT / len(heat.rows), _ROW_MIN, _ROW_MAX))
    frame = Frame(span=heat.span, height=tall * len(heat.rows), label=heat.label)
    x = [round(place, 1) for place in frame.x(heat.edges).tolist()]
    layers = [
        tag(
            "g",
            *_cells(heat.ramp.shades(cells), x, tall),
            _means(cells, tall, heat.ramp.unit),
            class_=f"view v{place}",
        )
        for place, cells in enumerate(heat.views.values())
    ]
    flaws = tag("path", class_="flaw", d=_pieces(heat.flaws, x, tall, tall * 0.7, tall * 0.3))
    picture = frame.figure(
        *layers,
        *([flaws] if heat.flaws.any() else []),
        _labels(heat.rows, tall),
        readings=_readings(heat, tall),
        legend=_legend(heat),
        kind="heat",
    )
    return switched(name, list(heat.views), picture) if len(heat.views) > 1 else picture


def _cells(shades: Cells, x: list[float], tall: float) -> Iterator[Markup]:
    for shade in range(STEPS):
        pieces = _pieces(shades == shade, x, tall)
        if pieces:
            yield tag("path", class_=f"h{shade}", d=pieces)
    for state, name in STATES.items():
        pieces = _pieces(shades == state, x, tall)
        if pieces:
            yield tag("path", class_=f"state {name}", d=pieces)


def _pieces(
    chosen: NDArray[np.bool_],
    x: list[float],
    tall: float,
    down: float = 0.0,
    high: float | None = None,
) -> str:
    """Outline the chosen cells, neighbours in a row together."""
    rows, columns = np.nonzero(chosen)
    up = high if high is not None else tall
    pieces = []
    # In a run of neighbours, the column grows as fast as the count.
    counted = zip(rows.tolist(), columns.tolist(), strict=True)
    for (row, _), run in groupby(
        enumerate(counted), key=lambda each: (each[1][0], each[1][1] - each[0])
    ):
        members = [column for _, (_, column) in run]
        left, right = x[members[0]], x[members[-1] + 1]
        wide = short(right - left)
        top = short(TOP + row * tall + down)
        pieces.append(f"M{short(left)} {top}h{wide}v{short(up)}h-{wide}z")
    return "".join(pieces)


def _labels(rows: Sequence[str], tall: float) -> Markup:
    every = int(np.ceil(_LABEL_GAP / tall))
    parts = []
    for place, name in enumerate(rows):
        if place % every == 0:
            y = TOP + (place + 0.5) * tall + 4
            title = tag("title", text(name))
            words = text(cut(name, _LABEL_LETTERS))
            parts.append(tag("text", title, words, class_="row end", x=LEFT - 8, y=y))
    return joined(parts)


def _means(cells: Cells, tall: float, unit: str) -> Markup:
    """Write the mean of each labelled row beside it."""
    every = int(np.ceil(_LABEL_GAP / tall))
    parts = []
    for place in range(0, len(cells), every):
        known = cells[place][cells[place] >= 0]
        mean = with_unit(round(float(known.mean())), unit) if len(known) else ""
        words = f"mean {mean}" if mean else "never on"
        y = TOP + (place + 0.5) * tall + 4
        parts.append(tag("text", text(words), class_="row", x=RIGHT + 8, y=y))
    return joined(parts)


def _legend(heat: HeatMap) -> Markup:
    given = heat.ramp
    shades = [swatch(f"h{shade}", "") for shade in range(given.steps)]
    low, high = (with_unit(one, given.unit) for one in (given.low, given.high))
    ramp = tag(
        "li", text(low), tag("ul", *shades, class_="ramp"), text(f"{high} {given.words}".strip())
    )
    seen = {int(one) for cells in heat.views.values() for one in np.unique(cells)}
    states = [swatch(f"state {name}", name) for state, name in STATES.items() if state in seen]
    absent = [swatch("absent", "not in the cluster")] if ABSENT in seen else []
    flaw = [swatch("flaw", "partly failed")] if heat.flaws.any() else []
    return legend(ramp, *states, *absent, *flaw)


def _readings(heat: HeatMap, tall: float) -> dict[str, Any]:
    views = [
        [name, [" ".join(_LETTERS.get(one, str(one)) for one in row) for row in cells.tolist()]]
        for name, cells in heat.views.items()
    ]
    return {
        "edges": [round(at_s, 1) for at_s in heat.edges.tolist()],
        "rows": list(heat.rows),
        "views": views,
        "unit": heat.ramp.unit,
        "top": TOP,
        "tall": round(tall, 3),
    }
