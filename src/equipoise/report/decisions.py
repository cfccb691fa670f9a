"""Decisions with their reasons: what was proposed, refused, dropped, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from equipoise.model import event as happened
from equipoise.model.action import describe
from equipoise.model.event import Event
from equipoise.model.words import counted
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import Markup, joined, tag, text, void
from equipoise.report.material import Material, Tell
from equipoise.report.section import Section, listed
from equipoise.report.words import moment, number, shortened

ROWS_MAX: Final = 500
_WORDS_MAX: Final = 400
_INTENTS_SHOWN: Final = 3
_DETAILS_MAX: Final = 20
_TITLE: Final = "Decisions and their reasons"


class Weight(IntEnum):
    """What stays when there is more than a page can hold: the heavier first."""

    QUIET = 0
    ROUTINE = 1
    MISHAP = 2
    DECISION = 3
    FAULT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    at_s: float
    kind: str
    """One word, which is also a class of the style sheet."""
    who: str
    what: str
    why: str = ""
    details: tuple[str, ...] = ()
    """What is shown only when asked for ..."""
    asked: str = ""
    """... and the words to ask for it."""
    weight: Weight
    until_s: float | None = None
    times: int = 1
    """How often the same was said, up to ``until_s``."""


def decisions(material: Material) -> Section:
    """The table of decisions, with a box to search it."""
    rows = rows_of_decisions(material.events, material.tell)
    if not rows:
        why = "The journal of this run has no decisions: no decider was asked and no plan was made."
        return Section("decisions", _TITLE, "Who wanted what, and why.", nothing(why))
    shown = sorted(
        sorted(range(len(rows)), key=lambda place: (-rows[place].weight, place))[:ROWS_MAX]
    )
    box = tag(
        "p",
        tag("label", text("Show only rows with "), for_="filter"),
        void("input", id="filter", type="search", autocomplete="off", aria_controls="rows"),
        tag("output", for_="filter"),
        class_="filter", hidden=True,
    )  # fmt: skip
    columns = ("when", "kind", "who", "what", "why")
    table = listed(columns, [_cells(rows[place]) for place in shown], right=("when",))
    body = joined([_note(len(rows) - len(shown)), box, tag("div", table, id="rows")])
    return Section("decisions", _TITLE, _said(rows), body)


def rows_of_decisions(events: Sequence[Event], tell: Tell) -> list[Row]:
    """What was decided and what went wrong, in order; passes without a wish are taken together."""
    rows: list[Row] = []
    quiet: dict[str, int] = {}
    started: dict[str, str] = {}
    for event in events:
        if isinstance(event, happened.ActionStarted):
            started[event.step.id] = describe(event.step.action)
        make = _ROWS.get(type(event))
        if make is None:
            continue
        row = make(event, tell)
        if isinstance(event, _OF_A_STEP) and event.step in started:
            row = replace(row, what=f"{started[event.step]}: {row.what}")
        last = quiet.pop(row.who, None)
        if row.weight is Weight.QUIET:
            if last is not None:
                rows[last] = replace(
                    rows[last], why=row.why, until_s=row.at_s, times=rows[last].times + 1
                )
                quiet[row.who] = last
                continue
            quiet[row.who] = len(rows)
        rows.append(row)
    return rows


# One row per kind of event


def _proposal(event: happened.ProposalMade, _: Tell) -> Row:
    proposal = event.proposal
    wanted = [describe(intent.action) for intent in proposal.intents]
    more = len(wanted) - _INTENTS_SHOWN
    what = "; ".join(wanted[:_INTENTS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    promised = ", ".join(f"{name} {gain:+.3g}" for name, gain in sorted(proposal.gain.items()))
    why = proposal.reason + (f" (promised: {promised})" if promised else "")
    against = [f"not {one.subject}: {one.detail}" for one in proposal.rejected]
    return Row(
        at_s=event.at_ms / 1000,
        kind="proposed" if wanted else "nothing",
        who=proposal.decider,
        what=what or "nothing to do",
        why=why.strip(),
        details=(*wanted[_INTENTS_SHOWN:], *against),
        asked=", ".join(
            [f"{more} more wanted"] * (more > 0)
            + [f"{len(against)} decided against"] * bool(against)
        ),
        weight=Weight.DECISION if wanted else Weight.QUIET,
    )


def _refused(event: happened.PlanRefused, _: Tell) -> Row:
    found = [f"{one.constraint}: {one.detail}" for one in event.violations]
    return Row(
        at_s=event.at_ms / 1000,
        kind="refused",
        who="gate",
        what=f"plan {event.plan.id} of {counted(len(event.plan.steps), 'step')} refused",
        why=found[0] if found else "",
        details=tuple(found[1:]),
        asked=f"{len(found) - 1} more",
        weight=Weight.FAULT,
    )


def _dropped(event: happened.ProposalsArbitrated, _: Tell) -> Row:
    found = [f"{one.subject}: {one.detail}" for one in event.dropped]
    return Row(
        at_s=event.at_ms / 1000,
        kind="dropped",
        who="arbiter",
        what=f"{counted(len(found), 'intent')} dropped",
        why=found[0] if found else "",
        details=tuple(found[1:]),
        asked=f"{len(found) - 1} more",
        weight=Weight.DECISION,
    )


def _told(kind: str, who: str, weight: Weight) -> Callable[[Any, Tell], Row]:
    def row(event: Any, tell: Tell) -> Row:
        return Row(at_s=event.at_ms / 1000, kind=kind, who=who, what=tell(event), weight=weight)

    return row


_OF_A_STEP: Final = (
    happened.ActionSkipped,
    happened.ActionFailed,
    happened.ActionTimedOut,
    happened.ActionLost,
)
_ROWS: Final[dict[type[Any], Callable[[Any, Tell], Row]]] = {
    happened.ProposalMade: _proposal,
    happened.PlanRefused: _refused,
    happened.ProposalsArbitrated: _dropped,
    happened.PlanCancelled: _told("cancelled", "operator", Weight.FAULT),
    happened.PlanEnded: _told("ended", "executor", Weight.ROUTINE),
    happened.ActionSkipped: _told("skipped", "executor", Weight.MISHAP),
    happened.ActionFailed: _told("failed", "world", Weight.MISHAP),
    happened.ActionTimedOut: _told("late", "executor", Weight.MISHAP),
    happened.ActionLost: _told("lost", "executor", Weight.MISHAP),
    happened.HostFailed: _told("fault", "world", Weight.FAULT),
    happened.HostRecovered: _told("recovered", "world", Weight.FAULT),
    happened.HostLeft: _told("left", "world", Weight.FAULT),
    happened.HostJoined: _told("joined", "world", Weight.ROUTINE),
    happened.VmCrashed: _told("fault", "world", Weight.FAULT),
}


# Words


def _cells(row: Row) -> list[Markup]:
    when = moment(row.at_s, exact=True)
    what = shortened(row.what, _WORDS_MAX)
    if row.times > 1 and row.until_s is not None:
        when += f" to {moment(row.until_s, exact=True)}"
        what += f", {row.times} times"
    why = text(shortened(row.why, _WORDS_MAX))
    return [
        text(when),
        tag("span", text(row.kind), class_=f"kind {row.kind}"),
        text(row.who),
        text(what),
        joined([why, _details(row)]),
    ]


def _details(row: Row) -> Markup:
    if not row.details:
        return joined([])
    items = [tag("li", text(shortened(one, _WORDS_MAX))) for one in row.details[:_DETAILS_MAX]]
    more = len(row.details) - len(items)
    items += [tag("li", text(f"and {more:,} more in journal.jsonl"))] if more else []
    return tag("details", tag("summary", text(row.asked)), tag("ul", *items))


def _note(left_out: int) -> Markup:
    if not left_out:
        return joined([])
    words = (
        f"The {ROWS_MAX} rows that matter most are shown, faults and decisions first; "
        f"the other {number(left_out)} are in journal.jsonl."
    )
    return tag("p", text(words), class_="note")


def _said(rows: Sequence[Row]) -> str:
    kinds = [row.kind for row in rows]
    parts = [
        counted(kinds.count("proposed"), "proposal"),
        counted(kinds.count("refused"), "refused plan"),
        counted(kinds.count("failed"), "failed action"),
        f"{counted(kinds.count('fault'), 'fault')} of hosts and VMs",
    ]
    return f"Who wanted what, and why: {', '.join(parts)}."
