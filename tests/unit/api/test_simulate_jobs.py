"""``eq.simulate_jobs``: the same meaning as the command line, and policies of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import equipoise as eq
from command import call_here
from equipoise.adapters.batsim.outputs import JOB_COLUMNS, job_table
from equipoise.sim.jobs.policies import Fcfs
from equipoise.sim.jobs.work import DelayWork, Job, JobState

PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"/>
<host id="a" speed="1Gf"><prop id="wattage_per_state" value="100.0:200.0"/></host>
<host id="b" speed="1Gf"><prop id="wattage_per_state" value="100.0:200.0"/></host>
</zone></platform>
"""
WORKLOAD = {
    "nb_res": 2,
    "jobs": [
        {"id": "x", "subtime": 0, "res": 1, "profile": "short", "walltime": 20},
        {"id": "y", "subtime": 1, "res": 2, "profile": "short", "walltime": 20},
        {"id": "z", "subtime": 2, "res": 1, "profile": "short", "walltime": 9},
        {"id": "wide", "subtime": 3, "res": 3, "profile": "short"},
    ],
    "profiles": {"short": {"type": "delay", "delay": 8}},
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    return tmp_path / "p.xml", tmp_path / "w.json"


def test_the_function_and_the_command_give_the_same_figures_and_files(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    platform, workload = files
    run = eq.simulate_jobs(platform, workload, policy="easy", export=tmp_path / "api")
    printed = call_here(
        "jobs", "-p", str(platform), "-w", str(workload), "-e", str(tmp_path / "cli"), "--json"
    )
    document = json.loads(printed.stdout)
    assert {key: document[key] for key in run.figures} == run.figures
    for name in ("jobs", "machine_states"):
        ours = (tmp_path / f"api_{name}.csv").read_text()
        assert ours == (tmp_path / f"cli_{name}.csv").read_text()
    assert document["policy"] == run.policy == "easy"


def test_the_run_keeps_its_jobs_and_its_energy(files: tuple[Path, Path]) -> None:
    run = eq.simulate_jobs(*files)
    assert [job.name for job in run.jobs] == ["wide", "x", "z", "y"]
    table = job_table(run.jobs)
    assert tuple(table) == JOB_COLUMNS
    assert table["final_state"][0] == "REJECTED"
    assert table["starting_time"][1:] == [0, 2, 10]
    assert table["allocated_resources"] == ["", "0", "1", "0-1"]
    assert run.history is not None
    assert list(run.history.energy_times) == [0, 2, 8, 10, 18]
    assert run.history.energy_j[-1] == run.figures["consumed_joules"] == 2 * 100 * 18
    assert not eq.simulate_jobs(*files, keep_jobs=False).jobs
    assert str(run).splitlines()[0].endswith("w.json, policy easy")


def test_frame_has_a_row_per_job(files: tuple[Path, Path]) -> None:
    pytest.importorskip("pandas")
    frame = eq.simulate_jobs(*files).frame()
    assert tuple(frame.columns) == JOB_COLUMNS
    assert frame.finish_time.max() == 18
    assert frame.waiting_time.isna().sum() == 1


class LastFirst(Fcfs):
    """Starts the job that arrived last."""

    def submit(self, job: Job) -> None:
        self._queue.appendleft(job)


@pytest.mark.parametrize("policy", [LastFirst, LastFirst(2), partial(LastFirst)])
def test_a_policy_of_ones_own(policy: Callable[[int], LastFirst]) -> None:
    work = DelayWork(name="w", seconds=10)
    jobs = [Job("w0", str(number), float(number), 2, work) for number in range(3)]
    run = eq.simulate_jobs(None, jobs, policy=policy, hosts=2)
    assert [job.name for job in run.jobs] == ["0", "2", "1"]
    assert all(job.state is JobState.SUCCEEDED for job in run.jobs)


def test_what_is_no_policy_is_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(eq.InvalidInput) as unknown:
        eq.simulate_jobs(*files, policy="lucky")
    assert unknown.value.problems[0].code == "unknown-name"
    with pytest.raises(eq.InvalidInput):
        eq.simulate_jobs(*files, policy=dict)  # type: ignore[arg-type]
    with pytest.raises(eq.InvalidInput) as missing:
        eq.simulate_jobs(None, [])
    assert missing.value.problems[0].key == "--hosts"
