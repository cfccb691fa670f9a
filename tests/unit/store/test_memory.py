from __future__ import annotations

from equipoise.model.event import Event, HostLeft, VmLeft
from equipoise.model.quantity import HostId, VmId
from equipoise.store import MemoryJournal


def test_it_is_kept_as_lines_not_as_events() -> None:
    """Whoever changes a map inside an event afterwards does not change the journal."""
    journal = MemoryJournal(name="trial")
    event = HostLeft(at_ms=1, host=HostId("h"))
    journal.append((event,))
    assert next(journal.events()) is not event
    assert next(journal.events()) == event


def test_it_reads_across_its_batches() -> None:
    journal = MemoryJournal()
    story: list[Event] = [HostLeft(at_ms=n, host=HostId("h")) for n in range(3000)]
    story[2500] = VmLeft(at_ms=2500, vm=VmId("v"))
    journal.append(story)
    assert list(journal.events()) == story
    assert list(journal.events(start=1500)) == story[1500:]
    assert list(journal.events(kinds=("vm_left",))) == [story[2500]]
