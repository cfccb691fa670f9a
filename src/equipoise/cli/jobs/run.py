"""``equipoise jobs``: a workload under a built-in policy, with the result files of Batsim."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from equipoise.adapters.batsim.outputs import BatsimOutputs
from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.batsim.summary import schedule_row, summary_values
from equipoise.adapters.batsim.swf import read_swf, read_swf_size
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.cli.file_io import check_writable
from equipoise.cli.output import EXIT_OK, console, make_table, print_document
from equipoise.documents.simulation import JobsDocument
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.platform import Platform, uniform_platform
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import Job, StagingWork, StorageWork, parts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOptions:
    """The options of the command."""

    workload: Path
    platform: Path | None
    policy: str
    hosts: int | None
    export: str | None


def run(options: JobsOptions, *, as_json: bool) -> int:
    """Run the jobs and print the summary."""
    if options.policy not in POLICIES:
        known = ", ".join(POLICIES)
        raise _problem("--policy", f"{options.policy!r} is no policy", f"write one of {known}")
    begin_s = perf_counter()
    jobs, stated = _read_jobs(options.workload)
    platform = _read_platform(options, stated)
    if isinstance(jobs, list):
        _check_storages(jobs, platform, str(options.workload))
    if options.export is not None:
        check_writable(Path(f"{options.export}_jobs.csv"))
    outputs = BatsimOutputs(options.export) if options.export is not None else None
    with outputs or nullcontext():
        job_run = JobRun(platform, jobs, POLICIES[options.policy](len(platform.hosts)), outputs)
        job_run.run()
        values = summary_values(job_run)
        wall_s = perf_counter() - begin_s
        if outputs is not None:
            outputs.write_schedule(schedule_row(values, wall_s))
    if as_json:
        document = JobsDocument(policy=options.policy, **values, wall_s=round(wall_s, 3))
        print_document(document)
    else:
        table = make_table("measure", "value", right=("value",))
        for key, value in values.items():
            table.add_row(key, f"{value:,}" if isinstance(value, int) else f"{value:,.3f}")
        console().print(table)
    return EXIT_OK


def _problem(key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput("command line", [InputProblem(key=key, what=what, cure=cure)])


def _read_jobs(path: Path) -> tuple[Iterable[Job], int | None]:
    """Return the jobs and the number of hosts that the file states."""
    if not path.is_file():
        raise InvalidInput(str(path), [InputProblem(key="", what="is no file", cure="name one")])
    if path.suffix == ".swf":
        return read_swf(path), read_swf_size(path) or None
    workload = read_workload(path)
    return workload.jobs, workload.hosts


def _read_platform(options: JobsOptions, stated: int | None) -> Platform:
    """Return the platform with the hosts that are used: the first ones in their order."""
    count = options.hosts or stated
    if options.platform is None:
        if count is None:
            raise _problem("--hosts", "is missing: the workload states no size", "add --hosts N")
        return uniform_platform(count)
    platform = read_platform(options.platform)
    if options.hosts is not None and options.hosts > len(platform.hosts):
        what = f"is {options.hosts}, but the platform has {len(platform.hosts)}"
        raise _problem("--hosts", what, "write a smaller number")
    if count is not None:
        platform.hosts = platform.hosts[:count]
    return platform


def _check_storages(jobs: Iterable[Job], platform: Platform, source: str) -> None:
    """Reject jobs that use files if the platform has no storage host."""
    if platform.storages:
        return
    for job in jobs:
        if any(isinstance(part, StorageWork | StagingWork) for part in parts_of(job.work)):
            what = "uses a storage host, and the platform has none"
            cure = "add a host with the role storage"
            raise InvalidInput(source, [InputProblem(key=f"job {job.name}", what=what, cure=cure)])
