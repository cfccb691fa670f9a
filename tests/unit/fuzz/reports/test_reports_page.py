"""The page of a campaign: what was tried and found, and each finding with its picture."""

from __future__ import annotations

import shlex
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_cluster
from equipoise.fuzz.reports import Account, page_of
from equipoise.fuzz.reports.page import CASES_MAX
from equipoise.fuzz.trial import Outcome
from small_networks import star
from unit.fuzz.reports.accounts import NASTY, a_finding, a_trial, an_account
from unit.report.parsed import Element, parsed

ODD = st.text(min_size=1, max_size=300)
NAMES = st.text(min_size=1, max_size=60).filter(lambda one: one not in {"v2", "h2"})


def page(account: Account) -> Element:
    return parsed(page_of(account))


def section(found: Element, name: str) -> Element:
    return next(one for one in found.all("section") if one.attributes["id"] == name)


def test_the_head_says_how_much_was_tried_and_what_came_of_it() -> None:
    found = page(an_account(a_finding(Outcome.UNDER), version="1.2"))
    assert found.one("h1").text == "mine"
    assert found.one("header").one("p", "facts").text == "version 1.2; seed 3; 2 constraints; 2 s"
    tiles = [" ".join(one.text.split()) for one in found.one("ul", "tiles").all("li")]
    assert tiles == [
        "trials 100 50 a second",
        "findings 1 defects that are alike are one",
        "agree 98 both say the same",
        "under-filtering 2 accepted or made, though wrong",
    ]


def test_each_finding_is_in_the_table_and_has_its_case() -> None:
    over = a_finding(Outcome.OVER, a_trial("Gather"))
    found = page(an_account(a_finding(Outcome.UNDER), over))
    links = section(found, "findings").all("a")
    articles = found.all("article")
    assert [one.attributes["href"] for one in links] == [
        f"#{one.attributes['id']}" for one in articles
    ]
    assert [one.text for one in links] == ["1. Spread", "2. Gather"]
    first, second = articles
    told = " ".join(first.text.split())
    assert "Spread(vs = {v1, v2})" in told
    assert "No two of the VMs run on one host." in told
    assert "It accepts a plan that breaks the constraint at 1000 ms" in told
    assert first.one("g", "flag").one("text").text == "broken at 1 s"
    assert "migrate v1 from h1 to h2" in told
    assert not second.all("g", "flag")
    assert "It refuses a plan in which the constraint holds" in second.text
    words = shlex.split(first.one("pre", "copied").text)
    assert words[-4:] == ["fuzz", "mine", "--replay", "/dev/stdin"]


def test_what_came_of_each_constraint_is_counted() -> None:
    account = an_account(a_finding(Outcome.UNDER), asked=("Spread", "Fence", "Ban"))
    account.report.verdicts["Ban", Outcome.TIMEOUT] += 3
    rows = section(page(account), "constraints").one("tbody").all("tr")
    assert [[cell.text for cell in row.all("td")] for row in rows] == [
        ["Spread", "2", "-", "-", "2", "-", "-"],
        ["Fence", "98", "98", "-", "-", "-", "-"],
        ["Ban", "3", "-", "-", "-", "-", "3"],
    ]


def test_nothing_found_is_no_proof() -> None:
    found = page(an_account())
    assert "Nothing was found in 100 trials." in found.text
    assert "which proves nothing" in found.text
    assert not found.all("article")


def test_a_page_never_has_more_cases_than_a_browser_can_take() -> None:
    findings = [a_finding(Outcome.CRASH, message=chr(0x4E00 + n)) for n in range(CASES_MAX + 3)]
    found = page(an_account(*findings))
    assert len(found.all("article")) == CASES_MAX
    assert len(section(found, "findings").one("tbody").all("tr")) == CASES_MAX + 3
    assert "there are 3 more" in section(found, "cases").text
    assert len(section(found, "findings").all("a")) == CASES_MAX


def test_nothing_is_fetched_and_only_our_script_runs() -> None:
    written = page_of(an_account(a_finding(Outcome.CRASH, message=NASTY), target=NASTY))
    assert "http://" not in written
    assert "https://" not in written
    found = parsed(written.encode().decode())
    assert len(found.all("script")) == 1
    assert not found.all("img")
    assert not found.all("link")


@settings(max_examples=40, deadline=None)
@given(ODD, ODD, NAMES, NAMES)
def test_names_of_any_kind_change_no_element(target: str, message: str, vm: str, host: str) -> None:
    odd = a_finding(Outcome.CRASH, a_trial(vm=vm, host=host), message)
    plain = a_finding(Outcome.CRASH, a_trial(), "message")
    found = page(an_account(odd, target=target, version=message))
    usual = page(an_account(plain, target="mine", version="1"))
    assert [one.name for one in found.all()] == [one.name for one in usual.all()]


def test_the_picture_is_there_in_letters_too_unless_it_is_too_wide() -> None:
    article = page(an_account(a_finding(Outcome.UNDER))).one("article")
    assert "h1  v1      v1>" in article.one("details").one("pre").text
    wide = a_finding(Outcome.UNDER, a_trial(vm="v" * 500))
    assert not page(an_account(wide)).all("details")


def test_what_is_too_long_is_cut_and_that_is_said() -> None:
    finding = a_finding(Outcome.CRASH, message="m" * 100_000)
    written = page_of(an_account(finding, target="t" * 500))
    assert len(written) < 50_000
    found = parsed(written)
    assert not found.all("pre", "copied")
    assert "equipoise fuzz --save writes it" in found.one("article").text
    assert len(found.one("head").one("title").text) < 110


def test_a_network_is_in_the_picture_and_in_a_table() -> None:
    trial, second = a_trial(), a_trial(vm="v3")
    vms = [*trial.initial.vms.values(), *second.initial.vms.values()][:3]
    initial = a_cluster(*trial.initial.hosts.values(), vms=vms)
    steps = (trial.steps[0], second.steps[0].but(id="s2"))
    wired = replace(trial, initial=initial, steps=steps, network=star("h1", "h2"))
    (article,) = page(an_account(a_finding(Outcome.UNDER, wired))).all("article")
    looks = [one.attributes.get("class", "") for one in article.all("svg")]
    assert looks.count("stay overloaded") == 2
    assert "link l-h1 towards sw" in article.one("div", "placement").text
    rows = article.all("table")[-1].all("tr")
    assert [[cell.text for cell in row.all("td")] for row in rows[1:]] == [
        ["l-h1", "h1-sw", "1000"],
        ["l-h2", "h2-sw", "1000"],
        ["sw", "", "any"],
    ]
