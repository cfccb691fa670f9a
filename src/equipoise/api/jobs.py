"""Batch jobs: one workload on one platform under one policy, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.api.simulation import import_pandas
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.work import Job, StagingWork, StorageWork, exchanges_messages, parts_of

if TYPE_CHECKING:
    from equipoise.adapters.batsim.swf import SwfChoices
    from equipoise.api.job_records import RecordOptions
    from equipoise.documents.simulation import JobsDocument
    from equipoise.sim.jobs.engine import JobEngine
    from equipoise.sim.jobs.history import JobHistory
    from equipoise.sim.jobs.host_changes import HostRules
    from equipoise.sim.jobs.platform import Platform
    from equipoise.sim.jobs.policies import Policy
    from equipoise.sim.jobs.runner import JobRun
    from equipoise.sim.jobs.virtual_time import VirtualTime
    from equipoise.store import Journal


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
        from equipoise.adapters.batsim.outputs import job_table

        return import_pandas("the jobs of a run as a DataFrame").DataFrame(job_table(self.jobs))

    def write_parquet(self, prefix: str | Path) -> None:
        """Write ``PREFIX_jobs.parquet`` and ``PREFIX_machine_states.parquet``, with all digits.

        A prefix that is a folder gives ``jobs.parquet`` and ``machine_states.parquet`` in it.
        """
        from equipoise.adapters.batsim.outputs import job_table
        from equipoise.report.jobs import write_job_tables
        from equipoise.sim.jobs.hosts import JobHostState

        assert self.history is not None, "a run that keeps no jobs has nothing to write"
        counts = {
            state.name.lower().replace("_", " "): self.history.counts[state]
            for state in JobHostState
        }
        folder = Path(prefix)
        paths = [
            folder / f"{name}.parquet" if folder.is_dir() else Path(f"{prefix}_{name}.parquet")
            for name in ("jobs", "machine_states")
        ]
        write_job_tables((paths[0], paths[1]), job_table(self.jobs), self.history.times, counts)

    def __str__(self) -> str:
        lines = [f"{self.workload}, policy {self.policy}"]
        lines += [f"  {name}: {value:g}" for name, value in self.figures.items()]
        return "\n".join(lines)


def simulate_jobs(  # noqa: PLR0913  (options, each by its name)
    platform: Platform | str | Path | None,
    workload: str | Path | Iterable[Job],
    *,
    policy: str | Policy | Callable[[int], Policy] = "easy",
    hosts: int | None = None,
    export: str | Path | None = None,
    output_layout: int = 4,
    out: str | Path | None = None,
    journal: Journal | None = None,
    keep_jobs: bool = True,
    model: str = "fluid",
    shutdown_after_s: float | None = None,
    keep_awake: int = 0,
    events: str | Path | None = None,
    swf: SwfChoices | None = None,
) -> JobsRun:
    """Run batch jobs to their end in virtual time.

    :param platform: a SimGrid platform file, a platform, or None for equal hosts.
    :param workload: a Batsim workload, an SWF file (``.swf``), a list of pods of the openb trace
        (``.csv``), or jobs in the order of arrival.
    :param policy: ``fcfs``, ``sjf``, ``easy``, ``conservative``, or a policy of your own: a class
        that takes the number of hosts and has ``submit(job)``, ``ended(job)`` and
        ``schedule(now_s, free, start)``.
    :param hosts: use so many hosts; default: as many as the workload states.
    :param export: write ``EXPORT_jobs.csv`` and the other files of Batsim.
    :param output_layout: 4 for the files of Batsim 4, 5 for those of Batsim 5.
    :param out: write a folder with these files, the journal and ``report.html``.
    :param journal: an open journal that receives every event; default with ``out``: a file there.
    :param keep_jobs: keep every job for ``jobs`` and ``frame()``; a run without them needs memory
        for waiting and running jobs only.
    :param model: who computes how long tasks take: ``fluid``, our own model, or ``simgrid``, a
        process with SimGrid, which needs a platform file. Both give the same times.
    :param shutdown_after_s: a host that was idle for so long sleeps, if the platform has sleep
        states; a job that needs it waits until it is awake.
    :param keep_awake: so many idle hosts do not sleep.
    :param events: a file of Batsim's external events: hosts that leave and return.
    :param swf: what a job takes from a record in SWF.
    :raises InvalidInput: with the file and the job that is wrong.
    """
    from equipoise.api.job_records import RecordOptions

    begin_s = perf_counter()
    name, make = _find_policy(policy)
    jobs, stated, source = _read_jobs(workload, swf)
    used = _read_platform(platform, hosts, stated, source)
    rules = _read_rules(used, shutdown_after_s, keep_awake, events)
    if isinstance(jobs, list):
        _check_storages(jobs, used, source)
    records = RecordOptions(
        export=export, layout=output_layout, out=out, journal=journal, keep_jobs=keep_jobs
    )
    file = platform if isinstance(platform, str | Path) else None
    case = _JobsCase(used, file, jobs, source, name, policy, make, rules)
    return _run_case(case, records, model, begin_s)


@dataclass(frozen=True, slots=True)
class _JobsCase:
    """What runs on what."""

    platform: Platform
    platform_file: str | Path | None
    jobs: Iterable[Job]
    source: str
    policy_name: str
    policy: str | Policy | Callable[[int], Policy]
    make_policy: Callable[[int], Policy]
    rules: HostRules


def _run_case(case: _JobsCase, options: RecordOptions, model: str, begin_s: float) -> JobsRun:
    """Run the jobs, and write what the options name."""
    from equipoise.adapters.batsim.summary import summary_values
    from equipoise.api.job_records import JobRecords

    with ExitStack() as files:
        records = JobRecords(options, case.platform, files)
        run = _make_run(
            case,
            recorder=records.recorder(),
            journal=records.begin_journal(case.source, case.policy_name),
            make_time=_find_model(model, case.platform_file, files),
        )
        records.attach(run)
        run.run()
        values = summary_values(run)
        values["nb_grouped_switches"] = run.switches
        values["nb_machine_switches"] = run.switched_hosts
        wall_s = perf_counter() - begin_s
        records.finish(values, wall_s)
        sha256 = records.sha256
    found = JobsRun(case.source, case.policy_name, case.platform, values, records.history, wall_s)
    if options.out is not None:
        write_jobs_report(Path(options.out), found, sha256)
    return found


def _make_run(case: _JobsCase, **parts: Any) -> JobRun:
    """Return the run of a case; starts pass the gate if a job carries constraints."""
    from equipoise.sim.jobs.runner import JobRun

    platform, jobs = case.platform, case.jobs
    if not (isinstance(jobs, Sequence) and any(job.constraints for job in jobs)):
        policy = case.make_policy(len(platform.hosts))
        return JobRun(platform, _without_constraints(jobs), policy, rules=case.rules, **parts)
    from equipoise.sim.jobs.rules.gate import JobGate
    from equipoise.sim.jobs.rules.policies import RULED_POLICIES
    from equipoise.sim.jobs.rules.run import GatedJobRun

    if case.rules.is_needed:
        what = "of jobs and hosts that sleep or leave are not offered together"
        raise _problem("constraints", what, "leave one of them out")
    gate = JobGate(platform)
    gate.check_jobs(jobs, case.source)
    if isinstance(case.policy, str):
        return GatedJobRun(platform, jobs, RULED_POLICIES[case.policy](gate), gate, **parts)
    return GatedJobRun(platform, jobs, case.make_policy(len(platform.hosts)), gate, **parts)


def write_jobs_report(folder: Path, run: JobsRun, sha256: str) -> None:
    """Write the page and the summary beside the files of a run."""
    from equipoise.documents.simulation import JobsRunDocument
    from equipoise.report.jobs import write_jobs_folder

    document = JobsRunDocument(
        kind="jobs",
        workload=run.workload,
        hosts=tuple(host.name for host in run.platform.hosts),
        journal_sha256=sha256,
        result=run.document,
    )
    write_jobs_folder(folder, document)


def _find_model(
    model: str, platform: str | Path | None, files: ExitStack
) -> Callable[[JobEngine], VirtualTime] | None:
    """Return what makes the time of a model; None for our own."""
    if model == "fluid":
        return None
    if model != "simgrid":
        raise _problem("model", f"{model!r} is no model", "use fluid or simgrid")
    if platform is None:
        raise _problem("model", "simgrid needs a platform file", "name a SimGrid platform file")
    from equipoise.adapters.simgrid.client import SimGridTime, SimGridWorker

    path = Path(platform).absolute()
    worker = files.enter_context(SimGridWorker())
    return lambda engine: SimGridTime(engine, worker, path)


def _without_constraints(jobs: Iterable[Job]) -> Iterable[Job]:
    """Return the jobs; of a stream, reject one with constraints, which no policy has seen."""
    return jobs if isinstance(jobs, Sequence) else _checked_stream(jobs)


def _checked_stream(jobs: Iterable[Job]) -> Iterator[Job]:
    for job in jobs:
        if job.constraints:
            what = "carries constraints, which jobs of a stream cannot"
            raise _problem(f"job {job.name}", what, "give the jobs as a list")
        yield job


def _problem(key: str, what: str, cure: str, code: str = "invalid-value") -> InvalidInput:
    return InvalidInput.of("jobs", what, key=key, cure=cure, code=code)


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


def _read_rules(
    platform: Platform,
    shutdown_after_s: float | None,
    keep_awake: int,
    events: str | Path | None,
) -> HostRules:
    """Return what happens to hosts beside jobs; a shutdown needs hosts that can sleep."""
    from equipoise.adapters.batsim.host_events import read_availability
    from equipoise.sim.jobs.host_changes import HostRules

    if shutdown_after_s is not None:
        if not shutdown_after_s >= 0:
            what = f"is {shutdown_after_s:g}"
            raise _problem("--shutdown-after", what, "write 0 or more seconds")
        if not any(host.sleep_states for host in platform.hosts):
            what = "is given, but no host of the platform has a sleep state"
            raise _problem("--shutdown-after", what, "add sleep_pstates to the platform")
    return HostRules(
        shutdown_after_s=inf if shutdown_after_s is None else shutdown_after_s,
        keep_awake=keep_awake,
        changes=() if events is None else read_availability(Path(events), len(platform.hosts)),
    )


def _read_jobs(
    workload: str | Path | Iterable[Job], swf: SwfChoices | None
) -> tuple[Iterable[Job], int | None, str]:
    """Return the jobs, the number of hosts that the file states, and its name."""
    from equipoise.adapters.batsim.swf import is_swf, read_swf, read_swf_size
    from equipoise.adapters.batsim.workload_json import read_workload
    from equipoise.adapters.openb import is_openb, read_openb_jobs

    if not isinstance(workload, str | Path):
        return workload, None, "jobs"
    path = Path(workload)
    if not path.is_file():
        raise InvalidInput.of(str(path), "is no file", cure="name one", code="invalid-value")
    if is_swf(path):
        return read_swf(path, choices=swf), read_swf_size(path) or None, str(path)
    if is_openb(path):
        return read_openb_jobs(path), None, str(path)
    found = read_workload(path)
    for job in found.jobs:
        if exchanges_messages(job.work):
            what = "exchanges messages with a scheduler, and a policy sends none"
            cure = "run it with equipoise batsim"
            raise InvalidInput.of(
                str(path), what, key=f"job {job.name}", cure=cure, code="invalid-value"
            )
    return found.jobs, found.hosts, str(path)


def _read_platform(
    platform: Platform | str | Path | None, hosts: int | None, stated: int | None, source: str
) -> Platform:
    """Return the platform with the hosts that are used: the first ones in their order."""
    from dataclasses import replace

    from equipoise.adapters.batsim.platform_xml import HOSTS_MAX, read_platform
    from equipoise.sim.jobs.platform import uniform_platform

    count = hosts or stated
    if platform is None:
        if count is None:
            raise _problem("--hosts", f"is missing: {source} states no size", "add --hosts N")
        if count > HOSTS_MAX:
            raise _problem("--hosts", f"is {count:,}", f"write at most {HOSTS_MAX:,}")
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
            raise InvalidInput.of(
                source, what, key=f"job {job.name}", cure=cure, code="invalid-value"
            )
