"""The summary of a run in the columns of Batsim's ``schedule.csv``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from equipoise.sim.jobs.hosts import HostStates, JobHostState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.runner import JobSummary

COMPATIBLE_VERSION = "v4.2.0"
"""The version of Batsim whose columns and rounding the files have."""


class SummarisedHosts(Protocol):
    """The part of an engine that a summary needs."""

    @property
    def hosts(self) -> HostStates:
        """The states of hosts, with the time in each."""
        ...

    @property
    def platform(self) -> Platform:
        """The machine."""
        ...


class SummarisedRun(Protocol):
    """A run under a built-in policy, under a scheduler of another process, or of a journal."""

    summary: JobSummary
    energy_j: float

    @property
    def engine(self) -> SummarisedHosts:
        """What has the hosts."""
        ...


def summary_values(run: SummarisedRun) -> dict[str, Any]:
    """Return the values by column. Means are over all jobs, also over rejected ones."""
    summary, hosts = run.summary, run.engine.hosts
    count = max(summary.jobs, 1)
    finished = summary.jobs - summary.rejected
    return {
        "consumed_joules": run.energy_j,
        "makespan": summary.makespan_s,
        "max_slowdown": summary.slowdown_max,
        "max_turnaround_time": summary.turnaround_s_max,
        "max_waiting_time": summary.waiting_s_max,
        "mean_slowdown": summary.slowdown / count,
        "mean_turnaround_time": summary.turnaround_s / count,
        "mean_waiting_time": summary.waiting_s / count,
        # Batsim counts storage hosts too.
        "nb_computing_machines": len(hosts.state) + len(run.engine.platform.storages),
        "nb_grouped_switches": 0,
        "nb_jobs": summary.jobs,
        "nb_jobs_finished": finished,
        "nb_jobs_killed": finished - summary.succeeded,
        "nb_jobs_rejected": summary.rejected,
        "nb_jobs_success": summary.succeeded,
        "nb_machine_switches": 0,
        "success_rate": summary.succeeded / count,
        "time_computing": hosts.total_s[JobHostState.COMPUTING],
        "time_idle": hosts.total_s[JobHostState.IDLE],
        "time_sleeping": hosts.total_s[JobHostState.SLEEPING],
        "time_switching_off": hosts.total_s[JobHostState.SWITCHING_OFF],
        "time_switching_on": hosts.total_s[JobHostState.SWITCHING_ON],
        "time_unavailable": hosts.total_s[JobHostState.UNAVAILABLE],
    }


def schedule_row(values: Mapping[str, Any], wall_s: float) -> dict[str, str]:
    """Return the row of ``schedule.csv``; the policy is part of the simulation time."""
    row = {
        key: str(value) if isinstance(value, int) else f"{value:.6f}"
        for key, value in values.items()
    }
    row |= {"batsim_version": COMPATIBLE_VERSION, "scheduling_time": f"{0.0:.6f}"}
    row["simulation_time"] = f"{wall_s:.6f}"
    return row
