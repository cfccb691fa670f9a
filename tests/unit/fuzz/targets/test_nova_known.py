"""What is known of Nova before it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_known
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.targets.nova_known import NOVA, NOVA_PIPELINE
from equipoise.fuzz.targets.nova_question import encode
from equipoise.fuzz.targets.nova_requests import PLACED, encode_requests
from equipoise.fuzz.trial import Trial
from equipoise.spec.library import of_origin


def test_both_questions_are_registered() -> None:
    assert find_known("nova") is NOVA
    assert find_known("nova-pipeline") is NOVA_PIPELINE
    assert (NOVA.question, NOVA_PIPELINE.question) == ("admits", "place")


def test_constraints_stand_in_the_order_of_the_library() -> None:
    known = [name for name in of_origin("nova").constraints if name != "AvailabilityZone"]
    assert list(NOVA.constraints) == known
    assert list(NOVA_PIPELINE.constraints) == [name for name in known if name in PLACED]


def test_what_is_missing_is_told_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    for one in (NOVA, NOVA_PIPELINE):
        assert str(tmp_path) in one.missing()
        assert one.missing().endswith("run 'python -m equipoise.fuzz.targets nova'")


def is_told(known: Known, trial: Trial) -> bool:
    try:
        (encode if known is NOVA else encode_requests)(trial)
    except Unsupported:
        return False
    return True


@pytest.mark.parametrize("known", [NOVA, NOVA_PIPELINE], ids=lambda one: one.name)
def test_nine_of_ten_trials_can_be_put_to_it_and_some_of_every_constraint(known: Known) -> None:
    told = []
    for name in known.constraints:
        maker = Generator(of_origin("nova"), name, known.options)
        some = [is_told(known, maker.trial(number)) for number in range(40)]
        assert any(some), name
        told += some
    assert sum(told) > 0.9 * len(told)
