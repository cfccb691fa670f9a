"""Decisions with their reasons: what was proposed, refused, dropped, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from equipoise.documents.event_text import describe_event
from equipoise.model import event as event_types
from equipoise.model.action import describe
from equipoise.model.event import Event
from equipoise.model.quantity import format_count
from equipoise.report.chart.frame import empty_note, note_line
from equipoise.report.chart.markup import Markup, Section, concat, html_table, tag, text, void_tag
from equipoise.report.format import format_moment, format_number, shorten_end
from equipoise.report.run.data import RunData

ROWS_MAX: Final = 500
_WORDS_MAX: Final = 400
_INTENTS_SHOWN: Final = 3
_DETAILS_MAX: Final = 20
_TITLE: Final = "Decisions and their reasons"


class RowPriority(IntEnum):
    """Which rows stay when a page cannot hold all: the highest first."""

    QUIET = 0
    ROUTINE = 1
    MISHAP = 2
    DECISION = 3
    FAULT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One line of the table."""

    at_s: float
    kind: str
    """One word, which is also a class of the style sheet."""
    actor: str
    what: str
    why: str = ""
    details: tuple[str, ...] = ()
    """Lines that open on request ..."""
    details_label: str = ""
    """... and the label of the control that opens them."""
    priority: RowPriority
    until_s: float | None = None
    times: int = 1
    """Number of equal rows up to ``until_s``."""


def decisions_section(run: RunData) -> Section:
    """Return the table of decisions with a search box."""
    rows = decision_rows(run.events)
    if not rows:
        why = "The journal of this run has no decisions: no decider ran and no plan was made."
        return Section(
            "decisions",
            _TITLE,
            "Proposals, refusals and faults with their reasons.",
            empty_note(why),
        )
    shown = sorted(
        sorted(range(len(rows)), key=lambda place: (-rows[place].priority, place))[:ROWS_MAX]
    )
    box = tag(
        "p",
        tag("label", text("Show only rows with "), for_="filter"),
        void_tag("input", id="filter", type="search", autocomplete="off", aria_controls="rows"),
        tag("output", for_="filter"),
        class_="filter", hidden=True,
    )  # fmt: skip
    columns = ("time", "kind", "source", "decision or event", "reason")
    table = html_table(columns, [_cells(rows[place]) for place in shown], right=("time",))
    body = concat([_note(len(rows) - len(shown)), box, tag("div", table, id="rows")])
    return Section("decisions", _TITLE, _caption(rows), body)


def decision_rows(events: Sequence[Event]) -> list[DecisionRow]:
    """Return decisions and faults in order; consecutive passes without a proposal are one row."""
    rows: list[DecisionRow] = []
    quiet: dict[str, int] = {}
    started: dict[str, str] = {}
    for event in events:
        if isinstance(event, event_types.ActionStarted):
            started[event.step.id] = describe(event.step.action)
        make = _ROW_MAKERS.get(type(event))
        if make is None:
            continue
        row = make(event)
        if isinstance(event, _STEP_EVENTS) and event.step in started:
            row = replace(row, what=f"{started[event.step]}: {row.what}")
        # Any other row of the same source ends its run of quiet passes.
        last = quiet.pop(row.actor, None)
        if row.priority is RowPriority.QUIET:
            if last is not None:
                rows[last] = replace(
                    rows[last], why=row.why, until_s=row.at_s, times=rows[last].times + 1
                )
                quiet[row.actor] = last
                continue
            quiet[row.actor] = len(rows)
        rows.append(row)
    return rows


# One row per kind of event


def _proposal(event: event_types.ProposalMade) -> DecisionRow:
    proposal = event.proposal
    wanted = [describe(intent.action) for intent in proposal.intents]
    more = len(wanted) - _INTENTS_SHOWN
    what = "; ".join(wanted[:_INTENTS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    gains = ", ".join(f"{name} {gain:+.3g}" for name, gain in sorted(proposal.gain.items()))
    why = proposal.reason + (f" (expected gain: {gains})" if gains else "")
    against = [f"not {rejection.subject}: {rejection.detail}" for rejection in proposal.rejected]
    return DecisionRow(
        at_s=event.at_ms / 1000,
        kind="proposed" if wanted else "nothing",
        actor=proposal.decider,
        what=what or "nothing to do",
        why=why.strip(),
        details=(*wanted[_INTENTS_SHOWN:], *against),
        details_label=", ".join(
            [f"{more} more proposed"] * (more > 0) + [f"{len(against)} rejected"] * bool(against)
        ),
        priority=RowPriority.DECISION if wanted else RowPriority.QUIET,
    )


def _refused(event: event_types.PlanRefused) -> DecisionRow:
    reasons = [f"{violation.constraint}: {violation.detail}" for violation in event.violations]
    what = f"plan {event.plan.id} of {format_count(len(event.plan.steps), 'step')} refused"
    at_s, priority = event.at_ms / 1000, RowPriority.FAULT
    row = DecisionRow(at_s=at_s, kind="refused", actor="gate", what=what, priority=priority)
    return _with_reasons(row, reasons)


def _dropped(event: event_types.ProposalsArbitrated) -> DecisionRow:
    reasons = [f"{rejection.subject}: {rejection.detail}" for rejection in event.dropped]
    what = f"{format_count(len(reasons), 'intent')} dropped"
    at_s, priority = event.at_ms / 1000, RowPriority.DECISION
    row = DecisionRow(at_s=at_s, kind="dropped", actor="arbiter", what=what, priority=priority)
    return _with_reasons(row, reasons)


def _with_reasons(row: DecisionRow, reasons: Sequence[str]) -> DecisionRow:
    """Return a row that shows the first reason and folds the others."""
    return replace(
        row,
        why=reasons[0] if reasons else "",
        details=tuple(reasons[1:]),
        details_label=f"{len(reasons) - 1} more",
    )


def _event_row(kind: str, actor: str, priority: RowPriority) -> Callable[[Any], DecisionRow]:
    def row(event: Any) -> DecisionRow:
        return DecisionRow(
            at_s=event.at_ms / 1000,
            kind=kind,
            actor=actor,
            what=describe_event(event),
            priority=priority,
        )

    return row


_STEP_EVENTS: Final = (
    event_types.ActionSkipped,
    event_types.ActionFailed,
    event_types.ActionTimedOut,
    event_types.ActionLost,
)
_ROW_MAKERS: Final[dict[type[Any], Callable[[Any], DecisionRow]]] = {
    event_types.ProposalMade: _proposal,
    event_types.PlanRefused: _refused,
    event_types.ProposalsArbitrated: _dropped,
    event_types.PlanCancelled: _event_row("cancelled", "operator", RowPriority.FAULT),
    event_types.PlanEnded: _event_row("ended", "executor", RowPriority.ROUTINE),
    event_types.ActionSkipped: _event_row("skipped", "executor", RowPriority.MISHAP),
    event_types.ActionFailed: _event_row("failed", "world", RowPriority.MISHAP),
    event_types.ActionTimedOut: _event_row("late", "executor", RowPriority.MISHAP),
    event_types.ActionLost: _event_row("lost", "executor", RowPriority.MISHAP),
    event_types.HostFailed: _event_row("fault", "world", RowPriority.FAULT),
    event_types.HostRecovered: _event_row("recovered", "world", RowPriority.FAULT),
    event_types.HostLeft: _event_row("left", "world", RowPriority.FAULT),
    event_types.HostJoined: _event_row("joined", "world", RowPriority.ROUTINE),
    event_types.VmCrashed: _event_row("fault", "world", RowPriority.FAULT),
}


# Text


def _cells(row: DecisionRow) -> list[Markup]:
    when = format_moment(row.at_s, exact=True)
    what = shorten_end(row.what, _WORDS_MAX)
    if row.times > 1 and row.until_s is not None:
        when += f" to {format_moment(row.until_s, exact=True)}"
        what += f", {row.times} times"
    why = text(shorten_end(row.why, _WORDS_MAX))
    return [
        text(when),
        tag("span", text(row.kind), class_=f"kind {row.kind}"),
        text(row.actor),
        text(what),
        concat([why, _details(row)]),
    ]


def _details(row: DecisionRow) -> Markup:
    if not row.details:
        return concat([])
    items = [tag("li", text(shorten_end(line, _WORDS_MAX))) for line in row.details[:_DETAILS_MAX]]
    more = len(row.details) - len(items)
    items += [tag("li", text(f"and {more:,} more in journal.jsonl"))] if more else []
    return tag("details", tag("summary", text(row.details_label)), tag("ul", *items))


def _note(left_out: int) -> Markup:
    if not left_out:
        return concat([])
    words = (
        f"The table shows the {ROWS_MAX} most important rows, faults and decisions first; "
        f"the other {format_number(left_out)} are in journal.jsonl."
    )
    return note_line(words)


def _caption(rows: Sequence[DecisionRow]) -> str:
    kinds = [row.kind for row in rows]
    parts = [
        format_count(kinds.count("proposed"), "proposal"),
        format_count(kinds.count("refused"), "refused plan"),
        format_count(kinds.count("failed"), "failed action"),
        f"{format_count(kinds.count('fault'), 'fault')} of hosts and VMs",
    ]
    return f"Decisions with their reasons: {', '.join(parts)}."
