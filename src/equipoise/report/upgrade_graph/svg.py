"""The graphs as one SVG file: boxes, dependency lines, legend and style, light or dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence
from equipoise.report.chart.markup import (
    EMPTY,
    Markup,
    concat,
    embed_trusted,
    px,
    tag,
    text,
)
from equipoise.report.format import shorten_end, shorten_middle
from equipoise.report.upgrade_graph.diagram import BoxRow, Diagram, DiagramBox, DiagramLine
from equipoise.report.upgrade_graph.layout import PlacedBox, layered_layout

STYLE: Final = """
svg {
  --paper: #fff; --ink: #1c2128; --soft: #59636e; --line: #8b949e;
  --add: #dcf3e6; --add-ink: #0b6e4f; --remove: #fbe3e1; --remove-ink: #b3261e;
  --upgrade: #e1eefb; --upgrade-ink: #0a58a8; --same: #f3f5f7; --same-ink: #8b949e;
  --link: #6e7781; --made: #7a5a00; --runs: #007a5a; --keeps: #9a4f96; --peer: #0067b1;
  --clash: #d4351c;
  font: 12.5px system-ui, -apple-system, "Segoe UI", "Liberation Sans", Roboto, sans-serif;
}
@media (prefers-color-scheme: dark) {
  svg {
    --paper: #14181d; --ink: #e4e8ec; --soft: #a3adb8; --line: #6e7781;
    --add: #12352a; --add-ink: #58c79a; --remove: #3a1f1f; --remove-ink: #ff8a80;
    --upgrade: #17304a; --upgrade-ink: #79b8ff; --same: #1d232a; --same-ink: #6e7781;
    --link: #98a2ad; --made: #dba93a; --runs: #3fc79a; --keeps: #cf94cc; --peer: #58a6f0;
    --clash: #ff7a5c;
  }
}
.paper { fill: var(--paper); }
text { fill: var(--ink); }
.head { font-size: 17px; font-weight: 600; }
.title { font-weight: 600; text-anchor: middle; }
.row { font-size: 11px; }
.row.no_change { fill: var(--soft); }
.row.troubled { fill: var(--remove-ink); text-decoration: line-through; }
.note { font-size: 11px; text-anchor: middle; fill: var(--soft); }
.key { font-size: 12px; fill: var(--soft); }
.body { stroke-width: 1.2; }
.behind { fill: var(--same); stroke: var(--line); }
.add .body { fill: var(--add); stroke: var(--add-ink); }
.remove .body { fill: var(--remove); stroke: var(--remove-ink); }
.upgrade .body { fill: var(--upgrade); stroke: var(--upgrade-ink); }
.no_change .body { fill: var(--same); stroke: var(--same-ink); }
.vms .body { rx: 11px; }
.chosen .body { stroke-width: 3.4; }
.off .body { stroke-dasharray: 4 3; stroke-width: 2; }
.troubled .body { stroke: var(--clash); stroke-width: 3; stroke-dasharray: 9 3; }
.tie { fill: none; stroke: var(--link); stroke-width: 1.1; opacity: .8; }
.tie .tip { stroke: none; fill: var(--link); }
.tie.aggregation, .tie.composition, .tie.container { stroke: var(--made); }
.tie.aggregation .tip, .tie.composition .tip, .tie.container .tip { fill: var(--made); }
.tie.migration { stroke: var(--runs); }
.tie.migration .tip { fill: var(--runs); }
.tie.storage, .tie.controller { stroke: var(--ink); }
.tie.storage .tip, .tie.controller .tip { fill: var(--ink); }
.tie.support { stroke: var(--keeps); }
.tie.support .tip { fill: var(--keeps); }
.tie.peer { stroke: var(--peer); stroke-width: 1.8; }
.tie.peer .tip { fill: var(--peer); }
.tie.future { stroke-dasharray: 5 4; }
.tie.current { stroke-dasharray: 1.5 3; }
.tie.clash { stroke: var(--clash); stroke-width: 2; opacity: 1; }
.tie.clash .tip { fill: var(--clash); }
.tie:hover { stroke-width: 3; opacity: 1; }
"""


_HEAD_LONG, _HEAD_HALF = 7.0, 3.0
_ARC: Final = 16.0
_SPREAD: Final = 0.7
"""Share of the width of a box over which its lines are spread."""

Point = tuple[float, float]


def line_class(kind: DependencyKind, presence: DependencyPresence, *, incompatible: bool) -> str:
    """Return the style classes of a line."""
    family = "support" if kind.is_vm_supporting else "peer" if kind.is_symmetrical else kind.value
    clash = " clash" if incompatible else ""
    return f"tie {family} {presence.value}{clash}"


def draw_lines(
    ties: Sequence[DiagramLine], placed: Mapping[str, PlacedBox], corners: Mapping[str, Point]
) -> Markup:
    """Draw all lines; lines with a conflict come last, on top."""
    ports = _ports(ties, placed, corners)
    order = sorted(range(len(ties)), key=lambda number: ties[number].incompatible)
    return concat(
        _draw_line(ties[number], placed, corners, ports[number])
        for number in order
        if ties[number].dependent != ties[number].sponsor
    )


def _draw_line(
    tie: DiagramLine,
    placed: Mapping[str, PlacedBox],
    corners: Mapping[str, Point],
    port: tuple[float, float],
) -> Markup:
    one, other = placed[tie.dependent], placed[tie.sponsor]
    if one.line == other.line:
        way, head = _same_row_path(one, other, corners, peers=tie.kind.is_symmetrical)
    else:
        down = other.line > one.line
        top = corners[tie.dependent][1] + (one.high if down else 0.0)
        end = corners[tie.sponsor][1] + (0.0 if down else other.high)
        way, head = _between_rows_path((port[0], top), (port[1], end))
    words = f"{tie.dependent} {_line_text(tie)} {tie.sponsor}"
    words += f" ({tie.count:,} times)" if tie.count > 1 else ""
    parts = [tag("title", text(words)), tag("path", d=way), tag("path", class_="tip", d=head)]
    look = line_class(tie.kind, tie.presence, incompatible=tie.incompatible)
    return tag("g", *parts, class_=look)


def _line_text(tie: DiagramLine) -> str:
    when = {DependencyPresence.CURRENT: "until now ", DependencyPresence.FUTURE: "in future "}.get(
        tie.presence, ""
    )
    clash = ", versions clash" if tie.incompatible else ""
    return f"needs ({when}{tie.kind.value.replace('_', ' ')}{clash})"


def _between_rows_path(start: Point, end: Point) -> tuple[str, str]:
    """Return a curve that leaves and arrives vertically, and its arrow head."""
    sign = 1.0 if end[1] > start[1] else -1.0
    stop = end[1] - sign * _HEAD_LONG
    bend = (stop - start[1]) * 0.5
    way = (
        f"M{px(start[0])} {px(start[1])}C{px(start[0])} {px(start[1] + bend)} "
        f"{px(end[0])} {px(stop - bend)} {px(end[0])} {px(stop)}"
    )
    return way, _arrow_tip(end, (0.0, sign))


def _same_row_path(
    box: PlacedBox, other: PlacedBox, corners: Mapping[str, Point], *, peers: bool
) -> tuple[str, str]:
    """Return a straight line between neighbours, and an arc below the row otherwise."""
    (x1, y1), (x2, y2) = corners[box.box.id], corners[other.box.id]
    left, right = ((box, x1, y1), (other, x2, y2)) if x1 < x2 else ((other, x2, y2), (box, x1, y1))
    gap = right[1] - (left[1] + left[0].wide)
    if 0 <= gap <= 4 * _ARC:
        y = max(y1, y2) + min(box.high, other.high) / 2
        start, end = left[1] + left[0].wide, right[1]
        inner = (start + _HEAD_LONG, end - _HEAD_LONG) if peers else (start, end - _HEAD_LONG)
        back = _arrow_tip((start, y), (-1.0, 0.0)) if peers else ""
        forth = _arrow_tip((end, y), (1.0, 0.0))
        return (
            f"M{px(inner[0])} {px(y)}H{px(inner[1])}",
            forth + back,
        )
    x1, x2 = left[1] + left[0].wide / 2, right[1] + right[0].wide / 2
    y1, y2 = left[2] + left[0].high, right[2] + right[0].high
    low = max(y1, y2) + 2 * _ARC
    way = f"M{px(x1)} {px(y1)}C{px(x1)} {px(low)} {px(x2)} {px(low)} "
    return f"{way}{px(x2)} {px(y2 + _HEAD_LONG)}", _arrow_tip((x2, y2), (0.0, -1.0))


def _arrow_tip(at: Point, towards: Point) -> str:
    (x, y), (across, down) = at, towards
    base = x - across * _HEAD_LONG, y - down * _HEAD_LONG
    side = down * _HEAD_HALF, across * _HEAD_HALF
    return (
        f"M{px(x)} {px(y)}L{px(base[0] + side[0])} {px(base[1] + side[1])}"
        f"L{px(base[0] - side[0])} {px(base[1] - side[1])}z"
    )


def _ports(
    ties: Sequence[DiagramLine], placed: Mapping[str, PlacedBox], corners: Mapping[str, Point]
) -> dict[int, tuple[float, float]]:
    """Return the ends of each line; the lines of one box lie side by side and do not cross."""
    ends: dict[tuple[str, bool], list[tuple[float, int, int]]] = {}
    for number, tie in enumerate(ties):
        pair = tie.dependent, tie.sponsor
        for side in (0, 1):
            own, far = pair[side], pair[1 - side]
            below = placed[far].line > placed[own].line
            ends.setdefault((own, below), []).append((placed[far].x, number, side))
    found: dict[int, list[float]] = {number: [0.0, 0.0] for number in range(len(ties))}
    for (own, _), line_ends in ends.items():
        x, wide = corners[own][0], placed[own].wide
        for place, (_, number, side) in enumerate(sorted(line_ends)):
            share = (place + 0.5) / len(line_ends)
            found[number][side] = x + wide * (0.5 + (share - 0.5) * _SPREAD)
    return {number: (both[0], both[1]) for number, both in found.items()}


_LEGEND_BOXES: Final = (
    ("box upgrade", "upgrade"),
    ("box add", "add"),
    ("box remove", "remove"),
    ("box no_change", "no change"),
    ("box upgrade chosen", "in this batch"),
    ("box upgrade off", "out of service"),
    ("box no_change troubled", "isolated or failed"),
)
_LEGEND_LINES: Final = (
    (DependencyKind.COMMUNICATION, DependencyPresence.CURRENT_FUTURE, False, "communicates over"),
    (DependencyKind.AGGREGATION, DependencyPresence.CURRENT_FUTURE, False, "is made of"),
    (DependencyKind.MIGRATION, DependencyPresence.CURRENT_FUTURE, False, "runs on"),
    (DependencyKind.STORAGE, DependencyPresence.CURRENT_FUTURE, False, "stored, controlled by"),
    (
        DependencyKind.VM_SUPPORTING_STORAGE,
        DependencyPresence.CURRENT_FUTURE,
        False,
        "keeps its VMs on",
    ),
    (DependencyKind.PEER_STATELESS, DependencyPresence.CURRENT_FUTURE, False, "peers"),
    (DependencyKind.COMMUNICATION, DependencyPresence.FUTURE, False, "in future"),
    (DependencyKind.COMMUNICATION, DependencyPresence.CURRENT, False, "until changed"),
    (DependencyKind.COMMUNICATION, DependencyPresence.CURRENT_FUTURE, True, "versions clash"),
)
_STEP, _LETTER, _LINE_HIGH = 34.0, 6.8, 26.0


def draw_legend(left: float, top: float) -> Markup:
    """Return the legend in two rows: boxes and lines."""
    parts = []
    x = left
    for look, words in _LEGEND_BOXES:
        box = tag("rect", class_="body", x=x, y=top - 10, rx=3, width=24, height=14)
        parts.append(tag("g", box, class_=look))
        parts.append(tag("text", text(words), class_="key", x=x + 30, y=top + 1))
        x += _STEP + len(words) * _LETTER + 14
    x, y = left, top + _LINE_HIGH
    for kind, presence, clash, words in _LEGEND_LINES:
        line = tag("path", d=f"M{x:.0f} {y - 4:.0f}h22")
        parts.append(tag("g", line, class_=line_class(kind, presence, incompatible=clash)))
        parts.append(tag("text", text(words), class_="key", x=x + 28, y=y))
        x += _STEP + len(words) * _LETTER + 12
    return concat(parts)


ROW_GAP: Final = 92.0
_MARGIN: Final = 24.0
_HEAD_HEIGHT: Final = 58.0
_LEGEND_HEIGHT: Final = 96.0
_TITLE_LETTER, _ROW_LETTER = 7.9, 6.1
_TITLE_HIGH, _ROW_HIGH, _PAD = 22.0, 14.0, 7.0
_TITLE_MAX, _ROW_MAX, _NOTE_MAX = 28, 24, 40
_WIDE_MIN: Final = 1240.0
"""The width that the legend needs."""
_SIGNS: Final = {
    Modification.ADD: "+",
    Modification.REMOVE: "-",
    Modification.UPGRADE: "↑",
    Modification.NO_CHANGE: "·",
}


def diagram_svg(diagram: Diagram, title: str, *, with_rows: bool) -> str:
    """Return the SVG of a diagram."""
    sizes = {box.id: _box_size(box, with_rows=with_rows) for box in diagram.boxes}
    lines = layered_layout(diagram, sizes)
    tops = _tops(lines)
    flat = {placed.box.id: placed for line in lines for placed in line}
    left = min((placed.x - placed.wide / 2 for placed in flat.values()), default=0.0)
    right = max((placed.x + placed.wide / 2 for placed in flat.values()), default=0.0)
    wide = max(right - left + 2 * _MARGIN, _WIDE_MIN)
    shift = _MARGIN - left + (wide - (right - left) - 2 * _MARGIN) / 2
    bottom = (
        tops[-1] + max((placed.high for placed in lines[-1]), default=0.0)
        if lines
        else _HEAD_HEIGHT
    )
    corners = {vertex: (at.x + shift - at.wide / 2, tops[at.line]) for vertex, at in flat.items()}
    high = bottom + _LEGEND_HEIGHT + _MARGIN
    picture = tag(
        "svg",
        embed_trusted("style", STYLE),
        tag("title", text(title)),
        tag("rect", class_="paper", width="100%", height="100%"),
        tag("text", text(title), class_="head", x=_MARGIN, y=_MARGIN + 12),
        draw_lines(diagram.ties, flat, corners),
        concat(_boxes(flat, corners, with_rows=with_rows)),
        draw_legend(_MARGIN, bottom + 44),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide:.0f} {high:.0f}",
        width=round(wide),
        height=round(high),
        role="img",
    )
    return f"{picture}\n"


def _box_size(box: DiagramBox, *, with_rows: bool) -> tuple[float, float]:
    widths = [len(shorten_middle(box.title, _TITLE_MAX)) * _TITLE_LETTER]
    lines = 0
    if with_rows:
        widths += [len(_row_text(row)) * _ROW_LETTER for row in box.rows]
        lines += len(box.rows)
    if box.note:
        widths.append(len(shorten_end(box.note, _NOTE_MAX)) * _ROW_LETTER)
        lines += 1
    return max(widths) + 2 * _PAD + 4, _TITLE_HIGH + lines * _ROW_HIGH + (_PAD if lines else 0)


def _row_text(row: BoxRow) -> str:
    groups = "".join(f" · {group}" for group in row.protection_groups_of)
    return shorten_middle(
        f"{_SIGNS[row.modification]} {row.id} {row.kind.replace('_', ' ')}{groups}", _ROW_MAX
    )


def _tops(lines: Sequence[Sequence[PlacedBox]]) -> list[float]:
    tops, y = [], _HEAD_HEIGHT
    for line in lines:
        tops.append(y)
        y += max((placed.high for placed in line), default=0.0) + ROW_GAP
    return tops


def _boxes(
    placed: Mapping[str, PlacedBox], corners: Mapping[str, tuple[float, float]], *, with_rows: bool
) -> Iterator[Markup]:
    for vertex, at in placed.items():
        x, y = corners[vertex]
        yield _box(at, x, y, with_rows=with_rows)


def _box(at: PlacedBox, x: float, y: float, *, with_rows: bool) -> Markup:
    box = at.box
    looks = ["box", box.modification.value]
    looks += [name for name, holds in _box_classes(box) if holds]
    parts = [tag("title", text(_box_title(box)))]
    if box.count > 1:
        parts.append(tag("rect", class_="behind", x=x + 4, y=y - 4, rx=5, width=at.wide,
                         height=at.high))  # fmt: skip
    parts.append(tag("rect", class_="body", x=x, y=y, rx=5, width=at.wide, height=at.high))
    middle = x + at.wide / 2
    title = shorten_middle(box.title, _TITLE_MAX)
    parts.append(tag("text", text(title), class_="title", x=middle, y=y + 15.5))
    line = y + _TITLE_HIGH + _ROW_HIGH - 3
    for row in box.rows if with_rows else ():
        look = f"row {row.modification.value}{' troubled' if row.faulty else ''}"
        parts.append(tag("text", text(_row_text(row)), class_=look, x=x + _PAD, y=line))
        line += _ROW_HIGH
    note = shorten_end(box.note, _NOTE_MAX)
    parts.append(tag("text", text(note), class_="note", x=middle, y=line) if note else EMPTY)
    return tag("g", *parts, class_=" ".join(looks))


def _box_classes(box: DiagramBox) -> Iterator[tuple[str, bool]]:
    yield "chosen", box.chosen
    yield "off", not box.active
    yield "troubled", box.isolated or box.failed
    yield "vms", box.vms


def _box_title(box: DiagramBox) -> str:
    said = [box.id, box.modification.value.replace("_", " ")]
    said += ["out of service"] if not box.active else []
    said += ["failed" if box.failed else "isolated"] if box.failed or box.isolated else []
    said += ["in this batch"] if box.chosen else []
    said += [box.reason or box.note] if box.reason or box.note else []
    said += [box.protection] if box.protection else []
    return "; ".join(said)
