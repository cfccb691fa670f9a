"""Batches of questions to BtrPlace, and the replacement of its worker; with fakes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from btrplace_trials import a_demand, a_trial, do, kill
from builders import coded
from equipoise.adapters.btrplace import scheduler
from equipoise.adapters.btrplace.scheduler import BtrPlace
from equipoise.adapters.targets import environment
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.adapters.targets.scheduler import SchedulerCrash, SchedulerTimeout, UnsupportedTrial
from equipoise.adapters.targets.worker import Worker
from equipoise.errors import WorldError
from equipoise.fuzz.trial import TrialOutcome, judge

LIMITS = [a_trial(a_demand("MaxOnline", ns=[], nb=nb)) for nb in range(5)]
LATER = a_trial(a_demand("MaxOnline", ns=[], nb=0), do(kill("a"), 1))
FAKE = """
import os, sys, time
from equipoise_worker import serve
def accepts(limit_s, questions):
    limits = [one["constraint"]["amount"] for one in questions]
{body}
serve("pytest", accepts=accepts)
"""
EACH = """
    said = [
        {"accepts": True}, {"accepts": False}, {"crash": "NullPointerException (here)"},
        {"late": True}, {"unsupported": "no words"},
    ]
    return {"answers": [said[limit] for limit in limits]}
"""


def beginning(folder: Path, body: str) -> Callable[[], Worker]:
    """Starts workers with the real loop; ``body`` answers by the limit of a question."""
    shutil.copy(Path(environment.__file__).parent / "worker_path" / "equipoise_worker.py", folder)
    script = folder / "fake_worker.py"
    script.write_text(FAKE.format(body=textwrap.indent(textwrap.dedent(body), "    ")))
    return lambda: Worker([sys.executable, script], name="fake_worker")


def test_each_trial_has_its_own_answer_in_its_own_place(tmp_path: Path) -> None:
    with BtrPlace(repair=False, starter=beginning(tmp_path, EACH)) as btrplace:
        unasked, yes, no, crash, late, unsupported = btrplace.accepts_many([LATER, *LIMITS])
        assert btrplace.accepts_many([]) == ()
    assert (yes, no) == (True, False)
    assert isinstance(unasked, UnsupportedTrial)
    assert isinstance(crash, SchedulerCrash)
    assert str(crash) == "NullPointerException (here)"
    assert isinstance(late, SchedulerTimeout)
    assert isinstance(unsupported, UnsupportedTrial)
    assert str(unsupported) == "no words"


def test_a_single_trial_is_judged(tmp_path: Path) -> None:
    with BtrPlace(repair=False, starter=beginning(tmp_path, EACH)) as btrplace:
        verdicts = [judge(btrplace, trial) for trial in LIMITS]
    assert [verdict.outcome for verdict in verdicts] == [
        TrialOutcome.AGREE,
        TrialOutcome.OVER,
        TrialOutcome.CRASH,
        TrialOutcome.TIMEOUT,
        TrialOutcome.UNSUPPORTED,
    ]
    assert verdicts[2].message == "NullPointerException (here)"


@pytest.mark.parametrize("repair", [False, True])
def test_a_question_has_the_repair_mode_and_the_time_limit(tmp_path: Path, *, repair: bool) -> None:
    body = f"""
        sure = limit_s == {scheduler.EACH_S_MAX} and questions[0]["repair"] is {repair}
        return {{"answers": [{{"accepts": sure}}]}}
    """
    with BtrPlace(repair=repair, starter=beginning(tmp_path, body)) as btrplace:
        assert btrplace.accepts(LIMITS[0])


def test_a_dead_worker_is_replaced(tmp_path: Path) -> None:
    body = """
        if limits == [2]:
            os._exit(7)
        return {"answers": [{"accepts": True}]}
    """
    with BtrPlace(repair=False, starter=beginning(tmp_path, body)) as btrplace:
        with pytest.raises(WorldError, check=coded("worker-died")):
            btrplace.accepts(LIMITS[2])
        assert btrplace.accepts(LIMITS[1])


def test_a_worker_over_its_time_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        if limits == [2]:
            time.sleep(600)
        return {"answers": [{"accepts": True}]}
    """
    with BtrPlace(repair=False, starter=beginning(tmp_path, body)) as btrplace:
        with monkeypatch.context() as patch:
            patch.setattr(scheduler, "SECONDS_MAX", 0.3)
            with pytest.raises(SchedulerTimeout):
                btrplace.accepts(LIMITS[2])
        assert btrplace.accepts(LIMITS[1])


@pytest.mark.parametrize("said", ["{}", "[]", "[{}]", "[{'accepts': 1}]", "[{'late': False}]"])
def test_an_invalid_answer_is_an_error(tmp_path: Path, said: str) -> None:
    with (
        BtrPlace(
            repair=False, starter=beginning(tmp_path, f"return {{'answers': {said}}}")
        ) as btrplace,
        pytest.raises(WorldError, check=coded("worker-answer-invalid")),
    ):
        btrplace.accepts(LIMITS[0])


def test_without_its_build_there_is_no_btrplace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    with pytest.raises(MissingTarget, check=coded("scheduler-missing")):
        BtrPlace(repair=False)
