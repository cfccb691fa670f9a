"""A campaign for a batch scheduler: draw workloads, run them, judge the schedules, shrink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

from equipoise.errors import InvalidInput
from equipoise.fuzz.campaign.batch import BatchSizer
from equipoise.fuzz.campaign.campaign import SHRUNK_PER_SIGNATURE, CampaignLimits
from equipoise.fuzz.campaign.findings import CampaignReport, DefectSignature
from equipoise.fuzz.campaign.workers import (
    InProcess,
    WorkerPool,
    is_grace_over,
    is_stop_requested,
)
from equipoise.fuzz.jobs.batsim_target import BATSIM_TARGET, BatsimCommand, RefusedRequest
from equipoise.fuzz.jobs.judge import Schedule, judge_schedule
from equipoise.fuzz.jobs.schedulers import BATCH_SCHEDULERS, BatchScheduler
from equipoise.fuzz.jobs.trial import JOB_CONSTRAINTS, JobTrial, draw_trial, reductions
from equipoise.fuzz.trial import TrialOutcome
from equipoise.fuzz.trial.shrink import shrink_by
from equipoise.sim.jobs.rules.gate import JobGate


class ScheduleVerdict(NamedTuple):
    """The schedule of a batch scheduler, compared with the specification."""

    outcome: TrialOutcome
    rule: str = ""
    """The constraint or the rule of schedules that is violated."""
    message: str = ""

    @property
    def signature(self) -> DefectSignature | None:
        """Defects with equal signatures count as one kind; ``None`` without a defect."""
        return (self.rule, self.outcome) if self.outcome.is_defect else None


@dataclass(frozen=True, slots=True)
class JobFinding:
    """All defects of one kind, with the smallest workload."""

    verdict: ScheduleVerdict
    number: int
    trial: JobTrial
    shrunk: JobTrial


@dataclass(slots=True)
class JobCampaignReport(CampaignReport):
    """The counts of a campaign, and its findings about schedules."""

    schedules: list[JobFinding] = field(default_factory=list)


JobScheduler = BatchScheduler | BatsimCommand


def find_batch_scheduler(target: str, promise: str | None = None) -> JobScheduler | None:
    """Return the scheduler of a name, with the promises of a policy instead of its own."""
    if target.startswith(BATSIM_TARGET):
        return BatsimCommand(target.removeprefix(BATSIM_TARGET), promise or "")
    found = BATCH_SCHEDULERS.get(target)
    return found if found is None or promise is None else replace(found, promise=promise)


def judge_trial(scheduler: JobScheduler, trial: JobTrial) -> ScheduleVerdict:
    """Run a trial and judge its schedule."""
    try:
        jobs = scheduler.run(trial)
    except RefusedRequest as error:
        return ScheduleVerdict(TrialOutcome.UNDER, "Protocol", str(error))
    except Exception as error:  # any exception is a crash of the scheduler
        return ScheduleVerdict(TrialOutcome.CRASH, "Crash", f"{type(error).__name__}: {error}")
    violation = judge_schedule(Schedule(trial, jobs), scheduler.promise)
    if violation is None:
        return ScheduleVerdict(TrialOutcome.AGREE)
    outcome = TrialOutcome.OVER if violation.rule == "Liveness" else TrialOutcome.UNDER
    message = f"{violation.rule} at {violation.at_s:g} s: {violation.detail}"
    return ScheduleVerdict(outcome, violation.rule, message)


@dataclass(frozen=True, slots=True)
class JobBatch:
    """Trials that a worker runs: all that it needs to know."""

    target: str
    constraints: tuple[str, ...]
    hosts: tuple[int, int]
    seed: int
    numbers: range
    promise: str | None = None

    def scheduler(self) -> JobScheduler:
        """Return the scheduler under test."""
        found = find_batch_scheduler(self.target, self.promise)
        assert found is not None, "the caller has checked the name"
        return found

    def draw(self, number: int) -> JobTrial:
        """Return a trial of the batch."""
        return draw_trial(self.seed, number, self.constraints, self.hosts)


class JudgedSchedules(NamedTuple):
    """The verdicts of a batch, and its duration."""

    verdicts: list[tuple[int, ScheduleVerdict]]
    seconds: float


def judge_jobs(batch: JobBatch) -> JudgedSchedules:
    """Judge the trials of a batch; after a stop request the rest is left out."""
    scheduler, started = batch.scheduler(), perf_counter()
    verdicts = [
        (number, judge_trial(scheduler, batch.draw(number)))
        for number in batch.numbers
        if not is_stop_requested()
    ]
    return JudgedSchedules(verdicts, perf_counter() - started)


def shrink_jobs(batch: JobBatch) -> JobFinding:
    """Shrink the only trial of a batch, which has shown a defect."""
    (number,) = batch.numbers
    return shrink_to_job_finding(batch.scheduler(), number, batch.draw(number))


def shrink_to_job_finding(scheduler: JobScheduler, number: int, trial: JobTrial) -> JobFinding:
    """Return the finding of a trial that has shown a defect."""
    signature = judge_trial(scheduler, trial).signature

    def keeps(smaller: JobTrial) -> bool:
        if is_grace_over() or not is_valid(smaller):
            return False
        return judge_trial(scheduler, smaller).signature == signature

    shrunk = shrink_by(reductions, trial, keeps)
    return JobFinding(judge_trial(scheduler, shrunk), number, trial, shrunk)


def is_valid(trial: JobTrial) -> bool:
    """Whether constraints name only hosts that the trial has."""
    try:
        JobGate(trial.platform()).check_jobs(trial.workload(), "trial")
    except InvalidInput:
        return False
    return True


@dataclass(frozen=True, slots=True)
class JobCampaign:
    """Workloads for one batch scheduler. They depend only on the seed and the options."""

    target: str
    constraints: tuple[str, ...] = JOB_CONSTRAINTS
    hosts: tuple[int, int] = (1, 5)
    seed: int = 0
    limits: CampaignLimits = field(default_factory=CampaignLimits)
    promise: str | None = None
    """The policy whose promises are judged; by default those that the target claims."""

    def run(
        self,
        watch: Callable[[CampaignReport], None] | None = None,
        pool: WorkerPool | None = None,
    ) -> JobCampaignReport:
        """Judge workloads until a limit is reached, then shrink the defects."""
        pool = pool or InProcess()
        report = JobCampaignReport(self.target, self.seed)
        first: dict[DefectSignature, list[int]] = {}
        started, sizer = perf_counter(), BatchSizer(pool.parallelism)
        blocks = self.limits.blocks(sizer, started)
        with closing(pool.run_all(judge_jobs, map(self._batch, blocks))) as results:
            for batch in results:
                sizer.note(len(batch.verdicts), batch.seconds)
                for number, verdict in batch.verdicts:
                    if self.limits.is_enough(report):
                        break
                    report.add(verdict.rule, verdict.outcome, verdict.signature)
                    if verdict.signature is not None:
                        first.setdefault(verdict.signature, []).append(number)
                report.seconds = perf_counter() - started
                if watch is not None:
                    watch(report)
                if self.limits.is_enough(report) or self.limits.remaining_s(started) <= 0:
                    break
        numbers = [number for same in first.values() for number in same[:SHRUNK_PER_SIGNATURE]]
        batches = [self._batch(range(number, number + 1)) for number in numbers]
        report.schedules.extend(_smallest(pool.run_all(shrink_jobs, batches)))
        report.interrupted = is_stop_requested()
        return report

    def replay(self, trials: Sequence[JobTrial]) -> JobCampaignReport:
        """Judge stored workloads again."""
        report = JobCampaignReport(self.target, self.seed)
        scheduler, started = self._batch(range(0)).scheduler(), perf_counter()
        findings = []
        for number, trial in enumerate(trials):
            verdict = judge_trial(scheduler, trial)
            report.add(verdict.rule, verdict.outcome, verdict.signature)
            if verdict.signature is not None:
                findings.append(shrink_to_job_finding(scheduler, number, trial))
        report.schedules.extend(_smallest(findings))
        report.seconds = perf_counter() - started
        return report

    def _batch(self, numbers: range) -> JobBatch:
        return JobBatch(self.target, self.constraints, self.hosts, self.seed, numbers, self.promise)


def _smallest(findings: Iterable[JobFinding]) -> list[JobFinding]:
    """Return the smallest finding of each kind, in the order of the first one."""
    kept: dict[DefectSignature | None, JobFinding] = {}
    for finding in findings:
        known = kept.setdefault(finding.verdict.signature, finding)
        if finding.shrunk.size < known.shrunk.size:
            kept[finding.verdict.signature] = finding
    return list(kept.values())
