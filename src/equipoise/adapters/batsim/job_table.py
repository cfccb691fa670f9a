"""Jobs as a table with the columns of Batsim's ``jobs.csv``, for pandas."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Any, Final

from equipoise.adapters.batsim.outputs import STATE_NAMES
from equipoise.sim.jobs.host_set import format_host_set
from equipoise.sim.jobs.work import UNLIMITED, Job, JobState

JOB_COLUMNS: Final = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
    "metadata",
)  # fmt: skip


def job_row(job: Job) -> tuple[Any, ...]:
    """Return the row of a job; a rejected job has no times."""
    limit_s = -1.0 if job.walltime_s == UNLIMITED else job.walltime_s
    first = (
        job.name, job.workload, job.work.name, job.submit_s, job.hosts_requested, limit_s,
        int(job.state is JobState.SUCCEEDED), STATE_NAMES[job.state],
    )  # fmt: skip
    if job.state is JobState.REJECTED:
        return (*first, nan, nan, nan, nan, nan, nan, "", -1.0, job.label)
    turnaround_s = job.end_s - job.submit_s
    return (
        *first, job.start_s, job.run_s, job.end_s, job.start_s - job.submit_s, turnaround_s,
        turnaround_s / job.run_s, format_host_set(job.hosts), job.energy_j, job.label,
    )  # fmt: skip


def job_table(jobs: Iterable[Job]) -> dict[str, list[Any]]:
    """Return the columns of jobs by name, in Batsim's order."""
    columns: dict[str, list[Any]] = {name: [] for name in JOB_COLUMNS}
    cells = list(columns.values())
    for job in jobs:
        for column, value in zip(cells, job_row(job), strict=True):
            column.append(value)
    return columns
