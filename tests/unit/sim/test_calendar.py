from __future__ import annotations

from equipoise.model.event import Event
from equipoise.sim.calendar import Calendar, Rank


def test_entries_come_by_time_then_rank_then_as_written() -> None:
    calendar = Calendar()
    seen: list[str] = []

    def note(word: str) -> Event | None:
        seen.append(word)
        return None

    for at_ms, rank, word in (
        (5, Rank.SAMPLE, "d"),
        (5, Rank.END, "b"),
        (5, Rank.FAULT, "c"),
        (2, Rank.SAMPLE, "a"),
        (5, Rank.SAMPLE, "e"),
    ):
        calendar.write(at_ms, rank, lambda word=word: note(word))  # type: ignore[misc]
    times = []
    while len(calendar):
        assert calendar.next_ms is not None
        at_ms, act = calendar.pop()
        times.append(at_ms)
        act()
    assert seen == ["a", "b", "c", "d", "e"]
    assert times == [2, 5, 5, 5, 5]
    assert calendar.next_ms is None
