"""The JSON document of a campaign."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.adapters.targets.scheduler import SchedulerEntry
from equipoise.fuzz.campaign import CampaignReport, Finding
from equipoise.fuzz.campaign.findings import Baseline
from equipoise.fuzz.trial.stored import plain_case


def campaign_document(
    report: CampaignReport,
    target: SchedulerEntry,
    settings: Mapping[str, str],
    known: Baseline | None,
) -> dict[str, object]:
    """Return the JSON document of ``equipoise fuzz``."""
    gone = () if known is None else known.disappeared
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
        "defects": [_defect(finding, report, known) for finding in report.findings],
        "gone": [
            {"constraint": stored.constraint, "class": stored.outcome.value} for stored in gone
        ],
    }


def _defect(finding: Finding, report: CampaignReport, known: Baseline | None) -> dict[str, object]:
    return {
        "class": finding.verdict.outcome.value,
        "constraint": finding.constraint,
        "mode": finding.mode,
        "seen": report.seen[finding.signature],
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
