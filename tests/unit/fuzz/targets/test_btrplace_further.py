"""What BtrPlace is asked besides accepting plans, and in which version it is; with fakes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from btrplace_trials import a_demand, a_trial, do, kill, move
from equipoise.errors import WorldError
from equipoise.fuzz.schedulers import Crash, TooLate, Unsupported
from equipoise.fuzz.targets import Target, Worker, btrplace_scheduler, environment
from equipoise.fuzz.targets.btrplace_scheduler import BtrPlace, target
from equipoise.fuzz.targets.java import OLDER, PINNED, Build
from equipoise.model.action import Migrate

FAKE = """
from answering import serve
SAID = {
    "checks": [{"accepts": True}, {"accepts": False}, {"crash": "here"}, {"unsupported": "none"}],
    "plans": [
        {"plan": {"origin": {}, "actions": [
            {"id": "migrateVM", "vm": 0, "from": 0, "to": 1, "start": 1, "end": 3, "hooks": {}}]}},
        {"plan": None}, {"crash": "here"}, {"late": True}, {"unsupported": "none"},
        {"accepts": True},
    ],
}
def answer(ask):
    def say(limit_s, questions):
        places = [one["constraint"]["amount"] for one in questions]
        return {"answers": [SAID[ask][place] for place in places]}
    return say
serve("pytest", checks=answer("checks"), plans=answer("plans"))
"""
TRIALS = [a_trial(a_demand("MaxOnline", ns=[], nb=nb)) for nb in range(6)]
LATER = a_trial(a_demand("MaxOnline", ns=[], nb=0), do(kill("a"), 1))


@pytest.fixture(name="btrplace")
def fixture_btrplace(tmp_path: Path) -> BtrPlace:
    shutil.copy(Path(environment.__file__).parent / "answering.py", tmp_path)
    script = tmp_path / "fake_worker.py"
    script.write_text(FAKE)
    return BtrPlace(repair=False, begin=lambda: Worker([sys.executable, script], name="fake"))


def test_the_checker_is_asked_about_each_and_what_has_no_words_is_not(btrplace: BtrPlace) -> None:
    with btrplace:
        unasked, yes, no, crash, unsupported = btrplace.checks_many([LATER, *TRIALS[:4]])
    assert isinstance(unasked, Unsupported)
    assert (yes, no) == (True, False)
    assert isinstance(crash, Crash)
    assert isinstance(unsupported, Unsupported)


def test_plans_of_its_own_are_read_as_steps(btrplace: BtrPlace) -> None:
    with btrplace:
        made, none, crash, late, unsupported = btrplace.plans_many(TRIALS[:5])
    assert isinstance(made, tuple)
    (step,) = made
    assert step.action == move("a", "h1", "h2")
    assert isinstance(step.action, Migrate)
    assert (step.start_ms, step.end_ms) == (1000, 3000)
    assert none is None
    assert isinstance(crash, Crash)
    assert isinstance(late, TooLate)
    assert isinstance(unsupported, Unsupported)


def test_an_answer_to_another_question_is_nonsense(btrplace: BtrPlace) -> None:
    with btrplace, pytest.raises(WorldError, match="nonsense"):
        btrplace.plans_many(TRIALS[5:])


@pytest.mark.parametrize("built", [PINNED, OLDER], ids=lambda one: one.version)
def test_what_is_known_of_it_is_about_the_version_that_was_built(
    monkeypatch: pytest.MonkeyPatch, built: Target
) -> None:
    build = Build(built.version, "java", Path("lib"))
    monkeypatch.setattr(btrplace_scheduler, "find", lambda: build)
    assert target().version == built.version
    assert target().findings == built.findings


def test_of_a_version_without_findings_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Target("btrplace", "0.1", "BtrPlace")
    monkeypatch.setattr(btrplace_scheduler, "VERSIONS", (other,))
    monkeypatch.setattr(btrplace_scheduler, "find", lambda: Build("0.1", "java", Path("lib")))
    assert (target().version, target().findings) == ("0.1", None)
