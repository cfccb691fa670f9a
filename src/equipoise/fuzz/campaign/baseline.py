"""The baseline of a target: its known findings.

A campaign with a baseline fails on a new finding, and if a known one disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.fuzz.campaign.findings import CampaignReport, Finding, FindingKind, without_numbers
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.trial import judge
from equipoise.fuzz.trial.stored import StoredTrial, trial_of


@dataclass(frozen=True, slots=True)
class Baseline:
    """The known findings of a scheduler in one version."""

    kinds: frozenset[FindingKind]
    """The kinds of defects that the scheduler still shows."""
    disappeared: tuple[StoredTrial, ...]
    """The cases that no longer show their defect."""

    def new(self, report: CampaignReport) -> list[Finding]:
        """The findings of a campaign that are not in the baseline."""
        return [finding for finding in report.findings if finding.kind not in self.kinds]


def judge_baseline(scheduler: Scheduler, known: Sequence[StoredTrial]) -> Baseline:
    """Judge the known cases again."""
    kinds, disappeared = set(), []
    for stored in known:
        kind = kind_of(scheduler, stored)
        if kind is None:
            disappeared.append(stored)
        else:
            kinds.add(kind)
    return Baseline(frozenset(kinds), tuple(disappeared))


def kind_of(scheduler: Scheduler, stored: StoredTrial) -> FindingKind | None:
    """The kind of the finding of a stored case; ``None`` if it no longer shows its defect."""
    trial = trial_of(stored)
    verdict = judge(scheduler, trial)
    message, stored_message = without_numbers(verdict.message), without_numbers(stored.message)
    if (verdict.outcome, message) != (stored.outcome, stored_message):
        return None
    return Finding(verdict, stored.number, trial, trial).kind
