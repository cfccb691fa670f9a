"""Campaigns as files for other programs: findings as CSV (RFC 4180), and JUnit XML.

The CSV has a row per finding; the XML has a suite per target and a case per constraint.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import msgspec

from equipoise.fuzz.campaign import CampaignReport, Finding
from equipoise.fuzz.campaign.text_report import finding_lines
from equipoise.fuzz.trial import TrialOutcome
from equipoise.fuzz.trial.stored import StoredTrial, case_of, specification_text
from equipoise.model.quantity import format_count

ANSWERED = (TrialOutcome.AGREE, TrialOutcome.OVER, TrialOutcome.UNDER, TrialOutcome.CRASH)
"""The outcomes with an answer of the scheduler."""


@dataclass(frozen=True, slots=True)
class CampaignAccount:
    """The report of a campaign and its inputs, for the report files."""

    report: CampaignReport
    asked: Sequence[str] = ()
    """The constraints of the campaign; if empty, those that have trials."""
    version: str = ""
    """The version of the target, if known."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of the target that differ from its defaults."""

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints of the campaign."""
        return tuple(self.asked or dict.fromkeys(name for name, _ in self.report.verdicts))

    def count(self, constraint: str, *outcomes: TrialOutcome) -> int:
        """The number of trials of a constraint with one of the outcomes; by default, with any."""
        verdicts = self.report.verdicts
        return sum(verdicts[constraint, outcome] for outcome in outcomes or TrialOutcome)

    def findings(self, constraint: str) -> list[Finding]:
        """The findings about a constraint."""
        return [finding for finding in self.report.findings if finding.constraint == constraint]

    def seen(self, finding: Finding) -> int:
        """The number of trials that show a finding."""
        return self.report.seen[finding.signature]


def stored_finding(finding: Finding, report: CampaignReport) -> StoredTrial:
    """The shrunk case of a finding, as files store it."""
    return StoredTrial(
        target=report.target,
        constraint=finding.constraint,
        outcome=finding.verdict.outcome,
        message=finding.verdict.message,
        seed=report.seed,
        number=finding.number,
        specification=specification_text(finding.shrunk.demand),
        case=case_of(finding.shrunk),
    )


def replay_command(finding: Finding, account: CampaignAccount) -> str:
    """A shell command that judges the shrunk case of a finding again, without a file."""
    # ASCII only: pages and terminals may show other characters differently.
    stored = stored_finding(finding, account.report).but(settings=account.settings)
    written = json.dumps(without_defaults(stored), separators=(",", ":"))
    target = shlex.quote(account.report.target)
    return f"printf %s {shlex.quote(written)} | equipoise fuzz {target} --replay /dev/stdin"


def without_defaults(value: Any) -> Any:
    """A value as plain data, without fields that have their defaults."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tags = {} if config.tag_field is None else {config.tag_field: config.tag}
        fields = {
            info.encode_name: without_defaults(getattr(value, info.name))
            for info in msgspec.structs.fields(value)
            if getattr(value, info.name) != _default_of(info)
        }
        return {**tags, **fields}
    if isinstance(value, Mapping):
        return {str(key): without_defaults(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [without_defaults(entry) for entry in value]
    return value


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field


_FORMULA: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\x00]")
"""Beginnings of cells that spreadsheets evaluate as formulas."""


def render_csv(accounts: Iterable[CampaignAccount]) -> bytes:
    """A line with the names of the columns, and a row for each finding."""
    rows = [_row(account, finding) for account in accounts for finding in account.report.findings]
    written = StringIO(newline="")
    table = csv.DictWriter(written, COLUMNS)  # with the line ends of RFC 4180
    table.writeheader()
    table.writerows(rows)
    # Messages of schedulers can contain lone surrogates, which UTF-8 cannot encode.
    return written.getvalue().encode("utf-8", "replace")


COLUMNS: Final = (
    *("target", "version", "seed", "constraint", "mode", "class", "harm", "cause"),
    *("input_valid", "broken_at_first", "seen", "number", "message", "why"),
    *("vms", "hosts", "steps"),
)
"""The names of the JSON document; the last three are counts of the shrunk case."""


def _row(account: CampaignAccount, finding: Finding) -> dict[str, str | int]:
    report, verdict, case = account.report, finding.verdict, finding.shrunk
    return {
        "target": _not_a_formula(report.target),
        "version": _not_a_formula(account.version),
        "seed": report.seed,
        "constraint": _not_a_formula(finding.constraint),
        "mode": finding.mode,
        "class": verdict.outcome.value,
        "harm": finding.verdict.harm,
        "cause": finding.cause.letter,
        "input_valid": _bool_text(verdict.input_valid),
        "broken_at_first": _bool_text(verdict.broken_at_first),
        "seen": account.seen(finding),
        "number": finding.number,
        "message": _not_a_formula(verdict.message),
        "why": _not_a_formula(finding.why),
        "vms": len(case.initial.vms),
        "hosts": len(case.initial.hosts),
        "steps": len(case.steps),
    }


def _not_a_formula(content: str) -> str:
    """Text that spreadsheets do not evaluate: a leading apostrophe marks it as text."""
    return f"'{content}" if _FORMULA.match(content) else content


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


_NOT_XML: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, and the carriage return, which parsers normalise."""
_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def render_junit(accounts: Iterable[CampaignAccount]) -> bytes:
    """One document for all campaigns.

    Over- and under-filtering is a failure, a crash is an error. A constraint without an answered
    trial is skipped, because it has not passed.
    """
    root = Element("testsuites", name="equipoise fuzz")
    for account in accounts:
        root.append(_suite(account))
    _count(root)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(account: CampaignAccount) -> Element:
    report = account.report
    suite = Element("testsuite", name=_xml_text(report.target), time=f"{report.seconds:.3f}")
    properties = SubElement(suite, "properties")
    facts = {"version": account.version, "seed": report.seed, "trials": report.tests}
    if report.interrupted:
        facts["interrupted"] = "true"
    for name, value in facts.items():
        if value != "":
            SubElement(properties, "property", name=name, value=_xml_text(str(value)))
    for constraint in account.constraints:
        names = {"classname": _xml_text(report.target), "name": _xml_text(constraint)}
        SubElement(suite, "testcase", names).extend(_results(account, constraint))
    _count(suite)
    return suite


def _results(account: CampaignAccount, constraint: str) -> Iterator[Element]:
    """At most one failure and one error: some build servers show only one of each."""
    found = account.findings(constraint)
    crashes = [finding for finding in found if finding.verdict.outcome is TrialOutcome.CRASH]
    wrong = [finding for finding in found if finding.verdict.outcome is not TrialOutcome.CRASH]
    if wrong:
        yield _result("failure", account, wrong)
    if crashes:
        yield _result("error", account, crashes)
    if not account.count(constraint, *ANSWERED):
        trials = account.count(constraint)
        why = f"no answer in {format_count(trials, 'trial')}" if trials else "no trials"
        yield Element("skipped", message=why)


def _result(kind: str, account: CampaignAccount, found: Sequence[Finding]) -> Element:
    kinds = dict.fromkeys(finding.verdict.outcome.value for finding in found)
    result = Element(kind, type=", ".join(kinds), message=_xml_text(found[0].why))
    texts = ["\n".join(finding_lines(finding, account.seen(finding))) for finding in found]
    result.text = _xml_text("\n\n".join(texts))
    return result


def _count(element: Element) -> None:
    """Set the counts of test cases, failures, errors and skipped cases of an element."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for name, kind in _COUNTED.items():
        element.set(name, str(sum(case.find(kind) is not None for case in cases)))


def _xml_text(content: str) -> str:
    """Text with a question mark for each character that XML forbids."""
    return _NOT_XML.sub("?", content)
