"""Schedulers that ``equipoise batsim --scheduler`` starts: processes, signals, exit codes."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import batsim_scheduler
from batsim_scheduler import write_inputs
from command import COMMAND, call_here

SCRIPT = batsim_scheduler.__file__


def scheduler(fault: str = "", place: str = "{endpoint}") -> str:
    return shlex.join([sys.executable, SCRIPT, place, fault])


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call_here("batsim", *write_inputs(folder), "-e", str(folder / "out"), *arguments)


def ended_jobs(folder: Path) -> list[str]:
    with (folder / "out_jobs.csv").open(newline="") as file:
        return [row["job_id"] for row in csv.DictReader(file)]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(path: Path) -> str:
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < until, path
        time.sleep(0.02)
    return path.read_text()


@pytest.mark.parametrize("place", ["{endpoint}", "tcp://*:{port}"])
def test_a_started_scheduler_runs_to_the_end(tmp_path: Path, place: str) -> None:
    done = run(tmp_path, "--scheduler", scheduler(place=place), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["scheduler_exit_code"] == 0
    assert (document["nb_jobs"], document["makespan"]) == (3, 25.0)
    assert ended_jobs(tmp_path) == ["0", "1", "2"]


def test_the_scheduler_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "batsim.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "mine.py").write_text(code)
    command = shlex.join([sys.executable, str(tmp_path / "mine.py"), "{endpoint}"])
    done = run(tmp_path, "--scheduler", command)
    assert done.returncode == 0, done.stderr
    assert ended_jobs(tmp_path) == ["0", "1", "2"]


def test_a_local_socket_serves_too(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/s"
    done = run(tmp_path, "-s", endpoint, "--scheduler", scheduler())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("fault", "named"),
    [("exit", "exit code 5"), ("slow exit", "exit code 5"), ("killed", "SIGKILL")],
)
def test_a_scheduler_that_dies_fails_the_run(tmp_path: Path, fault: str, named: str) -> None:
    done = run(tmp_path, "--scheduler", scheduler(fault))
    assert done.returncode == 3
    assert named in done.stderr
    assert "JOB_SUBMITTED" in done.stderr
    assert ("no more ideas" in done.stderr) == ("exit" in fault)
    assert ended_jobs(tmp_path) == ["0"]
    assert (tmp_path / "out_schedule.csv").read_text().count("\n") == 2


def test_the_exit_code_of_the_scheduler_counts(tmp_path: Path) -> None:
    done = run(tmp_path, "--scheduler", scheduler("code"), "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["scheduler_exit_code"] == 7
    assert ended_jobs(tmp_path) == ["0", "1", "2"]


def test_much_output_does_not_block_the_scheduler(tmp_path: Path) -> None:
    log = tmp_path / "scheduler.log"
    done = run(tmp_path, "--scheduler", scheduler("noise"), "--scheduler-log", str(log))
    assert done.returncode == 0, done.stderr
    assert log.stat().st_size == 2_000_001


@pytest.mark.parametrize("fault", ["hang", "stubborn"])
def test_a_scheduler_that_hangs_ends_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("equipoise.adapters.batsim.transport.process._TERMINATION_S", 0.2)
    done = run(tmp_path, "--scheduler", scheduler(fault), "--scheduler-timeout", "0.5")
    assert done.returncode == 3
    assert not is_alive(int((tmp_path / "child.pid").read_text()))
    assert ended_jobs(tmp_path) == ["0"]


def test_a_scheduler_that_stays_is_stopped_after_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.adapters.batsim.transport.launch._END_S", 0.1)
    done = run(tmp_path, "--scheduler", scheduler("linger"), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["nb_jobs"], document["scheduler_exit_code"]) == (3, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_complete_files(tmp_path: Path, number: int) -> None:
    inputs = write_inputs(tmp_path)
    line = [str(COMMAND), "batsim", *inputs, "--scheduler", scheduler("hang"), "--out", "o"]
    running = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    child = int(wait_for(tmp_path / "child.pid"))
    os.kill(running.pid, number)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    with (tmp_path / "o" / "jobs.csv").open() as file:
        assert [row["job_id"] for row in csv.DictReader(file)] == ["0"]
    assert (tmp_path / "o" / "schedule.csv").read_text().count("\n") == 2
    assert json.loads((tmp_path / "o" / "summary.json").read_text())["stopped"] == "interrupted"
    assert "stopped before its end" in (tmp_path / "o" / "report.html").read_text()
    assert not is_alive(child)


REFUSED: dict[str, tuple[str, ...]] = {
    "no program": ("--scheduler", "no-such-program-of-ours {endpoint}"),
    "open quote": ("--scheduler", "python 'x"),
    "empty": ("--scheduler", ""),
    "no port": ("--scheduler", f"{sys.executable} {{port}}", "-s", "ipc://x"),
    "no endpoint": ("-s", "localhost:28000"),
    "no such port": ("-s", "tcp://localhost:99999"),
    "two schedulers": ("--no-sched", "--replay", "x"),
    "workflow": ("-W", "flow.xml"),
    "redis": ("--enable-redis",),
    "SimGrid": ("--sg-cfg", "network/model:LV08"),
    "verbosity": ("-v", "loud"),
    "two configurations": ("--sched-cfg", "x", "--sched-cfg-file", "y"),
    "log of no process": ("--scheduler-log", "x.log"),
    "no record": ("--replay", "missing.jsonl"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_options_are_refused(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, *REFUSED[name], "--json")
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["problems"]


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)
    done = run(tmp_path, "--scheduler", scheduler())
    assert done.returncode == 2
    assert "equipoise[batsim]" in done.stderr


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with batsim_scheduler.ThreadScheduler() as other:
        done = run(tmp_path, "-s", other.endpoint, "--scheduler", scheduler())
    assert done.returncode == 2
    assert other.messages == []


def test_jobs_run_one_by_one_without_a_scheduler(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    workload: dict[str, Any] = json.loads((tmp_path / "jobs.json").read_text())
    for job in workload["jobs"]:
        job["subtime"] = 0
    (tmp_path / "same.json").write_text(json.dumps(workload))
    done = call_here(
        "batsim", "-p", str(tmp_path / "platform.xml"), "-w", str(tmp_path / "same.json"),
        "--no-sched", "-e", str(tmp_path / "out"), "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["makespan"] == 15.0


def test_a_job_that_is_too_large_is_rejected_without_a_scheduler(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    workload = json.loads((tmp_path / "jobs.json").read_text())
    workload["jobs"][1]["res"] = 99
    (tmp_path / "jobs.json").write_text(json.dumps(workload))
    done = call_here("batsim", *inputs, "-e", str(tmp_path / "out"), "--no-sched", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nb_jobs_rejected"] == 1
    assert sorted(ended_jobs(tmp_path)) == ["0", "1", "2"]


def test_scripts_read_the_context_of_a_run(tmp_path: Path) -> None:
    done = run(tmp_path, "--dump-execution-context")
    context = json.loads(done.stdout)
    assert context["socket_endpoint"] == "tcp://localhost:28000"
    assert context["export_prefix"] == str(tmp_path / "out")
    assert not (tmp_path / "out_jobs.csv").exists()
