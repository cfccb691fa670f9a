"""The simulated engine at a pace, so that somebody can watch a campaign and give orders to it."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Final

from equipoise.model.event import Event
from equipoise.model.upgrade.work import Batch, VmBatch
from equipoise.sim.upgrading.engine import SimulatedEngine

LOOK_S: Final = 0.2
"""How often orders are looked for, in real time."""


class PacedEngine:
    """Lets virtual time pass so many times faster than real time. What happens is the same."""

    def __init__(self, engine: SimulatedEngine, pace: float) -> None:
        self._engine = engine
        self._pace = pace
        self._began_s = perf_counter()
        self._ahead_ms = 0
        """Where an earlier run has ended."""

    def perform(self, schedule: Batch | VmBatch) -> None:
        """Begin to carry out a schedule."""
        self._engine.perform(schedule)

    def next_event(self, until_ms: int | None) -> Event | None:
        """Wait for the next event, in real time."""
        times = [one for one in (until_ms, self._engine.due_ms()) if one is not None]
        if times:
            sleep(max(0.0, (min(times) - self._clock_ms()) / 1000 / self._pace))
        return self._engine.next_event(until_ms)

    def witness(self, event: Event) -> None:
        """Hear of an event; one of an earlier run says how late it is."""
        self._ahead_ms += max(0, event.at_ms - self._clock_ms())
        self._engine.witness(event)

    def now_ms(self) -> int:
        """What time it is; nothing that happens is in the past."""
        due_ms = self._engine.due_ms()
        return self._clock_ms() if due_ms is None else min(due_ms, self._clock_ms())

    def look_ms(self) -> int:
        """How much virtual time passes between two looks at the orders."""
        return max(1, round(1000 * LOOK_S * self._pace))

    def is_idle(self) -> bool:
        """Whether nothing will happen unless it is given something to do."""
        return self._engine.due_ms() is None

    def _clock_ms(self) -> int:
        return round(1000 * (perf_counter() - self._began_s) * self._pace) + self._ahead_ms
