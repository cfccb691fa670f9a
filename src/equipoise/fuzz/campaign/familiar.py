"""Findings that are known already: a campaign fails on new ones, and if a known one disappears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.fuzz.campaign.findings import Finding, Report, Sort, sort_of
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.trial import judge
from equipoise.fuzz.trial.stored import Stored, trial_of


@dataclass(frozen=True, slots=True)
class Familiar:
    """What is known of a scheduler in one version."""

    sorts: frozenset[Sort]
    """The sorts of defects that it still shows."""
    gone: tuple[Stored, ...]
    """The cases that do not show any more what they have shown."""

    def new(self, report: Report) -> list[Finding]:
        """What a campaign has found that was not known."""
        return [one for one in report.findings if one.sort not in self.sorts]


def familiar(scheduler: Scheduler, known: Sequence[Stored]) -> Familiar:
    """Judge the known cases again."""
    sorts, gone = set(), []
    for stored in known:
        trial = trial_of(stored)
        verdict = judge(scheduler, trial)
        if verdict.outcome is stored.outcome:
            sorts.add(sort_of(trial, verdict))
        else:
            gone.append(stored)
    return Familiar(frozenset(sorts), tuple(gone))
