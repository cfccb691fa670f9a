"""Campaigns on several processes and on a Dask cluster: the result is the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import answer

WORDS = ("fuzz", "faulty-C", "--constraint", "Spread", "--constraint", "Among", "--tests", "300")


@pytest.fixture(scope="module")
def alone() -> Any:
    return answer(*WORDS, code=1)


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers, all of them on this machine only."""
    pytest.importorskip("distributed", reason="needs the extra 'dask'")
    folder = tmp_path_factory.mktemp("dask")
    with subprocess.Popen(
        [sys.executable, "-c", _CLUSTER],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as cluster:  # fmt: skip
        assert cluster.stdout is not None
        assert cluster.stdin is not None
        yield cluster.stdout.readline().strip()
        cluster.stdin.close()  # it waits for that


_CLUSTER = """
from distributed import LocalCluster
import sys
if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as c:
        print(c.scheduler_address, flush=True)
        sys.stdin.read()
"""


def without_speed(found: Any) -> Any:
    return {key: value for key, value in found.items() if key != "tests_per_s"}


def test_two_processes_find_what_one_finds(alone: Any) -> None:
    assert without_speed(answer(*WORDS, "--workers", "2", code=1)) == without_speed(alone)
    assert alone["defects"]


def test_a_dask_cluster_finds_what_one_process_finds(alone: Any, dask: str) -> None:
    assert dask.startswith("tcp://127.0.0.1:")
    assert without_speed(answer(*WORDS, "--workers", dask, code=1)) == without_speed(alone)


@pytest.mark.parametrize(
    ("workers", "cure"),
    [("0", "1 to 1,000"), ("many", "1 to 1,000"), ("tcp://127.0.0.1:9", "dask worker")],
)
def test_missing_workers_are_reported(workers: str, cure: str) -> None:
    if workers.startswith("tcp"):
        pytest.importorskip("distributed", reason="needs the extra 'dask'")
    (problem,) = answer(*WORDS, "--workers", workers, code=2)["problems"]
    assert (problem["code"], problem["file"]) == ("invalid-value", "--workers")
    assert workers in problem["what"]
    assert cure in problem["cure"]


SPEC = """
/* No VM of the first group runs on a host where one of the second does. */
Aloof(vs <: vms, ws <: vms) discrete continuous ::=
    !(v : vs) !(w : ws) v /= w & runs(v) & runs(w) --> host(v) /= host(w)
"""


def test_constraints_of_ones_own_are_tried_saved_and_judged_again(tmp_path: Path) -> None:
    spec, saved = tmp_path / "own.spec", tmp_path / "found.jsonl"
    spec.write_text(SPEC)
    own = ("--spec", str(spec), "--tests", "300", "--workers", "2")
    found = answer("fuzz", "faulty-C", *own, "--save", str(saved), code=1)
    assert {defect["constraint"] for defect in found["defects"]} == {"Aloof"}
    spec.unlink()
    again = answer("fuzz", "faulty-C", "--replay", str(saved), code=1)
    assert len(again["defects"]) == len(found["defects"])
    assert answer("fuzz", "planner", "--replay", str(saved))["defects"] == []
