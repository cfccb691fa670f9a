"""Findings that are known already: told from new ones by their sort and by what they look like."""

from __future__ import annotations

from equipoise.fuzz.campaign import Campaign, Limits, Report
from equipoise.fuzz.campaign.familiar import familiar
from equipoise.fuzz.reports.replay import stored_of
from equipoise.fuzz.trial import Trial


class Blind:
    """It accepts everything."""

    def accepts(self, trial: Trial) -> bool:
        return True


class Right:
    """It says what the specification says."""

    def accepts(self, trial: Trial) -> bool:
        return trial.is_right


class Fragile:
    """It breaks, in words that are given."""

    def __init__(self, words: str) -> None:
        self._words = words

    def accepts(self, trial: Trial) -> bool:
        raise ValueError(self._words)


def report_of(scheduler: Blind | Right | Fragile) -> Report:
    names = ("Spread", "Among", "RunningCapacity")
    return Campaign("t", scheduler, names, limits=Limits(tests=400)).run()


def test_what_is_known_is_not_new() -> None:
    report = report_of(Blind())
    known = familiar(Blind(), [stored_of(one, report) for one in report.findings])
    assert known.new(report) == []
    assert known.gone == ()


def test_another_cause_of_a_known_sort_is_new() -> None:
    report = report_of(Blind())
    one, other = next(
        (one, other)
        for one in report.findings
        for other in report.findings
        if one.sort == other.sort and one.cause != other.cause
    )
    known = familiar(Blind(), [stored_of(one, report)])
    assert one not in known.new(report)
    assert other in known.new(report)


def test_what_does_not_show_any_more_is_gone() -> None:
    report = report_of(Blind())
    stored = [stored_of(one, report) for one in report.findings]
    known = familiar(Right(), stored)
    assert (known.kinds, known.gone) == (frozenset(), tuple(stored))


def test_a_crash_in_other_words_is_another_one_and_other_numbers_are_not_other_words() -> None:
    report = report_of(Fragile("line 7"))
    stored = [stored_of(one, report) for one in report.findings]
    assert familiar(Fragile("line 8"), stored).gone == ()
    elsewhere = Fragile("page 7")
    known = familiar(elsewhere, stored)
    assert known.gone == tuple(stored)
    assert known.new(report_of(elsewhere)) != []
