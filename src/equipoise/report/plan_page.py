"""The page of a plan: its goals, a Gantt chart and its steps; or why no plan exists.

The chart has a lane per host, a bar per step and arrows for dependencies. The page never solves
anything, and never judges a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from typing import Final, NamedTuple

from equipoise.documents.plan import GoalRow
from equipoise.model.action import Allocate, Forge, Kill, Move, Shutdown, describe, kind_of
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import ObjectiveMeasure, PlanningProblem
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, StepId, VmId, format_count
from equipoise.plan.exact.result import PlanningResult, PlanningStatus
from equipoise.report.chart import gantt as bars
from equipoise.report.chart.frame import TimeSpan, empty_note, legend_entry, legend_list, note_line
from equipoise.report.chart.gantt import GanttBar, GanttChart
from equipoise.report.chart.markup import EMPTY, Markup, Section, concat, html_table, tag, text
from equipoise.report.format import format_duration, format_instant, shorten_end
from equipoise.report.run.page import html_document, page_header, tile

HOSTS_MAX: Final = 60
NO_HOST: Final = "no host"
"""The lane of VMs without a host. No host has this name, because it has a space."""


class StepOnHost(NamedTuple):
    """A step on one of its hosts, for its whole time."""

    step: Step
    host: HostId | None
    leaving: bool = False
    """Whether the VM leaves this host; the target host shows the step, too."""


@dataclass(frozen=True, slots=True)
class HostLane:
    """The steps on one host."""

    name: str
    stays: tuple[StepOnHost, ...]
    rows: tuple[int, ...]
    """The row of each step; the steps of one row do not overlap."""

    @property
    def height(self) -> int:
        """The number of rows."""
        return max(self.rows) + 1


def host_lanes(steps: Sequence[Step], cluster: Inventory) -> list[HostLane]:
    """Return a lane for each host with steps, by name; steps without a host come last."""
    by_host: dict[HostId | None, list[StepOnHost]] = {}
    for stay in steps_on_hosts(steps, cluster):
        by_host.setdefault(stay.host, []).append(stay)
    unplaced = by_host.pop(None, [])
    lanes = [_host_lane(host, stays) for host, stays in sorted(by_host.items()) if host is not None]
    return [*lanes, _host_lane(NO_HOST, unplaced)] if unplaced else lanes


def busiest_lanes(lanes: Sequence[HostLane]) -> list[HostLane]:
    """Return the lanes with most steps, in their order; the lane without a host always stays."""
    hosts = [lane for lane in lanes if lane.name != NO_HOST]
    most = sorted(hosts, key=lambda lane: -len(lane.stays))[:HOSTS_MAX]
    chosen = {lane.name for lane in most} | {NO_HOST}
    return [lane for lane in lanes if lane.name in chosen]


def steps_on_hosts(steps: Iterable[Step], cluster: Inventory) -> Iterator[StepOnHost]:
    """Yield each step on each of its hosts, in the order of the starts."""
    where: dict[VmId, HostId | None] = {vm.id: vm.host for vm in cluster.vms}
    for step in sorted(steps, key=lambda step: (step.start_ms, step.end_ms)):
        used = step.footprint
        if isinstance(step.action, Forge | Allocate | Kill):
            yield StepOnHost(step, where.get(step.action.vm))
        for host in used.hosts:
            yield StepOnHost(step, host, host == used.source and used.target not in {None, host})
        # A VM has one action at a time, so the last one that started tells its host.
        if used.vm is not None and used.target is not None:
            where[used.vm] = used.target
        elif isinstance(step.action, Shutdown):
            where[step.action.vm] = None


def _host_lane(name: str, stays: Sequence[StepOnHost]) -> HostLane:
    return HostLane(name, tuple(stays), tuple(_free_rows(stays)))


def _free_rows(stays: Sequence[StepOnHost]) -> Iterator[int]:
    """Yield the first free row of each step, in the order of the starts."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    for stay in stays:
        while busy and busy[0][0] <= stay.step.start_ms:
            heappush(free, heappop(busy)[1])
        # Rows are opened in order, so without a free row the next one has the index len(busy).
        row = heappop(free) if free else len(busy)
        heappush(busy, (stay.step.end_ms, row))
        yield row


_LINKED_STEPS_MAX: Final = 60
"""With more steps, arrows between them cannot be read."""
_LANE_ROWS_MAX: Final = 8
"""Rows of a lane at most; bars of a lane with more rows get thinner."""
_APART: Final = 0.1
_WORDS_MAX: Final = 400
_KIND_TEXTS: Final = {
    ActionKind.MIGRATE: "migrate",
    ActionKind.REINSTANTIATE: "recreate",
    ActionKind.BOOT: "boot",
    ActionKind.SHUTDOWN: "shut down",
    ActionKind.SUSPEND: "suspend",
    ActionKind.RESUME: "resume",
    ActionKind.ALLOCATE: "allocate",
    ActionKind.FORGE: "forge",
    ActionKind.KILL: "kill",
    ActionKind.POWER_ON: "power on",
    ActionKind.POWER_OFF: "power off",
    ActionKind.ENTER_MAINTENANCE: "enter maintenance",
    ActionKind.LEAVE_MAINTENANCE: "leave maintenance",
}


class _StepBar(NamedTuple):
    """A step and one of its bars."""

    step: Step
    bar: GanttBar


def plan_gantt(plan: Plan, cluster: Inventory) -> Section:
    """Return the section with the Gantt chart of a plan."""
    if not plan.steps:
        why = "The plan has no step: the cluster is in the desired state."
        return Section("gantt", "Plan over time", "Steps by host and time.", empty_note(why))
    lanes = host_lanes(plan.steps, cluster)
    shown = busiest_lanes(lanes)
    placed = list(_step_bars(shown))
    links = list(_links(placed)) if len(plan.steps) <= _LINKED_STEPS_MAX else []
    picture = GanttChart(
        label="The steps of the plan by host",
        span=TimeSpan(0.0, max(step.end_ms for step in plan.steps) / 1000),
        rows=[row for lane in shown for row in _lane_rows(lane)],
        bars=[placed_step.bar for placed_step in placed],
        links=links,
    )
    drawn = bars.draw(picture, _legend(placed))
    body = concat([_omitted_note(lanes, shown), drawn])
    return Section("gantt", "Plan over time", _gantt_caption(lanes, linked=bool(links)), body)


def _gantt_caption(lanes: Sequence[HostLane], *, linked: bool) -> str:
    hosts = sum(lane.name != NO_HOST for lane in lanes)
    arrows = " An arrow leads from a step to a step that waits for it." if linked else ""
    return (
        f"{format_count(hosts, 'host')} with steps. A VM that moves uses capacity on both hosts "
        f"for the whole time; its bar is pale on the host that it leaves.{arrows}"
    )


def _omitted_note(lanes: Sequence[HostLane], shown: Sequence[HostLane]) -> Markup:
    if len(shown) == len(lanes):
        return EMPTY
    known, drawn = (sum(lane.name != NO_HOST for lane in group) for group in (lanes, shown))
    words = f"The chart shows the {drawn} busiest of {known:,} hosts."
    return note_line(words)


def _lane_rows(lane: HostLane) -> list[tuple[str, str]]:
    note = format_count(len(lane.stays), "step")
    return [(lane.name, note)] * min(lane.height, _LANE_ROWS_MAX)


def _step_bars(lanes: Sequence[HostLane]) -> Iterator[_StepBar]:
    top = 0
    for lane in lanes:
        tall = min(lane.height, _LANE_ROWS_MAX)
        part = tall / lane.height
        for stay, row in zip(lane.stays, lane.rows, strict=True):
            step = stay.step
            look = f"action {kind_of(step.action)}{' leaving' if stay.leaving else ''}"
            band = ((row + _APART) * part, (row + 1 - _APART) * part)
            name = str(step.footprint.vm or _KIND_TEXTS[ActionKind(kind_of(step.action))])
            start_s, end_s = step.start_ms / 1000, step.end_ms / 1000
            yield _StepBar(step, GanttBar(top, start_s, end_s, look, _step_text(step), band, name))
        top += tall


def _step_text(step: Step) -> str:
    times = f"{format_instant(step.start_ms)} to {format_instant(step.end_ms)}"
    waits = f", waits for {', '.join(step.after)}" if step.after else ""
    why = f": {step.reason}" if step.reason else ""
    return shorten_end(f"{step.id}: {describe(step.action)}, {times}{waits}{why}", _WORDS_MAX)


def _links(placed: Sequence[_StepBar]) -> Iterator[tuple[GanttBar, GanttBar]]:
    """Yield the bars of each step and of the steps that wait for it, nearest bars first."""
    by_step: dict[StepId, list[GanttBar]] = {}
    for step_bar in placed:
        by_step.setdefault(step_bar.step.id, []).append(step_bar.bar)
    for step in {step_bar.step.id: step_bar.step for step_bar in placed}.values():
        for before in step.after:
            pairs = product(by_step.get(before, ()), by_step[step.id])
            if nearest := min(pairs, key=_distance, default=None):
                yield nearest


def _distance(pair: tuple[GanttBar, GanttBar]) -> tuple[bool, float]:
    first, second = pair
    between = first.row + first.band[0] - second.row - second.band[0]
    return first.row != second.row, abs(between)


def _legend(placed: Sequence[_StepBar]) -> Markup:
    seen = {kind_of(step_bar.step.action) for step_bar in placed}
    kinds = [
        legend_entry(f"action {kind}", words) for kind, words in _KIND_TEXTS.items() if kind in seen
    ]
    leaves = any(step_bar.bar.look.endswith(" leaving") for step_bar in placed)
    return legend_list(
        *kinds, *([legend_entry("action migrate leaving", "leaves")] if leaves else [])
    )


ROWS_MAX: Final = 500
_AFTER_MAX: Final = 200
_BROKEN_MAX: Final = 600
_UNKNOWN: Final = "No plan was found; one may exist."


def plan_page(problem: PlanningProblem, result: PlanningResult, goals: Sequence[GoalRow]) -> str:
    """Return the page of a result."""
    if result.plan is None:
        sections = [_conflict_section(result)]
    else:
        sections = [plan_gantt(result.plan, problem.cluster), _steps_section(result.plan)]
    return html_document(
        f"{problem.cluster.name}: Equipoise", _head(problem, result, goals), sections
    )


def _head(problem: PlanningProblem, result: PlanningResult, goals: Sequence[GoalRow]) -> Markup:
    cluster = problem.cluster
    size = f"{format_count(len(cluster.hosts), 'host')}, {format_count(len(cluster.vms), 'VM')}"
    broken = ", ".join(condition.rule.id for condition in result.broken)
    note = shorten_end(f"Soft rules violated: {broken}", _BROKEN_MAX)
    below = tag("p", text(note), class_="about") if broken else EMPTY
    return page_header(cluster.name, size, _tiles(result, goals), below=below)


def _tiles(result: PlanningResult, goals: Sequence[GoalRow]) -> list[Markup]:
    look = None if result.plan is not None else "bad"
    status = tile("status", result.status.value, _meaning(result), look)
    if result.plan is None:
        conditions = [] if result.conflict is None else result.conflict.conditions
        conflict = tile("conflict", f"{len(conditions):,}", "conditions, see below")
        return [status, conflict] if conditions else [status]
    steps = result.plan.steps
    migrations = sum(isinstance(step.action, Move) for step in steps)
    lasts = max((step.end_ms for step in steps), default=0) / 1000
    makespan = tile("makespan", format_duration(lasts), "end of the last step")
    is_goal = any(goal.goal == ObjectiveMeasure.MAKESPAN for goal in goals)
    return [
        status,
        tile("steps", f"{len(steps):,}", format_count(migrations, "migration")),
        *([] if is_goal else [makespan]),
        *(tile(goal.goal, _amount(goal.value, goal), _bound(goal)) for goal in goals),
    ]


def _meaning(result: PlanningResult) -> str:
    match result.status, result.plan is not None:
        case PlanningStatus.UNSAT, _:
            return "proved: no plan exists"
        case _, False:
            return "a plan may exist"
        case PlanningStatus.TIMEOUT, _:
            return "a plan; a better one may exist"
    return "no plan is better" if result.optimal else "verified at every moment"


def _bound(goal: GoalRow) -> str:
    if goal.bound is None:
        return ""
    if goal.bound == goal.value:
        return "the lowest value of any plan"
    return f"any plan: at least {_amount(goal.bound, goal)}"


def _amount(value: float, goal: GoalRow) -> str:
    written = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{written} {goal.unit}".rstrip()


def _conflict_section(result: PlanningResult) -> Section:
    if result.conflict is None:
        caption = "The search ended without a proof."
        return Section("why", "No plan found", caption, empty_note(_UNKNOWN))
    rest = "without any one of them a plan exists."
    if not result.conflict.minimal:
        rest = "some of them may not be part of the conflict."
    lines = tag("ul", *(tag("li", text(line)) for line in result.conflict.why))
    return Section(
        "why", "Why no plan exists", f"These conditions cannot be satisfied together; {rest}", lines
    )


def _steps_section(plan: Plan) -> Section:
    columns = ("step", "start", "end", "action", "after")
    table = html_table(columns, [_row(step) for step in plan.steps[:ROWS_MAX]], right=columns[1:3])
    hidden = len(plan.steps) - ROWS_MAX
    words = f"The table shows the first {ROWS_MAX} steps; there are {hidden:,} more."
    note = note_line(words if hidden > 0 else "")
    caption = "Every step with its times, and the steps that must end before it starts."
    return Section("steps", "Steps", caption, concat([note, table]))


def _row(step: Step) -> list[Markup]:
    after = shorten_end(", ".join(step.after), _AFTER_MAX)
    cells = (
        step.id,
        format_instant(step.start_ms),
        format_instant(step.end_ms),
        describe(step.action),
        after,
    )
    return [text(cell) for cell in cells]
