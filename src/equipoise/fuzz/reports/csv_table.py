"""The findings of campaigns as CSV (RFC 4180), one row each."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from io import StringIO
from typing import Final

from equipoise.fuzz.campaign import Finding
from equipoise.fuzz.reports.account import CampaignAccount

_FORMULA: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\x00]")
"""Beginnings of cells that spreadsheets evaluate as formulas."""


def render_csv(accounts: Iterable[CampaignAccount]) -> bytes:
    """A line with the names of the columns, and a row for each finding."""
    rows = [_row(account, finding) for account in accounts for finding in account.report.findings]
    written = StringIO(newline="")
    table = csv.DictWriter(written, COLUMNS)  # with the line ends of RFC 4180
    table.writeheader()
    table.writerows(rows)
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
