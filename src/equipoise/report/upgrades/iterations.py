"""Every iteration in words: what was changed, which VMs moved, and why everything else waited."""

from __future__ import annotations

from typing import Final

from equipoise.model.upgrade.event import Eliminated
from equipoise.model.upgrade.work import VmBatch
from equipoise.model.words import counted
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.section import Section, listed
from equipoise.report.upgrades.course import Course, Round
from equipoise.report.words import duration, shortened

ITERATIONS_MAX: Final = 300
_NAMES_LONG: Final = 1200
_RULES: Final = {
    0: "room and brakes",
    1: "1: VMs and hosts in use",
    2: "2: before a removal",
    3: "3: before an addition",
    4: "4: order of dependencies",
    5: "5: order of the method",
    6: "6: peers and constituents",
    7: "7: two universes",
}


def iterations(course: Course) -> Section:
    """All iterations, each with its reasons folded up."""
    title = "Iterations"
    see = "What each iteration did, and for every resource that waited the rule and the reason."
    if not course.rounds:
        return Section("iterations", title, see, nothing("No iteration began."))
    shown = course.rounds[:ITERATIONS_MAX]
    left = len(course.rounds) - len(shown)
    words = f"The first {len(shown)} iterations are shown; there are {left:,} more."
    note = tag("p", text(words), class_="note") if left else EMPTY
    return Section("iterations", title, see, joined([note, *map(_iteration, shown)]))


def _iteration(one: Round) -> Markup:
    lasts = duration((one.end_ms - one.start_ms) / 1000)
    parts = [tag("h3", text(f"Iteration {one.number}"))]
    parts += [tag("p", text(line), class_="why") for line in _lines(one, lasts)]
    if one.eliminated:
        waiting = sum(len(each.vertices) for each in one.eliminated)
        summary = tag("summary", text(f"{counted(waiting, 'group')} waited"))
        rows = [_reason(each) for each in one.eliminated]
        parts.append(tag("details", summary, listed(("rule", "why", "who"), rows)))
    return tag("article", *parts, id=f"iteration-{one.number}")


def _lines(one: Round, lasts: str) -> list[str]:
    room = "" if one.z is None else f", and {counted(one.z, 'host')} could be spared (Z)"
    lines = [f"{_changed(one)} It took {lasts}{room}."]
    for stay in one.stays:
        if isinstance(stay.schedule, VmBatch):
            moves = ", ".join(f"{move.vm} to {move.target}" for move in stay.schedule.moves)
            why = f" {stay.why}" if stay.why else ""
            lines.append(shortened(f"VMs move{why}: {moves}.", _NAMES_LONG))
    lines += [
        f"Of {counted(each.wanted, 'VM')}, {each.size} moved (V is {each.v}): {each.reason}."
        for each in one.vm_batches
        if each.reason
    ]
    if one.paused:
        lines.append(f"The upgrade pauses: {one.paused}.")
    return lines


def _changed(one: Round) -> str:
    if not one.batch:
        return "Nothing was changed."
    return shortened(f"Changed: {', '.join(one.batch)}.", _NAMES_LONG)


def _reason(each: Eliminated) -> list[Markup]:
    who = shortened(", ".join(each.vertices), _NAMES_LONG)
    return [text(_RULES.get(each.rule, str(each.rule))), text(each.reason), text(who)]
