"""An account of a campaign: what came of it, and what it was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.fuzz.campaign import Finding, Report
from equipoise.fuzz.trial import Outcome

ANSWERS = (Outcome.AGREE, Outcome.OVER, Outcome.UNDER, Outcome.CRASH)
"""What says something about the scheduler; in all other cases it gave no answer."""


@dataclass(frozen=True, slots=True)
class Account:
    """A campaign as it is told to others."""

    report: Report
    asked: Sequence[str] = ()
    """The constraints that were to be tried; without any, those that were."""
    version: str = ""
    """Of the target, if it is known."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """How the target was set, where it was not as usual."""

    @property
    def constraints(self) -> tuple[str, ...]:
        """All that it is about."""
        return tuple(self.asked or dict.fromkeys(name for name, _ in self.report.verdicts))

    def count(self, constraint: str, *outcomes: Outcome) -> int:
        """How many trials of a constraint came to one of these, or without any, to anything."""
        verdicts = self.report.verdicts
        return sum(verdicts[constraint, one] for one in outcomes or Outcome)

    def findings(self, constraint: str) -> list[Finding]:
        """What was found about a constraint."""
        return [one for one in self.report.findings if one.constraint == constraint]

    def seen(self, finding: Finding) -> int:
        """How many trials have shown it."""
        return self.report.seen[finding.sort]
