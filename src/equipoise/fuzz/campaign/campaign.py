"""A campaign: draw trials, call the scheduler, compare with the specification, shrink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import perf_counter
from typing import Final

from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.adapters.targets.trial import DEFAULT_OPTIONS, TrialOptions
from equipoise.fuzz.campaign.batch import (
    BatchSizer,
    SchedulerFactory,
    TrialBatch,
    judge_batch,
    shrink_defect,
    shrink_to_finding,
)
from equipoise.fuzz.campaign.findings import (
    CampaignReport,
    DefectSignature,
    Finding,
    distinct_findings,
    signature_of,
)
from equipoise.fuzz.campaign.workers import InProcess, WorkerPool, is_stop_requested
from equipoise.fuzz.trial import Trial, judge

ProgressListener = Callable[[CampaignReport], None]
SHRUNK_PER_SIGNATURE: Final = 3
"""The number of trials of one signature that are shrunk: their causes may differ."""


@dataclass(frozen=True, slots=True)
class CampaignLimits:
    """The limits of a campaign: the first one that is reached ends it."""

    tests: int | None = 1_000
    failures: int | None = None
    """The number of trials that may show a defect."""
    seconds: float | None = None

    def is_enough(self, report: CampaignReport) -> bool:
        """Return whether a report has all trials or defects."""
        return (self.tests is not None and report.tests >= self.tests) or (
            self.failures is not None and report.defects >= self.failures
        )

    def remaining_s(self, started: float) -> float:
        """Return the remaining seconds of a campaign."""
        return inf if self.seconds is None else self.seconds - (perf_counter() - started)

    def blocks(self, sizer: BatchSizer, started: float) -> Iterator[range]:
        """Yield the numbers of all trials in order, in blocks of the current size."""
        number, end = 0, inf if self.tests is None else self.tests
        while number < end and not is_stop_requested():
            size = sizer.size(end - number, self.remaining_s(started))
            yield range(number, number + size)
            number += size


@dataclass(frozen=True, slots=True)
class FuzzCampaign:
    """Trials of some constraints in turn, for one scheduler. They depend only on the seed."""

    target: str
    scheduler: Scheduler | SchedulerFactory
    """The scheduler, or a function that returns it and that other processes can call."""
    constraints: Sequence[str]
    options: TrialOptions = DEFAULT_OPTIONS
    seed: int = 0
    limits: CampaignLimits = field(default_factory=CampaignLimits)
    own: str = ""
    """The text of constraints beside the library; they override equal names of the library."""

    def run(
        self, watch: ProgressListener | None = None, pool: WorkerPool | None = None
    ) -> CampaignReport:
        """Draw and judge trials until a limit is reached, then shrink the defects.

        After a stop request, the report has the findings so far.
        """
        pool = pool or InProcess()
        report = CampaignReport(self.target, self.seed)
        first: dict[DefectSignature, list[int]] = {}
        started, sizer = perf_counter(), BatchSizer(pool.parallelism)
        blocks = self.limits.blocks(sizer, started) if self.constraints else ()
        with closing(pool.run_all(judge_batch, map(self._batch, blocks))) as results:
            for batch in results:
                sizer.note(len(batch.judged), batch.seconds)
                for number, outcome, signature in batch.judged:
                    # The limit of failures can be reached within a batch. The trials after it do
                    # not count, so that the report does not depend on the size of batches.
                    if self.limits.is_enough(report):
                        break
                    report.add(self.constraints[number % len(self.constraints)], outcome, signature)
                    if signature is not None:
                        first.setdefault(signature, []).append(number)
                report.seconds = perf_counter() - started
                if watch is not None:
                    watch(report)
                if self.limits.is_enough(report) or self.limits.remaining_s(started) <= 0:
                    break
        report.seconds = perf_counter() - started
        report.findings.extend(
            distinct_findings(filter(None, pool.run_all(shrink_defect, self._to_shrink(first))))
        )
        report.interrupted = is_stop_requested()
        return report

    def replay(self, trials: Iterable[Trial]) -> CampaignReport:
        """Judge stored trials again."""
        report = CampaignReport(self.target, self.seed)
        scheduler, started = self._make()(), perf_counter()
        findings: list[Finding] = []
        for number, trial in enumerate(trials):
            if is_stop_requested():
                break
            verdict = judge(scheduler, trial)
            signature = signature_of(trial, verdict) if verdict.outcome.is_defect else None
            report.add(trial.demand.name, verdict.outcome, signature)
            if signature is not None:
                findings.append(shrink_to_finding(scheduler, number, trial))
        report.findings.extend(distinct_findings(findings))
        report.seconds = perf_counter() - started
        report.interrupted = is_stop_requested()
        return report

    def _to_shrink(self, first: Mapping[DefectSignature, Sequence[int]]) -> Iterator[TrialBatch]:
        """The first trials of each signature, one per batch."""
        for numbers in first.values():
            for position, number in enumerate(numbers[:SHRUNK_PER_SIGNATURE]):
                yield replace(self._batch(range(number, number + 1)), is_optional=position > 0)

    def _batch(self, numbers: range) -> TrialBatch:
        names = tuple(self.constraints)
        return TrialBatch(self._make(), names, self.options, self.seed, numbers, self.own)

    def _make(self) -> SchedulerFactory:
        return self.scheduler if callable(self.scheduler) else partial(_itself, self.scheduler)


def _itself(scheduler: Scheduler) -> Scheduler:
    return scheduler
