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
from equipoise.store.address import Address
from postgres import Server

STORY: list[Event] = [HostLeft(at_ms=n, host=HostId(f"h{n}")) for n in range(5000)]


def do(url: str, statement: str, **values: object) -> None:
    engine = create_engine(Address.of(url).url)
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


def test_a_journal_is_there_when_it_is_opened_again(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(STORY[:10])
    with open_journal(url, create=False) as journal:
        assert len(journal) == 10
        assert journal.append(STORY[10:12]) == 12
        assert list(journal.events()) == STORY[:12]


def test_many_events_are_read_across_batches(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(STORY)
        assert list(journal.events()) == STORY
        assert list(journal.events(start=1023)) == STORY[1023:]
        assert list(journal.events(start=4999)) == STORY[4999:]


def test_journals_in_one_database_do_not_meet(url: str) -> None:
    with open_journal(url, journal="a") as a, open_journal(url, journal="b") as b:
        for event in STORY[:5]:
            a.append((event,))
            b.append((VmLeft(at_ms=0, vm=VmId("v")), event))
        assert list(a.events()) == STORY[:5]
        assert len(b) == 10


def test_a_writer_whose_count_is_outdated_is_told_and_writes_nothing(url: str) -> None:
    with open_journal(url) as first, open_journal(url) as second:
        first.append(STORY[:3])
        with pytest.raises(Conflict, match=r"another process has written .* 0 events; nothing was"):
            second.append(STORY[3:6])
        assert list(second.events()) == STORY[:3]
        # It is not healed by trying again, only by opening, reading and deciding anew.
        with pytest.raises(Conflict):
            second.append(STORY[3:6])
        assert first.append(STORY[3:4]) == 4
    with open_journal(url) as third:
        assert third.append(STORY[4:5]) == 5
        assert list(third.events()) == STORY[:5]


def test_a_writer_never_leaves_a_gap_when_the_database_went_back_in_time(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(STORY[:5])
        do(url, "DELETE FROM events WHERE sequence > 3")
        with pytest.raises(Conflict):
            journal.append(STORY[5:6])
        assert len(journal) == 3


def test_readers_see_what_another_process_appends(url: str) -> None:
    with open_journal(url) as writer, open_journal(url) as reader:
        writer.append(STORY[:2])
        assert len(reader) == 2
        writer.append(STORY[2:4])
        assert list(reader.events(start=2)) == STORY[2:4]


def test_a_slow_reader_is_not_in_the_way_of_the_writer(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(STORY)
        reader = journal.events()
        next(reader)
        journal.append(STORY[:1])
        assert len(list(reader)) == len(STORY) - 1


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b'{"event":"host_teleported","at_ms":1}', "Invalid value 'host_teleported'"),
        (b'{"event":"host_left","at_ms":1,"host":"h","colour":"red"}', "unknown field `colour`"),
        (b'{"event":"host_le', "truncated"),
        (b"", "truncated"),
        (b"\x00\xff\xfe", "malformed"),
        (b'{"event":"host_left","at_ms":1,"host":"\xff"}', "can't decode"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(url: str, payload: bytes, words: str) -> None:
    with open_journal(url, journal="east") as journal:
        journal.append(STORY[:3])
        do(url, "UPDATE events SET payload = :payload WHERE sequence = 2", payload=payload)
        reader = journal.events()
        assert next(reader) == STORY[0]
        with pytest.raises(InvalidInput, match=words) as caught:
            next(reader)
        assert list(journal.lines())[1] == payload
    assert caught.value.source == f"{journal.source}, journal east"
    assert caught.value.problems[0].key == "event 2"
    assert "upgrade" in caught.value.problems[0].cure


def test_a_line_edited_by_hand_is_read_if_it_makes_sense(tmp_path: Path) -> None:
    """SQLite's own shell turns it into text; it may even hold what is no text at all."""
    url = str(tmp_path / "journal.db")
    with open_journal(url) as journal:
        journal.append(STORY[:2])
        edited = '{"event":"host_left","at_ms":7,"host":"grün"}'
        do(url, "UPDATE events SET payload = :payload WHERE sequence = 1", payload=edited)
        do(url, "UPDATE events SET payload = CAST(x'ff' AS TEXT) WHERE sequence = 2")
        assert list(journal.lines()) == [edited.encode(), b"\xff"]
        assert next(journal.events()) == HostLeft(at_ms=7, host=HostId("grün"))
        with pytest.raises(InvalidInput, match="event 2"):
            list(journal.events())


def test_a_missing_line_is_named(url: str) -> None:
    with open_journal(url) as journal:
        journal.append(STORY[:2000])
        do(url, "DELETE FROM events WHERE sequence IN (1500, 1501)")
        with pytest.raises(InvalidInput, match="journal main: event 1500: is missing"):
            list(journal.lines())
        assert len(list(itertools.islice(journal.lines(), 1000))) == 1000
        with pytest.raises(InvalidInput, match="event 1500"):
            journal.sha256()


def test_a_name_that_is_no_name_is_refused(url: str) -> None:
    for name in ("", "two words", "x" * 129, "a\n", "o'clock"):
        with pytest.raises(InvalidInput, match="cannot hold a journal named"):
            open_journal(url, journal=name)


def test_a_slip_in_the_name_is_noticed_by_who_only_wants_to_read(url: str) -> None:
    with open_journal(url, journal="west"), pytest.raises(InvalidInput, match="it has none yet"):
        open_journal(url, journal="west", create=False)
    for name in ("west", "east"):
        with open_journal(url, journal=name) as journal:
            journal.append(STORY[:1])
    with pytest.raises(InvalidInput, match=r"no journal named wset \(it has: east, west\)"):
        open_journal(url, journal="wset", create=False)


def test_a_closed_journal_is_not_used_again(url: str) -> None:
    journal = open_journal(url)
    journal.close()
    for use in (lambda: len(journal), lambda: journal.append(STORY), journal.sha256):
        with pytest.raises(AssertionError, match="closed"):
            use()


def test_memory_does_not_grow_with_long_events(url: str) -> None:
    """Many short events, and behind them observations of which few fit into a batch."""
    demand = {VmId(f"vm{n}"): Demand(cpu_mhz=1000, memory_mib=2048) for n in range(10_000)}
    with open_journal(url) as journal:
        journal.append(STORY[:2000])
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


def test_a_disk_that_refuses_loses_the_batch_but_nothing_acknowledged(tmp_path: Path) -> None:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        journal.append(STORY[:10])
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(WorldError, match="the disk"):
                journal.append(STORY)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert list(journal.events()) == STORY[:10]
        assert journal.append(STORY[10:]) == len(STORY)
        assert list(journal.events()) == STORY


def test_a_server_that_broke_off_is_found_again(postgres: Server) -> None:
    with open_journal(postgres.fresh()) as journal:
        journal.append(STORY[:10])
        postgres.break_connections()
        assert journal.append(STORY[10:20]) == 20
        assert list(journal.events()) == STORY[:20]
