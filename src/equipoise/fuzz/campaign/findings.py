"""What a campaign has found: defects that are alike are one finding, told by the smallest case."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from html import escape
from typing import Final

from equipoise.fuzz.campaign.cause import Cause, cause_of
from equipoise.fuzz.trial import Outcome, Trial, Verdict
from equipoise.fuzz.trial.size import Size

Sort = tuple[object, ...]
Kind = tuple[Sort, Cause]
"""What makes two findings the same: their sort, and what they look like."""
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Finding:
    """Defects that are alike."""

    verdict: Verdict
    number: int
    """The first trial that showed it."""
    trial: Trial
    """As it was drawn."""
    shrunk: Trial
    """As small as it can be made."""

    @property
    def constraint(self) -> str:
        """What the scheduler gets wrong."""
        return self.trial.demand.name

    @property
    def mode(self) -> str:
        """Whether every moment counts, or only the end."""
        return "continuous" if self.trial.demand.continuous else "discrete"

    @property
    def shown(self) -> Trial:
        """The smallest case, with the plan that the scheduler made if it was asked for one."""
        steps = self.verdict.steps
        return self.shrunk if steps is None else replace(self.shrunk, steps=steps)

    @property
    def cause(self) -> Cause:
        """What it looks like."""
        return cause_of(self.verdict, self.shown)

    @property
    def sort(self) -> Sort:
        """What it has in common with others of its kind."""
        return sort_of(self.trial, self.verdict)

    @property
    def kind(self) -> Kind:
        """What tells it from other findings."""
        return self.sort, self.cause

    @property
    def why(self) -> str:
        """What is wrong with the answer, in a sentence."""
        if self.verdict.outcome is Outcome.CRASH:
            return f"it breaks: {self.verdict.message}"
        if self.verdict.outcome is Outcome.OVER:
            return "it refuses a plan in which the constraint holds at every moment that counts"
        does, shown = "accepts" if self.verdict.steps is None else "makes", self.shown
        if shown.objections:
            return f"it {does} a plan that cannot be carried out: {shown.objections[0].detail}"
        fault = shown.fault
        assert fault is not None, "what it accepts is wrong"
        return f"it {does} a plan that breaks the constraint at {fault.told_ms} ms: {fault.why}"


def sort_of(trial: Trial, verdict: Verdict) -> Sort:
    """What makes two defects alike; numbers in messages do not tell them apart."""
    return (
        trial.demand.name,
        trial.demand.continuous,
        verdict.outcome,
        without_numbers(verdict.message),
        verdict.input_valid,
        verdict.broken_at_first,
    )


def without_numbers(message: str) -> str:
    """A message as it is compared with others."""
    return _NUMBERS.sub("#", message)


def by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """One finding of each sort and cause, in the order of the first: the smallest there is."""
    found: dict[Kind, Finding] = {}
    for one in findings:
        known = found.setdefault(one.kind, one)
        if Size.of(one.shrunk) < Size.of(known.shrunk):
            found[one.kind] = one
    return list(found.values())


@dataclass(slots=True)
class Report:
    """What came of a campaign."""

    target: str
    seed: int
    tests: int = 0
    seconds: float = 0.0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seen: Counter[Sort] = field(default_factory=Counter)
    """How often each sort of defect was seen."""
    verdicts: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    """What came of the trials of each constraint."""
    interrupted: bool = False
    """Whether somebody has ended it before it was done; cases may be larger than need be."""

    def add(self, constraint: str, outcome: Outcome, sort: Sort | None) -> None:
        """Count a trial, and the defect if it shows one."""
        self.tests += 1
        self.outcomes[outcome] += 1
        self.verdicts[constraint, outcome] += 1
        if sort is not None:
            self.seen[sort] += 1

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        from equipoise.fuzz.campaign.words import told  # noqa: PLC0415  (it needs this file)

        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in self.outcomes.items())
        head = f"{self.target}: {self.tests:,} trials; {counts}"
        return f"<p>{escape(head)}</p><pre>{escape(chr(10).join(told(self)))}</pre>"

    @property
    def agreed(self) -> int:
        """How many trials the scheduler and the specification agree on."""
        return self.outcomes[Outcome.AGREE]

    @property
    def defects(self) -> int:
        """How many trials showed a defect."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.is_defect)

    @property
    def tests_per_s(self) -> float:
        """How many trials a second."""
        return self.tests / self.seconds if self.seconds else 0.0
