"""Workload files of Batsim 5: its types of profiles, and those that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsim_files import write_platform, write_workload
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.api.jobs import simulate_jobs
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.work import MergedTaskWork, StorageWork, TaskWork, UniformTaskWork

SPREAD = "DefinedAmountsSpreadUniformly"
EACH = "DefinedAmountsUsedForEachValue"
HOMOGENEOUS = "ParallelTaskHomogeneousProfile"


def end_of(folder: Path, size: int, used: str, **profiles: Any) -> float:
    """Return the end of one job on hosts of 10 operations per second without network."""
    jobs = [{"id": "a", "subtime": 0, "res": size, "profile": used}]
    workload = write_workload(folder, 4, jobs, **profiles)
    (job,) = simulate_jobs(write_platform(folder, 4), workload, policy="fcfs").jobs
    return float(job.end_s)


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [
        ({"type": "DelayProfile", "delay": 6}, 6.0),
        ({"type": "ParallelTaskProfile", "cpu": [20, 50]}, 5.0),
        ({"type": HOMOGENEOUS, "cpu": 20, "com": 0}, 2.0),
        ({"type": HOMOGENEOUS, "cpu": 20, "com": 0, "generation_strategy": EACH}, 2.0),
        ({"type": HOMOGENEOUS, "cpu": 20, "com": 0, "generation_strategy": SPREAD}, 1.0),
        ({"type": "SequentialCompositionProfile", "repeat": 3, "seq": ["d", "c"]}, 15.0),
        ({"type": "ParallelTaskMergeCompositionProfile", "profile_ids": ["c", "c"]}, 8.0),
    ],
)
def test_a_job_takes_the_time_of_its_profile(
    tmp_path: Path, profile: dict[str, Any], seconds: float
) -> None:
    others = {
        "d": {"type": "DelayProfile", "delay": 1},
        "c": {"type": "ParallelTaskProfile", "cpu": [40, 10]},
    }
    assert end_of(tmp_path, 2, "x", x=profile, **others) == seconds


def test_amounts_that_are_spread_are_divided_by_pairs_and_hosts(tmp_path: Path) -> None:
    storage = {"type": "ParallelTaskOnStorageHomogeneousProfile", "bytes_to_read": 8}
    profiles = {
        "u": {"type": HOMOGENEOUS, "cpu": 4, "com": 24, "generation_strategy": SPREAD},
        "n": {"type": "ParallelTaskProfile", "com": [0, 1, 2, 0]},
        "s": {**storage, "generation_strategy": SPREAD},
        "m": {"type": "ParallelTaskMergeCompositionProfile", "profile_ids": ["n", "u"]},
        "g": {"type": "ParallelTaskDataStagingBetweenStoragesProfile", "nb_bytes": 5,
              "from": "a", "to": "b"},
    }  # fmt: skip
    jobs = [
        {"id": name, "subtime": 0, "res": 2, "profile": name, "extra_data": "x"}
        for name in profiles
    ]
    found = {
        job.name: job.work
        for job in read_workload(write_workload(tmp_path, 4, jobs, **profiles)).jobs
    }
    assert found["u"] == UniformTaskWork(
        name="u", flops=4.0, transfer=24.0, total=True, per_pair=True
    )
    assert found["n"] == TaskWork(name="n", flops=(0.0, 0.0), transfers=(0.0, 1.0, 2.0, 0.0))
    assert isinstance(found["s"], StorageWork)
    assert (found["s"].total, found["s"].storage) == (True, "pfs")
    assert isinstance(found["m"], MergedTaskWork)


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "ForkJoinCompositionProfile", "profile_ids": ["d"]},
        {"type": "TraceReplayProfile", "trace_type": "SMPI", "filename": "x"},
        {"type": "DelayProfile", "delay": 0},
        {"type": "ParallelTaskProfile", "cpu": [1, -1]},
        {"type": "ParallelTaskProfile", "cpu": [1, 1], "com": [1]},
        {"type": HOMOGENEOUS, "cpu": 1, "com": 0, "generation_strategy": "Other"},
        {"type": HOMOGENEOUS, "cpu": 1},
        {"type": "SequentialCompositionProfile", "seq": []},
        {"type": "SequentialCompositionProfile", "seq": ["x"]},
        {"type": "ParallelTaskMergeCompositionProfile", "profile_ids": ["d"]},
        {"type": "NoSuchProfile"},
    ],
)
def test_a_wrong_profile_is_refused_at_its_job(tmp_path: Path, profile: dict[str, Any]) -> None:
    jobs = [{"id": 0, "subtime": 0, "res": 2, "profile": "x"}]
    delay = {"type": "DelayProfile", "delay": 1}
    workload = write_workload(tmp_path, 2, jobs, x=profile, d=delay)
    with pytest.raises(InvalidInput) as error:
        read_workload(workload)
    assert [problem.key for problem in error.value.problems] == ["jobs[0]"]
