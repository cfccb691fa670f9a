"""Version 5 and ``batsim-schedule`` over real sockets, with pybatsim 4.0.0b0 as it is published."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from batsim_files import write_platform, write_workload
from command import call
from equipoise.adapters.targets.environment import find_environment
from equipoise.documents.simulation import BatsimDocument, BatsimScheduleDocument

pytest.importorskip("zmq", reason="pyzmq is not installed: the extra batsim")
JOBS = [
    {"id": n, "subtime": (7 * n) % 23, "res": 1 + (3 * n) % 5, "profile": f"d{1 + n % 3}",
     "walltime": 30}
    for n in range(20)
]  # fmt: skip
FIRST_S = min((7 * n) % 23 for n in range(20))
PROFILES: dict[str, Any] = {
    f"d{n}": {"type": "DelayProfile", "delay": 5 * n - 2} for n in range(1, 4)
}


def rows(path: Path) -> dict[str, tuple[str, str, str]]:
    with path.open(newline="") as file:
        return {
            row["job_id"]: (row["starting_time"], row["allocated_resources"], row["final_state"])
            for row in csv.DictReader(file)
        }


def expected(folder: Path, policy: str) -> dict[str, tuple[str, str, str]]:
    """Write the files; return the rows of the built-in policy."""
    write_platform(folder, 4)
    write_workload(folder, 4, JOBS, **PROFILES)
    words = [
        "jobs",
        "-p",
        "platform.xml",
        "-w",
        "jobs.json",
        "-e",
        "own/",
        "--output-layout",
        "5",
        "--policy",
    ]
    assert call(*words, policy, cwd=folder).returncode == 0
    return rows(folder / "own/jobs.csv")


def run(folder: Path, scheduler: str, protocol: str) -> BatsimDocument:
    words = [
        "batsim",
        "-p",
        "platform.xml",
        "-w",
        "jobs.json",
        "--output-layout",
        "5",
        "--json",
        "--protocol",
    ]
    done = call(*words, protocol, "--scheduler", scheduler, "--scheduler-log", "log", cwd=folder)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout.encode(), type=BatsimDocument)


def test_pybatsim_5_starts_jobs_as_our_fcfs(tmp_path: Path) -> None:
    python = find_environment("pybatsim-5")
    if python is None:
        pytest.skip("pybatsim 4.0.0b0 is not installed: make targets, with Python 3.12")
    program = python.parent / "pybatsim"
    own = expected(tmp_path, "fcfs")
    document = run(tmp_path, f"{program} fcfs -s {{endpoint}} -t 20000", "5")
    assert (document.scheduler_exit_code, document.nb_jobs) == (0, len(JOBS))
    assert rows(tmp_path / "out/jobs.csv") == own


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_our_policy_decides_over_a_socket_as_in_process(tmp_path: Path, protocol: str) -> None:
    own = expected(tmp_path, "conservative")
    program = Path(sys.executable).parent / "equipoise"
    command = f"{program} batsim-schedule -s {{endpoint}} --json"
    document = run(tmp_path, f"{command} --policy conservative", protocol)
    assert rows(tmp_path / "out/jobs.csv") == own
    text = (tmp_path / "log").read_text()
    decided = msgspec.json.decode(text[text.index("{") :].encode(), type=BatsimScheduleDocument)
    assert (decided.protocol, decided.messages) == (int(protocol), document.messages)
    assert decided.started + decided.rejected == len(JOBS)
    summary = json.loads((tmp_path / "out/schedule.json").read_text())
    assert summary["nb_jobs"] == len(JOBS)
    assert summary["makespan"] == document.makespan - FIRST_S
