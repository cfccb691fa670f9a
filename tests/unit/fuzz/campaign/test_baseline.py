"""Findings that are known already: told from new ones by their sort and by what they look like."""

from __future__ import annotations

from equipoise.fuzz.campaign import CampaignLimits, CampaignReport, FuzzCampaign
from equipoise.fuzz.campaign.findings import judge_baseline
from equipoise.fuzz.reports.export import stored_finding
from equipoise.fuzz.trial import Trial


class Blind:
    """It accepts everything."""

    def accepts(self, trial: Trial) -> bool:
        return True


class Right:
    """It says what the specification says."""

    def accepts(self, trial: Trial) -> bool:
        return trial.is_acceptable


class Fragile:
    """It breaks, in words that are given."""

    def __init__(self, words: str) -> None:
        self._words = words

    def accepts(self, trial: Trial) -> bool:
        raise ValueError(self._words)


def report_of(scheduler: Blind | Right | Fragile) -> CampaignReport:
    names = ("Spread", "Among", "RunningCapacity")
    return FuzzCampaign("t", scheduler, names, limits=CampaignLimits(tests=400)).run()


def test_a_known_finding_is_not_new() -> None:
    report = report_of(Blind())
    known = judge_baseline(
        Blind(), [stored_finding(finding, report) for finding in report.findings]
    )
    assert known.new(report) == []
    assert known.disappeared == ()


def test_another_cause_of_a_known_sort_is_new() -> None:
    report = report_of(Blind())
    first, other = next(
        (finding, other)
        for finding in report.findings
        for other in report.findings
        if finding.signature == other.signature and finding.cause != other.cause
    )
    known = judge_baseline(Blind(), [stored_finding(first, report)])
    assert first not in known.new(report)
    assert other in known.new(report)


def test_a_case_without_its_defect_has_disappeared() -> None:
    report = report_of(Blind())
    stored = [stored_finding(finding, report) for finding in report.findings]
    known = judge_baseline(Right(), stored)
    assert (known.kinds, known.disappeared) == (frozenset(), tuple(stored))


def test_crash_messages_are_compared_without_numbers() -> None:
    report = report_of(Fragile("line 7"))
    stored = [stored_finding(finding, report) for finding in report.findings]
    assert judge_baseline(Fragile("line 8"), stored).disappeared == ()
    elsewhere = Fragile("page 7")
    known = judge_baseline(elsewhere, stored)
    assert known.disappeared == tuple(stored)
    assert known.new(report_of(elsewhere)) != []
