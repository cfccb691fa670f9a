"""Fills the JSON documents of campaigns and targets."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.adapters.targets.scheduler import SchedulerEntry
from equipoise.documents.fuzz import DefectRow, FuzzDocument, MissingFinding, TargetRow
from equipoise.fuzz.campaign import CampaignReport, Finding
from equipoise.fuzz.campaign.findings import Baseline
from equipoise.fuzz.trial.stored import case_of


def campaign_document(
    report: CampaignReport,
    target: SchedulerEntry,
    settings: Mapping[str, str],
    known: Baseline | None,
) -> FuzzDocument:
    """Return the JSON document of ``equipoise fuzz``."""
    gone = () if known is None else known.disappeared
    return FuzzDocument.of(
        report,
        version=target.version,
        settings=settings,
        tests_per_s=round(report.tests_per_s, 1),
        outcomes={outcome.value: count for outcome, count in report.outcomes.items()},
        defects=tuple(_defect_row(finding, report, known) for finding in report.findings),
        gone=tuple(
            MissingFinding(constraint=stored.constraint, outcome=stored.outcome.value)
            for stored in gone
        ),
    )


def _defect_row(finding: Finding, report: CampaignReport, known: Baseline | None) -> DefectRow:
    verdict = finding.verdict
    return DefectRow(
        outcome=verdict.outcome.value,
        constraint=finding.constraint,
        mode=finding.mode,
        seen=report.seen[finding.signature],
        known=known is not None and finding.kind in known.kinds,
        message=verdict.message,
        why=finding.why,
        harm=verdict.harm,
        cause=finding.cause.letter,
        input_valid=verdict.input_valid,
        broken_at_first=verdict.broken_at_first,
        number=finding.number,
        case=case_of(finding.trial),
        shrunk=case_of(finding.shrunk),
        made=None if verdict.steps is None else case_of(finding.shown).plan,
    )


def target_row(entry: SchedulerEntry) -> TargetRow:
    """Return a row of ``equipoise fuzz --list``."""
    return TargetRow.of(entry, target=entry.name, missing=entry.missing())
