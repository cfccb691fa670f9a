"""Campaigns that a person ends: what was found by then, made small while somebody waits."""

from __future__ import annotations

import os
import signal
from math import inf

import pytest

from equipoise.fuzz.campaign import Campaign, Limits, Report
from equipoise.fuzz.campaign import stop as stopping
from equipoise.fuzz.campaign.stop import interruptible, is_asked_to_stop
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.trial import Trial
from equipoise.fuzz.trial.size import Size
from equipoise.spec.library import library_constraints


class Blind:
    """It accepts everything, and interrupts whoever asks it after some questions."""

    def __init__(self, questions: int) -> None:
        self._left = questions

    def accepts(self, trial: Trial) -> bool:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return True


def interrupted(questions: int, tests: int = 100_000) -> tuple[Report, int]:
    heard: list[None] = []
    with interruptible(lambda: heard.append(None)):
        names = ("Spread", "Among")
        report = Campaign("t", Blind(questions), names, limits=Limits(tests=tests)).run()
    assert not is_asked_to_stop()
    return report, len(heard)


def test_it_ends_soon_with_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "PATIENCE_S", inf)  # however busy the machine is
    report, heard = interrupted(150)
    assert (report.interrupted, heard) == (True, 1)
    assert 0 < report.tests < 2_000
    assert {finding.constraint for finding in report.findings} == {"Spread", "Among"}
    assert all(len(finding.shrunk.initial.vms) <= 2 for finding in report.findings)


def test_one_finding_of_each_sort_is_made_if_it_is_interrupted_while_it_makes_cases_small() -> None:
    whole = Campaign("t", Blind(0), ("Spread", "Among"), limits=Limits(tests=128)).run()
    assert not whole.interrupted
    report, _ = interrupted(129, tests=128)
    assert (report.interrupted, report.tests) == (True, 128)
    assert {one.sort for one in report.findings} == {one.sort for one in whole.findings}


def test_nothing_is_made_small_for_whom_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "PATIENCE_S", -1.0)
    report, _ = interrupted(150)
    assert report.findings
    assert all(one.shrunk == one.trial for one in report.findings)
    monkeypatch.undo()
    small, _ = interrupted(150)
    for one, other in zip(report.findings, small.findings, strict=False):
        assert Size.of(other.shrunk) < Size.of(one.shrunk)


def test_trials_of_a_file_are_left_out_after_it() -> None:
    maker = Generator(library_constraints()["Spread"], "Spread")
    trials = [maker.trial(number) for number in range(60)]
    with interruptible(lambda: None):
        report = Campaign("t", Blind(30), ("Spread",)).replay(trials)
    assert report.interrupted
    assert 0 < report.tests < 60


def test_the_second_one_ends_it_and_an_echo_of_the_first_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with interruptible(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert is_asked_to_stop()
        monkeypatch.setattr(stopping, "ECHO_S", -1.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
