"""Every case that was ever worth keeping, judged again: ``tests/corpus`` only grows.

Each line tells of a target what it gets wrong, and of our planner that it gets it right.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.schedulers.faulty import FAULTY, FAULTY_NETWORK
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial import TrialOutcome, judge
from equipoise.fuzz.trial.stored import StoredTrial, read_lines, trial_of

CORPUS = Path(__file__).parents[2] / "corpus"


def lines(name: str) -> list[StoredTrial]:
    path = CORPUS / name
    return list(read_lines(path.read_bytes(), str(path)))


def said(stored: StoredTrial) -> tuple[str, TrialOutcome, TrialOutcome]:
    """What its target and what our planner make of a case."""
    known = find_scheduler(stored.target)
    assert known is not None, stored.target
    trial = trial_of(stored)
    return stored.target, judge(known.make(), trial).outcome, judge(Planner(), trial).outcome


@pytest.mark.parametrize("name", ["faulty.jsonl", "mutants.jsonl"])
def test_every_case_shows_its_defect_and_our_planner_is_right(name: str) -> None:
    kept = lines(name)
    assert [said(stored) for stored in kept] == [
        (stored.target, stored.outcome, TrialOutcome.AGREE) for stored in kept
    ]
    assert len(kept) > 20
    assert all(stored.outcome.is_defect for stored in kept)


def test_every_faulty_scheduler_and_hundreds_of_mutants_are_in_it() -> None:
    assert {line.target for line in lines("faulty.jsonl")} == {*FAULTY, *FAULTY_NETWORK}
    assert len({line.target for line in lines("mutants.jsonl")}) > 200


def test_every_case_is_as_small_as_it_can_be() -> None:
    for stored in (*lines("faulty.jsonl"), *lines("mutants.jsonl")):
        cluster = stored.case.cluster
        assert len(cluster.hosts) <= 4, stored.target
        assert len(cluster.vms) <= 4, stored.target
