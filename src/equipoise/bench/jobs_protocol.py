"""Benchmarks of the Batsim protocol: messages per second, and our part of a pybatsim run.

The scheduler is a process of its own. A message and its reply count as two, as in the figures of
real Batsim; ``REAL_BATSIM_PER_S`` is what that reached with such a scheduler on a machine like the
one that the goals were set on.
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time
from typing import Final

from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.transport.driver import ScheduledRun
from equipoise.adapters.batsim.transport.launch import SchedulerOptions, run_scheduler
from equipoise.adapters.targets.environment import find_environment
from equipoise.bench.measure import BenchmarkRow

REAL_BATSIM_PER_S: Final = 6_900
"""The most messages per second of Batsim 4.2.0 with a trivial scheduler in Python."""
_HOSTS: Final = 32
_JOBS: Final = 4_000
_PYBATSIM_JOBS: Final = 1_500
_SCHEDULER: Final = """
import json, sys, zmq
from collections import deque
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
queue, free, running, over = deque(), [], {}, False
while not over:
    message = json.loads(socket.recv())
    now, events = message["now"], []
    for event in message["events"]:
        kind, data = event["type"], event["data"]
        if kind == "JOB_SUBMITTED":
            queue.append(data["job_id"])
        elif kind == "JOB_COMPLETED":
            free.append(running.pop(data["job_id"]))
        elif kind == "SIMULATION_BEGINS":
            free = list(range(data["nb_compute_resources"]))
        elif kind == "SIMULATION_ENDS":
            over = True
    while queue and free:
        job = queue.popleft()
        running[job] = free.pop()
        data = {"job_id": job, "alloc": str(running[job])}
        events.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})
    socket.send(json.dumps({"now": now, "events": events}).encode())
"""
"""Starts each job on any free host: the least that a scheduler in Python can do."""


def measure_protocol() -> Iterator[BenchmarkRow]:
    """Yield the rows: a trivial scheduler, then pybatsim if it is installed."""
    with tempfile.TemporaryDirectory() as folder:
        yield _measure_trivial(Path(folder))
        pybatsim = find_environment("pybatsim")
        if pybatsim is not None:
            yield _measure_pybatsim(Path(folder), pybatsim.with_name("pybatsim"))


def _measure_trivial(folder: Path) -> BenchmarkRow:
    script = folder / "trivial.py"
    script.write_text(_SCHEDULER)
    command = shlex.join([sys.executable, str(script), "{endpoint}"])
    run, cpu_pct = _run(folder, command, _JOBS)
    messages = 2 * run.messages
    seconds = run.wall_s
    return BenchmarkRow(
        f"{_JOBS:,} jobs over ZeroMQ, a trivial scheduler in Python",
        seconds,
        f"real Batsim 4.2.0, {REAL_BATSIM_PER_S:,} messages/s (recorded, not run here)",
        messages / REAL_BATSIM_PER_S,
        count=messages,
        figures=_shares(run, cpu_pct) | {"jobs/s": _JOBS / seconds},
        note="messages in both directions, with the start of the scheduler",
    )


def _measure_pybatsim(folder: Path, program: Path) -> BenchmarkRow:
    line = [str(program), "easyBackfill", "-s", "{endpoint}", "-t", "60000", "-v", "warning"]
    run, cpu_pct = _run(folder, shlex.join(line), _PYBATSIM_JOBS)
    return BenchmarkRow(
        f"{_PYBATSIM_JOBS:,} jobs under pybatsim 3.2.1 easyBackfill",
        run.wall_s,
        "",
        None,
        count=2 * run.messages,
        figures=_shares(run, cpu_pct),
        # Without ZeroMQ's sending: on a busy machine the scheduler runs before it returns.
        note="our part: from each reply to the next message; goal: at most 10 % of the run",
    )


def _shares(run: ScheduledRun, cpu_pct: float) -> dict[str, float]:
    ours_s = run.wall_s - run.scheduling_s
    return {
        "our part %": 100 * ours_s / run.wall_s,
        "our CPU %, with ZeroMQ": cpu_pct,
        "our us/message": 5e5 * ours_s / run.messages,
    }


def _run(folder: Path, command: str, jobs: int) -> tuple[ScheduledRun, float]:
    """Run so many jobs and write all files; return our part of the CPU time of both processes.

    The CPU time hardly depends on what else the machine does; the wall-clock time does.
    """
    _write_inputs(folder, jobs)
    setup = BatsimSetup(
        platform=folder / "platform.xml",
        workloads=[folder / "jobs.json"],
        export=str(folder / "out"),
    )
    inputs = setup.read()
    ours_s, theirs_s = process_time(), children_cpu_s()
    run = run_scheduler(inputs, JsonCodec(), SchedulerOptions(command=command)).run
    ours_s, theirs_s = process_time() - ours_s, children_cpu_s() - theirs_s
    return run, 100 * ours_s / (ours_s + theirs_s)


def children_cpu_s() -> float:
    """Return the CPU time of all child processes that have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_inputs(folder: Path, jobs: int) -> None:
    hosts = "".join(f'<host id="h{n}" coordinates="0 0 0" speed="1Gf"/>' for n in range(_HOSTS))
    (folder / "platform.xml").write_text(
        '<platform version="4.1"><zone id="z" routing="Vivaldi">'
        f'<host id="master_host" coordinates="0 0 0" speed="1Gf"/>{hosts}</zone></platform>'
    )
    entries = [
        {"id": n, "subtime": n * 0.7, "res": 1, "profile": f"d{n % 97}", "walltime": 1000}
        for n in range(jobs)
    ]
    # About 29 of 32 hosts are busy, so that jobs seldom wait and each has messages of its own.
    profiles = {f"d{n}": {"type": "delay", "delay": 3.3 + 0.35 * n} for n in range(97)}
    workload = {"nb_res": _HOSTS, "jobs": entries, "profiles": profiles}
    (folder / "jobs.json").write_text(json.dumps(workload))
