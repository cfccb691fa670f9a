"""Actions over time: each attempt from its start to its end, by VM and by host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from equipoise.model.action import Action, Move, describe, footprint
from equipoise.model.event import ActionFailed, ActionFinished, ActionLost, ActionStarted, Event
from equipoise.model.quantity import format_count
from equipoise.report.chart import gantt
from equipoise.report.chart.frame import (
    empty_note,
    legend_entry,
    legend_list,
    note_line,
    view_switch,
)
from equipoise.report.chart.gantt import GanttBar, GanttChart
from equipoise.report.chart.markup import Markup, Section, concat, tag
from equipoise.report.format import format_moment
from equipoise.report.run.data import RunData


class ActionOutcome(StrEnum):
    """How an action ended."""

    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"
    """Its outcome is unknown."""
    RUNNING = "running"
    """The run ended before the action."""


class ActionAttempt(NamedTuple):
    """One attempt at an action."""

    action: Action
    start_s: float
    end_s: float
    outcome: ActionOutcome
    reason: str = ""

    @property
    def is_migration(self) -> bool:
        """Whether the action moves a running VM."""
        return isinstance(self.action, Move)

    @property
    def subject(self) -> str:
        """The VM of the action, or the host it switches."""
        used = footprint(self.action)
        return str(used.vm or used.switched)

    @property
    def words(self) -> str:
        """Times, action, outcome and reason in one line."""
        why = f": {self.reason}" if self.reason else ""
        times = f"{format_moment(self.start_s)} to {format_moment(self.end_s)}"
        return f"{times}, {describe(self.action)}, {self.outcome}{why}"


def action_attempts(events: Iterable[Event], end_s: float) -> list[ActionAttempt]:
    """Return the attempts in the order of their starts, each with its end."""
    open_indices: dict[tuple[str, int], int] = {}
    attempts: list[ActionAttempt] = []
    for event in events:
        if isinstance(event, ActionStarted):
            open_indices[event.step.id, event.attempt] = len(attempts)
            at_s = event.at_ms / 1000
            attempts.append(
                ActionAttempt(event.step.action, at_s, max(at_s, end_s), ActionOutcome.RUNNING)
            )
        elif isinstance(event, ActionFinished | ActionFailed | ActionLost):
            index = open_indices.pop((event.step, event.attempt), None)
            if index is not None:  # otherwise the report is late or a duplicate
                attempts[index] = _with_outcome(attempts[index], event)
    return attempts


def _with_outcome(
    attempt: ActionAttempt, event: ActionFinished | ActionFailed | ActionLost
) -> ActionAttempt:
    end_s = event.at_ms / 1000
    match event:
        case ActionFinished():
            return attempt._replace(end_s=end_s, outcome=ActionOutcome.FINISHED)
        case ActionFailed():
            return attempt._replace(end_s=end_s, outcome=ActionOutcome.FAILED, reason=event.reason)
        case ActionLost():
            return attempt._replace(end_s=end_s, outcome=ActionOutcome.LOST)


_SUBJECTS_MAX: Final = 80
_HOSTS_MAX: Final = 60
_ARRIVING, _LEAVING, _WHOLE = (0.08, 0.48), (0.52, 0.92), (0.15, 0.85)
_Band = tuple[ActionAttempt, str, tuple[float, float]]
"""An attempt, the name of its row, and its upper and lower edge in the row."""
_OUTCOME_TEXTS: Final = {
    ActionOutcome.FINISHED: "finished",
    ActionOutcome.FAILED: "failed, without effect",
    ActionOutcome.LOST: "lost, outcome unknown",
    ActionOutcome.RUNNING: "still running at the end",
}


def actions_section(run: RunData, attempts: list[ActionAttempt]) -> Section:
    """Return a Gantt chart of all attempts, by VM and by host."""
    title = "Actions over time"
    if not attempts:
        why = "The run has no actions."
        return Section("actions", title, "Each action from its start to its end.", empty_note(why))
    views = {"by VM": _by_subject(run, attempts), "by host": _by_host(run, attempts)}
    shown = [tag("div", view, class_=f"view v{place}") for place, view in enumerate(views.values())]
    body = view_switch("actions", list(views), concat(shown))
    return Section("actions", title, _actions_caption(attempts), body)


def _actions_caption(attempts: list[ActionAttempt]) -> str:
    endings = Counter(attempt.outcome for attempt in attempts)
    parts = [
        f"{endings[outcome]:,} {words}"
        for outcome, words in _OUTCOME_TEXTS.items()
        if endings[outcome]
    ]
    subject, most = Counter(attempt.subject for attempt in attempts).most_common(1)[0]
    busiest = f" {subject} has the most: {format_count(most, 'action')}." if most > 1 else ""
    return f"{format_count(len(attempts), 'action')}: {', '.join(parts)}.{busiest}"


def _by_subject(run: RunData, attempts: list[ActionAttempt]) -> Markup:
    # The rows have the order of the first starts.
    first = {attempt.subject: place for place, attempt in reversed(list(enumerate(attempts)))}
    bands = [(attempt, attempt.subject, _WHOLE) for attempt in attempts]
    busiest = _busiest(bands, _SUBJECTS_MAX)
    shown = {subject: busiest[subject] for subject in sorted(busiest, key=first.__getitem__)}
    note = _omitted_note(len(first), len(shown), "VMs and hosts")
    label = "Actions by VM, or by host for host actions"
    chart = _chart(run, label, shown, bands)
    return concat([note, gantt.draw(chart, _outcome_legend(attempts))])


def _by_host(run: RunData, attempts: list[ActionAttempt]) -> Markup:
    bands = [(attempt, host, band) for attempt in attempts for host, band in _host_bands(attempt)]
    if not bands:
        return empty_note("No action concerns a host.")
    busiest = _busiest(bands, _HOSTS_MAX)
    shown = {host: busiest[host] for host in sorted(busiest)}
    note = _omitted_note(len({host for _, host, _ in bands}), len(shown), "hosts")
    halves = note_line("The upper half of a row shows arrivals, the lower half departures.")
    label = "Actions by host: arrivals above, departures below"
    chart = _chart(run, label, shown, bands)
    return concat([note, halves, gantt.draw(chart, _outcome_legend(attempts))])


def _busiest(bands: Iterable[_Band], most: int) -> dict[str, int]:
    """Return the rows with most actions, and their number of actions."""
    return dict(Counter(name for _, name, _ in bands).most_common(most))


def _chart(
    run: RunData, label: str, shown: Mapping[str, int], bands: Sequence[_Band]
) -> GanttChart:
    """Return the Gantt chart of the named rows."""
    rows = {name: row for row, name in enumerate(shown)}
    return GanttChart(
        label=label,
        span=run.span,
        rows=[(name, format_count(count, "action")) for name, count in shown.items()],
        bars=[
            GanttBar(
                rows[name],
                attempt.start_s,
                attempt.end_s,
                f"action {attempt.outcome}",
                attempt.words,
                band,
            )
            for attempt, name, band in bands
            if name in rows
        ],
        marks=run.marks(),
    )


def _host_bands(attempt: ActionAttempt) -> Iterator[tuple[str, tuple[float, float]]]:
    used = footprint(attempt.action)
    if used.switched is not None:
        yield used.switched, _WHOLE
    if used.target is not None:
        yield used.target, _ARRIVING
    # A VM that resumes on its own host arrives there and leaves no other.
    if used.source is not None and used.source != used.target:
        yield used.source, _LEAVING


def _omitted_note(known: int, shown: int, plural: str) -> Markup:
    if known == shown:
        return concat([])
    words = f"The chart shows the {shown} busiest of {known:,} {plural}; "
    return note_line(words + f"the other {known - shown:,} are in journal.jsonl.")


def _outcome_legend(attempts: Sequence[ActionAttempt]) -> Markup:
    seen = {attempt.outcome for attempt in attempts}
    return legend_list(
        *(
            legend_entry(f"action {outcome}", words)
            for outcome, words in _OUTCOME_TEXTS.items()
            if outcome in seen
        )
    )
