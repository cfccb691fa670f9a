"""Interrupted campaigns: the findings so far, shrunk within the grace period."""

from __future__ import annotations

import os
import signal
from math import inf

import pytest

from equipoise.fuzz.campaign import CampaignLimits, CampaignReport, FuzzCampaign
from equipoise.fuzz.campaign import workers as stopping
from equipoise.fuzz.campaign.workers import interruptible, is_stop_requested
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.trial import Trial
from equipoise.fuzz.trial.shrink import TrialSize
from equipoise.spec.library import library_constraints


class Blind:
    """It accepts everything and sends an interrupt after some questions."""

    def __init__(self, questions: int) -> None:
        self._left = questions

    def accepts(self, trial: Trial) -> bool:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return True


def interrupted(questions: int, tests: int = 100_000) -> tuple[CampaignReport, int]:
    notified: list[None] = []
    with interruptible(lambda: notified.append(None)):
        names = ("Spread", "Among")
        report = FuzzCampaign(
            "t", Blind(questions), names, limits=CampaignLimits(tests=tests)
        ).run()
    assert not is_stop_requested()
    return report, len(notified)


def test_a_stop_request_ends_the_campaign_with_its_findings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stopping, "SHRINK_GRACE_S", inf)  # however busy the machine is
    report, notified = interrupted(150)
    assert (report.interrupted, notified) == (True, 1)
    assert 0 < report.tests < 2_000
    assert {finding.constraint for finding in report.findings} == {"Spread", "Among"}
    assert all(len(finding.shrunk.initial.vms) <= 2 for finding in report.findings)


def test_an_interrupted_shrink_keeps_one_finding_of_each_kind() -> None:
    whole = FuzzCampaign("t", Blind(0), ("Spread", "Among"), limits=CampaignLimits(tests=128)).run()
    assert not whole.interrupted
    report, _ = interrupted(129, tests=128)
    assert (report.interrupted, report.tests) == (True, 128)
    assert {finding.signature for finding in report.findings} == {
        finding.signature for finding in whole.findings
    }


def test_no_case_is_shrunk_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "SHRINK_GRACE_S", -1.0)
    report, _ = interrupted(150)
    assert report.findings
    assert all(finding.shrunk == finding.trial for finding in report.findings)
    monkeypatch.undo()
    small, _ = interrupted(150)
    for finding, other in zip(report.findings, small.findings, strict=False):
        assert TrialSize.of(other.shrunk) < TrialSize.of(finding.shrunk)


def test_trials_of_a_file_are_left_out_after_it() -> None:
    maker = Generator(library_constraints()["Spread"], "Spread")
    trials = maker.block(range(60)).trials
    with interruptible(lambda: None):
        report = FuzzCampaign("t", Blind(30), ("Spread",)).replay(trials)
    assert report.interrupted
    assert 0 < report.tests < 60


def test_the_second_signal_interrupts_and_a_repeated_first_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with interruptible(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stop_requested()
        monkeypatch.setattr(stopping, "REPEATED_SIGNAL_S", -1.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
