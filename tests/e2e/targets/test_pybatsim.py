"""Unmodified pybatsim 3.2.1 schedules our simulation, with the results of real Batsim."""

from __future__ import annotations

import csv
import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from command import call_here
from equipoise.adapters.targets.environment import PYTHON_TARGETS, find_environment

SHARED = Path(__file__).parents[4] / "shared" / "data" / "batsim"
SCHEDULERS = (
    "fillerSched",
    "fillerSchedWithEvents",
    "easyBackfill",
    "schedFcfs",
    "schedFiller",
    "schedEasySjfBackfill",
)
HIGH_LEVEL = SCHEDULERS[3:]
"""These demand job ids that are numbers, and no job that starts at time 0."""
PLATFORM = """<platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="master_host" coordinates="0 0 0" speed="1f"/>
{}
</zone></platform>"""


def pybatsim(scheduler: str, *options: str) -> str:
    """Return the command of a scheduler of pybatsim."""
    target = PYTHON_TARGETS["pybatsim"]
    python = find_environment("pybatsim")
    if python is None:
        pytest.skip(f"{target.about} is not in {target.folder}: '{target.command}' puts it there")
    program = str(python.with_name("pybatsim"))
    return shlex.join([program, scheduler, "-s", "{endpoint}", "-t", "60000", *options])


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    return path


def run(
    folder: Path, platform: Path, workload: Path, command: str, *options: str, code: int = 0
) -> dict[str, Any]:
    line = ("-p", str(platform), "-w", str(workload), "-e", str(folder / "out"))
    done = call_here("batsim", *line, "--scheduler", command, "--json", *options)
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def own_inputs(folder: Path) -> tuple[Path, Path]:
    """Write a platform of four hosts without latency, and twenty jobs of three kinds."""
    hosts = "\n".join(f'<host id="h{n}" coordinates="0 0 0" speed="10f"/>' for n in range(4))
    jobs = [
        {"id": n, "subtime": n // 3, "res": 1 + n % 3, "profile": "abc"[n % 3], "walltime": 50}
        for n in range(20)
    ]
    profiles = {
        "a": {"type": "delay", "delay": 7},
        "b": {"type": "parallel_homogeneous", "cpu": 40, "com": 0},
        "c": {"type": "composed", "repeat": 2, "seq": ["a", "b"]},
    }
    (folder / "own.xml").write_text(PLATFORM.format(hosts))
    workload = {"nb_res": 4, "jobs": jobs, "profiles": profiles}
    (folder / "own.json").write_text(json.dumps(workload))
    return folder / "own.xml", folder / "own.json"


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The high-level schedulers write a file of events where they run."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_scheduler_runs_to_the_end(tmp_path: Path, scheduler: str) -> None:
    platform, workload = own_inputs(tmp_path)
    # Its API asserts that a job starts after 0, which the messages of real Batsim are.
    epsilon = ("--start-epsilon", "1e-6") if scheduler in HIGH_LEVEL else ()
    document = run(tmp_path, platform, workload, pybatsim(scheduler), *epsilon)
    assert document["scheduler_exit_code"] == 0
    assert document["nb_jobs_success"] == 20
    assert document["policy"] == f"pybatsim {scheduler}"
    _check_hosts_are_used_once(tmp_path / "out_jobs.csv")


def _check_hosts_are_used_once(path: Path) -> None:
    spans: dict[int, list[tuple[float, float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            begin, end = float(row["starting_time"]), float(row["finish_time"])
            for part in row["allocated_resources"].split():
                first, _, last = part.partition("-")
                for host in range(int(first), int(last or first) + 1):
                    spans.setdefault(host, []).append((begin, end))
    assert set(spans) == {0, 1, 2, 3}
    for used in spans.values():
        used.sort()
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(used))


def test_a_start_at_time_zero_ends_a_high_level_scheduler(tmp_path: Path) -> None:
    """The reason for ``--start-epsilon``: without it the scheduler's assertion fails."""
    platform, workload = own_inputs(tmp_path)
    document = run(tmp_path, platform, workload, pybatsim("schedFcfs"), code=3)
    assert "AssertionError" in document["message"]


V4 = (
    "test_delays",
    "test_one_delay_job",
    "test_same_submit_time",
    "test_sequence_delay",
    "test_long_workload",
    "test_one_computation_job",
)


@pytest.mark.parametrize("name", V4)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_workloads_of_version_4_run_to_the_end(tmp_path: Path, scheduler: str, name: str) -> None:
    platform, workload = shared("v4/small_platform.xml"), shared(f"v4/{name}.json")
    jobs = len(json.loads(workload.read_text())["jobs"])
    document = run(tmp_path, platform, workload, pybatsim(scheduler))
    assert (document["scheduler_exit_code"], document["nb_jobs_finished"]) == (0, jobs)


RECORDED = {
    "py_easy_delays": "easyBackfill",
    "py_easy_ideal_hpc250": "easyBackfill",
    "py_easy_ideal_kinds": "easyBackfill",
    "py_easy_ideal_random60": "easyBackfill",
    "py_easy_ideal_ties": "easyBackfill",
    "py_easy_mixed": "easyBackfill",
    "py_easy_same": "easyBackfill",
    "py_easy_seq": "easyBackfill",
    "py_easysjf_same": "schedEasySjfBackfill",
    "py_fcfs_delays": "schedFcfs",
    "py_fcfs_ideal_random60": "schedFcfs",
    "py_fcfs_same": "schedFcfs",
    "py_fcfs_seq": "schedFcfs",
    "py_sfiller_delays": "schedFiller",
    "py_sfiller_seq": "schedFiller",
}
"""The recorded runs of deterministic schedulers that ended by themselves."""
TIMES = ("starting_time", "execution_time", "finish_time")
WORDS = ("job_id", "final_state", "allocated_resources", "requested_time")


@pytest.mark.parametrize("name", RECORDED)
def test_jobs_start_and_end_as_under_real_batsim(tmp_path: Path, name: str) -> None:
    recorded = json.loads(shared(f"real/{name}/run.json").read_text())
    inputs = shared("real/inputs")
    words = shlex.split(recorded["batsim_cmd"])[1:]
    values = dict(pairwise(words))
    options = [word for word in words if word.startswith("--") or word == "-E"]
    command = pybatsim(RECORDED[name])
    assert recorded["sched_cmd"].split()[1] == RECORDED[name]
    run(tmp_path, inputs / values["-p"], inputs / values["-w"], command, *options)
    with (tmp_path / "out_jobs.csv").open(newline="") as file:
        ours = {row["job_id"]: row for row in csv.DictReader(file)}
    with shared(f"real/{name}/out_jobs.csv").open(newline="") as file:
        theirs = {row["job_id"]: row for row in csv.DictReader(file)}
    assert list(ours) == list(theirs)
    for job, row in theirs.items():
        assert [ours[job][key] for key in WORDS] == [row[key] for key in WORDS]
        for key in TIMES if row["starting_time"] else ():  # a rejected job has no times
            assert float(ours[job][key]) == pytest.approx(float(row[key]), abs=1.5e-6), (job, key)


def test_ids_that_are_no_numbers_end_a_high_level_scheduler_as_recorded(tmp_path: Path) -> None:
    workload = shared("v4/test_various_profile_types.json")
    platform = shared("v4/small_platform.xml")
    document = run(tmp_path, platform, workload, pybatsim("schedFcfs"), code=3)
    assert "exit code 1" in document["message"]
    assert "JOB_SUBMITTED" in document["message"]


def test_the_sleeping_scheduler_runs_as_far_as_under_real_batsim(tmp_path: Path) -> None:
    """It waits for a number and receives text: the run is a deadlock, as recorded."""
    inputs = shared("real/inputs")
    document = run(
        tmp_path, inputs / "energy_platform_homogeneous.xml",
        inputs / "test_various_profile_types.json", pybatsim("fcfsSchedSleep"), "-E", code=3,
    )  # fmt: skip
    assert document["code"] in {"scheduler-deadlock", "scheduler-ended"}


def test_the_sleeping_scheduler_runs_where_it_runs_under_real_batsim(tmp_path: Path) -> None:
    inputs = shared("real/inputs")
    document = run(
        tmp_path, inputs / "energy_platform_homogeneous_no_net_fixed.xml",
        inputs / "test_delays.json", pybatsim("fcfsSchedSleep"), "-E",
    )  # fmt: skip
    assert (document["nb_jobs_finished"], document["makespan"]) == (10, 100.0)
    assert document["consumed_joules"] == pytest.approx(21000.0)


SLEEPER = """<host id="h{}" coordinates="0 0 0" speed="10f, 8f, 5f, 1f, 0.5f, 0.25f">
<prop id="wattage_per_state" value="10:20:20, 9:18:18, 8:16:16, 1:1:1, 30:30:30, 40:40:40"/>
<prop id="sleep_pstates" value="3:4:5"/></host>"""


@pytest.mark.parametrize("numeric", [False, True])
def test_the_sleeping_scheduler_needs_states_as_numbers(tmp_path: Path, numeric: bool) -> None:
    """Its states are 0 to 2 to compute and 3 to sleep; it compares them with numbers."""
    hosts = "\n".join(SLEEPER.format(number) for number in range(4))
    (tmp_path / "own.xml").write_text(PLATFORM.format(hosts))
    jobs = [
        {"id": n, "subtime": 30 * n, "res": 1 + n % 2, "profile": "a", "walltime": 50}
        for n in range(6)
    ]
    profiles = {"a": {"type": "delay", "delay": 7}}
    workload = tmp_path / "own.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    options = ("-E", "--numeric-state") if numeric else ("-E",)
    command = pybatsim("fcfsSchedSleep")
    document = run(
        tmp_path, tmp_path / "own.xml", workload, command, *options, code=0 if numeric else 3
    )
    if numeric:
        assert (document["nb_jobs_success"], document["scheduler_exit_code"]) == (6, 0)
        assert document["nb_machine_switches"] > 6
    else:
        assert "RESOURCE_STATE_CHANGED" in document["message"]
