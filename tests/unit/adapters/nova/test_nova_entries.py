"""The registered entries of Nova."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.nova.encode import PLACEABLE, encode_questions, encode_requests
from equipoise.adapters.nova.scheduler import NOVA, NOVA_PIPELINE
from equipoise.adapters.targets.scheduler import SchedulerEntry, UnsupportedTrial
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.trial import Trial
from equipoise.spec.library import library_file


def test_both_questions_are_registered() -> None:
    assert find_scheduler("nova") is NOVA
    assert find_scheduler("nova-pipeline") is NOVA_PIPELINE
    assert (NOVA.question, NOVA_PIPELINE.question) == ("admits", "place")


def test_constraints_stand_in_the_order_of_the_library() -> None:
    known = [name for name in library_file("nova").constraints if name != "AvailabilityZone"]
    assert list(NOVA.constraints) == known
    assert list(NOVA_PIPELINE.constraints) == [name for name in known if name in PLACEABLE]


def test_a_missing_target_is_reported_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    for scheduler in (NOVA, NOVA_PIPELINE):
        assert str(tmp_path) in scheduler.missing()
        assert scheduler.missing().endswith("run 'python -m equipoise.adapters.targets nova'")


def is_encoded(known: SchedulerEntry, trial: Trial) -> bool:
    try:
        (encode_questions if known is NOVA else encode_requests)(trial)
    except UnsupportedTrial:
        return False
    return True


@pytest.mark.parametrize("known", [NOVA, NOVA_PIPELINE], ids=lambda scheduler: scheduler.name)
def test_nine_of_ten_trials_can_be_put_to_it_and_some_of_every_constraint(
    known: SchedulerEntry,
) -> None:
    told = []
    for name in known.constraints:
        maker = Generator(library_file("nova"), name, known.options)
        some = [is_encoded(known, trial) for trial in maker.block(range(40)).trials]
        assert any(some), name
        told += some
    assert sum(told) > 0.9 * len(told)
