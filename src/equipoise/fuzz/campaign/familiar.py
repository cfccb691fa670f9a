"""Findings that are known already: a campaign fails on new ones, and if a known one disappears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.fuzz.campaign.findings import Finding, Kind, Report, without_numbers
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.trial import judge
from equipoise.fuzz.trial.stored import Stored, trial_of


@dataclass(frozen=True, slots=True)
class Familiar:
    """What is known of a scheduler in one version."""

    kinds: frozenset[Kind]
    """The sorts of defects that it still shows, each with what it looks like."""
    gone: tuple[Stored, ...]
    """The cases that do not show any more what they have shown."""

    def new(self, report: Report) -> list[Finding]:
        """What a campaign has found that was not known."""
        return [one for one in report.findings if one.kind not in self.kinds]


def familiar(scheduler: Scheduler, known: Sequence[Stored]) -> Familiar:
    """Judge the known cases again."""
    kinds, gone = set(), []
    for stored in known:
        kind = kind_of(scheduler, stored)
        if kind is None:
            gone.append(stored)
        else:
            kinds.add(kind)
    return Familiar(frozenset(kinds), tuple(gone))


def kind_of(scheduler: Scheduler, stored: Stored) -> Kind | None:
    """Of which kind the finding of a stored case is; none if it does not show any more."""
    trial = trial_of(stored)
    verdict = judge(scheduler, trial)
    said, before = without_numbers(verdict.message), without_numbers(stored.message)
    if (verdict.outcome, said) != (stored.outcome, before):
        return None
    return Finding(verdict, stored.number, trial, trial).kind
