from __future__ import annotations

from equipoise.model.event import Event
from equipoise.sim.world.event_queue import EventPriority, EventQueue


def test_entries_come_by_time_then_priority_then_insertion() -> None:
    event_queue = EventQueue()
    seen: list[str] = []

    def note(word: str) -> Event | None:
        seen.append(word)
        return None

    for at_ms, priority, word in (
        (5, EventPriority.SAMPLE, "d"),
        (5, EventPriority.END, "b"),
        (5, EventPriority.FAULT, "c"),
        (2, EventPriority.SAMPLE, "a"),
        (5, EventPriority.SAMPLE, "e"),
    ):
        event_queue.schedule(at_ms, priority, lambda word=word: note(word))  # type: ignore[misc]
    times = []
    while event_queue.next_at is not None:
        at_ms, callback = event_queue.pop()
        times.append(at_ms)
        callback()
    assert seen == ["a", "b", "c", "d", "e"]
    assert times == [2, 5, 5, 5, 5]
    assert event_queue.next_at is None
