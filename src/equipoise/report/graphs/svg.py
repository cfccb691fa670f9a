"""The graphs as a picture of its own: SVG that any browser opens, light or dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from equipoise.model.upgrade.graph import Modification
from equipoise.report.chart.markup import EMPTY, Markup, joined, ours, tag, text
from equipoise.report.graphs.layers import Placed, laid_out
from equipoise.report.graphs.legend import drawn_legend
from equipoise.report.graphs.sketch import Box, Row, Sketch
from equipoise.report.graphs.style import STYLE
from equipoise.report.graphs.ties import drawn_ties
from equipoise.report.words import cut, shortened

LINE_APART: Final = 92.0
_MARGIN: Final = 24.0
_HEAD: Final = 58.0
_LEGEND: Final = 96.0
_TITLE_LETTER, _ROW_LETTER = 7.9, 6.1
_TITLE_HIGH, _ROW_HIGH, _PAD = 22.0, 14.0, 7.0
_TITLE_MAX, _ROW_MAX, _NOTE_MAX = 28, 24, 40
_WIDE_MIN: Final = 1240.0
"""The legend needs that much."""
_SIGNS: Final = {
    Modification.ADD: "+",
    Modification.REMOVE: "-",
    Modification.UPGRADE: "↑",
    Modification.NO_CHANGE: "·",
}


def svg_of(sketch: Sketch, title: str, *, with_rows: bool) -> str:
    """Draw a sketch."""
    sizes = {box.id: _size(box, with_rows=with_rows) for box in sketch.boxes}
    lines = laid_out(sketch, sizes)
    tops = _tops(lines)
    flat = {one.box.id: one for line in lines for one in line}
    left = min((one.x - one.wide / 2 for one in flat.values()), default=0.0)
    right = max((one.x + one.wide / 2 for one in flat.values()), default=0.0)
    wide = max(right - left + 2 * _MARGIN, _WIDE_MIN)
    shift = _MARGIN - left + (wide - (right - left) - 2 * _MARGIN) / 2
    bottom = tops[-1] + max((one.high for one in lines[-1]), default=0.0) if lines else _HEAD
    corners = {one: (at.x + shift - at.wide / 2, tops[at.line]) for one, at in flat.items()}
    high = bottom + _LEGEND + _MARGIN
    picture = tag(
        "svg",
        ours("style", STYLE),
        tag("title", text(title)),
        tag("rect", class_="paper", width="100%", height="100%"),
        tag("text", text(title), class_="head", x=_MARGIN, y=_MARGIN + 12),
        drawn_ties(sketch.ties, flat, corners),
        joined(_boxes(flat, corners, with_rows=with_rows)),
        drawn_legend(_MARGIN, bottom + 44),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide:.0f} {high:.0f}",
        width=round(wide),
        height=round(high),
        role="img",
    )
    return f"{picture}\n"


def _size(box: Box, *, with_rows: bool) -> tuple[float, float]:
    widths = [len(cut(box.title, _TITLE_MAX)) * _TITLE_LETTER]
    lines = 0
    if with_rows:
        widths += [len(_words(row)) * _ROW_LETTER for row in box.rows]
        lines += len(box.rows)
    if box.note:
        widths.append(len(shortened(box.note, _NOTE_MAX)) * _ROW_LETTER)
        lines += 1
    return max(widths) + 2 * _PAD + 4, _TITLE_HIGH + lines * _ROW_HIGH + (_PAD if lines else 0)


def _words(row: Row) -> str:
    groups = "".join(f" · {one}" for one in row.guards)
    return cut(
        f"{_SIGNS[row.modification]} {row.id} {row.kind.replace('_', ' ')}{groups}", _ROW_MAX
    )


def _tops(lines: Sequence[Sequence[Placed]]) -> list[float]:
    tops, y = [], _HEAD
    for line in lines:
        tops.append(y)
        y += max((one.high for one in line), default=0.0) + LINE_APART
    return tops


def _boxes(
    placed: Mapping[str, Placed], corners: Mapping[str, tuple[float, float]], *, with_rows: bool
) -> Iterator[Markup]:
    for one, at in placed.items():
        x, y = corners[one]
        yield _box(at, x, y, with_rows=with_rows)


def _box(at: Placed, x: float, y: float, *, with_rows: bool) -> Markup:
    box = at.box
    looks = ["box", box.modification.value]
    looks += [name for name, holds in _states(box) if holds]
    parts = [tag("title", text(_told(box)))]
    if box.count > 1:
        parts.append(tag("rect", class_="behind", x=x + 4, y=y - 4, rx=5, width=at.wide,
                         height=at.high))  # fmt: skip
    parts.append(tag("rect", class_="body", x=x, y=y, rx=5, width=at.wide, height=at.high))
    middle = x + at.wide / 2
    title = cut(box.title, _TITLE_MAX)
    parts.append(tag("text", text(title), class_="title", x=middle, y=y + 15.5))
    line = y + _TITLE_HIGH + _ROW_HIGH - 3
    for row in box.rows if with_rows else ():
        look = f"row {row.modification.value}{' troubled' if row.troubled else ''}"
        parts.append(tag("text", text(_words(row)), class_=look, x=x + _PAD, y=line))
        line += _ROW_HIGH
    note = shortened(box.note, _NOTE_MAX)
    parts.append(tag("text", text(note), class_="note", x=middle, y=line) if note else EMPTY)
    return tag("g", *parts, class_=" ".join(looks))


def _states(box: Box) -> Iterator[tuple[str, bool]]:
    yield "chosen", box.chosen
    yield "off", not box.active
    yield "troubled", box.isolated or box.failed
    yield "vms", box.vms


def _told(box: Box) -> str:
    said = [box.id, box.modification.value.replace("_", " ")]
    said += ["out of service"] if not box.active else []
    said += ["failed" if box.failed else "isolated"] if box.failed or box.isolated else []
    said += ["in this batch"] if box.chosen else []
    said += [box.reason or box.note] if box.reason or box.note else []
    said += [box.guarded] if box.guarded else []
    return "; ".join(said)
