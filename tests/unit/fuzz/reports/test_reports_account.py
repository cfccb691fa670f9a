"""An account of a campaign: what was asked, and what came of it by constraint."""

from __future__ import annotations

from equipoise.fuzz.campaign import Campaign, Limits
from equipoise.fuzz.reports import Account
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.trial import Outcome, Trial


class OnlyGather:
    """It has words for Gather alone, and refuses whatever is done."""

    def accepts(self, trial: Trial) -> bool:
        if trial.demand.name != "Gather":
            raise Unsupported("something else")
        return not trial.steps


def test_what_came_of_each_constraint_is_counted_while_it_runs() -> None:
    names = ("Spread", "Gather")
    report = Campaign("t", OnlyGather(), names, limits=Limits(tests=61)).run()
    account = Account(report, names)
    assert (account.count("Spread"), account.count("Gather")) == (31, 30)
    assert account.count("Spread", Outcome.UNSUPPORTED) == 31
    assert account.count("Gather", Outcome.OVER) == report.outcomes[Outcome.OVER] > 0
    assert account.findings("Gather") == report.findings
    assert account.findings("Spread") == []


def test_a_report_is_about_what_was_asked_or_else_about_what_was_tried() -> None:
    report = Campaign("t", OnlyGather(), ("Spread", "Gather"), limits=Limits(tests=9)).run()
    assert Account(report, ("Fence", "Spread")).constraints == ("Fence", "Spread")
    assert Account(report).constraints == ("Spread", "Gather")
