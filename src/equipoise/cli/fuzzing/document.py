"""Campaigns as the JSON contract wants them."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.fuzz.campaign import Finding, Report
from equipoise.fuzz.campaign.familiar import Familiar
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.trial.stored import plain_case


def document(
    report: Report, target: Known, settings: Mapping[str, str], known: Familiar | None
) -> dict[str, object]:
    """A report as JSON."""
    gone = () if known is None else known.gone
    return {
        "target": report.target,
        "version": target.version,
        "settings": dict(settings),
        "seed": report.seed,
        "interrupted": report.interrupted,
        "tests": report.tests,
        "tests_per_s": round(report.tests_per_s, 1),
        "agreed": report.agreed,
        "outcomes": {outcome.value: count for outcome, count in report.outcomes.items()},
        "defects": [_defect(one, report, known) for one in report.findings],
        "gone": [{"constraint": one.constraint, "class": one.outcome.value} for one in gone],
    }


def _defect(finding: Finding, report: Report, known: Familiar | None) -> dict[str, object]:
    return {
        "class": finding.verdict.outcome.value,
        "constraint": finding.constraint,
        "mode": finding.mode,
        "seen": report.seen[finding.sort],
        "known": known is not None and finding.kind in known.kinds,
        "message": finding.verdict.message,
        "why": finding.why,
        "harm": finding.verdict.harm,
        "cause": finding.cause.letter,
        "input_valid": finding.verdict.input_valid,
        "broken_at_first": finding.verdict.broken_at_first,
        "number": finding.number,
        "case": plain_case(finding.trial),
        "shrunk": plain_case(finding.shrunk),
        "made": None if finding.verdict.steps is None else plain_case(finding.shown)["plan"],
    }
