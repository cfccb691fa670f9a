"""The page of a campaign: what was tried and found, and each finding with its picture."""

from __future__ import annotations

import shlex
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_cluster
from equipoise.fuzz.reports import CampaignAccount, render_page
from equipoise.fuzz.reports.page import CASES_MAX
from equipoise.fuzz.trial import TrialOutcome
from small_networks import star
from unit.fuzz.reports.accounts import NASTY, a_finding, a_trial, an_account
from unit.report.parsed import Element, parsed

ODD = st.text(min_size=1, max_size=300)
NAMES = st.text(min_size=1, max_size=60).filter(lambda one: one not in {"v2", "h2"})


def page(account: CampaignAccount) -> Element:
    return parsed(render_page(account))


def section(found: Element, name: str) -> Element:
    return next(element for element in found.all("section") if element.attributes["id"] == name)


def test_the_head_has_counts_and_outcomes() -> None:
    found = page(an_account(a_finding(TrialOutcome.UNDER), version="1.2"))
    assert found.one("h1").text == "mine"
    assert found.one("header").one("p", "facts").text == "version 1.2; seed 3; 2 constraints; 2 s"
    tiles = [" ".join(element.text.split()) for element in found.one("ul", "tiles").all("li")]
    assert tiles == [
        "trials 100 50 a second",
        "findings 1 equal defects count once",
        "agree 98 same verdict as the specification",
        "under-filtering 2 wrong plan accepted or made",
    ]


def test_each_finding_is_in_the_table_and_has_its_case() -> None:
    over = a_finding(TrialOutcome.OVER, a_trial("Gather"))
    found = page(an_account(a_finding(TrialOutcome.UNDER), over))
    links = section(found, "findings").all("a")
    articles = found.all("article")
    assert [link.attributes["href"] for link in links] == [
        f"#{article.attributes['id']}" for article in articles
    ]
    assert [link.text for link in links] == ["1. Spread", "2. Gather"]
    first, second = articles
    told = " ".join(first.text.split())
    assert "Spread(vs = {v1, v2})" in told
    assert "No two of the VMs run on one host." in told
    assert "The scheduler accepts a plan that violates the constraint at 1000 ms" in told
    assert first.one("g", "flag").one("text").text == "violated at 1 s"
    assert "migrate v1 from h1 to h2" in told
    assert not second.all("g", "flag")
    assert "The scheduler rejects a plan that satisfies the constraint" in second.text
    words = shlex.split(first.one("pre", "copied").text)
    assert words[-4:] == ["fuzz", "mine", "--replay", "/dev/stdin"]


def test_the_page_counts_outcomes_by_constraint() -> None:
    account = an_account(a_finding(TrialOutcome.UNDER), asked=("Spread", "Fence", "Ban"))
    account.report.verdicts["Ban", TrialOutcome.TIMEOUT] += 3
    rows = section(page(account), "constraints").one("tbody").all("tr")
    assert [[cell.text for cell in row.all("td")] for row in rows] == [
        ["Spread", "2", "-", "-", "2", "-", "-"],
        ["Fence", "98", "98", "-", "-", "-", "-"],
        ["Ban", "3", "-", "-", "-", "-", "3"],
    ]


def test_nothing_found_is_no_proof() -> None:
    found = page(an_account())
    assert "No defect in 100 trials." in found.text
    assert "this is no proof of correctness" in found.text
    assert not found.all("article")


def test_a_page_never_has_more_cases_than_a_browser_can_take() -> None:
    findings = [
        a_finding(TrialOutcome.CRASH, message=chr(0x4E00 + n)) for n in range(CASES_MAX + 3)
    ]
    found = page(an_account(*findings))
    assert len(found.all("article")) == CASES_MAX
    assert len(section(found, "findings").one("tbody").all("tr")) == CASES_MAX + 3
    assert "there are 3 more" in section(found, "cases").text
    assert len(section(found, "findings").all("a")) == CASES_MAX


def test_nothing_is_fetched_and_only_our_script_runs() -> None:
    written = render_page(an_account(a_finding(TrialOutcome.CRASH, message=NASTY), target=NASTY))
    assert "http://" not in written
    assert "https://" not in written
    found = parsed(written.encode().decode())
    assert len(found.all("script")) == 1
    assert not found.all("img")
    assert not found.all("link")


@settings(max_examples=40, deadline=None)
@given(ODD, ODD, NAMES, NAMES)
def test_names_of_any_kind_change_no_element(target: str, message: str, vm: str, host: str) -> None:
    odd = a_finding(TrialOutcome.CRASH, a_trial(vm=vm, host=host), message)
    plain = a_finding(TrialOutcome.CRASH, a_trial(), "message")
    found = page(an_account(odd, target=target, version=message))
    usual = page(an_account(plain, target="mine", version="1"))
    assert [element.name for element in found.all()] == [element.name for element in usual.all()]


def test_the_picture_is_there_in_letters_too_unless_it_is_too_wide() -> None:
    article = page(an_account(a_finding(TrialOutcome.UNDER))).one("article")
    assert "h1  v1      v1>" in article.one("details").one("pre").text
    wide = a_finding(TrialOutcome.UNDER, a_trial(vm="v" * 500))
    assert not page(an_account(wide)).all("details")


def test_long_texts_are_shortened_with_a_note() -> None:
    finding = a_finding(TrialOutcome.CRASH, message="m" * 100_000)
    written = render_page(an_account(finding, target="t" * 500))
    assert len(written) < 50_000
    found = parsed(written)
    assert not found.all("pre", "copied")
    assert "equipoise fuzz --save stores it" in found.one("article").text
    assert len(found.one("head").one("title").text) < 110


def test_a_network_is_in_the_picture_and_in_a_table() -> None:
    trial, second = a_trial(), a_trial(vm="v3")
    vms = [*trial.initial.vms.values(), *second.initial.vms.values()][:3]
    initial = a_cluster(*trial.initial.hosts.values(), vms=vms)
    steps = (trial.steps[0], second.steps[0].but(id="s2"))
    wired = replace(trial, initial=initial, steps=steps, network=star("h1", "h2"))
    (article,) = page(an_account(a_finding(TrialOutcome.UNDER, wired))).all("article")
    looks = [element.attributes.get("class", "") for element in article.all("rect")]
    assert looks.count("presence overloaded") == 2 + 1, "and one in the legend"
    assert "link l-h1 towards sw" in article.one("div", "placement").text
    rows = article.all("table")[-1].all("tr")
    assert [[cell.text for cell in row.all("td")] for row in rows[1:]] == [
        ["l-h1", "h1-sw", "1000"],
        ["l-h2", "h2-sw", "1000"],
        ["sw", "", "any"],
    ]
