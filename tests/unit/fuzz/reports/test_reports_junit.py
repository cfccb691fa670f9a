"""Campaigns as build servers read them: what passes, fails, breaks or was never answered."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from hypothesis import given
from hypothesis import strategies as st

from equipoise.fuzz.reports import CampaignAccount, render_junit
from equipoise.fuzz.trial import TrialOutcome
from unit.fuzz.reports.accounts import NASTY, a_finding, a_trial, an_account

ODD = st.text(max_size=200) | st.text(st.characters(codec=None), max_size=50)


def read(*accounts: CampaignAccount) -> Element:
    return ElementTree.fromstring(render_junit(accounts))


def counts(element: Element) -> dict[str, int]:
    return {name: int(element.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}


def test_a_target_is_a_suite_and_a_constraint_a_case() -> None:
    findings = (
        a_finding(TrialOutcome.UNDER),
        a_finding(TrialOutcome.OVER, a_trial("Gather")),
        a_finding(TrialOutcome.CRASH, a_trial("Gather"), "ValueError: no"),
    )
    asked = ("Spread", "Gather", "Fence", "Ban", "Lonely")
    account = an_account(*findings, asked=asked, version="1.2")
    account.report.verdicts["Ban", TrialOutcome.UNSUPPORTED] += 4
    root = read(account, an_account(target="other"))
    one, other = root.findall("testsuite")
    assert (one.attrib["name"], other.attrib["name"]) == ("mine", "other")
    assert counts(one) == {"tests": 5, "failures": 2, "errors": 1, "skipped": 2}
    assert counts(other) == {"tests": 1, "failures": 0, "errors": 0, "skipped": 0}
    assert counts(root) == {"tests": 6, "failures": 2, "errors": 1, "skipped": 2}
    cases = {case.attrib["name"]: [(part.tag, part.get("type")) for part in case] for case in
             one.findall("testcase")}  # fmt: skip
    assert cases == {
        "Spread": [("failure", "under-filtering")],
        "Gather": [("failure", "over-filtering"), ("error", "crash")],
        "Fence": [],
        "Ban": [("skipped", None)],
        "Lonely": [("skipped", None)],
    }
    skipped = [part.get("message") for part in one.iter("skipped")]
    assert skipped == ["no answer in 4 trials", "no trials"]
    known = {element.get("name"): element.get("value") for element in one.iter("property")}
    assert known == {"version": "1.2", "seed": "3", "trials": "100"}


def test_a_failure_tells_why_and_shows_the_smallest_case() -> None:
    (failure,) = read(an_account(a_finding(TrialOutcome.UNDER))).iter("failure")
    told = failure.text or ""
    assert failure.attrib["message"] == a_finding(TrialOutcome.UNDER).why
    assert failure.attrib["message"] in told
    assert "Spread(vs = {v1, v2})" in told
    assert "migrate v1 from h1 to h2" in told
    assert "h2  v2      >v1 v2  v1 v2" in told


def test_characters_that_xml_forbids_are_replaced() -> None:
    root = read(an_account(a_finding(TrialOutcome.CRASH, message=NASTY), target=NASTY))
    (error,) = root.iter("error")
    assert "</failure>]]><img src=x onerror=alert(1)>&\"'??[31m??" in (error.text or "")
    assert not list(root.iter("img"))


@given(ODD, ODD)
def test_any_text_survives_except_characters_that_xml_forbids(name: str, message: str) -> None:
    root = read(an_account(a_finding(TrialOutcome.CRASH, message=message), target=name))
    (suite,) = root.findall("testsuite")
    assert len(suite.attrib["name"]) == len(name)
    assert all(a in (b, "?") for a, b in zip(suite.attrib["name"], name, strict=True))
    (error,) = root.iter("error")
    why = error.attrib["message"].removeprefix("the scheduler crashes: ")
    assert all(a in (b, "?") for a, b in zip(why, message, strict=True))
