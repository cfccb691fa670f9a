"""The story of a run, as somebody who carries roles would tell it: what happened, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from equipoise.cli.story import tell
from equipoise.model.action import RoleAction, describe
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    ClusterLoaded,
    Event,
    HostChanged,
    PlanAccepted,
    PlanRefused,
    SlotsFilled,
    kind_of,
)
from equipoise.model.plan import Step
from equipoise.model.words import counted

_SILENT: Final = frozenset(
    ("demand_observed", "plan_accepted", "plan_ended", "proposal_made", "proposals_arbitrated")
)


class Line(NamedTuple):
    """One thing that happened."""

    at_ms: int
    event: str
    what: str
    reason: str = ""


def lines(events: Iterable[Event]) -> Iterator[Line]:
    """Tell a journal, without what only the house itself cares about."""
    steps: dict[str, Step] = {}
    for event in events:
        if isinstance(event, PlanAccepted):
            steps |= {step.id: step for step in event.plan.steps}
        line = _line(event, steps)
        if line is not None:
            yield line


def _line(event: Event, steps: dict[str, Step]) -> Line | None:
    kind = kind_of(event)
    if kind in _SILENT:
        return None
    match event:
        case ActionStarted(step=step) if isinstance(step.action, RoleAction):
            return Line(event.at_ms, kind, describe(step.action), step.reason)
        case ActionFinished() if event.step in steps:
            return Line(event.at_ms, kind, f"done: {describe(steps[event.step].action)}")
        case ActionFailed() | ActionSkipped() if event.step in steps:
            verb = "failed" if isinstance(event, ActionFailed) else "not done"
            words = f"{verb}: {describe(steps[event.step].action)}"
            return Line(event.at_ms, kind, words, event.reason)
        case ActionLost() if event.step in steps:
            return Line(event.at_ms, kind, f"unknown: {describe(steps[event.step].action)}")
        case SlotsFilled():
            slots = ", ".join(f"{slot} = {one}" for slot, one in event.slots.items())
            return Line(event.at_ms, kind, f"slots of {event.group}: {slots}", event.reason)
        case HostChanged() if event.host.requested is not None:
            words = f"host {event.host.id} is to go into {event.host.requested}"
            return Line(event.at_ms, kind, words)
        case PlanRefused():
            why = "; ".join(one.detail for one in event.violations[:3])
            return Line(event.at_ms, kind, "the gate refused", why)
        case ClusterLoaded():
            cluster = event.inventory
            size = f"{counted(len(cluster.hosts), 'host')}, {counted(len(cluster.vms), 'VM')}"
            return Line(event.at_ms, kind, f"the cluster: {size}")
        case _:
            return Line(event.at_ms, kind, tell(event))
