"""``equipoise kube run`` with the real kube-scheduler on the virtual clock: exact to the second."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from command import call_here
from equipoise.adapters.kubernetes.clock.build import find_scheduler
from equipoise.errors import EquipoiseError

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")

Object = dict[str, Any]
PREFIX = "equipoise.dev/"
BURST_PODS, BURST_S = 7, 10


@pytest.fixture(scope="module")
def scheduler() -> str:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    try:
        program = find_scheduler()
    except EquipoiseError as error:
        pytest.skip(str(error))
    if program is None:
        pytest.skip("run 'python -m equipoise.adapters.targets kube-scheduler'")
    return str(program)


def node(name: str, cpu: str = "1") -> Object:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    labels = {"kubernetes.io/hostname": name}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name: str, at_s: float, run_s: float, cpu: str = "1", **spec: Any) -> Object:
    annotations = {f"{PREFIX}arrival": f"{at_s}s", f"{PREFIX}duration": f"{run_s}s"}
    annotations |= spec.pop("annotations", {})
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def priority(name: str, value: int, policy: str = "PreemptLowerPriority") -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


class Runs:
    """Runs objects in a folder, and reads what came of them."""

    def __init__(self, folder: Path, objects: list[Object]) -> None:
        self.out = folder / "out"
        self._file = folder / "objects.json"
        content = {"apiVersion": "v1", "kind": "List", "items": objects}
        self._file.write_text(json.dumps(content), encoding="utf-8")

    def run(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        result = call_here("kube", "run", "-w", str(self._file), "--json", *arguments)
        assert result.returncode == code, result.stdout + result.stderr
        return json.loads(result.stdout)  # type: ignore[no-any-return]

    def times(self, *arguments: str, code: int = 0) -> dict[str, tuple[float, float]]:
        """Return the start and the end of each pod that started."""
        self.run("--out", str(self.out), *arguments, code=code)
        with (self.out / "jobs.csv").open(newline="", encoding="utf-8") as file:
            return {
                row["job_id"]: (float(row["starting_time"]), float(row["finish_time"]))
                for row in csv.DictReader(file)
                if row["starting_time"]
            }


def burst() -> list[Object]:
    nodes = [node(f"n{number}") for number in range(3)]
    return nodes + [pod(f"p{number}", 0, BURST_S) for number in range(BURST_PODS)]


def test_a_burst_is_exact_repeatable_and_repeated_from_its_record(
    scheduler: str, tmp_path: Path
) -> None:
    record = str(tmp_path / "decisions.jsonl")
    runs = Runs(tmp_path, burst())
    found = runs.run("--scheduler", scheduler, "--twice", "--record", record)
    assert found["makespan"] == 30
    assert found["mean_waiting_time"] == pytest.approx((3 * 0 + 3 * 10 + 20) / 7)
    assert found["repeated"]
    assert found["exact"]
    assert found["over_allocations"] == []
    again = runs.run("--replay", record)
    assert again["bindings_sha256"] == found["bindings_sha256"]
    assert again["makespan"] == 30


def test_start_delays_and_pulls_add_up(scheduler: str, tmp_path: Path) -> None:
    delays = ("--start-delay", "1.5", "--pull", "2.25")
    times = Runs(tmp_path, burst()).times("--scheduler", scheduler, *delays)
    # Each node pulls the image once; the later pods of a node only start.
    first, later = 3.75, 1.5
    wave_s = [first, first + BURST_S + later, first + 2 * (BURST_S + later)]
    assert sorted(start for start, _ in times.values()) == [
        *[wave_s[0]] * 3,
        *[wave_s[1]] * 3,
        wave_s[2],
    ]
    assert all(end - start == BURST_S for start, end in times.values())


def test_of_two_pods_that_waited_long_the_one_with_the_higher_priority_starts(
    scheduler: str, tmp_path: Path
) -> None:
    """Short pods end on another node, after each of which the waiting ones are tried again."""
    there = {"kubernetes.io/hostname": "small"}
    objects = [
        node("large"),
        node("small", "500m"),
        priority("high", 100, "Never"),
        pod("first", 0, 100),
        pod("low", 1, 10),
        pod("high", 2, 10, priorityClassName="high"),
        *(pod(f"short-{n}", 3 * n, 1.5, "400m", nodeSelector=there) for n in range(20)),
    ]
    times = Runs(tmp_path, objects).times("--scheduler", scheduler)
    assert times["high"] == (100, 110)
    assert times["low"] == (110, 120)


def test_a_pod_of_high_priority_evicts_one_of_low_priority(scheduler: str, tmp_path: Path) -> None:
    objects = [
        node("n"),
        priority("high", 1000),
        pod(
            "low", 0, 100,
            terminationGracePeriodSeconds=30, annotations={f"{PREFIX}stop": "7s"},
        ),
        pod("high", 20, 10, priorityClassName="high"),
    ]  # fmt: skip
    times = Runs(tmp_path, objects).times("--scheduler", scheduler)
    assert times["low"] == (0, 27)
    assert times["high"] == (27, 37)


def two_schedulers(scheduler: str, folder: Path) -> tuple[str, ...]:
    """Return the options that start two schedulers, the second one with a name of its own."""
    config = folder / "second.json"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "second"}],
    }
    config.write_text(json.dumps(content))
    return ("--scheduler", scheduler, "--scheduler", f"{scheduler} --config={config}")


SCHEDULERS = ("default-scheduler", "second")


def test_two_schedulers_that_want_the_same_room_are_repeatable(
    scheduler: str, tmp_path: Path
) -> None:
    """Both try their waiting pods when one ends: one works at a time, so neither over-allocates."""
    pods = [
        pod(f"p{n}", 0.5 * n, 10 + n % 3, "500m" if n % 3 else "1", schedulerName=SCHEDULERS[n % 2])
        for n in range(30)
    ]
    runs = Runs(tmp_path, [node("a"), node("b"), *pods])
    found = runs.run(*two_schedulers(scheduler, tmp_path), "--twice")
    assert (found["repeated"], found["over_allocations"]) == (True, [])
    assert (found["bindings"], found["nb_jobs_success"]) == (30, 30)


def test_two_schedulers_serve_the_pods_that_name_them(scheduler: str, tmp_path: Path) -> None:
    pods = [pod(f"p{n}", 5 * n, 10, "500m", schedulerName=SCHEDULERS[n % 2]) for n in range(6)]
    runs = Runs(tmp_path, [node("a"), node("b"), *pods])
    times = runs.times(*two_schedulers(scheduler, tmp_path))
    assert times == {f"p{n}": (5 * n, 5 * n + 10) for n in range(6)}
    # The pods of the second one stay without it.
    alone = runs.run("--scheduler", scheduler, "--until", "60", code=1)
    assert (alone["bindings"], alone["pending_count"]) == (3, 3)


def test_a_pod_that_fits_nowhere_ends_the_run_with_the_words_of_the_scheduler(
    scheduler: str, tmp_path: Path
) -> None:
    objects = [node("a"), node("b"), pod("large", 0, 5, "3"), pod("small", 1, 5)]
    found = Runs(tmp_path, objects).run("--scheduler", scheduler, code=1)
    (pending,) = found["pending"]
    assert pending["pod"] == "default/large"
    assert "0/2 nodes are available: 2 Insufficient cpu" in pending["reason"]
    assert (found["nb_jobs_success"], found["makespan"]) == (1, 6)
    assert found["exact"]
