"""Our fluid model and platform reader against SimGrid itself, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from pathlib import Path
from random import Random
from typing import Any

import pytest

import equipoise as eq
from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.simgrid.client import PYTHON_SETTING, SimGridWorker, find_python
from equipoise.errors import InvalidInput, WorldError
from equipoise.sim.jobs.fluid import TaskFactory
from equipoise.sim.jobs.virtual_time import QueuedTime, SteppedTime
from simgrid_cases import CaseMaker, completion_times_s

TIMES: list[type[QueuedTime] | type[SteppedTime]] = [QueuedTime, SteppedTime]
SHARED = Path(__file__).parents[5] / "shared/data/batsim"
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="z" routing="Full">
<host id="a" speed="100Mf"><prop id="wattage_per_state" value="50:100:200"/></host>
<host id="b" speed="70Mf"><prop id="wattage_per_state" value="50:100:200"/></host>
<host id="c" speed="100Mf" core="2"><prop id="wattage_per_state" value="50:100:200"/></host>
<link id="l" bandwidth="100MBps" latency="1ms"/>
<link id="f" bandwidth="50MBps" latency="0s" sharing_policy="FATPIPE"/>
<route src="a" dst="b"><link_ctn id="l"/></route>
<route src="a" dst="c"><link_ctn id="f"/></route>
<route src="b" dst="c"><link_ctn id="l"/><link_ctn id="f"/></route>
</zone>
</platform>
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[SimGridWorker]:
    try:
        find_python()
    except WorldError as error:
        pytest.skip(str(error))
    with SimGridWorker() as process:
        yield process


def our_ends(
    path: Path, tasks: Sequence[Mapping[str, Any]], time: QueuedTime | SteppedTime
) -> list[float]:
    platform = read_platform(path)
    numbers = {
        platform.host(n).name: n for n in range(len(platform.hosts) + len(platform.storages))
    }
    factory = TaskFactory(platform)
    ends = [-1.0] * len(tasks)

    def start(index: int, entry: Mapping[str, Any]) -> None:
        hosts = [numbers[name] for name in entry["hosts"]]
        task = factory.build(hosts, entry["flops"], entry["bytes"])
        time.run_task(task, lambda: ends.__setitem__(index, time.now_s))

    for index, entry in enumerate(tasks):
        time.after(entry["start"], lambda index=index, entry=entry: start(index, entry))  # type: ignore[misc]
    while time.step():
        pass
    return ends


@pytest.mark.parametrize("time", TIMES)
def test_random_platforms_and_tasks_end_as_in_simgrid(
    worker: SimGridWorker, time: type[QueuedTime] | type[SteppedTime], tmp_path: Path
) -> None:
    path = tmp_path / "platform.xml"
    for seed in range(7000, 7120):
        case = CaseMaker(seed).make()
        path.write_text(case.platform)
        expected = completion_times_s(worker, path, case.tasks)
        assert expected is not None, seed
        found = our_ends(path, case.tasks, time())
        for ours, theirs in zip(found, expected, strict=True):
            assert theirs is not None
            assert isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12), seed


@pytest.mark.parametrize(
    ("tasks", "ends"),
    [
        # Executors on one host count one by one: three share it, and all end together.
        (
            [("a", [1e8], []), ("aa", [1e8, 1e8], [])],
            [3.0, 3.0],
        ),
        # What the only executor sends to itself is ignored.
        ([("a", [0.0], [1e9])], [0.0]),
        # A slow user of a fat pipe lets the others have more than its width.
        ([("ac", [0.0, 0.0], [0.0, 5e7, 0.0, 0.0])], [1.0]),
    ],
)
def test_rules_of_sharing(
    worker: SimGridWorker,
    tmp_path: Path,
    tasks: list[tuple[str, list[float], list[float]]],
    ends: list[float],
) -> None:
    path = tmp_path / "platform.xml"
    path.write_text(PLATFORM)
    entries = [
        {"start": 0.0, "hosts": list(hosts), "flops": flops, "bytes": sent}
        for hosts, flops, sent in tasks
    ]
    assert completion_times_s(worker, path, entries) == pytest.approx(ends)
    assert our_ends(path, entries, QueuedTime()) == pytest.approx(ends)


def published_platforms() -> list[Path]:
    return sorted(
        path
        for path in SHARED.rglob("*.xml")
        if b"<platform" in path.read_bytes() and path.stat().st_size < 300_000
    )


def test_routes_of_published_platforms_are_those_of_simgrid(worker: SimGridWorker) -> None:
    paths = published_platforms()
    if not paths:
        pytest.skip("the published platforms are not beside the repository")
    compared, refused = 0, []
    for path in paths:
        if not path.read_bytes().startswith(b"<"):
            continue  # begins with an empty line, which SimGrid refuses
        try:
            hosts = [host.name for host in read_platform(path).hosts]
        except InvalidInput:
            refused.append(path.name)
            continue
        choice = Random(path.name)
        for _ in range(6):
            pair = [choice.choice(hosts), choice.choice(hosts)]
            entry = {"start": 0.0, "hosts": pair, "flops": [1e6, 2e6], "bytes": [0, 1e6, 1e5, 0]}
            expected = completion_times_s(worker, path, [entry])
            if expected is None:
                continue  # SimGrid refuses the file
            assert our_ends(path, [entry], SteppedTime()) == pytest.approx(expected, rel=1e-9), (
                path.name,
                pair,
            )
            compared += 1
    assert compared > 0
    # Its host Venus has 6 power figures for 7 speeds.
    assert set(refused) <= {"energy_platform.xml"}


def random_workload(seed: int) -> dict[str, Any]:
    choice = Random(seed)
    profiles: dict[str, Any] = {
        "wait": {"type": "delay", "delay": 2.5},
        "work": {"type": "parallel_homogeneous", "cpu": 2e8, "com": 3e7},
        "total": {"type": "parallel_homogeneous_total", "cpu": 5e8, "com": 1e7},
        "both": {"type": "composed", "repeat": 2, "seq": ["work", "wait", "total"]},
    }
    jobs = [
        {
            "id": str(number),
            "subtime": choice.choice([0, 1, choice.uniform(0, 30)]),
            "res": choice.randint(1, 3),
            "profile": choice.choice(list(profiles)),
            "walltime": choice.choice([3, 100]),
        }
        for number in range(25)
    ]
    return {"nb_res": 3, "jobs": jobs, "profiles": profiles}


def test_both_models_write_the_same_jobs(worker: SimGridWorker, tmp_path: Path) -> None:
    platform = tmp_path / "platform.xml"
    platform.write_text(PLATFORM)
    for seed in range(4):
        workload = tmp_path / "workload.json"
        workload.write_text(json.dumps(random_workload(seed)))
        texts = []
        for model in ("fluid", "simgrid"):
            eq.simulate_jobs(platform, workload, export=tmp_path / model, model=model)
            texts.append((tmp_path / f"{model}_jobs.csv").read_text())
        assert texts[0] == texts[1], seed
        assert texts[0].count("\n") == 26


def test_a_missing_simgrid_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON_SETTING, "/nowhere/python3")
    with pytest.raises(WorldError) as caught:
        find_python()
    assert caught.value.code == "missing-extra"
    assert "python3-simgrid" in str(caught.value)


def test_models_that_cannot_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        eq.simulate_jobs(None, [], model="simgrid")
    with pytest.raises(InvalidInput):
        eq.simulate_jobs(None, [], model="other")
