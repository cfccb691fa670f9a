"""AccaSim on the same jobs: the same start times, or a difference that its meaning explains."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from equipoise.adapters.batsim.swf import read_swf
from equipoise.adapters.targets.environment import ADAPTERS_FOLDER, find_environment
from equipoise.bench.jobs import generated_lines, write_swf
from equipoise.sim.jobs.host_set import FreeHosts
from equipoise.sim.jobs.platform import uniform_platform
from equipoise.sim.jobs.policies import POLICIES, Policy, Start
from equipoise.sim.jobs.runner import JobRun
from equipoise.sim.jobs.work import Job

HOSTS = 40
SYSTEM = {
    "groups": {"host": {"core": 1}},
    "resources": {"host": HOSTS},
    "equivalence": {"processor": {"core": 1}},
    "start_time": 0,
}


class EasyOfAccasim:
    """EASY as AccaSim 1.1.3 has it: the reservation is a date without hosts.

    The blocked job waits for that date even if its hosts are free before, and every later job
    that fits now starts, also if it delays the blocked one.
    """

    def __init__(self, hosts: int) -> None:
        del hosts
        self._queue: list[Job] = []
        self._running: list[Job] = []
        self._date_s: float | None = None

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def ended(self, job: Job) -> None:
        self._running.remove(job)

    def _run_if_it_fits(self, job: Job, free: FreeHosts, start: Start) -> bool:
        if job.hosts_requested > free.count:
            return False
        self._queue.remove(job)
        self._running.append(job)
        start(job, free.choose(job.hosts_requested, free.bits))
        return True

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        if not self._queue:
            return
        due = self._date_s is not None and self._date_s <= now_s
        if due and self._run_if_it_fits(self._queue[0], free, start):
            self._date_s = None
        if self._date_s is None:
            while self._queue and self._run_if_it_fits(self._queue[0], free, start):
                pass
            if self._queue:
                self._date_s = self._date_for(self._queue[0].hosts_requested, free.count)
        for job in self._queue[1:]:
            self._run_if_it_fits(job, free, start)

    def _date_for(self, needed: int, count: int) -> float:
        for job in sorted(self._running, key=lambda job: job.start_s + job.expected_s):
            count += job.hosts_requested
            if count >= needed:
                return job.start_s + job.expected_s
        raise AssertionError("every running job has an expected end")


def their_starts(folder: Path, record: Path, policy: str) -> dict[str, float]:
    python = find_environment("accasim")
    if python is None:
        pytest.skip("the environment of AccaSim is not made")
    (folder / "system.json").write_text(json.dumps(SYSTEM))
    script = ADAPTERS_FOLDER / "batsim" / "peers" / "accasim_run.py"
    inputs = [str(record), str(folder / "system.json"), policy, str(folder / "results")]
    done = subprocess.run(
        [str(python), str(script), *inputs], capture_output=True, text=True, check=True, cwd=folder
    )
    starts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])["starts"]
    return starts


def our_starts(record: Path, policy: Policy) -> dict[str, float]:
    jobs = list(read_swf(record))
    JobRun(uniform_platform(HOSTS), jobs, policy).run()
    return {job.name: job.start_s for job in jobs}


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy"])
@pytest.mark.parametrize("seed", [1, 2])
def test_both_simulators_start_jobs_at_the_same_times(
    tmp_path: Path, policy: str, seed: int
) -> None:
    record = tmp_path / "a.swf"
    write_swf(record, generated_lines(400, seed=seed, hosts=HOSTS, load=0.95), HOSTS)
    theirs = their_starts(tmp_path, record, policy)
    ours = EasyOfAccasim(HOSTS) if policy == "easy" else POLICIES[policy](HOSTS)
    found = our_starts(record, ours)
    # AccaSim looks every second. No event of ours is at the date of the last blocked job.
    started = {name: at_s for name, at_s in found.items() if at_s >= 0}
    assert started == {name: at_s for name, at_s in theirs.items() if name in started}
    assert len(theirs) == 400
    assert len(started) >= (399 if policy == "easy" else 400)
