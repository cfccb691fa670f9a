"""The openb trace: what a row means, what is left out, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.openb import (
    OpenbNode,
    OpenbPod,
    read_openb_jobs,
    read_openb_nodes,
    read_openb_pods,
)
from equipoise.api.jobs import simulate_jobs
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.work import DelayWork, JobState

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
ROWS = (
    "late,1001,16,1,460,V100M16|V100M32,LS,Running,30,,40\n"
    "first,12000,16384,2,1000,,LS,Running,0,100,20\n"
    "bad,500,1,0,0,,BE,Failed,10,25,15\n"
    "pending,1000,1,0,0,,BE,Pending,12,20,\n"
    "instant,1000,1,0,0,,BE,Running,50,60,60\n"
)


def write(folder: Path, text: str, name: str = "pods.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_a_row_is_a_pod(tmp_path: Path, begin: str) -> None:
    first = read_openb_pods(write(tmp_path, begin + PODS + ROWS))[0]
    assert first == OpenbPod(
        name="late", cpu_milli=1001, memory_mib=16, gpus=1, gpu_milli=460,
        gpu_models=("V100M16", "V100M32"), qos="LS", phase="Running",
        created_s=30, deleted_s=None, scheduled_s=40,
    )  # fmt: skip


def test_a_row_is_a_node(tmp_path: Path) -> None:
    path = write(tmp_path, NODES + "n0,32000,262144,0,\nn1,96000,786432,8,G2\n")
    assert read_openb_nodes(path) == [
        OpenbNode(name="n0", cpu_milli=32000, memory_mib=262144, gpus=0, gpu_model=""),
        OpenbNode(name="n1", cpu_milli=96000, memory_mib=786432, gpus=8, gpu_model="G2"),
    ]


def test_a_pod_becomes_a_job_of_whole_processors_that_runs_as_long_as_it_did(
    tmp_path: Path,
) -> None:
    found = []
    for job in read_openb_jobs(write(tmp_path, PODS + ROWS)):
        assert isinstance(job.work, DelayWork)
        work = job.work
        found.append((job.name, job.submit_s, job.hosts_requested, work.seconds, work.return_code))
    # The trace ends at 100 s; the pod that took no time is left out.
    assert found == [
        ("first", 0, 12, 80, 0),
        ("bad", 10, 1, 10, 1),
        ("pending", 12, 1, 8, 0),
        ("late", 30, 2, 60, 0),
    ]


def test_a_trace_runs_as_a_workload(tmp_path: Path) -> None:
    run = simulate_jobs(None, write(tmp_path, PODS + ROWS), hosts=12, policy="fcfs")
    states = {job.name: (job.start_s, job.end_s, job.state) for job in run.jobs}
    assert states == {
        "first": (0, 80, JobState.SUCCEEDED),
        "bad": (80, 90, JobState.FAILED),
        "pending": (80, 88, JobState.SUCCEEDED),
        "late": (80, 140, JobState.SUCCEEDED),
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("a,b\n1,2\n", 1),
        (PODS + "x,1,1,0,0,,LS,Running,0,1\n" + "y,-1,1,0,0,,LS,Running,0,1,0\n", 3),
        (PODS + "x,1_0,1,0,0,,LS,Running,0,1,0\n", 2),
        (PODS + "x,1,1,0,0,,LS,Running,zero,1,0\n", 2),
        (PODS + ",1,1,0,0,,LS,Running,0,1,0\n", 2),
        (PODS + "x,1,1,0,0,,LS,Running,,1,0\n", 2),
        (PODS + "x,1,1,0,0,,LS,Running,0,1,0,9\n", 2),
        (PODS + 2 * "x,1,1,0,0,,LS,Running,0,1,0\n", 3),
        (PODS + f"x,{10**20},1,0,0,,LS,Running,0,1,0\n", 2),
    ],
)
def test_a_wrong_row_is_named_by_its_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_openb_pods(write(tmp_path, text))
    (problem,) = caught.value.problems
    assert (problem.line, bool(problem.cure)) == (line, True)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.csv", binary):
        with pytest.raises(InvalidInput):
            read_openb_nodes(path)
