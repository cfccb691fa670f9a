"""What every journal guarantees, tested on each implementation."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from builders import a_host, a_step, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    DemandObserved,
    Event,
    HostFailed,
    HostJoined,
    HostLeft,
    ProposalMade,
    VmArrived,
    VmLeft,
    encode_event,
)
from equipoise.model.plan import Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import replay
from equipoise.model.vm import Demand
from equipoise.store import Journal, MemoryJournal

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
EVENTS: tuple[Event, ...] = (
    HostJoined(at_ms=1, host=a_host("h1")),
    HostJoined(at_ms=2, host=a_host("h2", labels={"b": "2", "a": "ümlaut 🙂 \x00"})),
    VmArrived(at_ms=3, vm=a_vm("v1", "h1")),
    DemandObserved(at_ms=4, demand={V1: Demand(cpu_mhz=700)}),
    ActionStarted(
        at_ms=5, step=a_step("s1", Migrate(vm=V1, source=H1, target=H2), 0, 900), attempt=1
    ),
    ActionFinished(at_ms=6, step=StepId("s1"), attempt=1),
    HostFailed(at_ms=7, host=H1, reason='"\\\n'),
)


def test_a_new_journal_is_empty(journal: Journal) -> None:
    assert len(journal) == 0
    assert list(journal.events()) == []
    assert list(journal.lines()) == []
    assert journal.sha256() == hashlib.sha256().hexdigest()
    assert journal.snapshot() == Snapshot()


def test_appended_events_are_read_in_their_order(journal: Journal) -> None:
    assert journal.append(EVENTS[:3]) == 3
    assert journal.append(EVENTS[3:]) == len(EVENTS)
    assert len(journal) == len(EVENTS)
    assert tuple(journal.events()) == EVENTS


def test_lines_are_the_encoded_events(journal: Journal) -> None:
    journal.append(EVENTS)
    expected = [encode_event(event) for event in EVENTS]
    assert list(journal.lines()) == expected
    assert journal.sha256() == hashlib.sha256(b"".join(b"%s\n" % e for e in expected)).hexdigest()


def test_replay_gives_the_snapshot_and_its_version_is_the_length(journal: Journal) -> None:
    journal.append(EVENTS)
    assert journal.snapshot() == replay(Snapshot(), EVENTS)
    assert journal.snapshot().version == len(journal)


def test_reading_can_start_at_any_event(journal: Journal) -> None:
    journal.append(EVENTS)
    assert tuple(journal.events(start=5)) == EVENTS[5:]
    assert list(journal.lines(start=6)) == [encode_event(EVENTS[6])]
    assert list(journal.events(start=len(EVENTS))) == []
    assert list(journal.events(start=99)) == []


def test_a_negative_start_fails_an_assertion(journal: Journal) -> None:
    with pytest.raises(AssertionError):
        list(journal.events(start=-1))


def test_a_reader_can_select_kinds_of_events(journal: Journal) -> None:
    journal.append(EVENTS)
    assert tuple(journal.events(kinds=("host_joined",))) == EVENTS[:2]
    assert tuple(journal.events(1, kinds={"host_joined", "host_failed"})) == (EVENTS[1], EVENTS[6])
    assert list(journal.events(kinds=("plan_ended",))) == []
    assert list(journal.lines(kinds=["vm_arrived"])) == [encode_event(EVENTS[2])]


def test_appending_no_events_changes_nothing(journal: Journal) -> None:
    journal.append(EVENTS[:2])
    assert journal.append(()) == 2
    assert len(journal) == 2


def test_a_reader_sees_only_the_events_at_its_start(journal: Journal) -> None:
    journal.append(EVENTS[:2])
    reader = journal.events()
    first = next(reader)
    journal.append(EVENTS[2:])
    assert [first, *reader] == list(EVENTS[:2])


def test_an_event_that_cannot_be_decoded_is_refused_before_it_is_recorded(
    journal: Journal,
) -> None:
    gain = {"imbalance": float("nan")}
    invalid = ProposalMade(
        at_ms=1, proposal=Proposal(decider="balance", purpose=Purpose.BALANCE, gain=gain)
    )
    with pytest.raises(InvalidInput, match=r"proposal_made.*\$\.proposal") as caught:
        journal.append((EVENTS[0], invalid))
    assert caught.value.code == "event-invalid"
    assert len(journal) == 0
    assert journal.append(EVENTS) == len(EVENTS)


def test_a_journal_closes_at_the_end_of_a_with_statement(journal: Journal) -> None:
    with journal as same:
        same.append((HostLeft(at_ms=0, host=H1),))
    journal.close()


def test_importing_the_store_does_not_import_the_database_library() -> None:
    program = (
        "import sys; from equipoise.store import MemoryJournal, open_journal;"
        "MemoryJournal().snapshot();"
        "sys.exit(' '.join({'sqlalchemy', 'psycopg', 'sqlite3', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert not done.stderr.strip(), done.stderr


def test_a_memory_journal_stores_lines_instead_of_events() -> None:
    """A later change of a map inside an event must not change the journal."""
    journal = MemoryJournal(name="trial")
    event = HostLeft(at_ms=1, host=HostId("h"))
    journal.append((event,))
    assert next(journal.events()) is not event
    assert next(journal.events()) == event


def test_a_memory_journal_reads_across_its_batches() -> None:
    journal = MemoryJournal()
    events: list[Event] = [HostLeft(at_ms=n, host=HostId("h")) for n in range(3000)]
    events[2500] = VmLeft(at_ms=2500, vm=VmId("v"))
    journal.append(events)
    assert list(journal.events()) == events
    assert list(journal.events(start=1500)) == events[1500:]
    assert list(journal.events(kinds=("vm_left",))) == [events[2500]]
