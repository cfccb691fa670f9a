"""How BtrPlace is asked many things at once, and what becomes of its worker; with fakes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from btrplace_trials import a_demand, a_trial, do, kill
from equipoise.errors import WorldError
from equipoise.fuzz.schedulers import Crash, TooLate, Unsupported
from equipoise.fuzz.targets import MissingTarget, Worker, btrplace_scheduler, environment
from equipoise.fuzz.targets.btrplace_scheduler import BtrPlace
from equipoise.fuzz.trial import Outcome, judge

LIMITS = [a_trial(a_demand("MaxOnline", ns=[], nb=nb)) for nb in range(5)]
LATER = a_trial(a_demand("MaxOnline", ns=[], nb=0), do(kill("a"), 1))
FAKE = """
import os, sys, time
from answering import serve
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
    """Starts workers with the real loop; ``body`` answers for the limits that it is asked about."""
    shutil.copy(Path(environment.__file__).parent / "answering.py", folder)
    script = folder / "fake_worker.py"
    script.write_text(FAKE.format(body=textwrap.indent(textwrap.dedent(body), "    ")))
    return lambda: Worker([sys.executable, script], name="fake_worker")


def test_each_trial_has_its_own_answer_in_its_own_place(tmp_path: Path) -> None:
    with BtrPlace(repair=False, begin=beginning(tmp_path, EACH)) as btrplace:
        unasked, yes, no, crash, late, unsupported = btrplace.accepts_many([LATER, *LIMITS])
        assert btrplace.accepts_many([]) == ()
    assert (yes, no) == (True, False)
    assert isinstance(unasked, Unsupported)
    assert isinstance(crash, Crash)
    assert str(crash) == "NullPointerException (here)"
    assert isinstance(late, TooLate)
    assert isinstance(unsupported, Unsupported)
    assert str(unsupported) == "no words"


def test_one_trial_is_judged_as_with_any_other_scheduler(tmp_path: Path) -> None:
    with BtrPlace(repair=False, begin=beginning(tmp_path, EACH)) as btrplace:
        verdicts = [judge(btrplace, trial) for trial in LIMITS]
    assert [one.outcome for one in verdicts] == [
        Outcome.AGREE, Outcome.OVER, Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSUPPORTED,
    ]  # fmt: skip
    assert verdicts[2].message == "NullPointerException (here)"


@pytest.mark.parametrize("repair", [False, True])
def test_the_worker_is_told_whether_to_repair_and_how_long_it_may_think(
    tmp_path: Path, *, repair: bool
) -> None:
    body = f"""
        sure = limit_s == {btrplace_scheduler.EACH_S_MAX} and questions[0]["repair"] is {repair}
        return {{"answers": [{{"accepts": sure}}]}}
    """
    with BtrPlace(repair=repair, begin=beginning(tmp_path, body)) as btrplace:
        assert btrplace.accepts(LIMITS[0])


def test_one_that_died_has_a_successor(tmp_path: Path) -> None:
    body = """
        if limits == [2]:
            os._exit(7)
        return {"answers": [{"accepts": True}]}
    """
    with BtrPlace(repair=False, begin=beginning(tmp_path, body)) as btrplace:
        with pytest.raises(WorldError, match="died"):
            btrplace.accepts(LIMITS[2])
        assert btrplace.accepts(LIMITS[1])


def test_one_that_is_silent_for_too_long_has_a_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        if limits == [2]:
            time.sleep(600)
        return {"answers": [{"accepts": True}]}
    """
    with BtrPlace(repair=False, begin=beginning(tmp_path, body)) as btrplace:
        with monkeypatch.context() as patch:
            patch.setattr(btrplace_scheduler, "SECONDS_MAX", 0.3)
            with pytest.raises(TooLate):
                btrplace.accepts(LIMITS[2])
        assert btrplace.accepts(LIMITS[1])


@pytest.mark.parametrize("said", ["{}", "[]", "[{}]", "[{'accepts': 1}]", "[{'late': False}]"])
def test_a_worker_that_talks_nonsense_is_not_believed(tmp_path: Path, said: str) -> None:
    with (
        BtrPlace(
            repair=False, begin=beginning(tmp_path, f"return {{'answers': {said}}}")
        ) as btrplace,
        pytest.raises(WorldError, match="answered nonsense"),
    ):
        btrplace.accepts(LIMITS[0])


def test_without_its_build_there_is_no_btrplace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    with pytest.raises(MissingTarget, match="BtrPlace cannot be asked"):
        BtrPlace(repair=False)
