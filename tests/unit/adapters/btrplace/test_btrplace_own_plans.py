"""BtrPlace's checker, its own plans and its version; with fakes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from btrplace_trials import a_demand, a_trial, do, kill, move
from builders import coded
from equipoise.adapters.btrplace import scheduler
from equipoise.adapters.btrplace.java_build import FALLBACK, PINNED, BtrPlaceBuild
from equipoise.adapters.btrplace.scheduler import BtrPlace, btrplace_entry
from equipoise.adapters.targets import environment
from equipoise.adapters.targets.environment import PinnedTarget
from equipoise.adapters.targets.scheduler import SchedulerCrash, SchedulerTimeout, UnsupportedTrial
from equipoise.adapters.targets.worker import Worker
from equipoise.errors import WorldError
from equipoise.model.action import Migrate

FAKE = """
from equipoise_worker import serve
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
    shutil.copy(Path(environment.__file__).parent / "worker_path" / "equipoise_worker.py", tmp_path)
    script = tmp_path / "fake_worker.py"
    script.write_text(FAKE)
    return BtrPlace(repair=False, starter=lambda: Worker([sys.executable, script], name="fake"))


def test_the_checker_judges_only_supported_trials(btrplace: BtrPlace) -> None:
    with btrplace:
        unasked, yes, no, crash, unsupported = btrplace.checks_many([LATER, *TRIALS[:4]])
    assert isinstance(unasked, UnsupportedTrial)
    assert (yes, no) == (True, False)
    assert isinstance(crash, SchedulerCrash)
    assert isinstance(unsupported, UnsupportedTrial)


def test_plans_of_its_own_are_read_as_steps(btrplace: BtrPlace) -> None:
    with btrplace:
        made, none, crash, late, unsupported = btrplace.plans_many(TRIALS[:5])
    assert isinstance(made, tuple)
    (step,) = made
    assert step.action == move("a", "h1", "h2")
    assert isinstance(step.action, Migrate)
    assert (step.start_ms, step.end_ms) == (1000, 3000)
    assert none is None
    assert isinstance(crash, SchedulerCrash)
    assert isinstance(late, SchedulerTimeout)
    assert isinstance(unsupported, UnsupportedTrial)


def test_an_answer_to_another_question_is_an_error(btrplace: BtrPlace) -> None:
    with btrplace, pytest.raises(WorldError, check=coded("worker-answer-invalid")):
        btrplace.plans_many(TRIALS[5:])


@pytest.mark.parametrize("built", [PINNED, FALLBACK], ids=lambda one: one.version)
def test_the_entry_has_the_findings_of_the_built_version(
    monkeypatch: pytest.MonkeyPatch, built: PinnedTarget
) -> None:
    build = BtrPlaceBuild(built.version, "java", Path("lib"))
    monkeypatch.setattr(scheduler, "find_build", lambda: build)
    assert btrplace_entry().version == built.version
    assert btrplace_entry().findings == built.findings


def test_of_a_version_without_findings_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = PinnedTarget("btrplace", "0.1", "BtrPlace")
    monkeypatch.setattr(scheduler, "VERSIONS", (other,))
    monkeypatch.setattr(scheduler, "find_build", lambda: BtrPlaceBuild("0.1", "java", Path("lib")))
    assert (btrplace_entry().version, btrplace_entry().findings) == ("0.1", None)
