"""The fluid model against SimGrid's completion times, and on cases computed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from equipoise.sim.jobs.fluid import TaskFactory
from equipoise.sim.jobs.platform import HostRoute, JobHost, Link, Platform, PowerState
from equipoise.sim.jobs.virtual_time import QueuedTime, SteppedTime

RECORDED = Path(__file__).parents[5] / "shared/data/batsim/real/simgrid_ptask/cases.json"
TIMES: list[type[QueuedTime] | type[SteppedTime]] = [QueuedTime, SteppedTime]


def platform(case: Mapping[str, Any]) -> Platform:
    links = {
        link["id"]: Link(link["id"], link["bw"], link["lat"], link["policy"] != "FATPIPE")
        for link in case["links"]
    }

    def route(source: str, target: str) -> HostRoute:
        names = case["routes"].get(f"{source}-{target}")
        if names is None:
            names = reversed(case["routes"].get(f"{target}-{source}", []))
        path = tuple(links[name] for name in names)
        return HostRoute(path, sum(link.latency_s for link in path))

    hosts = [
        JobHost(name=name, power_states=(PowerState(speed),))
        for name, speed in case["hosts"].items()
    ]
    return Platform(hosts=hosts, find_route=route)


def completions(case: Mapping[str, Any], time: QueuedTime | SteppedTime) -> list[float]:
    names = list(case["hosts"])
    tasks = TaskFactory(platform(case))
    ends = [-1.0] * len(case["tasks"])

    def start(index: int, entry: Mapping[str, Any]) -> None:
        numbers = [names.index(name) for name in entry["hosts"]]
        task = tasks.build(numbers, entry["flops"], entry["bytes"])
        time.run_task(task, lambda: ends.__setitem__(index, time.now_s))

    for index, entry in enumerate(case["tasks"]):
        time.after(entry["start"], lambda index=index, entry=entry: start(index, entry))  # type: ignore[misc]
    while time.step():
        pass
    return ends


@pytest.mark.parametrize("time", TIMES)
def test_a_latency_of_one_nanosecond_counts(time: type[QueuedTime] | type[SteppedTime]) -> None:
    # SimGrid's precision is a nanosecond, and only what is shorter counts as nothing.
    case = {
        "hosts": {"a": 1e8, "b": 1e8},
        "links": [{"id": "l", "bw": 1e7, "lat": 1e-9, "policy": "SHARED"}],
        "routes": {"a-b": ["l"]},
        "tasks": [
            {"start": 0.0, "hosts": ["a", "b"], "flops": [0.0, 0.0], "bytes": [0.0, 1e6, 0.0, 0.0]},
            # A task that ends at once makes a step of no length.
            {"start": 0.0, "hosts": ["a"], "flops": [0.0], "bytes": []},
        ],
    }
    assert completions(case, time()) == [0.100000001, 0.0]


@pytest.mark.parametrize("time", TIMES)
def test_completion_times_are_those_of_simgrid(time: type[QueuedTime] | type[SteppedTime]) -> None:
    if not RECORDED.exists():
        pytest.skip("the recorded cases of SimGrid are not beside the repository")
    cases = json.loads(RECORDED.read_text())["cases"]
    assert len(cases) == 24
    for case in cases:
        assert completions(case, time()) == pytest.approx(case["completion"], rel=1e-9), case[
            "name"
        ]


def small_case(tasks: list[dict[str, Any]], latency_s: float = 0.0) -> dict[str, Any]:
    return {
        "hosts": {"a": 100.0, "b": 50.0},
        "links": [{"id": "l", "bw": 10.0, "lat": latency_s, "policy": "SHARED"}],
        "routes": {"a-b": ["l"]},
        "tasks": tasks,
    }


@pytest.mark.parametrize("time", TIMES)
def test_two_tasks_share_a_host_until_one_ends(time: type[QueuedTime] | type[SteppedTime]) -> None:
    tasks = [
        {"start": 0, "hosts": ["a"], "flops": [100], "bytes": []},
        {"start": 0, "hosts": ["a"], "flops": [300], "bytes": []},
    ]
    assert completions(small_case(tasks), time()) == pytest.approx([2.0, 4.0])


def test_the_slowest_resource_sets_the_rate_and_latency_comes_first() -> None:
    task = {"start": 1, "hosts": ["a", "b"], "flops": [100, 100], "bytes": [0, 50, 0, 0]}
    # The link needs 5 s, host b 2 s, host a 1 s; the latency of 0.5 s comes before.
    assert completions(small_case([task], 0.5), QueuedTime()) == pytest.approx([6.5])


def test_a_task_without_work_ends_at_once() -> None:
    task = {"start": 3, "hosts": ["a"], "flops": [0], "bytes": []}
    assert completions(small_case([task]), QueuedTime()) == [3.0]
