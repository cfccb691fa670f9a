"""Exchanges that this test records: replays equal them, and figures equal those of our policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import equipoise as eq
from equipoise.adapters.batsim.protocol.replay import parse_command, replay
from equipoise.adapters.batsim.schedule.decider import PolicyDecider
from equipoise.adapters.batsim.transport.driver import ScheduledRun, drive
from equipoise.adapters.batsim.transport.record import ExchangeRecorder
from equipoise.sim.jobs.policies import POLICIES

POWER = """<prop id="wattage_per_state" value="50:100:200, 9:9:9, 80:80:80, 90:90:90"/>
<prop id="sleep_pstates" value="1:2:3"/>"""
HOSTS = 5


def write_inputs(folder: Path, seed: int, first_s: float = 0.0) -> None:
    """Write a platform with power, a workload of many kinds of jobs, and external events."""
    random = Random(seed)
    hosts = "".join(
        f'<host id="h{n}" coordinates="0 0 0" speed="{20 + n % 2}f, 1f, 0.5f, 0.25f">{POWER}</host>'
        for n in range(HOSTS)
    )
    master = '<host id="master_host" coordinates="0 0 0" speed="1f"/>'
    zone = f'<zone id="z" routing="Vivaldi">{master}{hosts}</zone>'
    (folder / "platform.xml").write_text(f'<platform version="4.1">{zone}</platform>')
    profiles: dict[str, dict[str, Any]] = {
        "wait": {"type": "delay", "delay": 7.25},
        "fail": {"type": "delay", "delay": 2.5, "ret": 3},
        "compute": {"type": "parallel_homogeneous", "cpu": 90, "com": 0},
        "total": {"type": "parallel_homogeneous_total", "cpu": 300, "com": 0},
        "all": {"type": "composed", "repeat": 2, "seq": ["wait", "compute"]},
    }
    jobs = []
    at_s = first_s
    for number in range(25):
        job: dict[str, Any] = {"id": number, "subtime": at_s, "res": random.randint(1, HOSTS + 1)}
        job["profile"] = random.choice(list(profiles))
        # A walltime that equals a run time would depend on which of them ends first.
        job["walltime"] = random.choice([-1, 6.0625, 100.0])
        jobs.append(job)
        at_s += random.choice([0, 0, 0.5, 3.125])
    workload = {"nb_res": HOSTS, "jobs": jobs, "profiles": profiles}
    (folder / "jobs.json").write_text(json.dumps(workload))
    events = [
        {"type": "machine_unavailable", "resources": "1 3", "timestamp": first_s + 4},
        {"type": "machine_available", "resources": "1", "timestamp": first_s + 11},
        {"type": "machine_available", "resources": "3", "timestamp": first_s + 30},
    ]
    (folder / "events.txt").write_text("".join(json.dumps(event) + "\n" for event in events))


class Waster:
    """A policy that also kills jobs, switches hosts, asks for energy and calls, and registers."""

    waited_s = 0.0

    def __init__(self) -> None:
        self._policy = PolicyDecider(POLICIES["fcfs"])
        self._count = 0
        self._running: list[str] = []

    def answer(self, message: dict[str, Any]) -> object:
        """Answer as the policy does, and add requests of other kinds at some messages."""
        self._count += 1
        reply = self._policy.answer(message)
        now = message["now"]

        def add(kind: str, **data: Any) -> None:
            reply["events"].append({"timestamp": now, "type": kind, "data": data})

        ended = [e["data"]["job_id"] for e in message["events"] if e["type"] == "JOB_COMPLETED"]
        self._running = [name for name in self._running if name not in ended]
        started = [e["data"]["job_id"] for e in reply["events"] if e["type"] == "EXECUTE_JOB"]
        if self._count % 7 == 0 and self._running:
            add("KILL_JOB", job_ids=self._running[:1])
        self._running += started
        if self._count % 3 == 0:
            add("QUERY", requests={"consumed_energy": {}})
        if self._count in {4, 9}:
            add("CALL_ME_LATER", timestamp=now + 1.75)
        if self._count == 2:
            add("NOTIFY", type="continue_registration")
            profile = {"type": "delay", "delay": 3}
            add("REGISTER_PROFILE", workload_name="w0", profile_name="new", profile=profile)
            job = {"id": "w0!d", "subtime": now, "res": 2, "profile": "new"}
            add("REGISTER_JOB", job_id="w0!d", job=job)
            add("SET_JOB_METADATA", job_id="w0!d", metadata="a, b")
            add("NOTIFY", type="registration_finished")
        return reply


class PolicySource(PolicyDecider):
    """A built-in policy in process."""

    waited_s = 0.0


def record(folder: Path, flags: str, make: Callable[[], Any]) -> ScheduledRun:
    """Run with a scheduler; leave what a recorded run of Batsim consists of."""
    command = f"batsim -p platform.xml -w jobs.json -e run/out -s ipc://x {flags}"
    run_folder = folder / "run"
    run_folder.mkdir()
    setup = parse_command(command, folder, str(run_folder / "out"))
    with ExchangeRecorder(run_folder / "messages.jsonl") as recorder:
        run = drive(setup.build(), make(), recorder)
    (run_folder / "run.json").write_text(json.dumps({"batsim_cmd": command, "batsim_rc": 0}))
    return run


SCHEDULERS: dict[str, Callable[[], Any]] = {
    **{name: partial(PolicySource, make) for name, make in POLICIES.items()},
    "waster": Waster,
}
DYNAMIC = "-E --enable-dynamic-jobs --acknowledge-dynamic-jobs --enable-profile-reuse"
FLAGS = {
    "waster": [DYNAMIC, f"{DYNAMIC} --forward-profiles-on-submission"],
    "conservative": ["-E", "--mmax-workload"],
    "easy": ["-E", "--events events.txt", "-E --enable-compute-sharing"],
    "fcfs": ["", "-E --events events.txt --forward-profiles-on-submission"],
    "sjf": ["-E --disable-machine-state-tracing"],
}
CASES = [(name, flags) for name, choices in FLAGS.items() for flags in choices]


@pytest.mark.parametrize(("scheduler", "flags"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_replay_equals_the_recorded_exchange_its_files_and_its_journal(
    tmp_path: Path, scheduler: str, flags: str, seed: int
) -> None:
    write_inputs(tmp_path, seed)
    run = record(tmp_path, flags, SCHEDULERS[scheduler])
    (tmp_path / "again").mkdir()
    result = replay(tmp_path / "run", tmp_path, tmp_path / "again")
    assert (result.differences, result.messages) == ([], run.messages)
    assert run.figures["nb_jobs"] >= 25


@pytest.mark.parametrize("changed", ["JOB_COMPLETED", "out_jobs.csv", "out_consumed_energy.csv"])
def test_a_replay_finds_what_was_changed(tmp_path: Path, changed: str) -> None:
    write_inputs(tmp_path, 3)
    record(tmp_path, "-E", SCHEDULERS["easy"])
    path = tmp_path / "run" / (changed if changed.endswith("csv") else "messages.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    if changed.endswith("csv"):
        lines[-1] = lines[-1].replace(".", "9.", 1)
    else:
        number = next(n for n, line in enumerate(lines) if changed in line)
        lines[number] = lines[number].replace('"alloc":"', '"alloc":"9 ', 1)
    path.write_text("".join(lines))
    (tmp_path / "again").mkdir()
    assert replay(tmp_path / "run", tmp_path, tmp_path / "again").differences != []


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize(("seed", "first_s"), [(4, 0.0), (5, 12.5)])
def test_a_policy_has_the_same_jobs_and_energy_in_process_and_by_messages(
    tmp_path: Path, policy: str, seed: int, first_s: float
) -> None:
    write_inputs(tmp_path, seed, first_s)
    setup = parse_command("batsim -p platform.xml -w jobs.json -E", tmp_path, str(tmp_path / "out"))
    exact = replace(setup, options=replace(setup.options, batsim_energy=False))
    run = drive(exact.build(), PolicySource(POLICIES[policy]))
    other = eq.simulate_jobs(tmp_path / "platform.xml", tmp_path / "jobs.json", policy=policy)
    figures = other.figures
    for key in ("makespan", "mean_waiting_time", "nb_jobs_success", "consumed_joules"):
        assert figures[key] == pytest.approx(run.figures[key], rel=1e-9), key
    # All hosts draw at least 50 W from the first submission to the last end, and at most 200 W.
    span_s = run.figures["makespan"] - first_s
    assert 50 * HOSTS * span_s <= figures["consumed_joules"] <= 200 * HOSTS * span_s
