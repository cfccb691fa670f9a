"""A plan over time: a lane for each host, a bar for each step on it, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from equipoise.model.action import describe
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan, Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import StepId
from equipoise.model.words import counted
from equipoise.report.chart import bars
from equipoise.report.chart.bars import Bar, Bars
from equipoise.report.chart.frame import Span, legend, nothing, swatch
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.plans.lanes import NO_HOST, Lane, busiest, lanes_of
from equipoise.report.section import Section
from equipoise.report.words import instant, shortened
from equipoise.spec.functions import kind_of

_LINKED_MAX: Final = 60
"""With more steps than this, lines between them would be a thicket."""
_LANE_ROWS_MAX: Final = 8
"""A lane is never taller than this; what does not fit gets thinner."""
_APART: Final = 0.1
_WORDS_MAX: Final = 400
_KINDS: Final = {
    ActionKind.MIGRATE: "migrate",
    ActionKind.REINSTANTIATE: "make anew",
    ActionKind.BOOT: "boot",
    ActionKind.SHUTDOWN: "shut down",
    ActionKind.SUSPEND: "suspend",
    ActionKind.RESUME: "resume",
    ActionKind.ALLOCATE: "allocate",
    ActionKind.FORGE: "forge",
    ActionKind.KILL: "kill",
    ActionKind.POWER_ON: "power on",
    ActionKind.POWER_OFF: "power off",
    ActionKind.ENTER_MAINTENANCE: "into maintenance",
    ActionKind.LEAVE_MAINTENANCE: "back from maintenance",
}


class _Placed(NamedTuple):
    """A step and one of its bars."""

    step: Step
    bar: Bar


def gantt(plan: Plan, cluster: Inventory) -> Section:
    """What happens where and when, as a picture."""
    if not plan.steps:
        why = "Nothing has to be done: everything is as it is wished already."
        return Section("gantt", "Plan over time", "What happens where, and when.", nothing(why))
    lanes = lanes_of(plan.steps, cluster)
    shown = busiest(lanes)
    placed = list(_placed(shown))
    links = list(_links(placed)) if len(plan.steps) <= _LINKED_MAX else []
    picture = Bars(
        label="The steps of the plan by the hosts they happen on",
        span=Span(0.0, max(step.end_ms for step in plan.steps) / 1000),
        rows=[row for lane in shown for row in _names(lane)],
        bars=[one.bar for one in placed],
        links=links,
    )
    drawn = bars.draw(picture, _legend(placed))
    body = joined([_left_out(lanes, shown), drawn])
    return Section("gantt", "Plan over time", _said(lanes, linked=bool(links)), body)


def _said(lanes: Sequence[Lane], *, linked: bool) -> str:
    hosts = sum(lane.name != NO_HOST for lane in lanes)
    arrows = " An arrow leads from a step to one that waits for it." if linked else ""
    return (
        f"{counted(hosts, 'host')} {'takes' if hosts == 1 else 'take'} part. A VM that moves "
        f"takes room on both hosts for the whole time; where it leaves, its bar is pale.{arrows}"
    )


def _left_out(lanes: Sequence[Lane], shown: Sequence[Lane]) -> Markup:
    if len(shown) == len(lanes):
        return EMPTY
    known, seen = (sum(lane.name != NO_HOST for lane in some) for some in (lanes, shown))
    words = f"The {seen} busiest of {known:,} hosts are shown; there are {known - seen:,} more."
    return tag("p", text(words), class_="note")


def _names(lane: Lane) -> list[tuple[str, str]]:
    note = counted(len(lane.stays), "step")
    return [(lane.name, note)] * min(lane.height, _LANE_ROWS_MAX)


def _placed(lanes: Sequence[Lane]) -> Iterator[_Placed]:
    top = 0
    for lane in lanes:
        tall = min(lane.height, _LANE_ROWS_MAX)
        part = tall / lane.height
        for stay, row in zip(lane.stays, lane.rows, strict=True):
            step = stay.step
            look = f"deed {kind_of(step.action)}{' leaving' if stay.leaving else ''}"
            band = ((row + _APART) * part, (row + 1 - _APART) * part)
            name = str(step.footprint.vm or _KINDS[ActionKind(kind_of(step.action))])
            start_s, end_s = step.start_ms / 1000, step.end_ms / 1000
            yield _Placed(step, Bar(top, start_s, end_s, look, _words(step), band, name))
        top += tall


def _words(step: Step) -> str:
    times = f"{instant(step.start_ms)} to {instant(step.end_ms)}"
    waits = f", waits for {', '.join(step.after)}" if step.after else ""
    why = f": {step.reason}" if step.reason else ""
    return shortened(f"{step.id}: {describe(step.action)}, {times}{waits}{why}", _WORDS_MAX)


def _links(placed: Sequence[_Placed]) -> Iterator[tuple[Bar, Bar]]:
    """A line from each step to those that wait for it, on the host they share if there is one."""
    found: dict[StepId, list[Bar]] = {}
    for one in placed:
        found.setdefault(one.step.id, []).append(one.bar)
    for step in {one.step.id: one.step for one in placed}.values():
        for before in step.after:
            pairs = product(found.get(before, ()), found[step.id])
            if nearest := min(pairs, key=_distance, default=None):
                yield nearest


def _distance(pair: tuple[Bar, Bar]) -> tuple[bool, float]:
    first, second = pair
    between = first.row + first.band[0] - second.row - second.band[0]
    return first.row != second.row, abs(between)


def _legend(placed: Sequence[_Placed]) -> Markup:
    seen = {kind_of(one.step.action) for one in placed}
    kinds = [swatch(f"deed {kind}", words) for kind, words in _KINDS.items() if kind in seen]
    leaves = any(one.bar.look.endswith(" leaving") for one in placed)
    return legend(*kinds, *([swatch("deed migrate leaving", "leaves")] if leaves else []))
