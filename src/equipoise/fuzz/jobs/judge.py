"""The specification of schedules: what every batch scheduler must keep, and what some promise.

The judge reads only the trial and the record of the run: start, end and hosts of each job.
Constraints of jobs are judged with the specification language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from equipoise.fuzz.jobs.trial import JobTrial, TrialJob
from equipoise.sim.jobs.host_set import bits_of
from equipoise.sim.jobs.rules.gate import JobGate
from equipoise.sim.jobs.work import Job, JobState

_ROUNDING_S: Final = 1e-6
"""Messages of the Batsim protocol have six decimals."""


class ScheduleViolation(NamedTuple):
    """What is wrong with a schedule."""

    rule: str
    """A constraint of a job, or a rule of schedules."""
    at_s: float
    detail: str


@dataclass(slots=True)
class Schedule:
    """The record of a run."""

    trial: JobTrial
    jobs: Sequence[Job]
    gate: JobGate = field(init=False)
    feasible: list[bool] = field(init=False)
    """Whether the empty platform can run each job."""

    def __post_init__(self) -> None:
        self.gate = JobGate(self.trial.platform())
        self.feasible = [
            job.hosts_requested <= len(self.trial.racks) and not self.gate.rejection(job)
            for job in self.jobs
        ]

    @property
    def pairs(self) -> list[tuple[TrialJob, Job]]:
        """The jobs of the trial with their records."""
        return list(zip(self.trial.jobs, self.jobs, strict=True))

    def running(self, at_s: float) -> dict[Job, tuple[int, ...]]:
        """Return the jobs that run after the starts of an instant."""
        return {
            job: job.hosts for job in self.jobs if job.hosts and job.start_s <= at_s < job.end_s
        }

    def waiting(self, at_s: float) -> list[tuple[TrialJob, Job]]:
        """Return the feasible jobs that still wait after an instant, in the order of arrival."""
        return [
            (known, job)
            for (known, job), feasible in zip(self.pairs, self.feasible, strict=True)
            if feasible and known.submit_s <= at_s and not (job.hosts and job.start_s <= at_s)
        ]

    @property
    def instants(self) -> list[float]:
        """The times at which a job arrives, starts or ends."""
        starts = [job.start_s for job in self.jobs if job.hosts]
        ends = [job.end_s for job in self.jobs if job.hosts]
        return sorted({*map(float, (job.submit_s for job in self.trial.jobs)), *starts, *ends})

    def free(self, running: Mapping[Job, Sequence[int]]) -> int:
        """Return the hosts that no job occupies."""
        return self.gate.all_hosts & ~bits_of(host for hosts in running.values() for host in hosts)


def _single_jobs(schedule: Schedule) -> Iterator[ScheduleViolation]:
    """Each job: number of hosts, start after submission, run time, end."""
    for (known, job), feasible in zip(schedule.pairs, schedule.feasible, strict=True):
        if not job.hosts:
            if feasible:
                what = "is rejected" if job.state is JobState.REJECTED else "never starts"
                yield ScheduleViolation("Liveness", inf, f"job {known.id} {what}")
            continue
        if len(set(job.hosts)) != known.hosts:
            yield ScheduleViolation("Width", job.start_s, f"job {known.id} has {job.hosts}")
        if job.start_s < known.submit_s:
            yield ScheduleViolation("Submission", job.start_s, f"job {known.id} starts too early")
        if not job.state.is_final or abs(job.run_s - known.run_s) > _ROUNDING_S:
            yield ScheduleViolation("Walltime", job.start_s, f"job {known.id} ran {job.run_s} s")


def _exclusive_hosts(schedule: Schedule) -> Iterator[ScheduleViolation]:
    for at_s in schedule.instants:
        seen: dict[int, Job] = {}
        for job, hosts in schedule.running(at_s).items():
            for host in hosts:
                if host in seen:
                    detail = f"host {host} runs jobs {seen[host].name} and {job.name}"
                    yield ScheduleViolation("ExclusiveHosts", at_s, detail)
                seen[host] = job


def _constraints(schedule: Schedule) -> Iterator[ScheduleViolation]:
    for at_s in schedule.instants:
        running = schedule.running(at_s)
        for job, hosts in running.items():
            if job.start_s == at_s:
                others = {other: taken for other, taken in running.items() if other is not job}
                refusal = schedule.gate.judge.refusal(job, hosts, others)
                if refusal is not None:
                    detail = f"job {job.name}: {refusal.why}"
                    yield ScheduleViolation(refusal.constraint, at_s, detail)


def _prompt_first(
    rank: Callable[[TrialJob], float],
) -> Callable[[Schedule], Iterator[ScheduleViolation]]:
    """The first waiting job by a rank starts as soon as free hosts satisfy its constraints."""

    def check(schedule: Schedule) -> Iterator[ScheduleViolation]:
        for at_s in schedule.instants:
            waiting = schedule.waiting(at_s)
            if not waiting:
                continue
            known, job = min(waiting, key=lambda pair: rank(pair[0]))
            running = schedule.running(at_s)
            if schedule.gate.choose(job, schedule.free(running), others=running):
                yield ScheduleViolation("PromptFirst", at_s, f"job {known.id} could start")

    return check


def _in_order(
    rank: Callable[[TrialJob], float],
) -> Callable[[Schedule], Iterator[ScheduleViolation]]:
    """No job starts while one of a lower rank, or an earlier one of the same rank, waits."""

    def check(schedule: Schedule) -> Iterator[ScheduleViolation]:
        for at_s in schedule.instants:
            order = {known.id: index for index, known in enumerate(schedule.trial.jobs)}
            started = [known for known, job in schedule.pairs if job.hosts and job.start_s == at_s]
            for known, _ in schedule.waiting(at_s):
                for other in started:
                    if (rank(other), order[other.id]) > (rank(known), order[known.id]):
                        detail = f"job {other.id} starts before job {known.id}"
                        yield ScheduleViolation("Order", at_s, detail)

    return check


def _head_reservation(schedule: Schedule) -> Iterator[ScheduleViolation]:
    """The first waiting job starts no later than the running jobs let it, at any instant."""
    expected = {job: job.start_s + known.expected_s for known, job in schedule.pairs}
    for at_s in schedule.instants:
        waiting = schedule.waiting(at_s)
        if not waiting:
            continue
        known, job = waiting[0]
        running = schedule.running(at_s)
        for end_s in sorted({expected[job_running] for job_running in running}):
            later = {other: hosts for other, hosts in running.items() if expected[other] > end_s}
            if schedule.gate.choose(job, schedule.free(later), others=later):
                if not job.hosts or job.start_s > end_s:
                    detail = f"job {known.id} could start at {end_s:g} s and waits longer"
                    yield ScheduleViolation("HeadReservation", at_s, detail)
                break


def _arrival(job: TrialJob) -> float:
    return 0.0


def _length(job: TrialJob) -> float:
    return float(job.expected_s)


Check = Callable[[Schedule], Iterator[ScheduleViolation]]
EVERY_SCHEDULER: Final[tuple[Check, ...]] = (_exclusive_hosts, _single_jobs, _constraints)
PROMISES: Final[Mapping[str, tuple[Check, ...]]] = {
    "fcfs": (_in_order(_arrival), _prompt_first(_arrival)),
    "sjf": (_in_order(_length), _prompt_first(_length)),
    "easy": (_prompt_first(_arrival), _head_reservation),
    "conservative": (),
    "": (),
}
"""What a scheduler promises beyond the rules for all, by the name of its policy."""


def judge_schedule(schedule: Schedule, promise: str) -> ScheduleViolation | None:
    """Return the first violation; ``None`` if the schedule is right."""
    for check in (*EVERY_SCHEDULER, *PROMISES[promise]):
        for violation in check(schedule):
            return violation
    return None
