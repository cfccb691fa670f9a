"""Heat maps: one row per subject, one column per time, shaded by value.

Cells of one shade are one path, and neighbours in a row are one piece of it, which keeps even a
large map small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.report.chart.frame import (
    LEFT,
    RIGHT,
    TOP,
    ChartFrame,
    Floats,
    TimeSpan,
    legend_entry,
    legend_list,
    view_switch,
)
from equipoise.report.chart.markup import Markup, concat, px, tag, text
from equipoise.report.format import shorten_middle, with_unit

STEPS: Final = 10
"""Number of shades; the last one is a warning colour, which a ramp may leave out."""
STATES: Final = {-1: "failed", -2: "maintenance", -3: "standby"}
ABSENT: Final = -4
_LETTERS: Final = {-1: "f", -2: "m", -3: "s", ABSENT: "."}
_LABEL_GAP: Final = 12
_LABEL_LETTERS: Final = 15
_HEIGHT: Final = 480
_ROW_MIN, _ROW_MAX = 12, 24

Cells = NDArray[np.int32]
"""Integers in the unit of the ramp, or one of ``STATES``, or ``ABSENT``."""


class ColourRamp(NamedTuple):
    """The range of figures that the shades cover."""

    low: int
    high: int
    unit: str
    words: str = ""
    """Text after the highest figure in the legend."""
    warns: bool = False
    """Whether the highest figures are in a warning colour."""

    @property
    def steps(self) -> int:
        """The number of shades."""
        return STEPS if self.warns else STEPS - 1

    def shades(self, cells: Cells) -> Cells:
        """Return the shade of each figure; states stay as they are."""
        # 64 bits, because the largest cell times the number of shades exceeds 32 bits.
        above = np.maximum(cells.astype(np.int64) - self.low, 0)
        shade = above * self.steps // max(self.high - self.low, 1)
        return np.where(cells >= 0, np.minimum(shade, self.steps - 1), cells).astype(np.int32)


PERCENT_RAMP: Final = ColourRamp(0, 100, "%", "of capacity, from 90 % on in orange", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The content of a heat map."""

    label: str
    span: TimeSpan
    edges: Floats
    """The edges of the columns, one more than there are columns."""
    rows: Sequence[str]
    views: Mapping[str, Cells]
    """Several values of the same cells; a switch selects one."""
    flawed_cells: NDArray[np.bool_]
    """Cells with a failed host that the mean does not show."""
    ramp: ColourRamp = PERCENT_RAMP


def draw(heat: HeatMap, *, name: str) -> Markup:
    """Return a heat map with its switch and legend; ``name`` is unique in the page."""
    tall = float(np.clip(_HEIGHT / len(heat.rows), _ROW_MIN, _ROW_MAX))
    frame = ChartFrame(span=heat.span, height=tall * len(heat.rows), label=heat.label)
    x = [round(place, 1) for place in frame.x(heat.edges).tolist()]
    layers = [
        tag(
            "g",
            *_cells(heat.ramp.shades(cells), x, tall),
            _row_means(cells, tall, heat.ramp.unit),
            class_=f"view v{place}",
        )
        for place, cells in enumerate(heat.views.values())
    ]
    flawed_cells = tag(
        "path",
        class_="partly-failed",
        d=_pieces(heat.flawed_cells, x, tall, tall * 0.7, tall * 0.3),
    )
    picture = frame.figure(
        *layers,
        *([flawed_cells] if heat.flawed_cells.any() else []),
        _labels(heat.rows, tall),
        readings=_readings(heat, tall),
        legend=_legend(heat),
        kind="heat",
    )
    return view_switch(name, list(heat.views), picture) if len(heat.views) > 1 else picture


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
    """Return the outlines of the chosen cells, neighbours in a row together."""
    rows, columns = np.nonzero(chosen)
    up = high if high is not None else tall
    pieces = []
    # Within a run of neighbours, the column minus the count is constant.
    counted = zip(rows.tolist(), columns.tolist(), strict=True)
    for (row, _), run in groupby(
        enumerate(counted), key=lambda item: (item[1][0], item[1][1] - item[0])
    ):
        members = [column for _, (_, column) in run]
        left, right = x[members[0]], x[members[-1] + 1]
        wide = px(right - left)
        top = px(TOP + row * tall + down)
        pieces.append(f"M{px(left)} {top}h{wide}v{px(up)}h-{wide}z")
    return "".join(pieces)


def _labels(rows: Sequence[str], tall: float) -> Markup:
    every = int(np.ceil(_LABEL_GAP / tall))
    parts = []
    for place, name in enumerate(rows):
        if place % every == 0:
            y = TOP + (place + 0.5) * tall + 4
            title = tag("title", text(name))
            words = text(shorten_middle(name, _LABEL_LETTERS))
            parts.append(tag("text", title, words, class_="row end", x=LEFT - 8, y=y))
    return concat(parts)


def _row_means(cells: Cells, tall: float, unit: str) -> Markup:
    """Return the mean of each labelled row, at its right."""
    every = int(np.ceil(_LABEL_GAP / tall))
    parts = []
    for place in range(0, len(cells), every):
        known = cells[place][cells[place] >= 0]
        mean = with_unit(round(float(known.mean())), unit) if len(known) else ""
        words = f"mean {mean}" if mean else "never on"
        y = TOP + (place + 0.5) * tall + 4
        parts.append(tag("text", text(words), class_="row", x=RIGHT + 8, y=y))
    return concat(parts)


def _legend(heat: HeatMap) -> Markup:
    given = heat.ramp
    shades = [legend_entry(f"h{shade}", "") for shade in range(given.steps)]
    low, high = (with_unit(bound, given.unit) for bound in (given.low, given.high))
    ramp = tag(
        "li", text(low), tag("ul", *shades, class_="ramp"), text(f"{high} {given.words}".strip())
    )
    seen = {int(value) for cells in heat.views.values() for value in np.unique(cells)}
    states = [
        legend_entry(f"state {name}", name) for state, name in STATES.items() if state in seen
    ]
    absent = [legend_entry("absent", "not in the cluster")] if ABSENT in seen else []
    flaw = [legend_entry("partly-failed", "partly failed")] if heat.flawed_cells.any() else []
    return legend_list(ramp, *states, *absent, *flaw)


def _readings(heat: HeatMap, tall: float) -> dict[str, Any]:
    views = [
        [name, [" ".join(_LETTERS.get(cell, str(cell)) for cell in row) for row in cells.tolist()]]
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
