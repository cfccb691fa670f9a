"""The moments of a plan: the states that a judge sees, in order of time.

Ends are applied before starts at one instant. The state is judged after the ends and again after
the starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import Snapshot


class MomentPhase(Enum):
    """The kind of a moment of a plan."""

    INITIAL = "initial"
    """Before the first action."""
    ENDS = "ends"
    """All actions that end at this instant have ended."""
    STARTS = "starts"
    """All actions that start at this instant have started."""
    FINAL = "final"
    """After the last action."""


@dataclass(frozen=True, slots=True)
class PlanMoment:
    """The state at one moment of a plan."""

    phase: MomentPhase
    at_ms: int
    """Counted from the start of the plan."""
    state: Draft
    """A judge reads it and never changes it."""
    touched: TouchedEntities
    """What has changed since the previous moment; at the final moment, since the beginning."""


class Judge(Protocol):
    """Judges one moment of a plan after the other."""

    def __call__(self, moment: PlanMoment) -> Iterable[Violation]:
        """Return what is violated at this moment."""
        ...


class TouchedCollector:
    """Collects the touched VMs and hosts, each once, in the order of the first touch."""

    def __init__(self) -> None:
        self._vms: dict[VmId, None] = {}
        self._hosts: dict[HostId, None] = {}

    def add(self, touched: TouchedEntities) -> None:
        """Add what an event touches."""
        self._vms.update(dict.fromkeys(touched.vms))
        self._hosts.update(dict.fromkeys(touched.hosts))

    def touched(self) -> TouchedEntities:
        """Return everything that was added so far."""
        return TouchedEntities(tuple(self._vms), tuple(self._hosts))


def instants(steps: Iterable[Step]) -> Iterator[tuple[int, list[Step], list[Step]]]:
    """Yield the instants of a plan in order of time, with the steps that end and start there."""
    ends: dict[int, list[Step]] = {}
    starts: dict[int, list[Step]] = {}
    for step in steps:
        starts.setdefault(step.start_ms, []).append(step)
        ends.setdefault(step.end_ms, []).append(step)
    # A migration that ends and one that starts at the same instant never overlap.
    for at_ms in sorted(ends.keys() | starts.keys()):
        yield at_ms, ends.get(at_ms, []), starts.get(at_ms, [])


def moments(initial: Snapshot, steps: Iterable[Step]) -> Iterator[PlanMoment]:
    """Replay steps without checking preconditions, which the gate does, and yield every moment.

    The state of a moment is a draft that changes when the next moment is drawn.
    """
    draft, recent, ever, now_ms = Draft(initial), TouchedCollector(), TouchedCollector(), 0
    yield PlanMoment(MomentPhase.INITIAL, 0, draft, recent.touched())
    for now_ms, ends, starts in instants(steps):
        at_ms = initial.at_ms + now_ms
        finished = (ActionFinished(at_ms=at_ms, step=step.id, attempt=1) for step in ends)
        started = (ActionStarted(at_ms=at_ms, step=step, attempt=1) for step in starts)
        for phase, events in ((MomentPhase.ENDS, finished), (MomentPhase.STARTS, started)):
            recent = TouchedCollector()
            for event in events:
                transition.apply_to_draft(draft, event)
                recent.add(draft.pop_touched())
            ever.add(recent.touched())
            yield PlanMoment(phase, now_ms, draft, recent.touched())
    # Judged apart from the last ends: discrete rules hold only here.
    yield PlanMoment(MomentPhase.FINAL, now_ms, draft, ever.touched())
