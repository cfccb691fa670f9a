"""The energy of jobs: exact, and sampled as SimGrid's plugin does; progress of killed jobs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from equipoise.sim.jobs.engine import JobEngine, Progress
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.work import DelayWork, Job, SequenceWork, UniformTaskWork

COMPUTE = UniformTaskWork(name="compute", flops=100.0, transfer=0.0)
WAIT = DelayWork(name="wait", seconds=1.0)


class Silent:
    """Observes nothing."""

    def job_started(self, job: Job) -> None:
        """Nothing."""

    def job_ended(self, job: Job) -> None:
        """Nothing."""

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None:
        """Nothing."""

    def hosts_arrived(self, hosts: Sequence[int], power_state: int, *, changed: bool) -> None:
        """Nothing."""


def make_engine(*, stepped: bool = True, sampled: bool = False) -> JobEngine:
    state = PowerState(speed_flops=100.0, idle_w=50.0, base_w=100.0, full_w=200.0)
    hosts = [JobHost(name=f"h{n}", power_states=(state,)) for n in range(4)]
    return JobEngine(
        Platform(hosts=hosts), Silent(), energy=True, stepped=stepped, sampled_energy=sampled
    )


def make_job(name: str, *parts: DelayWork | UniformTaskWork, repeat: int = 2) -> Job:
    return Job("w", name, 0.0, 2, SequenceWork(name=name, parts=parts, repeat=repeat))


@pytest.mark.parametrize(
    ("stepped", "sampled", "first_j", "second_j"),
    # The recorded run pr_energy_seq of Batsim has 1150 and 1300 J for these two jobs.
    [(True, False, 1000.0, 1000.0), (False, False, 1000.0, 1000.0), (True, True, 1150.0, 1300.0)],
)
def test_energy_of_two_sequences_side_by_side(
    *, stepped: bool, sampled: bool, first_j: float, second_j: float
) -> None:
    engine = make_engine(stepped=stepped, sampled=sampled)
    first, second = make_job("first", COMPUTE, WAIT), make_job("second", WAIT, COMPUTE)
    engine.start(first, (0, 1))
    engine.start(second, (2, 3))
    while engine.time.step():
        pass
    assert (first.run_s, second.run_s) == pytest.approx((4.0, 4.0))
    assert (first.energy_j, second.energy_j) == pytest.approx((first_j, second_j))


@pytest.mark.parametrize("stepped", [True, False])
def test_hosts_are_idle_after_the_last_task_of_a_sequence(*, stepped: bool) -> None:
    engine = make_engine(stepped=stepped)
    job = make_job("job", COMPUTE, DelayWork(name="long", seconds=5.0), repeat=1)
    engine.start(job, (0, 1))
    while engine.time.step():
        pass
    assert job.energy_j == pytest.approx(2 * (200.0 + 5 * 50.0))


def test_progress_counts_parts_over_repetitions_at_each_depth() -> None:
    inner = SequenceWork(name="inner", parts=(WAIT, COMPUTE), repeat=2)
    outer = SequenceWork(name="outer", parts=(WAIT, inner), repeat=2)
    engine = make_engine()
    job = Job("w", "job", 0.0, 1, outer)
    engine.start(job, (0,))
    # Each round is 1 s and then 4 s; at 8.25 s the inner sequence is in its third part.
    engine.time.at(8.25, lambda: found.append(engine.kill(job)))
    found: list[Progress] = []
    while not found:
        engine.time.step()
    (progress,) = found
    assert (progress.work, progress.part_index) == ("outer", 3)
    assert progress.part is not None
    assert (progress.part.work, progress.part.part_index) == ("inner", 2)
    assert progress.part.part is not None
    assert progress.part.part.work == "wait"
    assert progress.part.part.fraction == pytest.approx(0.25)
