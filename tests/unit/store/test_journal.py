"""What every journal promises, asked of each of them."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from builders import a_host, a_step, a_vm
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.change.transition import replay
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
    encode_event,
)
from equipoise.model.plan import Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand
from equipoise.store import Journal

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
STORY: tuple[Event, ...] = (
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


def test_what_was_appended_is_read_in_order(journal: Journal) -> None:
    assert journal.append(STORY[:3]) == 3
    assert journal.append(STORY[3:]) == len(STORY)
    assert len(journal) == len(STORY)
    assert tuple(journal.events()) == STORY


def test_lines_are_what_the_encoder_wrote(journal: Journal) -> None:
    journal.append(STORY)
    expected = [encode_event(event) for event in STORY]
    assert list(journal.lines()) == expected
    assert journal.sha256() == hashlib.sha256(b"".join(b"%s\n" % e for e in expected)).hexdigest()


def test_replay_gives_the_snapshot_and_its_version_is_the_length(journal: Journal) -> None:
    journal.append(STORY)
    assert journal.snapshot() == replay(Snapshot(), STORY)
    assert journal.snapshot().version == len(journal)


def test_reading_can_begin_behind_what_is_known(journal: Journal) -> None:
    journal.append(STORY)
    assert tuple(journal.events(start=5)) == STORY[5:]
    assert list(journal.lines(start=6)) == [encode_event(STORY[6])]
    assert list(journal.events(start=len(STORY))) == []
    assert list(journal.events(start=99)) == []


def test_a_negative_start_is_a_bug(journal: Journal) -> None:
    with pytest.raises(AssertionError):
        list(journal.events(start=-1))


def test_a_reader_may_ask_for_some_kinds_only(journal: Journal) -> None:
    journal.append(STORY)
    assert tuple(journal.events(kinds=("host_joined",))) == STORY[:2]
    assert tuple(journal.events(1, kinds={"host_joined", "host_failed"})) == (STORY[1], STORY[6])
    assert list(journal.events(kinds=("plan_ended",))) == []
    assert list(journal.lines(kinds=["vm_arrived"])) == [encode_event(STORY[2])]


def test_appending_nothing_changes_nothing(journal: Journal) -> None:
    journal.append(STORY[:2])
    assert journal.append(()) == 2
    assert len(journal) == 2


def test_a_reader_sees_what_was_there_when_it_began(journal: Journal) -> None:
    journal.append(STORY[:2])
    reader = journal.events()
    first = next(reader)
    journal.append(STORY[2:])
    assert [first, *reader] == list(STORY[:2])


def test_an_event_that_could_not_be_read_back_is_refused_before_it_is_written(
    journal: Journal,
) -> None:
    gain = {"imbalance": float("nan")}
    poison = ProposalMade(
        at_ms=1, proposal=Proposal(decider="balance", purpose=Purpose.BALANCE, gain=gain)
    )
    with pytest.raises(InvalidInput, match=r"proposal_made: cannot be read back.*\$\.proposal"):
        journal.append((STORY[0], poison))
    assert len(journal) == 0
    assert journal.append(STORY) == len(STORY)


def test_a_journal_closes_at_the_end_of_its_with(journal: Journal) -> None:
    with journal as same:
        same.append((HostLeft(at_ms=0, host=H1),))
    journal.close()


def test_the_door_does_not_import_the_database_library() -> None:
    program = (
        "import sys; from equipoise.store import MemoryJournal, open_journal;"
        "MemoryJournal().snapshot();"
        "sys.exit(' '.join({'sqlalchemy', 'psycopg', 'sqlite3', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert not done.stderr.strip(), done.stderr
