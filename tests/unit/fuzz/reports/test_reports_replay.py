"""A line for a shell that judges a finding again: short, and safe whatever is in it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.fuzz.campaign import Campaign, Limits
from equipoise.fuzz.registry import find_known
from equipoise.fuzz.reports import Account
from equipoise.fuzz.reports.replay import replay_line, stored_of
from equipoise.fuzz.trial import Outcome
from equipoise.fuzz.trial.stored import Stored, read_lines, trial_of, write_line
from unit.fuzz.reports.accounts import a_finding, an_account


@pytest.mark.parametrize("letter", ["A", "B", "C"])
def test_a_line_holds_the_whole_case_and_nothing_usual(letter: str) -> None:
    known = find_known(f"faulty-{letter}")
    assert known is not None
    names = ("Spread", "TenantsApart", "NodeSelector", "ResourceCapacity")
    report = Campaign(known.name, known.make(), names, limits=Limits(tests=400)).run()
    assert report.findings
    for finding in report.findings:
        words = shlex.split(replay_line(finding, Account(report)))
        assert words[:2] == ["printf", "%s"]
        assert words[3:] == ["|", "equipoise", "fuzz", known.name, "--replay", "/dev/stdin"]
        (stored,) = read_lines(words[2].encode(), "line")
        assert stored == msgspec.json.decode(write_line(stored_of(finding, report)), type=Stored)
        assert len(words[2]) < len(write_line(stored)) / 2
        again = trial_of(stored)
        assert (again.initial, again.steps) == (finding.shrunk.initial, finding.shrunk.steps)
        assert again.demand.arguments == finding.shrunk.demand.arguments


@given(st.text(), st.text())
def test_nothing_in_it_is_run_by_the_shell(target: str, message: str) -> None:
    account = an_account(a_finding(Outcome.CRASH, message=message), target=target)
    line = replay_line(account.report.findings[0], account)
    words = shlex.split(line)
    assert len(words) == 9
    assert words[6] == target
    assert json.loads(words[2]).get("message", "") == message
    assert words[2].isascii()
    assert words[2].isprintable()


def test_a_line_says_how_the_target_was_set() -> None:
    account = an_account(a_finding(Outcome.CRASH, message="x"), target="btrplace")
    line = replay_line(account.report.findings[0], replace(account, settings={"repair": "on"}))
    (stored,) = read_lines(shlex.split(line)[2].encode(), "line")
    assert stored.settings == {"repair": "on"}
