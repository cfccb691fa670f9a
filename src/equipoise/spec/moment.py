"""The moments of a plan: what a judge looks at, one after the other.

Ends are applied before starts at one instant, and the state is looked at after the ends and again
after the starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from equipoise.model.change import transition
from equipoise.model.change.draft import Draft, Touched
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot


class Phase(Enum):
    """Which of the moments of a plan is looked at."""

    INITIAL = "initial"
    """Before anything has happened."""
    ENDS = "ends"
    """All actions that end at this instant have ended."""
    STARTS = "starts"
    """All actions that start at this instant have started."""
    FINAL = "final"
    """Everything has happened."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at one moment of a plan."""

    phase: Phase
    at_ms: int
    """Counted from the start of the plan."""
    state: Draft
    """To look at, never to change."""
    touched: Touched
    """What has changed since the moment before; at the end, since the beginning."""


class Judge(Protocol):
    """Looks at one moment of a plan after the other."""

    def __call__(self, moment: Moment) -> Iterable[Violation]:
        """Say what is broken at this moment."""
        ...


class Seen:
    """Collects what was touched, each thing once, in the order of the first touch."""

    def __init__(self) -> None:
        self._vms: dict[VmId, None] = {}
        self._hosts: dict[HostId, None] = {}

    def add(self, touched: Touched) -> None:
        """Add what an event has touched."""
        self._vms.update(dict.fromkeys(touched.vms))
        self._hosts.update(dict.fromkeys(touched.hosts))

    def touched(self) -> Touched:
        """Everything so far."""
        return Touched(tuple(self._vms), tuple(self._hosts))


def instants(steps: Iterable[Step]) -> Iterator[tuple[int, list[Step], list[Step]]]:
    """Give the instants of a plan in order of time, with what ends and what starts there."""
    ends: dict[int, list[Step]] = {}
    starts: dict[int, list[Step]] = {}
    for step in steps:
        starts.setdefault(step.start_ms, []).append(step)
        ends.setdefault(step.end_ms, []).append(step)
    for at_ms in sorted(ends.keys() | starts.keys()):
        yield at_ms, ends.get(at_ms, []), starts.get(at_ms, [])


def moments(initial: Snapshot, steps: Iterable[Step]) -> Iterator[Moment]:
    """Let steps happen whether they may or not, and give every moment. The gate asks if they may.

    The state of a moment goes on changing when the next one is asked for.
    """
    draft, recent, ever, now_ms = Draft(initial), Seen(), Seen(), 0
    yield Moment(Phase.INITIAL, 0, draft, recent.touched())
    for now_ms, ends, starts in instants(steps):
        at_ms = initial.at_ms + now_ms
        finished = (ActionFinished(at_ms=at_ms, step=one.id, attempt=1) for one in ends)
        started = (ActionStarted(at_ms=at_ms, step=one, attempt=1) for one in starts)
        for phase, events in ((Phase.ENDS, finished), (Phase.STARTS, started)):
            recent = Seen()
            for event in events:
                transition.change(draft, event)
                recent.add(draft.take_touched())
            ever.add(recent.touched())
            yield Moment(phase, now_ms, draft, recent.touched())
    yield Moment(Phase.FINAL, now_ms, draft, ever.touched())
