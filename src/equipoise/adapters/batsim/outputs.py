"""The result files of Batsim, and the rows of ``jobs.csv`` as a table for pandas.

The files are ``jobs.csv``, ``schedule.csv`` and ``machine_states.csv``. The layout of version 4 has
an underscore after the prefix. That of version 5 has none, writes ``schedule.json`` and
``real_exec_info.json``, and makes the folder of the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from math import inf, nan
from pathlib import Path
from typing import Any, Final, TextIO

from equipoise.adapters.batsim.v5.events import BATSIM_VERSION
from equipoise.sim.jobs.host_set import format_host_set
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
_LAYOUT_5: Final = 5
_SPECIAL: Final = frozenset(',"\n\r')
"""What makes quotes necessary in a cell."""
JOB_COLUMNS: Final = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
    "metadata",
)  # fmt: skip
_HOST_COLUMNS: Final = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"


def file_stem(prefix: str, layout: int) -> str:
    """Return what precedes the names of files; ``out/`` is a folder in the layout of version 5."""
    return prefix if layout >= _LAYOUT_5 or prefix.endswith("/") else f"{prefix}_"


def output_files(prefix: str, layout: int) -> list[Path]:
    """Return the files that a run may write; makes the folder of a prefix of version 5."""
    stem = file_stem(prefix, layout)
    summary = "schedule.csv" if layout < _LAYOUT_5 else "schedule.json"
    names = ("jobs.csv", summary, "machine_states.csv", "pstate_changes.csv", "consumed_energy.csv")
    if layout >= _LAYOUT_5:
        Path(f"{stem}jobs.csv").parent.mkdir(parents=True, exist_ok=True)
    return [Path(f"{stem}{name}") for name in names]


def _cell(text: str) -> str:
    """Return a cell of CSV: as it is, as Batsim writes it, unless it could not be read back."""
    if text.isalnum() or not _SPECIAL.intersection(text):
        return text
    return f'"{_doubled(text)}"'


def _doubled(text: str) -> str:
    return text.replace('"', '""')


def job_line(job: Job, profile: str) -> str:
    """Return the line of ``jobs.csv`` of a job that has ended or was rejected."""
    limit_s = -1.0 if job.walltime_s == UNLIMITED else job.walltime_s
    first = (
        f"{_cell(job.name)},{_cell(job.workload)},{_cell(profile)},{job.submit_s:.6f},{job.hosts_requested},"
        f"{limit_s:.6f},{int(job.state is JobState.SUCCEEDED)},{STATE_NAMES[job.state]},"
    )
    if job.state is JobState.REJECTED:
        return f'{first},,,,,,,,"{_doubled(job.label)}"\n'
    end_s = job.end_s
    turnaround_s = end_s - job.submit_s
    return (
        f"{first}{job.start_s:.6f},{job.run_s:.6f},{end_s:.6f},"
        f"{job.start_s - job.submit_s:.6f},{turnaround_s:.6f},{turnaround_s / job.run_s:.6f},"
        f'{format_host_set(job.hosts)},{job.energy_j:.6f},"{_doubled(job.label)}"\n'
    )


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


class BatsimOutputs:
    """Writes rows while the simulation runs."""

    def __init__(self, prefix: str, *, host_states: bool = True, layout: int = 4) -> None:
        self._stem = file_stem(prefix, layout)
        self._layout = layout
        self._first_submit_s = inf
        if layout >= _LAYOUT_5:
            Path(f"{prefix}jobs.csv").parent.mkdir(parents=True, exist_ok=True)
        self._files = ExitStack()
        self._jobs = self._open("jobs", ",".join(JOB_COLUMNS) + "\n")
        self._hosts = self._open("machine_states", _HOST_COLUMNS) if host_states else None

    def __enter__(self) -> BatsimOutputs:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def close(self) -> None:
        """Write what is buffered and close the files."""
        self._files.close()

    def _open(self, name: str, header: str) -> TextIO:
        file = open(f"{self._stem}{name}.csv", "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._files.push(file)
        file.write(header)
        return file

    def write_job(self, job: Job) -> None:
        """Write the row of a job that has ended or was rejected."""
        if job.state is not JobState.REJECTED:
            self._first_submit_s = min(self._first_submit_s, job.submit_s)
        profile = job.work.name
        if self._layout >= _LAYOUT_5 and "!" not in profile:
            profile = f"{job.workload}!{profile}"
        self._jobs.write(job_line(job, profile))

    def write_hosts(self, now_s: float, counts: list[int]) -> None:
        """Write how many hosts are in each state."""
        if self._hosts is None:
            return
        idle, computing, sleeping, switching_on, switching_off, _ = counts
        self._hosts.write(
            f"{now_s:g},{sleeping},{switching_on},{switching_off},{idle},{computing}\n"
        )

    def write_schedule(self, values: Mapping[str, str]) -> None:
        """Write the summary: one row, with the columns in alphabetical order."""
        if self._layout >= _LAYOUT_5:
            self._write_json(dict(values))
            return
        file = self._open("schedule", ",".join(sorted(values)) + "\n")
        file.write(",".join(values[key] for key in sorted(values)) + "\n")

    def _write_json(self, values: dict[str, str]) -> None:
        """Write the summary and what the run took, as version 5 does."""
        peak_kb, resident_kb = _memory_kb()
        took = {
            "memory_VmHWM_kB": str(resident_kb),
            "memory_VmPeak_kB": str(peak_kb),
            "time_in_edc_seconds": values.pop("scheduling_time"),
            "time_in_simu_seconds": values.pop("simulation_time"),
        }
        # In version 5 the makespan begins with the first submission.
        if self._first_submit_s < inf:
            values["makespan"] = f"{float(values['makespan']) - self._first_submit_s:.6f}"
        values["batsim_version"] = f'"{BATSIM_VERSION}"'
        for name, content in (("schedule", values), ("real_exec_info", took)):
            lines = ",\n".join(f'  "{key}": {content[key]}' for key in sorted(content))
            Path(f"{self._stem}{name}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _memory_kb() -> tuple[int, int]:
    """Return the largest address space and the largest resident memory of this process."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return 0, 0
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
    return int(fields["VmPeak"][0]), int(fields["VmHWM"][0])
