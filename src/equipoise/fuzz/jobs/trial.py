"""Trials of batch schedulers: a small platform with racks, and jobs that carry constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from equipoise.model.value import Value
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, JobConstraint

Seconds = Annotated[int, Meta(ge=0)]
PositiveSeconds = Annotated[int, Meta(ge=1)]
Width = Annotated[int, Meta(ge=1, le=1_000)]


class TrialConstraint(Value):
    """A constraint of a job in a trial."""

    constraint: str
    arguments: Mapping[str, Any] = {}


class TrialJob(Value):
    """A job of a trial: it waits for a fixed time."""

    id: str
    submit_s: Seconds
    hosts: Width
    seconds: PositiveSeconds
    walltime_s: PositiveSeconds | None = None
    constraints: tuple[TrialConstraint, ...] = ()

    @property
    def expected_s(self) -> int:
        """What a scheduler may assume: the walltime, or the true time without one."""
        return self.seconds if self.walltime_s is None else self.walltime_s

    @property
    def run_s(self) -> int:
        """How long it runs."""
        return min(self.seconds, self.expected_s)


class JobTrial(Value):
    """A platform and a workload; jobs are in the order of submission."""

    racks: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The rack of each host; an empty text for none."""
    jobs: tuple[TrialJob, ...] = ()

    def platform(self) -> Platform:
        """Return the platform: equal hosts with a property ``rack``."""
        return Platform(
            hosts=[
                JobHost(
                    name=f"host{number}",
                    power_states=(PowerState(1.0),),
                    properties={"rack": rack} if rack else {},
                )
                for number, rack in enumerate(self.racks)
            ]
        )

    def workload(self) -> list[Job]:
        """Return new jobs for a run."""
        return [
            Job(
                "w0",
                job.id,
                float(job.submit_s),
                job.hosts,
                DelayWork(name=f"delay{job.seconds}", seconds=float(job.seconds)),
                UNLIMITED if job.walltime_s is None else float(job.walltime_s),
                constraints=tuple(
                    JobConstraint(constraint.constraint, constraint.arguments)
                    for constraint in job.constraints
                ),
            )
            for job in self.jobs
        ]

    @property
    def size(self) -> tuple[int, ...]:
        """What a reduction makes smaller, the most important first."""
        return (
            len(self.jobs),
            sum(len(job.constraints) for job in self.jobs),
            len(self.racks),
            sum(job.hosts for job in self.jobs),
            sum(job.walltime_s is not None for job in self.jobs),
            sum(job.submit_s + job.seconds + (job.walltime_s or 0) for job in self.jobs),
            sum(map(bool, self.racks)),
            sum(
                len(str(constraint.arguments))
                for job in self.jobs
                for constraint in job.constraints
            ),
        )


JOB_CONSTRAINTS: Final = (
    "SpreadOver", "GatherWithin", "Among", "Fence", "Ban", "RunningCapacity", "PodAntiAffinity",
)  # fmt: skip
"""The constraints that trials draw by default."""


def draw_trial(
    seed: int, number: int, constraints: tuple[str, ...], hosts: tuple[int, int]
) -> JobTrial:
    """Return a trial, which depends only on the seed, its number and these options."""
    chance = np.random.default_rng([seed, number])
    count = int(chance.integers(hosts[0], hosts[1] + 1))
    racks = tuple(str(rack) for rack in chance.choice(["a", "b", "c", ""], count))
    jobs, submit_s = [], 0
    for index in range(int(chance.integers(1, 9))):
        submit_s += int(chance.choice([0, 0, 0, 1, 3]))
        seconds = int(chance.integers(1, 9))
        limited = bool(chance.integers(0, 2))
        drawn = int(chance.choice([0, 0, 1, 1, 2])) if constraints else 0
        jobs.append(
            TrialJob(
                id=str(index),
                submit_s=submit_s,
                hosts=int(chance.integers(1, count + 1)),
                seconds=seconds,
                walltime_s=int(chance.integers(1, 12)) if limited else None,
                constraints=tuple(
                    _draw_constraint(chance, str(chance.choice(constraints)), count)
                    for _ in range(drawn)
                ),
            )
        )
    return JobTrial(racks=racks, jobs=tuple(jobs))


def _draw_constraint(chance: np.random.Generator, name: str, count: int) -> TrialConstraint:
    size = int(chance.integers(1, count + 1))
    group = sorted(int(host) for host in chance.permutation(count)[:size])
    rest = [host for host in range(count) if host not in group]
    arguments: dict[str, Any] = {}
    match name:
        case "SpreadOver" | "GatherWithin":
            arguments = {"key": "rack"}
        case "PodAntiAffinity":
            arguments = {"key": "rack", "others": "others"}
        case "Among":
            arguments = {"parts": [part for part in (group, rest) if part]}
        case "Fence" | "Ban":
            arguments = {"ns": group}
        case "RunningCapacity":
            arguments = {"ns": group, "nb": int(chance.integers(0, count + 1))}
    return TrialConstraint(constraint=name, arguments=arguments)


def reductions(trial: JobTrial) -> Iterator[JobTrial]:
    """Yield trials that are one reduction away, coarse reductions first."""
    for candidate in _all_reductions(trial):
        if candidate.size < trial.size:
            yield candidate


def _all_reductions(trial: JobTrial) -> Iterator[JobTrial]:
    jobs = trial.jobs
    for index in range(len(jobs)):
        yield trial.but(jobs=(*jobs[:index], *jobs[index + 1 :]))
    for index, job in enumerate(jobs):
        for smaller in _smaller_jobs(job):
            yield trial.but(jobs=(*jobs[:index], smaller, *jobs[index + 1 :]))
    for gap_s in sorted({job.submit_s for job in jobs} - {0}):
        # All later jobs move together, so that their order stays.
        moved = (job.but(submit_s=job.submit_s - (job.submit_s >= gap_s)) for job in jobs)
        yield trial.but(jobs=tuple(moved))
    if len(trial.racks) > 1:
        yield trial.but(racks=trial.racks[:-1])
    for index, rack in enumerate(trial.racks):
        if rack:
            yield trial.but(racks=(*trial.racks[:index], "", *trial.racks[index + 1 :]))


def _smaller_jobs(job: TrialJob) -> Iterator[TrialJob]:
    for index in range(len(job.constraints)):
        yield job.but(constraints=(*job.constraints[:index], *job.constraints[index + 1 :]))
    if job.hosts > 1:
        yield job.but(hosts=1)
        yield job.but(hosts=job.hosts - 1)
    if job.walltime_s is not None:
        yield job.but(walltime_s=None)
        if job.walltime_s > 1:
            yield job.but(walltime_s=job.walltime_s - 1)
    if job.seconds > 1:
        yield job.but(seconds=1)
        yield job.but(seconds=job.seconds - 1)
    for index, constraint in enumerate(job.constraints):
        group = constraint.arguments.get("ns")
        if isinstance(group, list | tuple) and len(group) > 1:
            for host in group:
                fewer = [other for other in group if other != host]
                smaller = constraint.but(arguments={**constraint.arguments, "ns": fewer})
                yield job.but(
                    constraints=(*job.constraints[:index], smaller, *job.constraints[index + 1 :])
                )
