"""The page of a campaign: how much was tried, what was found, and the smallest case of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from equipoise.fuzz.campaign import Finding
from equipoise.fuzz.reports.account import ANSWERS, Account
from equipoise.fuzz.reports.case import case_of_finding
from equipoise.fuzz.trial import Outcome
from equipoise.model.words import counted
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.head import worded
from equipoise.report.page import document
from equipoise.report.section import Section, listed
from equipoise.report.words import cut, duration, number, shortened

CASES_MAX: Final = 200
"""How many findings are drawn; a page with more would not open."""
_NAME_MAX: Final = 80
_WHY_MAX: Final = 200
_MEANS: Final = {
    Outcome.AGREE: "both say the same",
    Outcome.OVER: "refused, though right",
    Outcome.UNDER: "accepted or made, though wrong",
    Outcome.CRASH: "broke while it decided",
    Outcome.TIMEOUT: "no answer in time",
    Outcome.UNSUPPORTED: "no words for the trial",
}


def page_of(account: Account) -> str:
    """Make the page of one campaign, which opens without a network."""
    title = f"{cut(account.report.target, _NAME_MAX)}: campaign, Equipoise"
    sections = [_findings(account), *_cases(account), _constraints(account)]
    return document(title, _head(account), sections)


def _head(account: Account) -> Markup:
    report = account.report
    version = f"version {account.version}; " if account.version else ""
    about = counted(len(account.constraints), "constraint")
    ended = "; interrupted" if report.interrupted else ""
    facts = f"{version}seed {report.seed}; {about}; {duration(report.seconds)}{ended}"
    return tag(
        "header",
        tag("h1", text(report.target)),
        tag("p", text(facts), class_="facts"),
        tag("ul", *_tiles(account), class_="tiles"),
    )


def _tiles(account: Account) -> Iterator[Markup]:
    report = account.report
    yield worded("trials", f"{report.tests:,}", f"{number(report.tests_per_s)} a second")
    found = len(report.findings)
    note = "defects that are alike are one" if found else "which proves nothing"
    yield worded("findings", f"{found:,}", note, "bad" if found else None)
    for outcome, means in _MEANS.items():
        count = report.outcomes[outcome]
        if count or outcome is Outcome.AGREE:
            look = "bad" if outcome.is_defect else None
            yield worded(outcome.value, f"{count:,}", means, look)


def _findings(account: Account) -> Section:
    title, found = "Findings", account.report.findings
    if not found:
        why = f"Nothing was found in {counted(account.report.tests, 'trial')}."
        return Section("findings", title, "Where it is wrong.", nothing(why))
    columns = ("finding", "class", "seen", "why")
    rows = [_row(account, place, one) for place, one in enumerate(found, start=1)]
    see = "Where it disagrees with the specification, in the order in which that was seen first."
    return Section("findings", title, see, listed(columns, rows, right=("seen",)))


def _row(account: Account, place: int, finding: Finding) -> list[Markup]:
    name = text(f"{place}. {finding.constraint}")
    link = tag("a", name, href=f"#finding-{place}") if place <= CASES_MAX else name
    kind = tag("span", text(finding.verdict.outcome.value), class_="kind fault")
    first = joined([link, _softly(finding.mode)])
    what = joined([kind, _softly(finding.verdict.harm)])
    why = text(shortened(finding.why, _WHY_MAX))
    return [first, what, text(account.seen(finding)), why]


def _softly(words: str) -> Markup:
    return tag("div", text(words), class_="note") if words else EMPTY


def _cases(account: Account) -> list[Section]:
    found = account.report.findings
    if not found:
        return []
    shown = [
        case_of_finding(account, place, one) for place, one in enumerate(found[:CASES_MAX], start=1)
    ]
    left = len(found) - len(shown)
    words = f"The first {CASES_MAX} findings are shown; there are {left:,} more."
    note = tag("p", text(words), class_="note") if left else EMPTY
    see = "Each finding by a case from which nothing can be taken away."
    return [Section("cases", "Smallest cases", see, joined([note, *shown]))]


def _constraints(account: Account) -> Section:
    columns = ("constraint", "trials", "agree", "over", "under", "crash", "no answer")
    rows = []
    for name in account.constraints:
        answers = [account.count(name, one) for one in ANSWERS]
        trials = account.count(name)
        cells = (trials, *answers, trials - sum(answers))
        rows.append([text(name), *(text(f"{one:,}" if one else "-") for one in cells)])
    see = "What came of the trials of each constraint."
    return Section("constraints", "Constraints", see, listed(columns, rows, right=columns[1:]))
