"""Constraints on jobs, from the workload file to the refusal of a start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.host_set import FreeHosts
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.policies import Fcfs, Start
from equipoise.sim.jobs.rules.gate import JobGate, StartRefused
from equipoise.sim.jobs.work import Job, JobState

ALONE = """
\"\"\"No other job runs in a rack of the job.\"\"\"
AloneInRack(vs <: vms) continuous ::=
    !(v : vs; w : vms) w /: vs & runs(v) & runs(w) -->
    label(host(v), "rack") /= label(host(w), "rack")
"""


def a_platform(racks: str) -> Platform:
    """Return a platform with one host for each letter, which is its rack."""
    return Platform(
        hosts=[
            JobHost(name=f"n{number}", power_states=(PowerState(1.0),), properties={"rack": rack})
            for number, rack in enumerate(racks)
        ]
    )


def a_file(folder: Path, *jobs: dict[str, Any], **more: Any) -> Path:
    """Write a workload; each job waits ten seconds on one host unless it says otherwise."""
    entries = [
        {"id": number, "subtime": 0, "res": 1, "profile": "ten", **job}
        for number, job in enumerate(jobs)
    ]
    path = folder / "jobs.json"
    profiles = {"ten": {"type": "delay", "delay": 10}}
    path.write_text(json.dumps({"jobs": entries, "profiles": profiles, **more}))
    return path


def starts(run: eq.JobsRun) -> dict[str, tuple[float, tuple[int, ...]]]:
    return {job.name: (job.start_s, job.hosts) for job in run.jobs}


@pytest.mark.parametrize(
    ("constraint", "hosts"),
    [
        ({"constraint": "SpreadOver", "arguments": {"key": "rack"}}, (0, 2)),
        ({"constraint": "GatherWithin", "arguments": {"key": "rack"}}, (0, 1)),
        ({"constraint": "Among", "arguments": {"parts": [["n1"], ["n2", "n3"]]}}, (2, 3)),
        ({"constraint": "Fence", "arguments": {"ns": [1, "n3"]}}, (1, 3)),
        ({"constraint": "Fence", "arguments": {"ns": ["rack=b"]}}, (2, 3)),
        ({"constraint": "Ban", "arguments": {"ns": ["n0"]}}, (1, 2)),
        ("Spread", (0, 1)),
        ("Lonely", (0, 1)),
    ],
)
def test_a_job_runs_on_the_first_hosts_that_satisfy_its_constraint(
    tmp_path: Path, constraint: Any, hosts: tuple[int, ...]
) -> None:
    path = a_file(tmp_path, {"res": 2, "constraints": [constraint]})
    run = eq.simulate_jobs(a_platform("aabb"), path, policy="fcfs")
    assert starts(run) == {"0": (0.0, hosts)}


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy", "conservative"])
def test_a_job_without_constraints_respects_those_of_running_jobs(
    tmp_path: Path, policy: str
) -> None:
    """The second job finds only hosts in the rack of the first one, so it waits."""
    path = a_file(tmp_path, {"constraints": ["AloneInRack"]}, {}, specification=ALONE)
    run = eq.simulate_jobs(a_platform("aa"), path, policy=policy)
    assert starts(run) == {"0": (0.0, (0,)), "1": (10.0, (0,))}


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy", "conservative"])
def test_a_job_that_no_platform_state_can_run_is_rejected_with_a_code(
    tmp_path: Path, policy: str
) -> None:
    rule = {"constraint": "SpreadOver", "arguments": {"key": "rack"}}
    path = a_file(tmp_path, {"res": 3, "constraints": [rule]}, {})
    run = eq.simulate_jobs(a_platform("aabb"), path, policy=policy)
    first, second = sorted(run.jobs, key=lambda job: job.name)
    assert (first.state, first.rejection) == (JobState.REJECTED, "constraint-unsatisfiable")
    assert first.label == "constraint-unsatisfiable"
    assert second.state is JobState.SUCCEEDED


class Careless(Fcfs):
    """A policy of the user that takes the lowest hosts, whatever constraints say."""


class Careful:
    """A policy of the user that asks the gate."""

    def __init__(self, hosts: int) -> None:
        self.queue: list[Job] = []

    def use_gate(self, gate: JobGate) -> None:
        self.gate = gate

    def submit(self, job: Job) -> None:
        self.queue.append(job)

    def ended(self, job: Job) -> None: ...

    def schedule(self, now_s: float, free: FreeHosts, start: Start) -> None:
        for job in list(self.queue):
            hosts = self.gate.choose(job, free.bits)
            if hosts:
                self.queue.remove(job)
                start(job, hosts)


def test_the_gate_refuses_a_policy_of_the_user_that_violates_a_constraint(tmp_path: Path) -> None:
    rule = {"constraint": "Ban", "arguments": {"ns": ["n0"]}}
    path = a_file(tmp_path, {"constraints": [rule]})
    with pytest.raises(StartRefused) as refused:
        eq.simulate_jobs(a_platform("ab"), path, policy=Careless)
    assert (refused.value.code, refused.value.constraint) == ("rule-violated", "Ban")
    run = eq.simulate_jobs(a_platform("ab"), path, policy=Careful)
    assert starts(run) == {"0": (0.0, (1,))}


@pytest.mark.parametrize(
    ("constraint", "code"),
    [
        ("Sprad", "unknown-constraint"),
        ({"constraint": "Fence"}, "missing-argument"),
        ({"constraint": "Fence", "arguments": {"ns": ["n9"]}}, "invalid-argument"),
        ({"constraint": "Fence", "arguments": {"ns": [0], "x": 1}}, "unknown-argument"),
        ({"constraint": "Spread", "arguments": {"vs": ["v1"]}}, "invalid-argument"),
        ("Seq", "invalid-rule"),
    ],
)
def test_a_wrong_constraint_is_bad_input_that_names_the_job(
    tmp_path: Path, constraint: Any, code: str
) -> None:
    path = a_file(tmp_path, {"constraints": [constraint]})
    with pytest.raises(InvalidInput) as error:
        eq.simulate_jobs(a_platform("ab"), path)
    problem = error.value.problems[0]
    assert problem.code == code
    assert problem.key.startswith("job 0")


@pytest.mark.parametrize(
    "wrong", ["Spread", [1], [{"name": "Spread"}], [{"constraint": "Spread", "args": {}}]]
)
def test_constraints_of_another_form_are_bad_input(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        read_workload(a_file(tmp_path, {"constraints": wrong}))
    assert error.value.problems[0].key == "jobs[0]"


def test_a_stream_of_jobs_carries_no_constraints(tmp_path: Path) -> None:
    jobs = read_workload(a_file(tmp_path, {"constraints": ["Spread"]})).jobs
    with pytest.raises(InvalidInput):
        eq.simulate_jobs(a_platform("ab"), iter(jobs))


def test_a_batsim_scheduler_may_not_start_a_job_against_its_constraint(tmp_path: Path) -> None:
    rule = {"constraint": "Fence", "arguments": {"ns": ["n1"]}}
    workload = read_workload(a_file(tmp_path, {"constraints": [rule]}, {}))

    def send(alloc: str) -> dict[str, Any] | None:
        simulation = BatsimSimulation(a_platform("ab"), {"w0": workload}, ProtocolOptions())
        simulation.begin()
        simulation.receive({"now": 0, "events": []})
        data = {"job_id": "w0!0", "alloc": alloc}
        event = {"timestamp": 0, "type": "EXECUTE_JOB", "data": data}
        return simulation.receive({"now": 0, "events": [event]})

    assert send("1") is not None
    workload = read_workload(tmp_path / "jobs.json")
    with pytest.raises(SchedulerError, match="Fence") as error:
        send("0")
    assert (error.value.event, error.value.code) == ("EXECUTE_JOB", "scheduler-protocol")
