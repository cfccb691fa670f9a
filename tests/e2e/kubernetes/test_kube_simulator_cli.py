"""``equipoise kube run --simulator``: Batsim's counterpart is the cluster behind the API."""

from __future__ import annotations

import csv
import json
import random
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from command import call

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
SCRIPT = Path(__file__).parents[2] / "kubernetes_scheduler.py"
SCHEDULER = f"{sys.executable} {SCRIPT} {{url}}"
Jobs = Sequence[tuple[float, float, float]]
"""Submission, CPUs and seconds of each job."""


def write_case(folder: Path, jobs: Jobs, cores: int) -> tuple[Path, Path]:
    """Write a platform of three hosts, and a workload."""
    hosts = [
        f'<host id="{name}" speed="1Gf"><prop id="core" value="{cores}"/></host>'
        for name in ("a", "b", "c", "master_host")
    ]
    platform, workload = folder / "platform.xml", folder / "jobs.json"
    zone = f'<zone id="all" routing="None">{"".join(hosts)}</zone>'
    platform.write_text(f"<?xml version='1.0'?><platform version='4.1'>{zone}</platform>")
    content = {
        "nb_res": 3,
        "jobs": [
            {"id": f"j{number}", "subtime": at_s, "res": 1, "profile": f"p{number}"}
            for number, (at_s, _, _) in enumerate(jobs)
        ],
        "profiles": {
            f"p{number}": {"type": "delay", "delay": run_s, "cpu": cpu}
            for number, (_, cpu, run_s) in enumerate(jobs)
        },
    }
    workload.write_text(json.dumps(content))
    return platform, workload


def free_endpoint() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


def run_both(
    folder: Path,
    case: tuple[Path, Path],
    *more: str,
    scheduler: str = SCHEDULER,
    share: bool = True,
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """Run Batsim's counterpart and the API; return both processes when they have ended."""
    endpoint, (platform, workload) = free_endpoint(), case
    batsim = ("batsim", "-p", str(platform), "-w", str(workload), "-s", endpoint)
    sharing = ("--enable-compute-sharing",) if share else ()
    ours = ("kube", "run", "--simulator", endpoint, "--clock", "stock", "--scheduler", scheduler)
    with ThreadPoolExecutor() as both:
        cluster = both.submit(call, *batsim, *sharing, "-e", str(folder / "batsim"), "--json")
        api = both.submit(call, *ours, "--json", *more)
        return cluster.result(), api.result()


def starts(path: Path) -> dict[str, tuple[float, float, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {
            row["job_id"]: (
                float(row["starting_time"] or -1),
                float(row["finish_time"] or -1),
                row["final_state"],
            )
            for row in csv.DictReader(file)
        }


@pytest.mark.parametrize("seed", [1, 2])
def test_a_schedule_on_batsim_is_that_on_our_own_cluster(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    jobs = [
        (draw.randint(0, 40) / 2, draw.choice([1, 1, 2]), draw.randint(1, 30) / 2)
        for _ in range(20)
    ]
    case = write_case(tmp_path, jobs, cores=2)
    out = tmp_path / "ours"
    cluster, api = run_both(tmp_path, case, "--out", str(out))
    assert (cluster.returncode, api.returncode) == (0, 0), cluster.stderr + api.stderr
    alone = call(
        "kube", "run", "-p", str(case[0]), "-w", str(case[1]), "--clock", "stock",
        "--scheduler", SCHEDULER, "--out", str(tmp_path / "alone"), "--json",
    )  # fmt: skip
    assert alone.returncode == 0
    here, there = starts(out / "jobs.csv"), starts(tmp_path / "batsim_jobs.csv")
    assert len(here) == 20
    assert here == there == starts(tmp_path / "alone" / "jobs.csv")
    keys = ("makespan", "mean_waiting_time", "nb_jobs_success", "bindings_sha256")
    document, own = json.loads(api.stdout), json.loads(alone.stdout)
    assert {key: document[key] for key in keys} == {key: own[key] for key in keys}


def test_a_host_that_is_not_shared_runs_one_pod_at_a_time(tmp_path: Path) -> None:
    case = write_case(tmp_path, [(0, 1, 10)] * 4, cores=4)
    out = tmp_path / "ours"
    # The script knows CPUs only: the node refuses what exceeds it, and Batsim sees a rejection.
    cluster, api = run_both(tmp_path, case, "--out", str(out), share=False)
    assert cluster.returncode == 0, cluster.stderr
    document: dict[str, Any] = json.loads(api.stdout)
    assert api.returncode == 1
    assert {over["resource"] for over in document["over_allocations"]} == {"pods"}
    rows = starts(tmp_path / "batsim_jobs.csv")
    assert sorted(state for _, _, state in rows.values()) == sorted(
        state for _, _, state in starts(out / "jobs.csv").values()
    )


def test_jobs_that_no_host_has_room_for_are_rejected_at_the_end(tmp_path: Path) -> None:
    case = write_case(tmp_path, [(0, 1, 5), (1, 9, 5), (20, 2, 5)], cores=2)
    cluster, api = run_both(tmp_path, case)
    assert (cluster.returncode, api.returncode) == (0, 1), cluster.stderr + api.stderr
    assert json.loads(api.stdout)["pending_count"] == 1
    rows = starts(tmp_path / "batsim_jobs.csv")
    assert rows["j1"][2] == "REJECTED"
    assert [rows[name][:2] for name in ("j0", "j2")] == [(0, 5), (20, 25)]


def test_a_simulation_that_dies_ends_the_run(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq", reason="pyzmq is missing")
    endpoint = free_endpoint()
    host = {"id": 0, "name": "a", "state": "idle", "properties": {}, "zone_properties": {}}
    begin = {"compute_resources": [host], "allow_compute_sharing": True, "profiles": {}}
    event = {"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": begin}
    line = ("kube", "run", "--simulator", endpoint, "--clock", "stock", "--scheduler", SCHEDULER)
    with ThreadPoolExecutor() as both:
        run = both.submit(call, *line, "--json")
        with zmq.Context() as context, context.socket(zmq.REQ) as batsim:
            batsim.linger = 0
            batsim.connect(endpoint)
            batsim.send_json({"now": 0.0, "events": [event]})
            assert batsim.recv_json() == {"now": 0.0, "events": []}
        result = run.result()
    assert result.returncode == 3
    assert json.loads(result.stdout)["code"] == "simulation-ended"


@pytest.mark.parametrize(
    ("more", "key"),
    [
        (("-w", "x.json"), "--workload"),
        (("--nodes", "3"), "--nodes"),
        (("--twice",), "--twice"),
        (("--clock", "timeout"), "--clock"),
        (("--config", "a", "--config", "b"), "--config"),
    ],
)
def test_options_that_contradict_a_simulator(more: tuple[str, ...], key: str) -> None:
    result = call("kube", "run", "--simulator", free_endpoint(), "--json", *more)
    assert result.returncode == 2
    assert json.loads(result.stdout)["problems"][0]["key"] == key
