"""Campaigns as build servers read tests: a suite for each target, a case for each constraint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from equipoise.fuzz.campaign import Finding
from equipoise.fuzz.campaign.words import told_one
from equipoise.fuzz.reports.account import ANSWERS, Account
from equipoise.fuzz.trial import Outcome
from equipoise.model.words import counted

_IMPOSSIBLE: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot have, and the carriage return, which no reader gives back."""
_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit_of(accounts: Iterable[Account]) -> bytes:
    """One document for all of them.

    Over- and under-filtering is a failure, a crash is an error. A constraint of which no trial was
    answered is skipped, rather than said to be fine.
    """
    root = Element("testsuites", name="equipoise fuzz")
    for account in accounts:
        root.append(_suite(account))
    _count(root)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(account: Account) -> Element:
    report = account.report
    suite = Element("testsuite", name=_possible(report.target), time=f"{report.seconds:.3f}")
    properties = SubElement(suite, "properties")
    facts = {"version": account.version, "seed": report.seed, "trials": report.tests}
    if report.interrupted:
        facts["interrupted"] = "true"
    for name, value in facts.items():
        if value != "":
            SubElement(properties, "property", name=name, value=_possible(str(value)))
    for constraint in account.constraints:
        names = {"classname": _possible(report.target), "name": _possible(constraint)}
        SubElement(suite, "testcase", names).extend(_results(account, constraint))
    _count(suite)
    return suite


def _results(account: Account, constraint: str) -> Iterator[Element]:
    """At most one of a kind: of several, some build servers show only one."""
    found = account.findings(constraint)
    crashes = [one for one in found if one.verdict.outcome is Outcome.CRASH]
    wrong = [one for one in found if one.verdict.outcome is not Outcome.CRASH]
    if wrong:
        yield _result("failure", account, wrong)
    if crashes:
        yield _result("error", account, crashes)
    if not account.count(constraint, *ANSWERS):
        trials = account.count(constraint)
        why = f"no answer in {counted(trials, 'trial')}" if trials else "no trial of it"
        yield Element("skipped", message=why)


def _result(kind: str, account: Account, found: Sequence[Finding]) -> Element:
    kinds = dict.fromkeys(one.verdict.outcome.value for one in found)
    made = Element(kind, type=", ".join(kinds), message=_possible(found[0].why))
    texts = ["\n".join(told_one(one, account.seen(one))) for one in found]
    made.text = _possible("\n\n".join(texts))
    return made


def _count(element: Element) -> None:
    """Write into an element how many cases are in it, and what came of them."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for name, kind in _COUNTED.items():
        element.set(name, str(sum(case.find(kind) is not None for case in cases)))


def _possible(words: str) -> str:
    """Words without what XML cannot have."""
    return _IMPOSSIBLE.sub("?", words)
