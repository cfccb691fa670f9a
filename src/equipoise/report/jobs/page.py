"""The page of a run of jobs, and the page that compares several runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import TYPE_CHECKING, Final

import numpy as np

from equipoise.documents.simulation import JobsDocument
from equipoise.model.quantity import format_count
from equipoise.report.chart import plot
from equipoise.report.chart.frame import Floats, TimeSpan, note_line
from equipoise.report.chart.markup import Markup, Section, concat, html_table, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries, SeriesStyle
from equipoise.report.format import format_duration, format_percent, unit_for, with_unit
from equipoise.report.jobs.data import JobRecord, count_over_time, step_mean
from equipoise.report.jobs.hosts import hosts_section
from equipoise.report.jobs.waiting import rejected_note, waits_section
from equipoise.report.run.measures import HIGHER, LOWER, NEITHER, RunMeasure
from equipoise.report.run.page import html_document, tile

if TYPE_CHECKING:
    from equipoise.report.jobs.folder import SavedJobs

_BINS: Final = 300
_RUNS_MAX: Final = 8
"""The palette has so many colours."""
_STATE_COLOURS: Final = {"computing": 1, "switching on": 7, "switching off": 2, "sleeping": 8}
_NO_POWER: Final = "The platform has no power figures, or the run wrote no energy."


_MEASURES: Final = (
    RunMeasure("makespan", "makespan", "s", LOWER),
    RunMeasure("mean_waiting_time", "mean waiting time", "s", LOWER),
    RunMeasure("max_waiting_time", "longest waiting time", "s", LOWER),
    RunMeasure("mean_turnaround_time", "mean turnaround time", "s", LOWER),
    RunMeasure("max_turnaround_time", "longest turnaround time", "s", LOWER),
    RunMeasure("mean_slowdown", "mean slowdown", "", LOWER),
    RunMeasure("max_slowdown", "largest slowdown", "", LOWER),
    RunMeasure("nb_jobs", "jobs", "", NEITHER),
    RunMeasure("nb_jobs_success", "jobs that succeeded", "", HIGHER),
    RunMeasure("nb_jobs_killed", "jobs that failed, ran out of time or were killed", "", LOWER),
    RunMeasure("nb_jobs_rejected", "jobs rejected", "", LOWER),
    RunMeasure("consumed_joules", "energy", "kWh", LOWER),
    RunMeasure("time_computing", "computing time of all hosts", "s", NEITHER),
    RunMeasure("time_idle", "idle time of all hosts", "s", NEITHER),
    RunMeasure("time_sleeping", "sleeping time of all hosts", "s", NEITHER),
    RunMeasure("nb_machine_switches", "switches of hosts", "", NEITHER),
    RunMeasure("nb_computing_machines", "hosts", "", NEITHER),
)
_JOULES_PER_KWH: Final = 3_600_000


def jobs_measures(document: JobsDocument) -> list[RunMeasure]:
    """Return the figures of a run in a fixed order."""
    return [measure._replace(value=_value(document, measure.path)) for measure in _MEASURES]


def _value(document: JobsDocument, key: str) -> float:
    value = float(getattr(document, key))
    return value / _JOULES_PER_KWH if key == "consumed_joules" else value


def jobs_page(saved: SavedJobs) -> str:
    """Return the page of one run."""
    record, result = saved.record, saved.result
    sections = [
        hosts_section(record, saved.hosts),
        _states_section(record, len(saved.hosts)),
        _queue_section(record),
        _power_section(record, result),
        waits_section(record, len(saved.hosts)),
        _spread_section(record),
        _measures_section(result),
    ]
    return html_document(f"{saved.title}: Equipoise", _head(saved), sections)


def _head(saved: SavedJobs) -> Markup:
    result = saved.result
    facts = f"{format_count(result.nb_jobs, 'job')} on {format_count(len(saved.hosts), 'host')}"
    facts += f", policy {result.policy}" if result.policy else ""
    busy = saved.record.host_counts["computing"]
    mean = step_mean(saved.record.host_times, busy, np.array(saved.record.span))[0]
    used = 100 * mean / max(len(saved.hosts), 1)
    unhappy = result.nb_jobs_killed + result.nb_jobs_rejected
    tiles = [
        tile("makespan", format_duration(result.makespan)),
        tile("mean wait", format_duration(result.mean_waiting_time),
             f"longest {format_duration(result.max_waiting_time)}"),
        tile("mean slowdown", with_unit(result.mean_slowdown, ""),
             f"largest {with_unit(result.max_slowdown, '')}"),
        tile("hosts computing", format_percent(float(used)), "mean over the run"),
        tile("not successful", f"{unhappy:,}",
             f"{result.nb_jobs_killed:,} ended badly, {result.nb_jobs_rejected:,} rejected",
             "bad" if unhappy else None),
    ]  # fmt: skip
    if result.consumed_joules > 0:
        tiles.append(tile("energy", with_unit(result.consumed_joules / _JOULES_PER_KWH, "kWh")))
    return tag(
        "header",
        tag("h1", text(saved.title)),
        tag("p", text(facts), class_="facts"),
        note_line(_stopped_note(saved) if saved.stopped else ""),
        tag("ul", *tiles, class_="tiles"),
        note_line(rejected_note(saved.record)),
    )


def _stopped_note(saved: SavedJobs) -> str:
    lost = "Jobs that ran or waited at that moment are in no figure and no chart but Utilisation."
    return f"The run stopped before its end: {saved.stopped.splitlines()[0]}. {lost}"


def _edges(span: TimeSpan) -> Floats:
    return np.linspace(span.low_s, span.high_s, _BINS + 1)


def _draw(
    label: str, span: TimeSpan, series: Sequence[PlotSeries], empty: str, unit: str
) -> Markup:
    edges = _edges(span)
    middles = (edges[1:] + edges[:-1]) / 2
    return plot.draw(
        Plot(label=label, span=span, times=middles, series=series, unit=unit), empty=empty
    )


def _states_section(record: JobRecord, hosts: int) -> Section:
    edges = _edges(record.span)
    means = {
        name: step_mean(record.host_times, counts, edges)
        for name, counts in record.host_counts.items()
    }
    series = [
        PlotSeries(name=name, values=means[name], look=SeriesStyle.COLUMNS, colour=colour)
        for name, colour in _STATE_COLOURS.items()
        if means[name].any()
    ]
    body = plot.draw(
        Plot(
            label="Hosts by state over time",
            span=record.span,
            times=(edges[1:] + edges[:-1]) / 2,
            series=series,
            levels=[(float(hosts), "all hosts")] if hosts else (),
        ),
        empty="No host ran a job or changed its state.",
    )
    caption = f"Hosts by state, mean of each of {_BINS} periods; hosts above the columns are idle."
    return Section("states", "Utilisation", caption, body)


def _queue_section(record: JobRecord) -> Section:
    edges = _edges(record.span)
    ran = record.ran
    waiting = count_over_time(record.submit_s[ran], record.start_s[ran])
    running = count_over_time(record.start_s[ran], record.end_s[ran])
    series = [
        PlotSeries(name="waiting", values=step_mean(*waiting, edges), colour=2),
        PlotSeries(name="running", values=step_mean(*running, edges), colour=1),
    ]
    most = int(waiting[1].max(initial=0.0))
    caption = f"At most {format_count(most, 'job')} waited at one time."
    body = _draw("Jobs that wait and run over time", record.span, series, "No job has run.", "")
    return Section("queue", "Queue", caption, body)


def _watts(record: JobRecord, edges: Floats) -> Floats:
    """Return the mean power of each period; NaN after the last measurement."""
    if len(record.energy_times) < 2:  # noqa: PLR2004
        return np.full(len(edges) - 1, np.nan)
    times = np.concatenate([[0.0], record.energy_times])
    energy_j = np.interp(edges, times, np.concatenate([[0.0], record.energy_j]))
    mean = np.diff(energy_j) / np.diff(edges)
    return np.where(edges[:-1] < record.energy_times[-1], mean, np.nan)


def _power_section(record: JobRecord, result: JobsDocument) -> Section:
    watts = _watts(record, _edges(record.span))
    unit = unit_for("watts", float(np.nanmax(watts, initial=0.0)))
    series = [PlotSeries(name="power", values=watts / unit.size, look=SeriesStyle.AREA, colour=4)]
    total = result.consumed_joules / _JOULES_PER_KWH
    caption = f"All hosts used {with_unit(total, 'kWh')}." if total > 0 else ""
    body = _draw("Power of all hosts over time", record.span, series, _NO_POWER, unit.name)
    return Section("power", "Power", caption, body)


def _spread_section(record: JobRecord) -> Section:
    ran = record.ran
    run_s = (record.end_s - record.start_s)[ran]
    waits = (record.start_s - record.submit_s)[ran]
    turnaround_s = (record.end_s - record.submit_s)[ran]
    slowdown = turnaround_s / np.maximum(run_s, 1e-5)
    rows = []
    for name, values, say in (
        ("waiting time", waits, format_duration),
        ("run time", run_s, format_duration),
        ("turnaround time", turnaround_s, format_duration),
        ("slowdown", slowdown, lambda value: with_unit(value, "")),
    ):
        if len(values):
            found = [float(np.mean(values)), *np.percentile(values, (50, 95, 100)).tolist()]
            rows.append([text(name), *(text(say(value)) for value in found)])
    columns = ("measure", "mean", "median", "95th percentile", "largest")
    caption = "Over the jobs that have run."
    return Section("spread", "Distribution", caption, html_table(columns, rows, right=columns[1:]))


def _measures_section(result: JobsDocument) -> Section:
    rows = [[text(measure.label), text(measure.words)] for measure in jobs_measures(result)]
    table = html_table(("measure", "value"), rows, right=("value",))
    caption = "Means are over all jobs, also over rejected ones, as in schedule.csv."
    return Section("measures", "All measures", caption, concat([table]))


# Several runs


def compare_jobs_page(runs: Sequence[SavedJobs]) -> str:
    """Return a page that compares two or more runs."""
    span = TimeSpan(0.0, max(run.record.span.high_s for run in runs))
    edges = _edges(span)
    shown = runs[:_RUNS_MAX]
    charts = (
        ("computing", "Computing hosts", "Hosts that run jobs.", [
            step_mean(run.record.host_times, run.record.host_counts["computing"], edges)
            for run in shown
        ], ""),
        ("queue", "Queue", "Jobs that wait.", [
            step_mean(*count_over_time(
                run.record.submit_s[run.record.ran], run.record.start_s[run.record.ran]
            ), edges)
            for run in shown
        ], ""),
        ("power", "Power", "Power of all hosts.",
         [_watts(run.record, edges) for run in shown], "W"),
    )  # fmt: skip
    sections = [_comparison(runs)]
    for name, title, caption, lines, unit in charts:
        series = [
            PlotSeries(name=run.name, values=values, colour=colour)
            for colour, (run, values) in enumerate(zip(shown, lines, strict=True), 1)
        ]
        body = _draw(f"{title} of each run over time", span, series, _NO_POWER, unit)
        sections.append(Section(name, title, caption, body))
    title = " and ".join(run.name for run in runs)
    about = [
        tag("p", tag("strong", text(run.name)), text(f": {run.title}, policy {run.result.policy}"),
            class_="about")
        for run in runs
    ]  # fmt: skip
    return html_document(f"{title}: Equipoise", tag("header", tag("h1", text(title)), *about),
                         sections)  # fmt: skip


def _comparison(runs: Sequence[SavedJobs]) -> Section:
    rows = []
    for measures in zip(*(jobs_measures(run.result) for run in runs), strict=True):
        first = measures[0]
        scores = [first.better * (measure.value or 0.0) for measure in measures]
        best = max(scores)
        marked = first.better != NEITHER and not isclose(min(scores), best, rel_tol=1e-9)
        rows.append([text(first.label), *(
            tag("span", text(measure.words), class_="better")
            if marked and score == best else text(measure.words)
            for measure, score in zip(measures, scores, strict=True)
        )])  # fmt: skip
    # Names of runs may be equal, and ``right`` names columns: all but the first hold numbers.
    names = [f"{run.name} " if run.name == "measure" else run.name for run in runs]
    table = html_table(("measure", *names), rows, right=names)
    caption = "The best figure of a row is marked where one direction is better."
    return Section("measures", "Measures", caption, table)
