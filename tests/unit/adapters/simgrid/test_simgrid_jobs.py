"""Jobs of the engine against SimGrid: storage, staging, power states that change, shared hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isclose
from pathlib import Path
from random import Random
from typing import Any

import pytest

from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.simgrid.client import SimGridTime, SimGridWorker, find_python
from equipoise.errors import WorldError
from equipoise.sim.jobs.engine import JobEngine
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.virtual_time import VirtualTime
from equipoise.sim.jobs.work import Job, StagingWork, StorageWork, TaskWork, UniformTaskWork, Work
from simgrid_cases import CaseMaker, completion_times_s

HEAD = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"


@pytest.fixture
def worker() -> Iterator[SimGridWorker]:
    try:
        find_python()
    except WorldError as error:
        pytest.skip(str(error))
    with SimGridWorker() as process:
        yield process


class Ends:
    """Notes when each job ends."""

    def __init__(self) -> None:
        self.at_s: dict[str, float] = {}
        self.engine: JobEngine | None = None

    def job_started(self, job: Job) -> None: ...

    def job_ended(self, job: Job) -> None:
        assert self.engine is not None
        self.at_s[job.name] = self.engine.now_s

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None: ...

    def hosts_arrived(self, hosts: Sequence[int], power_state: int, *, changed: bool) -> None: ...


def write_platform(path: Path, random: Random) -> None:
    """Write hosts of several cores and speeds, two storage hosts, and links of both kinds."""
    hosts = [f"h{n}" for n in range(random.randint(1, 4))]
    text = [f"{HEAD}<platform version='4.1'><zone id='z' routing='Full'>"]
    for name in hosts:
        speed = random.choice([50, 100, 130])
        speeds = f"{speed}Mf, {speed // 2}Mf, {speed * 2}Mf"
        text.append(f"<host id='{name}' speed='{speeds}' core='{random.choice([1, 2, 4])}'/>")
    text += [
        f"<host id='{name}' speed='1Mf'><prop id='role' value='storage'/></host>"
        for name in ("s0", "s1")
    ]
    points = [*hosts, "s0", "s1"]
    links = [f"l{n}" for n in range(3)]
    for name in links:
        kind = random.choice(["SHARED", "FATPIPE"])
        latency = random.choice(["0s", "1ms", "0.02s"])
        width = random.choice([10, 50, 125])
        values = f"bandwidth='{width}MBps' latency='{latency}' sharing_policy='{kind}'"
        text.append(f"<link id='{name}' {values}/>")
    for index, source in enumerate(points):
        for target in points[index + 1 :]:
            used = "".join(f"<link_ctn id='{name}'/>" for name in random.sample(links, 2))
            text.append(f"<route src='{source}' dst='{target}'>{used}</route>")
    path.write_text("\n".join([*text, "</zone></platform>\n"]))


def draw_work(random: Random, number: int) -> Work:
    """Return a work of a random kind."""
    name = f"w{number}"
    match random.randrange(4):
        case 0:
            source, target = random.sample(["s0", "s1"], 2)
            amount = random.uniform(1e6, 1e8)
            return StagingWork(name=name, transfer=amount, source=source, target=target)
        case 1:
            flops = random.uniform(1e7, 5e8)
            return UniformTaskWork(name=name, flops=flops, transfer=random.choice([0.0, 1e6]))
        case _:
            return StorageWork(
                name=name,
                read_bytes=random.choice([0.0, 2e7, random.uniform(1e6, 1e8)]),
                write_bytes=random.choice([1e6, random.uniform(1e6, 1e8)]),
                storage=random.choice(["s0", "s1"]),
                total=random.random() < 0.5,
            )


def plain_task(work: Work, hosts: Sequence[str]) -> dict[str, Any]:
    """Return the parallel task of a work, from the definitions of the profiles of Batsim."""
    if isinstance(work, StagingWork):
        return {
            "hosts": [work.source, work.target],
            "flops": [0.0, 0.0],
            "bytes": [0.0, work.transfer, 0.0, 0.0],
        }
    if isinstance(work, UniformTaskWork):
        sent = [0.0 if a == b else work.transfer for a in hosts for b in hosts]
        return {"hosts": list(hosts), "flops": [work.flops] * len(hosts), "bytes": sent}
    assert isinstance(work, StorageWork)
    parts = len(hosts) if work.total else 1
    used = [*hosts, work.storage]
    sent = [
        work.write_bytes / parts
        if target == work.storage and source != work.storage
        else work.read_bytes / parts
        if source == work.storage and target != work.storage
        else 0.0
        for source in used
        for target in used
    ]
    return {"hosts": used, "flops": [0.0] * len(used), "bytes": sent}


def run_engine(
    platform: Platform,
    jobs: Sequence[tuple[float, Job, tuple[int, ...]]],
    *,
    stepped: bool = False,
    states: Sequence[tuple[float, int, int]] = (),
    make_time: Callable[[JobEngine], VirtualTime] | None = None,
) -> dict[str, float]:
    """Start jobs and change power states at their times; return when each job ends."""
    ends = Ends()
    engine = JobEngine(platform, ends, stepped=stepped, make_time=make_time)
    ends.engine = engine
    for at_s, job, hosts in jobs:
        engine.time.at(at_s, lambda job=job, hosts=hosts: engine.start(job, hosts))  # type: ignore[misc]
    for at_s, number, state in states:
        engine.time.at(
            at_s,
            lambda number=number, state=state: engine.set_power_state(  # type: ignore[misc]
                [number], state, lambda: None
            ),
        )
    while engine.time.step():
        pass
    return ends.at_s


@pytest.mark.parametrize("stepped", [False, True])
def test_storage_staging_and_shared_hosts_end_as_in_simgrid(
    worker: SimGridWorker, stepped: bool, tmp_path: Path
) -> None:
    path = tmp_path / "platform.xml"
    for seed in range(500, 540):
        random = Random(seed)
        write_platform(path, random)
        platform = read_platform(path)
        jobs, tasks = [], []
        for number in range(random.randint(1, 7)):
            work = draw_work(random, number)
            count = random.randint(1, len(platform.hosts))
            hosts = tuple(sorted(random.sample(range(len(platform.hosts)), count)))
            at_s = random.choice([0.0, 0.0, random.uniform(0, 5)])
            jobs.append((at_s, Job("w", str(number), 0.0, count, work), hosts))
            names = [platform.hosts[each].name for each in hosts]
            tasks.append({"start": at_s, **plain_task(work, names)})
        expected = completion_times_s(worker, path, tasks)
        assert expected is not None, seed
        found = run_engine(platform, jobs, stepped=stepped)
        for number, theirs in enumerate(expected):
            assert theirs is not None
            assert isclose(found[str(number)], theirs, rel_tol=1e-9, abs_tol=1e-12), seed


@pytest.mark.parametrize("seed", range(600, 630))
def test_tasks_follow_the_power_states_of_their_hosts_as_in_simgrid(
    worker: SimGridWorker, seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "platform.xml"
    random = Random(seed)
    write_platform(path, random)
    platform = read_platform(path)
    jobs = []
    for number in range(random.randint(1, 5)):
        count = random.randint(1, len(platform.hosts))
        hosts = tuple(sorted(random.sample(range(len(platform.hosts)), count)))
        flops = tuple(random.choice([0.0, random.uniform(1e8, 9e8)]) for _ in hosts)
        work = TaskWork(name="w", flops=flops)
        jobs.append((random.uniform(0, 4), Job("w", str(number), 0.0, count, work), hosts))
    states = [
        (random.uniform(0, 9), random.randrange(len(platform.hosts)), random.randrange(3))
        for _ in range(random.randint(1, 6))
    ]
    found = run_engine(platform, jobs, states=states)
    copies = [
        (at_s, Job("w", job.name, 0.0, job.hosts_requested, job.work), hosts)
        for at_s, job, hosts in jobs
    ]
    theirs = run_engine(
        platform, copies, states=states, make_time=lambda engine: SimGridTime(engine, worker, path)
    )
    assert found == pytest.approx(theirs, rel=1e-9)


def test_the_old_dialect_describes_the_same_platform(tmp_path: Path) -> None:
    new, old = tmp_path / "new.xml", tmp_path / "old.xml"
    zones = 0
    for seed in range(8000, 8060):
        text = CaseMaker(seed).make().platform.replace('<router id="', '<!-- power --><router id="')
        zones += text.count("<zoneRoute ")
        new.write_text(text)
        for word, before in (("zoneRoute", "ASroute"), ("zone", "AS")):
            text = text.replace(f"<{word} ", f"<{before} ").replace(f"</{word}>", f"</{before}>")
        old.write_text(text.replace('version="4.1"', 'version="4"'))
        left, right = read_platform(new), read_platform(old)
        assert left.hosts == right.hosts, seed
        names = [host.name for host in left.hosts]
        for source in names:
            for target in names:
                first, second = left.route(source, target), right.route(source, target)
                assert first.latency_s == second.latency_s
                assert [(x.name, x.bandwidth, x.latency_s, x.shared) for x in first.links] == [
                    (x.name, x.bandwidth, x.latency_s, x.shared) for x in second.links
                ], seed
    assert zones > 50, "some platforms have zones in zones"
