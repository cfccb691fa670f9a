"""The calendar: what will happen, by time, then by rank, then in the order it was written down."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush

from equipoise.model.event import Event

Act = Callable[[], Event | None]
"""Something that happens when its time has come; what the observer learns of it, if anything."""


class Rank(IntEnum):
    """Of what falls on one instant, the lower number happens first."""

    END = 0
    """Actions end before anything else, so that what they free can be used."""
    FAULT = 1
    CHANGE = 2
    SAMPLE = 3
    """Whoever looks, looks last."""


class Calendar:
    """A heap of entries. Nothing in it knows what time it is."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, int, Act]] = []
        self._counter = 0

    def __len__(self) -> int:
        return len(self._entries)

    def write(self, at_ms: int, rank: Rank, entry: Act) -> None:
        """Note what will happen."""
        heappush(self._entries, (at_ms, rank, self._counter, entry))
        self._counter += 1

    @property
    def next_ms(self) -> int | None:
        """When the next entry is due."""
        return self._entries[0][0] if self._entries else None

    def pop(self) -> tuple[int, Act]:
        """Take out the next entry, with its time."""
        at_ms, _, _, entry = heappop(self._entries)
        return at_ms, entry
