"""The page of a campaign: result, timeline, tenants, iterations with reasons, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from equipoise.model.quantity import TenantId, format_count
from equipoise.model.upgrade.event import CampaignStatus, Elimination
from equipoise.model.upgrade.work import TaskBatch, TaskKind, VmBatch
from equipoise.report.chart import gantt
from equipoise.report.chart.frame import TimeSpan, empty_note, legend_entry, legend_list, note_line
from equipoise.report.chart.gantt import GanttBar, GanttChart
from equipoise.report.chart.markup import EMPTY, Markup, Section, concat, html_table, tag, text
from equipoise.report.format import format_duration, format_instant, format_number, shorten_end
from equipoise.report.run.page import html_document, page_header, tile
from equipoise.report.upgrade.compare import MethodComparison, comparison_section
from equipoise.report.upgrade.history import CampaignHistory, ExecutedBatch, IterationHistory
from equipoise.report.upgrade.penalties import (
    CampaignPenalties,
    campaign_penalties,
    tenants_section,
)

ITERATIONS_MAX: Final = 300
_NAMES_TEXT_MAX: Final = 1200
_RULE_TEXTS: Final = {
    0: "capacity and holds",
    1: "1: VMs and hosts in use",
    2: "2: before a removal",
    3: "3: before an addition",
    4: "4: order of dependencies",
    5: "5: order of the method",
    6: "6: peers and constituents",
    7: "7: partitions of hosts",
}


def iterations_section(history: CampaignHistory) -> Section:
    """Return all iterations, each with its reasons in a closed block."""
    title = "Iterations"
    caption = "Changes of each iteration; for every resource that waits, the rule and the reason."
    if not history.iterations:
        return Section("iterations", title, caption, empty_note("The campaign has no iteration."))
    shown = history.iterations[:ITERATIONS_MAX]
    hidden = len(history.iterations) - len(shown)
    words = f"The page shows the first {len(shown)} iterations; there are {hidden:,} more."
    note = note_line(words if hidden else "")
    return Section("iterations", title, caption, concat([note, *map(_iteration, shown)]))


def _iteration(iteration: IterationHistory) -> Markup:
    lasts = format_duration((iteration.end_ms - iteration.start_ms) / 1000)
    parts = [tag("h3", text(f"Iteration {iteration.number}"))]
    parts += [tag("p", text(line), class_="why") for line in _lines(iteration, lasts)]
    if iteration.eliminated:
        waiting = sum(len(elimination.vertices) for elimination in iteration.eliminated)
        summary = tag("summary", text(f"{format_count(waiting, 'group')} waiting"))
        rows = [_reason_row(elimination) for elimination in iteration.eliminated]
        parts.append(tag("details", summary, html_table(("rule", "reason", "resources"), rows)))
    return tag("article", *parts, id=f"iteration-{iteration.number}")


def _lines(iteration: IterationHistory, lasts: str) -> list[str]:
    z = iteration.z
    spare = "" if z is None else f"; {format_count(z, 'host')} could leave service (Z)"
    lines = [f"{_changed_text(iteration)} Duration {lasts}{spare}."]
    for batch in iteration.executed:
        if isinstance(batch.schedule, VmBatch):
            moves = ", ".join(f"{move.vm} to {move.target}" for move in batch.schedule.moves)
            why = f" {batch.why}" if batch.why else ""
            lines.append(shorten_end(f"VMs move{why}: {moves}.", _NAMES_TEXT_MAX))
    lines += [
        f"{decided.size} of {format_count(decided.wanted, 'VM')} moved (V is {decided.v}): "
        f"{decided.reason}."
        for decided in iteration.vm_batches
        if decided.reason
    ]
    if iteration.paused:
        lines.append(f"The upgrade pauses: {iteration.paused}.")
    return lines


def _changed_text(iteration: IterationHistory) -> str:
    if not iteration.batch:
        return "No resource changed."
    return shorten_end(f"Changed: {', '.join(iteration.batch)}.", _NAMES_TEXT_MAX)


def _reason_row(group: Elimination) -> list[Markup]:
    names = shorten_end(", ".join(group.vertices), _NAMES_TEXT_MAX)
    return [text(_RULE_TEXTS.get(group.rule, str(group.rule))), text(group.reason), text(names)]


ROWS_MAX: Final = 60
"""With more iterations the chart has one row per kind of batch."""
_NAMES_MAX: Final = 4
_BAR_CLASSES: Final = {
    "resources": ("action boot", "resources change"),
    "vms": ("action migrate", "VMs move to changed hosts"),
    "consolidation": ("action suspend", "VMs move to vacate hosts"),
    "revert": ("action shutdown", "a failed attempt is reverted"),
    "check": ("action allocate", "check of changed resources"),
}


def timeline_section(history: CampaignHistory) -> Section:
    """Return a Gantt chart with one row per iteration and one bar per batch."""
    title = "Timeline"
    caption = "Each iteration with its batches; point at a bar to see its content."
    if not any(iteration.executed for iteration in history.iterations):
        return Section("timeline", title, caption, empty_note("The campaign has no batch."))
    many = len(history.iterations) > ROWS_MAX
    drawn = list(_in_lanes(history)) if many else list(_in_rows(history))
    rows = (
        [(kind, "") for kind in _BAR_CLASSES]
        if many
        else [_iteration_row(iteration) for iteration in history.iterations]
    )
    picture = GanttChart(
        label="Batches of each iteration over time",
        span=TimeSpan(0.0, max(history.end_ms / 1000, 1.0)),
        rows=rows,
        bars=drawn,
    )
    return Section("timeline", title, caption, gantt.draw(picture, _batch_legend(history)))


def _iteration_row(iteration: IterationHistory) -> tuple[str, str]:
    z, v = iteration.z, iteration.v
    note = "pauses" if iteration.paused else f"Z {z}" if z is not None else ""
    return f"iteration {iteration.number}", note + (f", V {v}" if v is not None else "")


def _in_rows(history: CampaignHistory) -> Iterator[GanttBar]:
    for row, iteration in enumerate(history.iterations):
        yield from (_bar(row, batch) for batch in iteration.executed)


def _in_lanes(history: CampaignHistory) -> Iterator[GanttBar]:
    lanes = {kind: row for row, kind in enumerate(_BAR_CLASSES)}
    for iteration in history.iterations:
        yield from (_bar(lanes[_batch_kind(batch)], batch) for batch in iteration.executed)


def _batch_kind(batch: ExecutedBatch) -> str:
    if isinstance(batch.schedule, VmBatch):
        return "consolidation" if batch.why else "vms"
    kinds = {task.kind for task in batch.schedule.tasks}
    if TaskKind.REVERT in kinds:
        return "revert"
    return "check" if kinds == {TaskKind.CHECK} else "resources"


def _bar(row: int, batch: ExecutedBatch) -> GanttBar:
    names = _schedule_names(batch.schedule)
    lasts = format_duration((batch.end_ms - batch.start_ms) / 1000)
    what = format_count(len(names), "VM" if isinstance(batch.schedule, VmBatch) else "resource")
    why = f" {batch.why}" if batch.why else ""
    return GanttBar(
        row,
        batch.start_ms / 1000,
        batch.end_ms / 1000,
        _BAR_CLASSES[_batch_kind(batch)][0],
        f"{what}{why}, {lasts}: {', '.join(names)}",
        name=_short_names(names),
    )


def _schedule_names(schedule: TaskBatch | VmBatch) -> list[str]:
    if isinstance(schedule, VmBatch):
        return [move.vm for move in schedule.moves]
    return list(dict.fromkeys(task.vertex for task in schedule.tasks))


def _short_names(names: list[str]) -> str:
    more = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f" +{more}" if more > 0 else "")


def _batch_legend(history: CampaignHistory) -> Markup:
    seen = {_batch_kind(batch) for iteration in history.iterations for batch in iteration.executed}
    entries = [legend_entry(*_BAR_CLASSES[kind]) for kind in _BAR_CLASSES if kind in seen]
    return legend_list(*entries) if entries else EMPTY


_NOTES_MAX: Final = 500


def upgrade_page(
    history: CampaignHistory,
    compared: Sequence[MethodComparison] = (),
    outage_ms: Mapping[TenantId, int] | None = None,
) -> str:
    """Return the page of a campaign, with the comparison with rolling upgrades if given."""
    penalties = campaign_penalties(history)
    sections = [timeline_section(history), tenants_section(history, penalties)]
    sections += [comparison_section(compared)] if compared else []
    sections += [iterations_section(history), _notes_section(history)]
    title = f"{history.campaign.name}: upgrade, Equipoise"
    return html_document(title, _head(history, penalties, outage_ms or {}), sections)


def _head(
    history: CampaignHistory, penalties: CampaignPenalties, outage_ms: Mapping[TenantId, int]
) -> Markup:
    campaign = history.campaign
    cluster = campaign.cluster
    size = ", ".join(
        format_count(len(items), word)
        for items, word in (
            (cluster.hosts, "host"),
            (cluster.resources, "resource"),
            (cluster.vms, "VM"),
            (cluster.tenants, "tenant"),
        )
    )
    literal = "; literal readings of the thesis" if campaign.settings.readings.any_literal else ""
    facts = f"{size}; seed {campaign.seed}{literal}"
    return page_header(
        campaign.name, facts, _tiles(history, penalties, outage_ms), about=campaign.about
    )


def _tiles(
    history: CampaignHistory,
    penalties: CampaignPenalties,
    outage_ms: Mapping[TenantId, int],
) -> list[Markup]:
    fine = history.status is CampaignStatus.COMPLETED
    waits = history.iterations[-1].paused if history.iterations else ""
    outage_s = sum(outage_ms.values()) / 1000
    out = sum(penalty.violation_s for penalty in penalties.tenants)
    return [
        tile("status", history.status.value, "" if fine else waits, None if fine else "bad"),
        tile(
            "duration",
            format_duration(penalties.duration_s),
            format_count(len(history.iterations), "iteration"),
        ),
        tile("VM moves", f"{penalties.moves:,}", ""),
        tile(
            "outage",
            f"{outage_s:g} s",
            ", ".join(outage_ms) if outage_ms else "a VM of each tenant answered at any time",
            "bad" if outage_s else None,
        ),
        tile("VMs out", format_duration(out), "sum of all tenants, while VMs moved or failed"),
        tile(
            "refused",
            f"{penalties.refused:,}",
            "VMs within the SLA" if penalties.refused else "no VM within the SLA was refused",
            "bad" if penalties.refused else None,
        ),
        tile(
            "penalties",
            f"{format_number(penalties.proportional_s)} q'",
            f"proportional; {format_number(penalties.violation_s)} q for the delay; "
            "mean per tenant",
        ),
    ]


def _notes_section(history: CampaignHistory) -> Section:
    caption = "Ends of change sets, failures and isolated resources."
    if not history.notes:
        return Section("notes", "Other events", caption, empty_note("Nothing failed."))
    rows = [
        [text(format_instant(at_ms)), text(words)] for at_ms, words in history.notes[:_NOTES_MAX]
    ]
    return Section("notes", "Other events", caption, html_table(("time", "event"), rows))
