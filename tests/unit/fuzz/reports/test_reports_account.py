"""An account of a campaign: the trials, and their outcomes by constraint."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.reports import CampaignAccount
from equipoise.fuzz.reports.export import replay_command, stored_finding
from equipoise.fuzz.trial import Trial, TrialOutcome
from equipoise.fuzz.trial.stored import StoredTrial, read_lines, trial_of, write_line
from unit.fuzz.reports.accounts import a_finding, an_account


class OnlyGather:
    """It has words for Gather alone, and refuses whatever is done."""

    def accepts(self, trial: Trial) -> bool:
        if trial.demand.name != "Gather":
            raise UnsupportedTrial("something else")
        return not trial.steps


def test_outcomes_are_counted_by_constraint() -> None:
    names = ("Spread", "Gather")
    report = FuzzCampaign("t", OnlyGather(), names, limits=CampaignLimits(tests=61)).run()
    account = CampaignAccount(report, names)
    assert (account.count("Spread"), account.count("Gather")) == (31, 30)
    assert account.count("Spread", TrialOutcome.UNSUPPORTED) == 31
    assert account.count("Gather", TrialOutcome.OVER) == report.outcomes[TrialOutcome.OVER] > 0
    assert account.findings("Gather") == report.findings
    assert account.findings("Spread") == []


def test_an_account_has_the_requested_or_the_tried_constraints() -> None:
    report = FuzzCampaign(
        "t", OnlyGather(), ("Spread", "Gather"), limits=CampaignLimits(tests=9)
    ).run()
    assert CampaignAccount(report, ("Fence", "Spread")).constraints == ("Fence", "Spread")
    assert CampaignAccount(report).constraints == ("Spread", "Gather")


@pytest.mark.parametrize("letter", ["A", "B", "C"])
def test_a_replay_command_has_the_case_without_defaults(letter: str) -> None:
    known = find_scheduler(f"faulty-{letter}")
    assert known is not None
    names = ("Spread", "TenantsApart", "NodeSelector", "ResourceCapacity")
    report = FuzzCampaign(known.name, known.make(), names, limits=CampaignLimits(tests=400)).run()
    assert report.findings
    for finding in report.findings:
        words = shlex.split(replay_command(finding, CampaignAccount(report)))
        assert words[:2] == ["printf", "%s"]
        assert words[3:] == ["|", "equipoise", "fuzz", known.name, "--replay", "/dev/stdin"]
        (stored,) = read_lines(words[2].encode(), "line")
        assert stored == msgspec.json.decode(
            write_line(stored_finding(finding, report)), type=StoredTrial
        )
        assert len(words[2]) < len(write_line(stored)) / 2
        again = trial_of(stored)
        assert (again.initial, again.steps) == (finding.shrunk.initial, finding.shrunk.steps)
        assert again.demand.arguments == finding.shrunk.demand.arguments


@given(st.text(), st.text())
def test_nothing_in_it_is_run_by_the_shell(target: str, message: str) -> None:
    account = an_account(a_finding(TrialOutcome.CRASH, message=message), target=target)
    line = replay_command(account.report.findings[0], account)
    words = shlex.split(line)
    assert len(words) == 9
    assert words[6] == target
    assert json.loads(words[2]).get("message", "") == message
    assert words[2].isascii()
    assert words[2].isprintable()


def test_a_line_says_how_the_target_was_set() -> None:
    account = an_account(a_finding(TrialOutcome.CRASH, message="x"), target="btrplace")
    line = replay_command(account.report.findings[0], replace(account, settings={"repair": "on"}))
    (stored,) = read_lines(shlex.split(line)[2].encode(), "line")
    assert stored.settings == {"repair": "on"}
