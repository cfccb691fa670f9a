"""The timeline of a campaign: what was done in which iteration, from when to when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from equipoise.model.upgrade.work import Batch, Errand, VmBatch
from equipoise.model.words import counted
from equipoise.report.chart import bars
from equipoise.report.chart.bars import Bar, Bars
from equipoise.report.chart.frame import Span, legend, nothing, swatch
from equipoise.report.chart.markup import EMPTY, Markup
from equipoise.report.section import Section
from equipoise.report.upgrades.course import Course, Round, Stay
from equipoise.report.words import duration

ROWS_MAX: Final = 60
"""More iterations than these are drawn in one line each for resources and VMs."""
_NAMES_MAX: Final = 4
_LOOKS: Final = {
    "resources": ("deed boot", "resources are changed"),
    "vms": ("deed migrate", "VMs move to changed hosts"),
    "consolidation": ("deed suspend", "VMs move together to free hosts"),
    "revert": ("deed shutdown", "a failed attempt is taken back"),
    "check": ("deed allocate", "changed resources are checked"),
}


def timeline(course: Course) -> Section:
    """One row per iteration, one bar per schedule."""
    title = "Timeline"
    see = "Each iteration with its batches; point at a bar to see what is in it."
    if not any(one.stays for one in course.rounds):
        return Section("timeline", title, see, nothing("Nothing was done in this campaign."))
    many = len(course.rounds) > ROWS_MAX
    drawn = list(_in_lanes(course)) if many else list(_in_rows(course))
    rows = [(kind, "") for kind in _LOOKS] if many else [_row(one) for one in course.rounds]
    picture = Bars(
        label="Batches of each iteration over time",
        span=Span(0.0, max(course.end_ms / 1000, 1.0)),
        rows=rows,
        bars=drawn,
    )
    return Section("timeline", title, see, bars.draw(picture, _legend(course)))


def _row(one: Round) -> tuple[str, str]:
    note = "pauses" if one.paused else f"Z {one.z}" if one.z is not None else ""
    return f"iteration {one.number}", note + (f", V {one.v}" if one.v is not None else "")


def _in_rows(course: Course) -> Iterator[Bar]:
    for place, one in enumerate(course.rounds):
        yield from (_bar(place, stay) for stay in one.stays)


def _in_lanes(course: Course) -> Iterator[Bar]:
    lanes = {kind: place for place, kind in enumerate(_LOOKS)}
    for one in course.rounds:
        yield from (_bar(lanes[_kind(stay)], stay) for stay in one.stays)


def _kind(stay: Stay) -> str:
    if isinstance(stay.schedule, VmBatch):
        return "consolidation" if stay.why else "vms"
    errands = {task.errand for task in stay.schedule.tasks}
    if Errand.REVERT in errands:
        return "revert"
    return "check" if errands == {Errand.CHECK} else "resources"


def _bar(row: int, stay: Stay) -> Bar:
    names = _names(stay.schedule)
    lasts = duration((stay.end_ms - stay.start_ms) / 1000)
    what = counted(len(names), "VM" if isinstance(stay.schedule, VmBatch) else "resource")
    why = f" {stay.why}" if stay.why else ""
    return Bar(
        row,
        stay.start_ms / 1000,
        stay.end_ms / 1000,
        _LOOKS[_kind(stay)][0],
        f"{what}{why}, {lasts}: {', '.join(names)}",
        name=_short(names),
    )


def _names(schedule: Batch | VmBatch) -> list[str]:
    if isinstance(schedule, VmBatch):
        return [move.vm for move in schedule.moves]
    return list(dict.fromkeys(task.vertex for task in schedule.tasks))


def _short(names: list[str]) -> str:
    more = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f" +{more}" if more > 0 else "")


def _legend(course: Course) -> Markup:
    seen = {_kind(stay) for one in course.rounds for stay in one.stays}
    entries = [swatch(*_LOOKS[kind]) for kind in _LOOKS if kind in seen]
    return legend(*entries) if entries else EMPTY
