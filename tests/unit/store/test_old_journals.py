"""Journals that an earlier version wrote are read with their old tags and keys.

The files in ``tests/data/journals`` were written before events and keys were renamed.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from equipoise.model.event import (
    OLD_EVENT_KINDS,
    LeaderEpochStarted,
    PlanAccepted,
    PlanRefused,
    ProposalMade,
    decode_event,
    encode_event,
    event_kind,
)
from equipoise.model.scenario.old_keys import OLD_KEYS
from equipoise.model.upgrade.event import CampaignStarted, CommandRejected, SetUndoStarted
from equipoise.store import Journal, open_journal

DATA = Path(__file__).parents[2] / "data" / "journals"


def open_copy(name: str, folder: Path) -> Journal:
    """Open a copy, because opening migrates the database."""
    return open_journal(str(shutil.copy(DATA / f"{name}.db", folder)), create=False)


@pytest.mark.parametrize(
    ("name", "events", "sha256"),
    [
        ("broken-drain", 14, "51040ff1a196954877d47815ea96f4d31e4fd31d94037cafbed7feb4971889c2"),
        ("nabi-failure", 146, "a83d1ae7300ac70c4b99ffbb64ec94700d14ef81924a97be9ed88ffc98f60369"),
        ("roles", 53, "c2c165e9dc42a527bb0e56f10e72c6d073bdde3d9876db29d41ed77e54ee203c"),
    ],
)
def test_an_old_journal_is_read_and_keeps_its_hash(
    name: str, events: int, sha256: str, tmp_path: Path
) -> None:
    with open_copy(name, tmp_path) as journal:
        assert len(list(journal.events())) == len(journal) == events
        assert journal.sha256() == sha256
        assert journal.snapshot().version == events


def test_the_events_of_an_old_journal_have_the_present_names(tmp_path: Path) -> None:
    with open_copy("nabi-failure", tmp_path) as journal:
        kinds = Counter(event_kind(event) for event in journal.events())
        (started,) = journal.events(kinds=("campaign_started",))
        (undo,) = journal.events(kinds=("set_undo_started",))
    assert (kinds["campaign_started"], kinds["iteration_started"]) == (1, 13)
    assert isinstance(started, CampaignStarted)
    assert isinstance(undo, SetUndoStarted)


def test_the_roles_of_an_old_journal_have_the_present_names(tmp_path: Path) -> None:
    with open_copy("roles", tmp_path) as journal:
        (leader,) = journal.events(kinds=("leader_epoch_started",))
        proposals = list(journal.events(kinds=("proposal_made",)))
    assert isinstance(leader, LeaderEpochStarted)
    assert leader.epoch == 1
    assert len(proposals) == 6
    first = proposals[0]
    assert isinstance(first, ProposalMade)
    assert [assigned.group for assigned in first.proposal.slot_assignments] != []


def test_a_rejected_command_of_an_old_journal_is_read() -> None:
    line = b'{"event":"order_refused","at_ms":7,"order":"undo:s","reason":"ended","number":2}'
    event = decode_event(line)
    assert event == CommandRejected(at_ms=7, command="undo:s", reason="ended", number=2)
    assert b"order" not in encode_event(event)


def test_the_repaired_rules_of_an_old_plan_and_proposal_are_read() -> None:
    plan = b'{"id":"p","base_version":3,"steps":[],"mends":["apart"]}'
    accepted = decode_event(b'{"event":"plan_accepted","at_ms":1,"plan":%s}' % plan)
    refused = decode_event(b'{"event":"plan_refused","at_ms":1,"plan":%s,"violations":[]}' % plan)
    assert isinstance(accepted, PlanAccepted)
    assert isinstance(refused, PlanRefused)
    assert accepted.plan.repairs == refused.plan.repairs == ("apart",)
    made = decode_event(
        b'{"event":"proposal_made","at_ms":1,"proposal":'
        b'{"decider":"balance","purpose":1,"mends":["apart"]}}'
    )
    assert isinstance(made, ProposalMade)
    assert made.proposal.repairs == ("apart",)


def test_a_line_with_an_old_and_a_new_key_is_refused() -> None:
    line = b'{"event":"command_rejected","at_ms":7,"order":"a","command":"b","reason":"c"}'
    with pytest.raises(ValueError, match="order"):
        decode_event(line)


def test_no_present_event_has_an_old_name() -> None:
    assert not set(OLD_EVENT_KINDS) & set(OLD_EVENT_KINDS.values())
    assert not set(OLD_KEYS) & set(OLD_EVENT_KINDS), "keys are listed by present tags"
