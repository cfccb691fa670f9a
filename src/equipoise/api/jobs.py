"""Batch jobs: one workload on one platform under one policy, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.api.simulation import import_pandas
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.work import Job, StagingWork, StorageWork, parts_of

if TYPE_CHECKING:
    from equipoise.documents.simulation import JobsDocument
    from equipoise.sim.jobs.history import JobHistory
    from equipoise.sim.jobs.platform import Platform
    from equipoise.sim.jobs.policies import Policy
    from equipoise.sim.jobs.runner import JobRecorder


@dataclass(frozen=True, slots=True)
class JobsRun:
    """A finished run of jobs: its figures, every job, and the states of hosts over time."""

    workload: str
    policy: str
    platform: Platform
    figures: dict[str, Any]
    """The columns of Batsim's ``schedule.csv`` by name, such as ``makespan``."""
    history: JobHistory | None
    """The jobs and the hosts over time; None if the run kept nothing."""
    wall_s: float

    @property
    def jobs(self) -> list[Job]:
        """The jobs in the order of their ends."""
        return [] if self.history is None else self.history.jobs

    @property
    def document(self) -> JobsDocument:
        """The result as ``equipoise jobs --json`` prints it."""
        from equipoise.documents.simulation import JobsDocument

        return JobsDocument(policy=self.policy, **self.figures, wall_s=round(self.wall_s, 3))

    def frame(self) -> Any:
        """Return a pandas ``DataFrame``: one row per job, with the columns of ``jobs.csv``."""
        from equipoise.adapters.batsim.job_table import job_table

        return import_pandas("the jobs of a run as a DataFrame").DataFrame(job_table(self.jobs))

    def __str__(self) -> str:
        lines = [f"{self.workload}, policy {self.policy}"]
        lines += [f"  {name}: {value:g}" for name, value in self.figures.items()]
        return "\n".join(lines)


def simulate_jobs(
    platform: Platform | str | Path | None,
    workload: str | Path | Iterable[Job],
    *,
    policy: str | Policy | Callable[[int], Policy] = "easy",
    hosts: int | None = None,
    export: str | Path | None = None,
    keep_jobs: bool = True,
) -> JobsRun:
    """Run batch jobs to their end in virtual time.

    :param platform: a SimGrid platform file, a platform, or None for equal hosts.
    :param workload: a Batsim workload, an SWF file (``.swf``), or jobs in the order of arrival.
    :param policy: ``fcfs``, ``sjf``, ``easy``, ``conservative``, or a policy of your own: a class
        that takes the number of hosts and has ``submit(job)``, ``ended(job)`` and
        ``schedule(now_s, free, start)``.
    :param hosts: use so many hosts; default: as many as the workload states.
    :param export: write ``EXPORT_jobs.csv`` and the other files of Batsim.
    :param keep_jobs: keep every job for ``jobs`` and ``frame()``; a run without them needs memory
        for waiting and running jobs only.
    :raises InvalidInput: with the file and the job that is wrong.
    """
    from equipoise.adapters.batsim.outputs import BatsimOutputs
    from equipoise.adapters.batsim.summary import schedule_row, summary_values
    from equipoise.sim.jobs.history import JobHistory
    from equipoise.sim.jobs.runner import JobRun

    begin_s = perf_counter()
    policy_name, make = _find_policy(policy)
    jobs, stated, source = _read_jobs(workload)
    used = _read_platform(platform, hosts, stated)
    if isinstance(jobs, list):
        _check_storages(jobs, used, source)
    history = JobHistory() if keep_jobs else None
    recorders: list[JobRecorder] = [] if history is None else [history]
    with ExitStack() as files:
        outputs = None
        if export is not None:
            outputs = files.enter_context(BatsimOutputs(str(export)))
            recorders.append(outputs)
        run = JobRun(used, jobs, make(len(used.hosts)), _one_recorder(recorders))
        if history is not None:
            history.hosts = run.engine.hosts
        run.run()
        values = summary_values(run)
        wall_s = perf_counter() - begin_s
        if outputs is not None:
            outputs.write_schedule(schedule_row(values, wall_s))
    return JobsRun(source, policy_name, used, values, history, wall_s)


class _Recorders:
    """Passes rows to several recorders."""

    def __init__(self, recorders: list[JobRecorder]) -> None:
        self._recorders = recorders

    def write_job(self, job: Job) -> None:
        """A job has ended or was rejected."""
        for recorder in self._recorders:
            recorder.write_job(job)

    def write_hosts(self, now_s: float, counts: list[int]) -> None:
        """Hosts have changed their state."""
        for recorder in self._recorders:
            recorder.write_hosts(now_s, counts)


def _one_recorder(recorders: list[JobRecorder]) -> JobRecorder | None:
    if len(recorders) > 1:
        return _Recorders(recorders)
    return recorders[0] if recorders else None


def _problem(key: str, what: str, cure: str, code: str = "invalid-value") -> InvalidInput:
    return InvalidInput("jobs", [InputProblem(key=key, what=what, cure=cure, code=code)])


def _find_policy(
    policy: str | Policy | Callable[[int], Policy],
) -> tuple[str, Callable[[int], Policy]]:
    """Return the name of a policy, and what makes it from the number of hosts."""
    from equipoise.sim.jobs.policies import POLICIES

    if isinstance(policy, str):
        if policy not in POLICIES:
            known = ", ".join(POLICIES)
            what = f"{policy!r} is no policy"
            raise _problem("--policy", what, f"write one of {known}", "unknown-name")
        return policy, POLICIES[policy]
    kind = policy if isinstance(policy, type) else type(policy)
    missing = [
        name for name in ("submit", "ended", "schedule") if not callable(getattr(kind, name, None))
    ]
    if missing and (isinstance(policy, type) or not callable(policy)):
        raise _problem("policy", f"{kind.__name__} has no method {missing[0]}", "add the method")
    if isinstance(policy, type) or missing:
        assert callable(policy)
        return getattr(policy, "__name__", kind.__name__), policy
    return kind.__name__, partial(_as_it_is, policy)


def _as_it_is(policy: Any, hosts: int) -> Policy:
    del hosts
    return policy  # type: ignore[no-any-return]


def _read_jobs(workload: str | Path | Iterable[Job]) -> tuple[Iterable[Job], int | None, str]:
    """Return the jobs, the number of hosts that the file states, and its name."""
    from equipoise.adapters.batsim.swf import read_swf, read_swf_size
    from equipoise.adapters.batsim.workload_json import read_workload

    if not isinstance(workload, str | Path):
        return workload, None, "jobs"
    path = Path(workload)
    if not path.is_file():
        raise InvalidInput(str(path), [InputProblem(key="", what="is no file", cure="name one")])
    if path.suffix == ".swf":
        return read_swf(path), read_swf_size(path) or None, str(path)
    found = read_workload(path)
    return found.jobs, found.hosts, str(path)


def _read_platform(
    platform: Platform | str | Path | None, hosts: int | None, stated: int | None
) -> Platform:
    """Return the platform with the hosts that are used: the first ones in their order."""
    from dataclasses import replace

    from equipoise.adapters.batsim.platform_xml import read_platform
    from equipoise.sim.jobs.platform import uniform_platform

    count = hosts or stated
    if platform is None:
        if count is None:
            raise _problem("--hosts", "is missing: the workload states no size", "add --hosts N")
        return uniform_platform(count)
    found = read_platform(Path(platform)) if isinstance(platform, str | Path) else platform
    if hosts is not None and hosts > len(found.hosts):
        what = f"is {hosts}, but the platform has {len(found.hosts)}"
        raise _problem("--hosts", what, "write a smaller number")
    return found if count is None else replace(found, hosts=found.hosts[:count])


def _check_storages(jobs: Iterable[Job], platform: Platform, source: str) -> None:
    """Reject jobs that use files if the platform has no storage host."""
    if platform.storages:
        return
    for job in jobs:
        if any(isinstance(part, StorageWork | StagingWork) for part in parts_of(job.work)):
            what = "uses a storage host, and the platform has none"
            cure = "add a host with the role storage"
            raise InvalidInput(source, [InputProblem(key=f"job {job.name}", what=what, cure=cure)])
