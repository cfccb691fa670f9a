"""Folding: where there are too many boxes to read, those that are alike become one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final

from equipoise.model.words import counted
from equipoise.report.graphs.sketch import Box, Sketch, Tie

BOXES_MAX: Final = 60
"""More than these are not read one by one."""

Likeness = Callable[[Box], Hashable]


def folded(sketch: Sketch, most: int = BOXES_MAX) -> Sketch:
    """Fold what is alike and has like neighbours; if that is not enough, all that is alike."""
    if len(sketch.boxes) <= most:
        return sketch
    near = _neighbours(sketch)
    careful = _fold(sketch, lambda box: (_look(box), near[box.id]))
    return careful if len(careful.boxes) <= most else _fold(sketch, _look)


def _look(box: Box) -> Hashable:
    kinds = frozenset(row.kind for row in box.rows)
    change = (box.modification, box.active, box.isolated, box.failed)
    return (kinds, *change, box.chosen, box.note, box.guarded, box.vms)


def _neighbours(sketch: Sketch) -> dict[str, Hashable]:
    by_id = {box.id: box for box in sketch.boxes}
    found: dict[str, set[Hashable]] = {box.id: set() for box in sketch.boxes}
    for tie in sketch.ties:
        found[tie.dependent].add((tie.kind, "to", _look(by_id[tie.sponsor])))
        found[tie.sponsor].add((tie.kind, "from", _look(by_id[tie.dependent])))
    return {one: frozenset(those) for one, those in found.items()}


def _fold(sketch: Sketch, alike: Likeness) -> Sketch:
    classes: dict[Hashable, list[Box]] = {}
    for box in sketch.boxes:
        classes.setdefault(alike(box), []).append(box)
    boxes: list[Box] = []
    into: dict[str, str] = {}
    for those in classes.values():
        made = those[0] if len(those) == 1 else _one_for(those)
        boxes.append(made)
        into |= {box.id: made.id for box in those}
    ties: dict[Hashable, Tie] = {}
    for tie in sketch.ties:
        ends = into[tie.dependent], into[tie.sponsor]
        pair: Hashable = frozenset(ends) if tie.kind.is_symmetrical else ends
        key = (pair, tie.kind, tie.presence, tie.incompatible)
        known = ties.get(key)
        count = tie.count + (known.count if known else 0)
        ties[key] = replace(known or tie, dependent=ends[0], sponsor=ends[1], count=count)
    return Sketch(tuple(boxes), tuple(ties.values()))


def _one_for(those: list[Box]) -> Box:
    """A box for many: who they are from the first to the last, and how many."""
    first, last = those[0], those[-1]
    resources = counted(sum(len(box.rows) for box in those), "resource")
    note = "; ".join(one for one in (f"{len(those):,} alike, {resources}", first.note) if one)
    return replace(
        first, title=f"{first.title} … {last.title}", rows=(), note=note, count=len(those)
    )
