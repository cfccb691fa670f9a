"""The queue of future events, ordered by time, then by priority, then by insertion."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from typing import Generic, TypeVar

from equipoise.model.event import Event

Callback = Callable[[], Event | None]
"""Called when its time has come; returns the event that an observer receives, if there is one."""

Instant = TypeVar("Instant", int, float)
"""Milliseconds for the cluster, seconds for jobs."""


class EventPriority(IntEnum):
    """The order of entries at one instant: the lowest number first."""

    END = 0
    """Actions end first, so that other actions can use the capacity that they free."""
    FAULT = 1
    CHANGE = 2
    SAMPLE = 3
    """Samples come last, so that they show the state after all changes of the instant."""


class EventQueue(Generic[Instant]):
    """A heap of entries. It has no clock of its own."""

    def __init__(self) -> None:
        self._entries: list[tuple[Instant, int, int, Callback]] = []
        self._counter = 0

    def schedule(self, at: Instant, priority: EventPriority, callback: Callback) -> None:
        """Add an entry. The counter keeps the order of insertion among equal entries."""
        heappush(self._entries, (at, priority, self._counter, callback))
        self._counter += 1

    @property
    def next_at(self) -> Instant | None:
        """The time of the next entry; ``None`` if the queue is empty."""
        return self._entries[0][0] if self._entries else None

    def pop(self) -> tuple[Instant, Callback]:
        """Remove the next entry and return its time and its callback."""
        at, _, _, callback = heappop(self._entries)
        return at, callback

    def drop_leading(self, is_obsolete: Callable[[Callback], bool]) -> None:
        """Remove the first entries as long as they are obsolete, without calling them."""
        while self._entries and is_obsolete(self._entries[0][3]):
            heappop(self._entries)

    def run_instant(self, at: Instant) -> None:
        """Call all entries of the next instant, also those that the calls add to it."""
        entries = self._entries
        while entries and entries[0][0] == at:
            heappop(entries)[3]()
