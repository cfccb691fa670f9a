"""A reply that the server executes itself has the same effects as one that an actor executes."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from batsim_files import plain_setup, write_platform, write_workload
from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.sim.jobs.virtual_time import SteppedTime
from equipoise.sim.jobs.work import Job

HOSTS = 3
TIMES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1 / 3, 1e-9, 1e-10, 2.0])
"""Few different times, so that many things happen at one instant, some only up to rounding."""
PROFILES: dict[str, dict[str, Any]] = {
    **{f"d{n}": {"type": "delay", "delay": n / 10} for n in (1, 2, 3, 5, 7, 10)},
    "short": {"type": "delay", "delay": 1e-9},
    "shorter": {"type": "delay", "delay": 1e-10},
    "third": {"type": "delay", "delay": 1 / 3},
    "task": {"type": "parallel_homogeneous", "cpu": 2, "com": 0},
    "both": {"type": "composed", "seq": ["d1", "task", "d2"]},
    "failing": {"type": "delay", "delay": 0.2, "ret": 3},
}
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "subtime": TIMES,
            "res": st.integers(1, HOSTS),
            "profile": st.sampled_from(sorted(PROFILES)),
            "walltime": st.sampled_from([-1, 0.1, 0.2, 1.0, 1e-9]),
        }
    ),
    min_size=1,
    max_size=8,
)


class RandomScheduler:
    """Starts, kills and rejects jobs at random, takes time, and asks to be called later."""

    def __init__(self, seed: int, busy_s: list[float]) -> None:
        self.random = random.Random(seed)
        self.busy_s = busy_s
        self.waiting: list[tuple[str, int]] = []
        self.running: dict[str, set[int]] = {}

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self.waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.running.pop(data["job_id"])
        over = message["events"][-1]["type"] == "SIMULATION_ENDS"
        at_s = message["now"]
        busy_s = 0.0 if over else self.random.choice(self.busy_s)
        events: list[dict[str, Any]] = []
        while self.waiting and self.random.random() < 0.8:
            kind, data = self.decide()
            if data:
                part_s = busy_s * self.random.choice((0, 0, 0.5))
                at_s, busy_s = at_s + part_s, busy_s - part_s
                events.append({"timestamp": at_s, "type": kind, "data": data})
        if self.waiting and not self.running:
            data = {"timestamp": at_s + busy_s + 0.1}
            events.append({"timestamp": at_s, "type": "CALL_ME_LATER", "data": data})
        return {"now": at_s + busy_s, "events": events}

    def decide(self) -> tuple[str, dict[str, Any]]:
        draw = self.random.random()
        if draw < 0.1 and self.running:
            return "KILL_JOB", {"job_ids": [self.random.choice(sorted(self.running))]}
        if draw < 0.2 and self.running:
            # The job may have ended in the time that the decision takes.
            name = self.random.choice(sorted(self.running))
            return "SET_JOB_METADATA", {"job_id": name, "metadata": f"text {draw}"}
        name, size = self.waiting.pop(0)
        if draw < 0.3:
            return "REJECT_JOB", {"job_id": name}
        free = sorted(set(range(HOSTS)).difference(*self.running.values()))
        if size > len(free):
            self.waiting.append((name, size))
            return "", {}
        hosts = self.random.sample(free, size)
        self.running[name] = set(hosts)
        return "EXECUTE_JOB", {"job_id": name, "alloc": " ".join(map(str, sorted(hosts)))}


def effects(
    folder: Path, scheduler: RandomScheduler, energy: bool, early: bool
) -> tuple[list[str], str]:
    """Run to the end or to a refusal; return all messages and files.

    ``early``: each row is written at once, and not only at the end.
    """
    simulation = plain_setup(folder, str(folder / "out"), energy=energy).build()
    if early:
        record = simulation.record

        def record_and_write(job: Job) -> None:
            record(job)
            simulation.write_rows()

        simulation.record = record_and_write  # type: ignore[method-assign]
    codec, texts = JsonCodec(), []
    message = simulation.begin()
    try:
        while message is not None:
            texts.append(codec.encode(message).decode())
            reply = scheduler.answer(json.loads(texts[-1]))
            message = simulation.receive(codec.decode(json.dumps(reply).encode()))  # type: ignore[arg-type]
    except SchedulerError as error:
        texts.append(str(error))
    simulation.finish()
    names = ("out_jobs.csv", "out_machine_states.csv", "out_schedule.csv")
    files = (folder / name for name in names)
    return texts, "".join(file.read_text() for file in files)


@given(
    JOBS,
    st.integers(0, 10_000),
    st.lists(st.sampled_from([0.0, 1e-16, 1e-9, 0.1, 0.2, 0.7]), min_size=1, max_size=2),
    st.booleans(),
)
@example([{"subtime": 0.0, "res": 1, "profile": "d2", "walltime": -1}], 1, [0.2], False)
def test_the_messages_and_files_do_not_depend_on_who_executes_a_reply(
    jobs: list[dict[str, Any]], seed: int, busy_s: list[float], energy: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_platform(folder, HOSTS)
        entries = [{"id": str(number), **job} for number, job in enumerate(jobs)]
        write_workload(folder, HOSTS, entries, **PROFILES)
        quick = effects(folder, RandomScheduler(seed, busy_s), energy, early=True)
        # Without it every reply has an actor of its own, and every message a step of its own.
        still = SteppedTime.is_still_for
        SteppedTime.is_still_for = lambda *arguments: False  # type: ignore[method-assign]
        try:
            assert effects(folder, RandomScheduler(seed, busy_s), energy, early=False) == quick
        finally:
            SteppedTime.is_still_for = still  # type: ignore[method-assign]
