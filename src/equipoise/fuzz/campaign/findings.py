"""Findings of a campaign: equal defects are one finding, shown by the smallest case.

The cause of a finding is a guess from that case, by the causes that the SafePlace paper found in
BtrPlace. It helps to see which findings may be the same defect. A baseline has the known findings
of a target: a campaign with one fails on a new finding, and if a known one disappears.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from html import escape
from itertools import combinations
from typing import Any, Final

from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict, judge
from equipoise.fuzz.trial.shrink import TrialSize
from equipoise.fuzz.trial.stored import StoredTrial, trial_of
from equipoise.model.action import Move
from equipoise.model.plan import Step
from equipoise.model.vm import Vm, VmState


class DefectCause(Enum):
    """A cause in the paper's table: its letter and its meaning."""

    BROKEN = ("A", "the constraint is violated initially")
    UNUSUAL = ("B", "an unusual argument: an empty set, list or group")
    BETWEEN = ("C", "a state between the start and the end of the plan")
    TOGETHER = ("D", "actions that run at the same time")
    MEANING = ("E", "the meaning of an action: a migrating VM runs on its source")
    STATE = ("F", "the initial state of a VM")
    OTHER = ("", "none of the known causes")

    @property
    def letter(self) -> str:
        """The letter in the paper; empty for none of its causes."""
        return self.value[0]

    @property
    def words(self) -> str:
        """The meaning of the cause."""
        return self.value[1]


def cause_of(verdict: TrialVerdict, smallest: Trial) -> DefectCause:
    """Guess the cause of a defect from its smallest case with the plan in question."""
    # Shrinking removes a network that plays no part, so here it is part of the cause.
    if smallest.network is not None:
        return DefectCause.OTHER
    if any(map(_is_empty, smallest.demand.arguments.values())):
        return DefectCause.UNUSUAL
    if verdict.broken_at_first:
        return DefectCause.BROKEN
    busy = {step.footprint.vm for step in smallest.steps}
    if any(_is_idle_vm(vm, vm.id in busy) for vm in smallest.initial.vms.values()):
        return DefectCause.STATE
    if not smallest.demand.continuous:
        return DefectCause.TOGETHER if _overlap(smallest.steps) else DefectCause.OTHER
    if verdict.outcome is TrialOutcome.UNDER and not _overlap(smallest.steps):
        return DefectCause.BETWEEN
    moves = any(isinstance(step.action, Move) for step in smallest.steps)
    if verdict.outcome is TrialOutcome.OVER and moves:
        return DefectCause.MEANING
    return DefectCause.TOGETHER if _overlap(smallest.steps) else DefectCause.OTHER


def _is_idle_vm(vm: Vm, busy: bool) -> bool:
    """Whether a VM sleeps initially, or does not run and has no action."""
    return vm.state is VmState.SLEEPING or (vm.state is not VmState.RUNNING and not busy)


def _is_empty(value: Any) -> bool:
    """Whether a collection or any of its members is empty."""
    return isinstance(value, frozenset | tuple) and (not value or any(map(_is_empty, value)))


def _overlap(steps: Sequence[Step]) -> bool:
    return any(
        first.start_ms < second.end_ms and second.start_ms < first.end_ms
        for first, second in combinations(steps, 2)
    )


DefectSignature = tuple[object, ...]
FindingKind = tuple[DefectSignature, DefectCause]
"""The identity of a finding: the signature of its defect and its guessed cause."""
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Finding:
    """All defects of one kind, with the smallest case."""

    verdict: TrialVerdict
    number: int
    """The number of the first trial that shows it."""
    trial: Trial
    """The trial as it was drawn."""
    shrunk: Trial
    """The smallest trial that shows the same defect."""

    @property
    def constraint(self) -> str:
        """The constraint of the trial."""
        return self.trial.demand.name

    @property
    def mode(self) -> str:
        """``continuous`` if every moment counts, ``discrete`` if only the end counts."""
        return "continuous" if self.trial.demand.continuous else "discrete"

    @property
    def shown(self) -> Trial:
        """The smallest case, with the plan of the scheduler if it makes plans."""
        steps = self.verdict.steps
        return self.shrunk if steps is None else replace(self.shrunk, steps=steps)

    @property
    def cause(self) -> DefectCause:
        """The guessed cause."""
        return cause_of(self.verdict, self.shown)

    @property
    def signature(self) -> DefectSignature:
        """The signature of its defects."""
        return signature_of(self.trial, self.verdict)

    @property
    def kind(self) -> FindingKind:
        """The identity of the finding."""
        return self.signature, self.cause

    @property
    def why(self) -> str:
        """What is wrong with the answer of the scheduler, in a sentence."""
        if self.verdict.outcome is TrialOutcome.CRASH:
            return f"the scheduler crashes: {self.verdict.message}"
        if self.verdict.outcome is TrialOutcome.OVER:
            return "the scheduler rejects a plan that satisfies the constraint"
        verb, shown = "accepts" if self.verdict.steps is None else "makes", self.shown
        if shown.objections:
            detail = shown.objections[0].detail
            return f"the scheduler {verb} a plan that cannot be executed: {detail}"
        violation = shown.violation
        assert violation is not None, "under-filtering has a violation or an objection"
        return (
            f"the scheduler {verb} a plan that violates the constraint "
            f"at {violation.happened_ms} ms: {violation.why}"
        )


def signature_of(trial: Trial, verdict: TrialVerdict) -> DefectSignature:
    """The signature of a defect; defects with equal signatures count as one kind.

    Numbers in messages are ignored, because they depend on the single case.
    """
    return (
        trial.demand.name,
        trial.demand.continuous,
        verdict.outcome,
        without_numbers(verdict.message),
        verdict.input_valid,
        verdict.broken_at_first,
    )


def without_numbers(message: str) -> str:
    """A message with every number replaced, for comparisons."""
    return _NUMBERS.sub("#", message)


def distinct_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The smallest finding of each kind, in the order of the first one."""
    smallest: dict[FindingKind, Finding] = {}
    for finding in findings:
        known = smallest.setdefault(finding.kind, finding)
        if TrialSize.of(finding.shrunk) < TrialSize.of(known.shrunk):
            smallest[finding.kind] = finding
    return list(smallest.values())


@dataclass(slots=True)
class CampaignReport:
    """The counts and findings of a campaign."""

    target: str
    seed: int
    tests: int = 0
    seconds: float = 0.0
    outcomes: Counter[TrialOutcome] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seen: Counter[DefectSignature] = field(default_factory=Counter)
    """The number of trials with each signature of a defect."""
    verdicts: Counter[tuple[str, TrialOutcome]] = field(default_factory=Counter)
    """The number of trials by constraint and outcome."""
    interrupted: bool = False
    """Whether a stop request ended it early; its cases may not be minimal."""

    def add(
        self, constraint: str, outcome: TrialOutcome, signature: DefectSignature | None
    ) -> None:
        """Count a trial and its defect, if any."""
        self.tests += 1
        self.outcomes[outcome] += 1
        self.verdicts[constraint, outcome] += 1
        if signature is not None:
            self.seen[signature] += 1

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        from equipoise.fuzz.campaign.text_report import report_lines  # noqa: PLC0415  (it needs this file)

        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in self.outcomes.items())
        head = f"{self.target}: {self.tests:,} trials; {counts}"
        return f"<p>{escape(head)}</p><pre>{escape(chr(10).join(report_lines(self)))}</pre>"

    @property
    def agreed(self) -> int:
        """The number of trials on which the scheduler and the specification agree."""
        return self.outcomes[TrialOutcome.AGREE]

    @property
    def defects(self) -> int:
        """The number of trials with a defect."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.is_defect)

    @property
    def tests_per_s(self) -> float:
        """The trials per second."""
        return self.tests / self.seconds if self.seconds else 0.0


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
    # Another defect on the same case is no proof that the known one is still there.
    if (verdict.outcome, message) != (stored.outcome, stored_message):
        return None
    return Finding(verdict, stored.number, trial, trial).kind
