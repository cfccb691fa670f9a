"""Benchmarks of batch jobs: built-in policies in process, records, and AccaSim on the same jobs.

Records of the Parallel Workloads Archive are used if their folder is named in the environment
variable ``EQUIPOISE_SWF_FOLDER`` (``NASA-iPSC-1993-3.1-cln.swf.zip``, ``hpc2n.swf``).
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Final, NamedTuple

from equipoise.adapters.batsim.swf import read_swf, read_swf_size
from equipoise.adapters.targets.environment import ADAPTERS_FOLDER, find_environment
from equipoise.bench.jobs_protocol import children_cpu_s, measure_protocol
from equipoise.bench.measure import BenchmarkRow, run_alone
from equipoise.sim.jobs.platform import uniform_platform
from equipoise.sim.jobs.policies import POLICIES
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import DelayWork, Job

SWF_FOLDER: Final = "EQUIPOISE_SWF_FOLDER"
_RECORDS: Final = {"NASA": "NASA-iPSC-1993-3.1-cln.swf.zip", "HPC2N": "hpc2n.swf"}
_HOSTS: Final = 256
_MEAN_S: Final = 400.0
_MANY: Final = 1_000_000
_COMPARED: Final = 3000
"""AccaSim needs seconds per thousand jobs."""
_WIDTHS: Final = (1, 1, 1, 2, 2, 4, 4, 8, 16, 32)
_BURSTS: Final = (
    ("conservative", 1_000),
    ("conservative", 2_000),
    ("easy", 10_000),
    ("sjf", 10_000),
    ("fcfs", 10_000),
)
_WARM_UP: Final = 220
"""So many jobs at once load the kernels, which is done once per process."""


class SwfLine(NamedTuple):
    """A job of a record: whole seconds, and one host per processor."""

    submit_s: int
    seconds: int
    processors: int
    limit_s: int


def rows() -> Iterator[BenchmarkRow]:
    """Yield synthetic jobs, records, a million jobs, AccaSim, and schedulers over ZeroMQ."""
    for policy in POLICIES:
        count = 20_000
        jobs = list(synthetic_jobs(count))
        cpu_s = process_time()
        seconds, _ = _run(jobs, _HOSTS, policy)
        yield BenchmarkRow(
            f"{count:,} delay jobs on {_HOSTS} hosts, {policy}",
            seconds,
            "",
            None,
            count=count,
            figures={"jobs per CPU s": count / (process_time() - cpu_s)},
        )
    yield from _bursts()
    for name, path in _records():
        for policy in POLICIES:
            began, cpu_s = perf_counter(), process_time()
            jobs = list(read_swf(path))
            hosts = read_swf_size(path)
            _run(jobs, hosts, policy)
            yield BenchmarkRow(
                f"{name}, {len(jobs):,} jobs on {hosts} hosts, {policy}, with reading",
                perf_counter() - began,
                "",
                None,
                count=len(jobs),
                figures={"CPU s": process_time() - cpu_s},
            )
    with tempfile.TemporaryDirectory() as folder:
        for policy in ("fcfs", "easy"):
            yield _many(Path(folder), policy)
        yield from _compare_with_accasim(Path(folder))
    yield from measure_protocol()


def _bursts() -> Iterator[BenchmarkRow]:
    """Jobs that arrive at once: every early end can move the reservations of all that wait."""
    for policy, count in _BURSTS:
        jobs = list(_burst(count))
        _run(_burst(_WARM_UP), _HOSTS, policy)
        began = process_time()
        seconds, _ = _run(jobs, _HOSTS, policy)
        yield BenchmarkRow(
            f"{count:,} delay jobs at once on {_HOSTS} hosts, {policy}",
            seconds,
            "",
            None,
            count=count,
            figures={"CPU s": process_time() - began},
        )


def _burst(count: int) -> Iterator[Job]:
    for job in synthetic_jobs(count):
        job.submit_s = 0.0
        yield job


def _records() -> Iterator[tuple[str, Path]]:
    folder = os.environ.get(SWF_FOLDER)
    if folder is None:
        return
    for name, file in _RECORDS.items():
        path = Path(folder) / file
        if path.exists():
            yield name, path


def generated_lines(
    count: int, *, seed: int = 1, hosts: int = _HOSTS, load: float = 0.7
) -> Iterator[SwfLine]:
    """Yield jobs that use a part of the hosts on average, with limits above their true time."""
    rng = random.Random(seed)
    gap_s = _MEAN_S * sum(_WIDTHS) / len(_WIDTHS) / (hosts * load)
    at_s = 0.0
    for _ in range(count):
        at_s += rng.expovariate(1 / gap_s)
        seconds = int(rng.expovariate(1 / _MEAN_S)) + 1
        limit_s = seconds * rng.choice((2, 3, 5))
        yield SwfLine(int(at_s), seconds, rng.choice(_WIDTHS), limit_s)


def synthetic_jobs(count: int) -> Iterator[Job]:
    """Yield the same jobs at each call; those of one length share their work."""
    works: dict[int, DelayWork] = {}
    for number, line in enumerate(generated_lines(count), 1):
        work = works.get(line.seconds)
        if work is None:
            work = DelayWork(name=str(line.seconds), seconds=float(line.seconds))
            works[line.seconds] = work
        yield Job(
            "w0", str(number), float(line.submit_s), line.processors, work, float(line.limit_s)
        )


def write_swf(path: Path, lines: Iterable[SwfLine], hosts: int) -> None:
    """Write jobs as an SWF file."""
    with path.open("w", encoding="ascii") as file:
        file.write(f"; Version: 2.2\n; MaxProcs: {hosts}\n")
        for number, (submit_s, seconds, processors, limit_s) in enumerate(lines, 1):
            file.write(
                f"{number} {submit_s} -1 {seconds} {processors} -1 -1 {processors} {limit_s} "
                "-1 1 1 1 1 1 1 -1 -1\n"
            )


def _run(jobs: Iterable[Job], hosts: int, policy: str) -> tuple[float, JobRun]:
    run = JobRun(uniform_platform(hosts), jobs, POLICIES[policy](hosts))
    began = perf_counter()
    run.run()
    return perf_counter() - began, run


def run_record(path: str, policy: str) -> float:
    """Run a record that is read while it runs; return the seconds."""
    return _run(read_swf(Path(path)), read_swf_size(Path(path)), policy)[0]


def _many(folder: Path, policy: str) -> BenchmarkRow:
    """Run a million jobs from a file in a process of its own, whose memory is its own."""
    path = folder / "many.swf"
    if not path.exists():
        write_swf(path, generated_lines(_MANY), _HOSTS)
    cpu_s = children_cpu_s()
    seconds, memory_mib = run_alone(run_record, str(path), policy)
    return BenchmarkRow(
        f"{_MANY:,} jobs from an SWF file, {policy}, at most {memory_mib:,.0f} MiB",
        seconds,
        "",
        None,
        count=_MANY,
        figures={"memory_mib": round(memory_mib, 1), "CPU s": children_cpu_s() - cpu_s},
    )


def _compare_with_accasim(folder: Path) -> Iterator[BenchmarkRow]:
    python = find_environment("accasim")
    if python is None:
        return
    sources: dict[str, tuple[list[SwfLine], int]] = {
        "synthetic jobs": (list(generated_lines(_COMPARED)), _HOSTS)
    }
    for name, path in _records():
        jobs = [_as_line(job) for _, job in zip(range(_COMPARED), read_swf(path), strict=False)]
        sources[f"first jobs of {name}"] = sorted(jobs), read_swf_size(path)
    for name, (lines, hosts) in sources.items():
        record = folder / "compared.swf"
        write_swf(record, lines, hosts)
        # AccaSim excludes its imports, so the first use of ours is not measured either.
        _run(list(read_swf(record)), hosts, "fcfs")
        for policy in ("fcfs", "sjf", "easy"):
            yield _compare(python, record, hosts, policy, f"{len(lines):,} {name}, {policy}")


def _as_line(job: Job) -> SwfLine:
    """Return a job for both simulators: AccaSim ends no job at its limit, so it is cut before."""
    assert isinstance(job.work, DelayWork)
    seconds = int(min(job.work.seconds, job.walltime_s))
    return SwfLine(int(job.submit_s), seconds, job.hosts_requested, int(job.expected_s))


def _compare(python: Path, record: Path, hosts: int, policy: str, what: str) -> BenchmarkRow:
    system = record.with_suffix(".json")
    system.write_text(
        json.dumps(
            {
                "groups": {"host": {"core": 1}},
                "resources": {"host": hosts},
                "equivalence": {"processor": {"core": 1}},
                "start_time": 0,
            }
        )
    )
    results = record.parent / f"accasim-{policy}"
    script = ADAPTERS_FOLDER / "batsim" / "peers" / "accasim_run.py"
    done = subprocess.run(
        [str(python), str(script), str(record), str(system), policy, str(results)],
        capture_output=True,
        text=True,
        check=True,
        cwd=record.parent,
    )
    peer = json.loads(done.stdout.splitlines()[-1])
    # A collection of what earlier rows left behind takes longer than a run of 3,000 jobs.
    gc.collect()
    began, cpu_s = perf_counter(), process_time()
    jobs = list(read_swf(record))
    _run(jobs, hosts, policy)
    seconds, cpu_s = perf_counter() - began, process_time() - cpu_s
    starts = {job.name: job.start_s for job in jobs if job.start_s >= 0}
    differing = sum(peer["starts"].get(name) != at_s for name, at_s in starts.items())
    return BenchmarkRow(
        f"{what}, with reading",
        seconds,
        "AccaSim 1.1.3",
        peer["seconds"],
        count=len(jobs),
        figures={
            "jobs": len(starts),
            "other_start_times": differing,
            "ratio of CPU times": peer["cpu_s"] / cpu_s,
        },
        note=f"{differing:,} of {len(starts):,} jobs start at another time",
    )
