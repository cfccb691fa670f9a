"""``equipoise kube run`` by the installed command, with a scheduler that is a script."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from command import call

SCRIPT = Path(__file__).parents[2] / "kubernetes_scheduler.py"
SCHEDULER = f"{sys.executable} {SCRIPT} {{url}}"
EXIT_7 = "exit code 7"


def workload(folder: Path, jobs: list[tuple[float, int, float]]) -> Path:
    """Write jobs: submission, cores, seconds."""
    path = folder / "jobs.json"
    content = {
        "nb_res": 64,
        "jobs": [
            {"id": f"j{number}", "subtime": submit, "res": cores, "profile": f"d{seconds:g}"}
            for number, (submit, cores, seconds) in enumerate(jobs)
        ],
        "profiles": {
            f"d{seconds:g}": {"type": "delay", "delay": seconds} for _, _, seconds in jobs
        },
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


BURST = [(0.0, 1, 10.0)] * 7


def run(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = call("kube", "run", "--clock", "stock", "--json", *arguments)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_burst_runs_in_waves(tmp_path: Path) -> None:
    out = tmp_path / "out"
    path = workload(tmp_path, BURST)
    found = run("--nodes", "3", "-w", str(path), "--scheduler", SCHEDULER, "--out", str(out))
    assert found["makespan"] == 30
    assert found["mean_waiting_time"] == pytest.approx((3 * 0 + 3 * 10 + 20) / 7)
    assert (found["bindings"], found["pending_count"], found["over_allocations"]) == (7, 0, [])
    assert found["cpu_requested_pct"] == pytest.approx(100 * 70 / 90, abs=1e-3)
    assert not found["exact"]
    starts = sorted(float(row["starting_time"]) for row in rows(out / "jobs.csv"))
    assert starts == [0, 0, 0, 10, 10, 10, 20]
    assert (out / "report.html").stat().st_size > 1000
    assert json.loads(call("replay", str(out / "journal.jsonl"), "--json").stdout)["makespan"] == 30


def test_decisions_are_repeated_without_a_scheduler(tmp_path: Path) -> None:
    jobs = [
        (0.0, 1, 10.0),
        (0.0, 2, 4.5),
        (1.0, 1, 3.0),
        (4.5, 2, 2.0),
        (4.5, 1, 0.5),
        (9.0, 2, 1.0),
    ]
    path, record = workload(tmp_path, jobs), tmp_path / "decisions.jsonl"
    base = ("--nodes", "2", "--cpu", "2", "-w", str(path), "--start-delay", "0.25")
    first = run(*base, "--scheduler", f"{SCHEDULER} --mode spread", "--record", str(record))
    again = run(*base, "--replay", str(record))
    assert again["bindings_sha256"] == first["bindings_sha256"]
    same = [key for key in first if key.startswith(("mean_", "max_", "nb_", "time_", "makespan"))]
    assert [again[key] for key in same] == [first[key] for key in same]
    other = workload(tmp_path, jobs[:-1])
    result = call(
        "kube",
        "run",
        "--nodes",
        "2",
        "--cpu",
        "2",
        "-w",
        str(other),
        "--replay",
        str(record),
        "--json",
    )
    assert result.returncode == 2
    assert json.loads(result.stdout)["problems"][0]["code"] == "stale-plan"


def test_fragmentation_is_the_cpu_that_is_free_while_pods_wait(tmp_path: Path) -> None:
    # 0.5 CPUs are free on each node, and the last pod waits 9 s for one whole.
    profiles = {"big": (1.5, 10), "small": (1, 5)}
    jobs = [("big", 0), ("big", 0), ("small", 1)]
    content = {
        "nb_res": 2,
        "jobs": [
            {"id": f"j{number}", "subtime": at_s, "res": 1, "profile": profile}
            for number, (profile, at_s) in enumerate(jobs)
        ],
        "profiles": {
            name: {"type": "delay", "cpu": cpu, "delay": run_s}
            for name, (cpu, run_s) in profiles.items()
        },
    }
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(content))
    found = run("--nodes", "2", "--cpu", "2", "-w", str(path), "--scheduler", SCHEDULER)
    assert found["makespan"] == 15
    assert found["fragmentation_pct"] == pytest.approx(100 * 9 / (4 * 15), abs=1e-3)
    found = run("--nodes", "3", "--cpu", "2", "-w", str(path), "--scheduler", SCHEDULER)
    assert (found["makespan"], found["fragmentation_pct"]) == (10, 0)


def test_a_pod_that_fits_nowhere_is_named_with_the_reason(tmp_path: Path) -> None:
    path = workload(tmp_path, [(0.0, 1, 5.0), (1.0, 9, 5.0), (2.0, 1, 5.0)])
    found = run("--nodes", "2", "-w", str(path), "--scheduler", SCHEDULER, code=1)
    assert found["pending_count"] == 1
    assert found["pending"] == [{"pod": "default/job-j1", "reason": "no node fits"}]
    assert found["nb_jobs_success"] == 2


def test_a_scheduler_that_over_allocates_is_reported_with_its_bindings(tmp_path: Path) -> None:
    path = workload(tmp_path, [(0.0, 1, 5.0), (1.0, 1, 5.0), (2.0, 1, 5.0)])
    base = ("--nodes", "2", "-w", str(path), "--scheduler", f"{SCHEDULER} --mode blind")
    found = run(*base, code=1)
    assert [(row["at_s"], row["rejected"]) for row in found["over_allocations"]] == [
        (1.0, True),
        (2.0, True),
    ]
    assert found["nb_jobs_success"] == 1
    found = run(*base, "--run-over-allocated", code=1)
    assert [(row["requested"], row["allocatable"]) for row in found["over_allocations"]] == [
        (2000, 1000),
        (3000, 1000),
    ]
    assert (found["nb_jobs_success"], found["makespan"]) == (3, 7)


def test_a_scheduler_that_dies_leaves_complete_files(tmp_path: Path) -> None:
    out, path = tmp_path / "out", workload(tmp_path, BURST)
    base = ("--nodes", "3", "-w", str(path), "--out", str(out), "--clock", "stock")
    result = call("kube", "run", *base, "--scheduler", f"{SCHEDULER} --mode die --count 5")
    assert result.returncode == 3
    assert EXIT_7 in result.stderr
    assert "no more" in result.stderr
    assert [row["job_id"] for row in rows(out / "jobs.csv")] == [
        "j0",
        "j1",
    ]  # fmt: skip
    assert rows(out / "schedule.csv")[0]["nb_jobs"] == "2"
    assert len((out / "decisions.jsonl").read_text().splitlines()) >= 6
    assert "exit code 7" in (out / "report.html").read_text()


def test_a_wide_job_can_be_split_into_pods(tmp_path: Path) -> None:
    path = workload(tmp_path, [(0.0, 5, 10.0), (1.0, 1, 3.0)])
    base = ("--nodes", "2", "--cpu", "2", "-w", str(path), "--scheduler", SCHEDULER)
    assert run(*base, code=1)["pending_count"] == 1
    found = run(*base, "--wide", "split")
    assert (found["nb_jobs"], found["nb_jobs_success"], found["makespan"]) == (6, 6, 20)


def test_the_example_of_manifests_runs() -> None:
    example = Path(__file__).parents[3] / "examples" / "kube" / "burst.yaml"
    found = run("-w", str(example), "--scheduler", SCHEDULER)
    assert (found["nb_jobs"], found["bindings"], found["pending_count"]) == (11, 13, 0)


CONTAINER = {"name": "c", "image": "i"}


def pods_file(folder: Path, metadata: dict[str, Any], **spec: Any) -> Path:
    path = folder / "pods.json"
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata},
        "spec": {"restartPolicy": "Never", "containers": [CONTAINER], **spec},
    }  # fmt: skip
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, pod]}))
    return path


def test_an_object_that_the_api_refuses_is_bad_input(tmp_path: Path) -> None:
    path = pods_file(tmp_path, {}, priorityClassName="urgent")
    found = run("--nodes", "1", "-w", str(path), "--scheduler", SCHEDULER, code=2)
    (problem,) = found["problems"]
    assert (problem["key"], "urgent" in problem["what"]) == ("Pod default/p", True)


def test_a_pod_whose_scheduler_is_not_there_is_named(tmp_path: Path) -> None:
    path = pods_file(tmp_path, {}, schedulerName="other")
    found = run("--nodes", "1", "-w", str(path), "--scheduler", SCHEDULER, code=1)
    assert found["pending"] == [{"pod": "default/p", "reason": "no scheduler has the name other"}]


def test_a_run_beyond_what_clocks_can_count_is_bad_input(tmp_path: Path) -> None:
    year_s = 31_536_000
    annotations = {"equipoise.dev/duration": str(30 * year_s), "equipoise.dev/exit-code": "1"}
    path = pods_file(tmp_path, {"annotations": annotations}, restartPolicy="OnFailure")
    found = run("--nodes", "1", "-w", str(path), "--scheduler", SCHEDULER, code=2)
    assert found["problems"][0]["code"] == "out-of-range"
    path = pods_file(tmp_path, {"annotations": {"equipoise.dev/duration": f"{40 * year_s}"}})
    found = run("--nodes", "1", "-w", str(path), "--scheduler", SCHEDULER, code=2)
    assert found["problems"][0]["key"] == "items[1].metadata.annotations.equipoise.dev/duration"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ((), "--scheduler"),
        (("--scheduler", "no-such-program"), "--scheduler"),
        (("--scheduler", "'"), "--scheduler"),
        (("--scheduler", "x", "--clock", "sundial"), "--clock"),
        (("--scheduler", "x", "--wide", "wider"), "--wide"),
        (("--scheduler", "x", "--replay", "y"), "--scheduler"),
        (("--scheduler", "x", "--scheduler", "y", "--config", "a", "--config", "b"), "--config"),
    ],
)
def test_wrong_options(tmp_path: Path, arguments: tuple[str, ...], key: str) -> None:
    path = workload(tmp_path, BURST)
    result = call("kube", "run", "--nodes", "3", "-w", str(path), "--json", *arguments)
    assert result.returncode == 2
    assert json.loads(result.stdout)["problems"][0]["key"] == key


def test_a_workload_and_nodes_are_needed(tmp_path: Path) -> None:
    path = workload(tmp_path, BURST)
    for arguments in (("--nodes", "3"), ("-w", str(path)), ("-w", str(tmp_path / "none.json"))):
        result = call("kube", "run", "--scheduler", SCHEDULER, "--json", *arguments)
        assert result.returncode == 2
        assert json.loads(result.stdout)["problems"]
