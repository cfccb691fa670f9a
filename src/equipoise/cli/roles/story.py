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
    LayoutChanged,
    PlanAccepted,
    PlanRefused,
    SlotsFilled,
    kind_of,
)
from equipoise.model.plan import Step
from equipoise.model.quantity import ProcessorId, SlotId
from equipoise.model.roles.layout import RoleLayout
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
    layout: RoleLayout | None = None
    for event in events:
        match event:
            case PlanAccepted():
                steps |= {step.id: step for step in event.plan.steps}
            case ClusterLoaded():
                layout = event.inventory.layout
            case LayoutChanged():
                layout = event.layout
            case SlotsFilled() if layout is not None:
                event = event.but(slots=_in_order(event, layout))  # noqa: PLW2901
        line = _line(event, steps)
        if line is not None:
            yield line


def _in_order(event: SlotsFilled, layout: RoleLayout) -> dict[SlotId, ProcessorId]:
    """Slots as the group has them; a journal keeps them by name."""
    order = [slot.id for team in layout.groups if team.id == event.group for slot in team.slots]
    return {slot: event.slots[slot] for slot in order if slot in event.slots}


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
