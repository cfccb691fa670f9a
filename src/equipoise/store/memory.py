"""A journal without a database, for demonstrations, simulations and tests.

It keeps the same lines as the others, which take far less room than the events themselves, and
never touches a disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from equipoise.model.event import Event
from equipoise.store.journal import Journal

_BATCH: Final = 1024


class MemoryJournal(Journal):
    """A journal that lasts as long as the process."""

    def __init__(self, *, name: str = "main") -> None:
        super().__init__(source="memory", name=name)
        self._lines: list[bytes] = []
        self._kinds: list[str] = []

    def append(self, events: Sequence[Event]) -> int:
        """Write events behind the last one, all or none, and return the new length."""
        entries = self._entries(events)
        self._lines.extend(entry.line for entry in entries)
        self._kinds.extend(entry.kind for entry in entries)
        return len(self._lines)

    def hold(self) -> bool:
        """Nobody else can see it."""
        return True

    def __len__(self) -> int:
        return len(self._lines)

    def close(self) -> None:
        """Nothing is held open; what was written stays readable."""

    def _batches(self, start: int, kinds: Collection[str]) -> Iterator[list[tuple[int, bytes]]]:
        assert start >= 0, "events are counted from the first one"
        end = len(self._lines)
        for first in range(start, end, _BATCH):
            last = min(first + _BATCH, end)
            yield [
                (place + 1, self._lines[place])
                for place in range(first, last)
                if not kinds or self._kinds[place] in kinds
            ]
