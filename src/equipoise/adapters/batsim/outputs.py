"""Writes the result files of Batsim 4.2: ``jobs.csv``, ``schedule.csv``, ``machine_states.csv``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Final, TextIO

from equipoise.sim.jobs.host_set import format_host_set
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.work import UNLIMITED, Job, JobState

STATE_NAMES: Final = {
    JobState.NOT_SUBMITTED: "NOT_SUBMITTED",
    JobState.SUBMITTED: "SUBMITTED",
    JobState.RUNNING: "RUNNING",
    JobState.SUCCEEDED: "COMPLETED_SUCCESSFULLY",
    JobState.FAILED: "COMPLETED_FAILED",
    JobState.TIMED_OUT: "COMPLETED_WALLTIME_REACHED",
    JobState.KILLED: "COMPLETED_KILLED",
    JobState.REJECTED: "REJECTED",
}
_JOB_COLUMNS: Final = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,"
    "success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,"
    "stretch,allocated_resources,consumed_energy,metadata\n"
)
_HOST_COLUMNS: Final = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"


class BatsimOutputs:
    """Writes rows while the simulation runs."""

    def __init__(self, prefix: str, *, host_states: bool = True) -> None:
        self._prefix = prefix
        self._files = ExitStack()
        self._jobs = self._open("jobs", _JOB_COLUMNS)
        self._hosts = self._open("machine_states", _HOST_COLUMNS) if host_states else None

    def __enter__(self) -> BatsimOutputs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.close()

    def _open(self, name: str, header: str) -> TextIO:
        file = open(f"{self._prefix}_{name}.csv", "w", encoding="utf-8")  # noqa: SIM115
        self._files.push(file)
        file.write(header)
        return file

    def write_job(self, job: Job) -> None:
        """Write the row of a job that has ended or was rejected."""
        limit_s = -1.0 if job.walltime_s == UNLIMITED else job.walltime_s
        first = (
            f"{job.name},{job.workload},{job.work.name},{job.submit_s:.6f},{job.hosts_requested},"
            f"{limit_s:.6f},{int(job.state is JobState.SUCCEEDED)},{STATE_NAMES[job.state]},"
        )
        if job.state is JobState.REJECTED:
            self._jobs.write(f'{first},,,,,,,,"{job.label}"\n')
            return
        turnaround_s = job.end_s - job.submit_s
        self._jobs.write(
            f"{first}{job.start_s:.6f},{job.run_s:.6f},{job.end_s:.6f},"
            f"{job.start_s - job.submit_s:.6f},{turnaround_s:.6f},{turnaround_s / job.run_s:.6f},"
            f'{format_host_set(job.hosts)},{job.energy_j:.6f},"{job.label}"\n'
        )

    def write_hosts(self, now_s: float, counts: list[int]) -> None:
        """Write how many hosts are in each state."""
        if self._hosts is None:
            return
        self._hosts.write(
            f"{now_s:g},{counts[JobHostState.SLEEPING]},{counts[JobHostState.SWITCHING_ON]},"
            f"{counts[JobHostState.SWITCHING_OFF]},{counts[JobHostState.IDLE]},"
            f"{counts[JobHostState.COMPUTING]}\n"
        )

    def write_schedule(self, values: Mapping[str, str]) -> None:
        """Write the summary: one row, with the columns in alphabetical order."""
        file = self._open("schedule", ",".join(sorted(values)) + "\n")
        file.write(",".join(values[key] for key in sorted(values)) + "\n")
