"""Journals in SQLite and PostgreSQL: writers in conflict, damaged lines, names, memory."""

from __future__ import annotations

import itertools
import resource
import tracemalloc
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from equipoise.errors import Conflict, InvalidInput, WorldError
from equipoise.model.event import DemandObserved, Event, HostLeft, VmLeft
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Demand
from equipoise.store import open_journal
from equipoise.store.address import DatabaseAddress
from postgres import Server

EVENTS: list[Event] = [HostLeft(at_ms=n, host=HostId(f"h{n}")) for n in range(5000)]


def execute(url: str, statement: str, **values: object) -> None:
    engine = create_engine(DatabaseAddress.of(url).url)
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


def test_a_journal_keeps_its_events_when_it_is_opened_again(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(EVENTS[:10])
    with open_journal(url, create=False) as journal:
        assert len(journal) == 10
        assert journal.append(EVENTS[10:12]) == 12
        assert list(journal.events()) == EVENTS[:12]


def test_many_events_are_read_across_batches(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(EVENTS)
        assert list(journal.events()) == EVENTS
        assert list(journal.events(start=1023)) == EVENTS[1023:]
        assert list(journal.events(start=4999)) == EVENTS[4999:]


def test_journals_in_one_database_are_independent(url: str) -> None:
    with open_journal(url, journal="a") as a, open_journal(url, journal="b") as b:
        for event in EVENTS[:5]:
            a.append((event,))
            b.append((VmLeft(at_ms=0, vm=VmId("v")), event))
        assert list(a.events()) == EVENTS[:5]
        assert len(b) == 10


def test_a_second_writer_gets_a_conflict_and_writes_nothing(url: str) -> None:
    with open_journal(url) as first, open_journal(url) as second:
        first.append(EVENTS[:3])
        with pytest.raises(Conflict, match="0 events") as caught:
            second.append(EVENTS[3:6])
        assert caught.value.code == "journal-conflict"
        assert list(second.events()) == EVENTS[:3]
        # A retry gives the same conflict: the writer has to open and read the journal again.
        with pytest.raises(Conflict):
            second.append(EVENTS[3:6])
        assert first.append(EVENTS[3:4]) == 4
    with open_journal(url) as third:
        assert third.append(EVENTS[4:5]) == 5
        assert list(third.events()) == EVENTS[:5]


def test_a_writer_leaves_no_gap_when_the_database_was_restored_from_a_copy(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(EVENTS[:5])
        execute(url, "DELETE FROM events WHERE sequence > 3")
        with pytest.raises(Conflict):
            journal.append(EVENTS[5:6])
        assert len(journal) == 3


def test_readers_see_what_another_process_appends(url: str) -> None:
    with open_journal(url) as writer, open_journal(url) as reader:
        writer.append(EVENTS[:2])
        assert len(reader) == 2
        writer.append(EVENTS[2:4])
        assert list(reader.events(start=2)) == EVENTS[2:4]


def test_a_slow_reader_does_not_block_the_writer(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(EVENTS)
        reader = journal.events()
        next(reader)
        journal.append(EVENTS[:1])
        assert len(list(reader)) == len(EVENTS) - 1


@pytest.mark.parametrize(
    "payload",
    [
        b'{"event":"host_teleported","at_ms":1}',
        b'{"event":"host_left","at_ms":1,"host":"h","colour":"red"}',
        b'{"event":"host_le',
        b"",
        b"\x00\xff\xfe",
        b'{"event":"host_left","at_ms":1,"host":"\xff"}',
    ],
)
def test_the_error_names_an_unreadable_line(url: str, payload: bytes) -> None:
    with open_journal(url, journal="east") as journal:
        journal.append(EVENTS[:3])
        execute(url, "UPDATE events SET payload = :payload WHERE sequence = 2", payload=payload)
        reader = journal.events()
        assert next(reader) == EVENTS[0]
        with pytest.raises(InvalidInput) as caught:
            next(reader)
        assert list(journal.lines())[1] == payload
    assert caught.value.source == f"{journal.source}, journal east"
    assert caught.value.code == "event-unreadable"
    assert caught.value.problems[0].key == "event 2"
    assert caught.value.problems[0].cure


def test_a_valid_line_that_was_edited_by_hand_is_read(tmp_path: Path) -> None:
    """The shell of SQLite stores the line as text, which may even be invalid UTF-8."""
    url = str(tmp_path / "journal.db")
    with open_journal(url) as journal:
        journal.append(EVENTS[:2])
        edited = '{"event":"host_left","at_ms":7,"host":"grün"}'
        execute(url, "UPDATE events SET payload = :payload WHERE sequence = 1", payload=edited)
        execute(url, "UPDATE events SET payload = CAST(x'ff' AS TEXT) WHERE sequence = 2")
        assert list(journal.lines()) == [edited.encode(), b"\xff"]
        assert next(journal.events()) == HostLeft(at_ms=7, host=HostId("grün"))
        with pytest.raises(InvalidInput, match="event 2"):
            list(journal.events())


def test_the_error_names_a_missing_line(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(EVENTS[:2000])
        execute(url, "DELETE FROM events WHERE sequence IN (1500, 1501)")
        with pytest.raises(InvalidInput, match="journal main: event 1500") as caught:
            list(journal.lines())
        assert caught.value.code == "event-missing"
        assert len(list(itertools.islice(journal.lines(), 1000))) == 1000
        with pytest.raises(InvalidInput, match="event 1500"):
            journal.sha256()


def test_an_invalid_journal_name_is_refused(url: str) -> None:
    for name in ("", "two words", "x" * 129, "a\n", "o'clock"):
        with pytest.raises(InvalidInput) as caught:
            open_journal(url, journal=name)
        assert caught.value.code == "journal-name-invalid"


def test_reading_a_misspelt_journal_lists_the_existing_ones(url: str) -> None:
    with open_journal(url, journal="west"), pytest.raises(InvalidInput) as caught:
        open_journal(url, journal="west", create=False)
    assert caught.value.code == "journal-not-found"
    for name in ("west", "east"):
        with open_journal(url, journal=name) as journal:
            journal.append(EVENTS[:1])
    with pytest.raises(InvalidInput, match=r"wset \(.*east, west\)") as caught:
        open_journal(url, journal="wset", create=False)
    assert caught.value.code == "journal-not-found"


def test_using_a_closed_journal_fails_an_assertion(url: str) -> None:
    journal = open_journal(url)
    journal.close()
    for use in (lambda: len(journal), lambda: journal.append(EVENTS), journal.sha256):
        with pytest.raises(AssertionError, match="closed"):
            use()


def test_memory_does_not_grow_with_long_events(url: str) -> None:
    """The journal has many short events, then observations of which a batch holds only a few."""
    demand = {VmId(f"vm{n}"): Demand(cpu_mhz=1000, memory_mib=2048) for n in range(10_000)}
    with open_journal(url) as journal:
        journal.append(EVENTS[:2000])
        for n in range(50):
            journal.append((DemandObserved(at_ms=n, demand=demand),))
        tracemalloc.start()
        try:
            total = sum(len(line) for line in journal.lines())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert total > 20_000_000
    assert peak < 7_000_000


def test_a_failing_disk_loses_the_batch_but_no_acknowledged_event(tmp_path: Path) -> None:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        journal.append(EVENTS[:10])
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(WorldError) as caught:
                journal.append(EVENTS)
            assert caught.value.code in ("disk-full", "database-failed")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert list(journal.events()) == EVENTS[:10]
        assert journal.append(EVENTS[10:]) == len(EVENTS)
        assert list(journal.events()) == EVENTS


def test_a_journal_reconnects_after_a_broken_connection(postgres: Server) -> None:
    with open_journal(postgres.fresh()) as journal:
        journal.append(EVENTS[:10])
        postgres.break_connections()
        assert journal.append(EVENTS[10:20]) == 20
        assert list(journal.events()) == EVENTS[:20]
