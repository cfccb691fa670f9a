"""The findings of campaigns as a table: a row each, in CSV as RFC 4180 has it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from io import StringIO
from typing import Final

from equipoise.fuzz.campaign import Finding
from equipoise.fuzz.reports.account import Account

_FORMULA: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\x00]")
"""What spreadsheets take for the beginning of a formula."""


def csv_of(accounts: Iterable[Account]) -> bytes:
    """A line of names, and a row for each finding."""
    rows = [_row(account, one) for account in accounts for one in account.report.findings]
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
"""As the JSON document names them; the last three count the shrunk case."""


def _row(account: Account, finding: Finding) -> dict[str, str | int]:
    report, verdict, case = account.report, finding.verdict, finding.shrunk
    return {
        "target": _harmless(report.target),
        "version": _harmless(account.version),
        "seed": report.seed,
        "constraint": _harmless(finding.constraint),
        "mode": finding.mode,
        "class": verdict.outcome.value,
        "harm": finding.verdict.harm,
        "cause": finding.cause.letter,
        "input_valid": _truth(verdict.input_valid),
        "broken_at_first": _truth(verdict.broken_at_first),
        "seen": account.seen(finding),
        "number": finding.number,
        "message": _harmless(verdict.message),
        "why": _harmless(finding.why),
        "vms": len(case.initial.vms),
        "hosts": len(case.initial.hosts),
        "steps": len(case.steps),
    }


def _harmless(words: str) -> str:
    """Words that no spreadsheet runs: an apostrophe in front says that they are text."""
    return f"'{words}" if _FORMULA.match(words) else words


def _truth(value: bool) -> str:
    return "true" if value else "false"
