"""Campaigns for batch schedulers find seeded faults, and none in our policies."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from equipoise.cli.commands import app
from equipoise.errors import InvalidInput
from equipoise.fuzz.campaign import CampaignLimits
from equipoise.fuzz.jobs.campaign import JobCampaign, is_valid, judge_trial
from equipoise.fuzz.jobs.judge import Schedule, judge_schedule
from equipoise.fuzz.jobs.schedulers import BATCH_SCHEDULERS
from equipoise.fuzz.jobs.trial import JOB_CONSTRAINTS, JobTrial, TrialJob, draw_trial, reductions
from equipoise.fuzz.trial import TrialOutcome

OURS = ["jobs-fcfs", "jobs-sjf", "jobs-easy", "jobs-conservative"]


@pytest.mark.parametrize("target", OURS)
def test_our_policies_keep_the_specification(target: str) -> None:
    report = JobCampaign(target, seed=7, limits=CampaignLimits(tests=60)).run()
    assert (report.tests, report.agreed) == (60, 60)


@pytest.mark.parametrize(
    ("target", "rule", "outcome", "jobs"),
    [
        ("jobs-faulty-busy", "ExclusiveHosts", TrialOutcome.UNDER, 2),
        ("jobs-faulty-hasty", "HeadReservation", TrialOutcome.UNDER, 3),
        ("jobs-faulty-forgetful", "Liveness", TrialOutcome.OVER, 4),
        ("jobs-faulty-ties", "Order", TrialOutcome.UNDER, 2),
        ("jobs-faulty-blind-easy", "Ban", TrialOutcome.UNDER, 1),
    ],
)
def test_a_seeded_fault_is_found_and_shrunk_to_a_few_jobs(
    target: str, rule: str, outcome: TrialOutcome, jobs: int
) -> None:
    chosen = ("Ban",) if rule == "Ban" else JOB_CONSTRAINTS
    limits = CampaignLimits(tests=200, failures=6)
    report = JobCampaign(target, chosen, seed=3, limits=limits).run()
    found = {finding.verdict.rule: finding for finding in report.schedules}
    assert found[rule].verdict.outcome is outcome
    assert len(found[rule].shrunk.jobs) == jobs
    again = judge_trial(BATCH_SCHEDULERS[target], found[rule].shrunk)
    assert again.signature == found[rule].verdict.signature


def test_trials_depend_on_seed_and_number_and_name_only_their_hosts() -> None:
    trials = [draw_trial(1, number, JOB_CONSTRAINTS, (1, 5)) for number in range(50)]
    assert trials == [draw_trial(1, number, JOB_CONSTRAINTS, (1, 5)) for number in range(50)]
    assert trials[0] != draw_trial(2, 0, JOB_CONSTRAINTS, (1, 5))
    assert all(map(is_valid, trials))
    drawn = {each.constraint for t in trials for job in t.jobs for each in job.constraints}
    assert drawn == set(JOB_CONSTRAINTS)


def test_every_reduction_makes_a_trial_smaller() -> None:
    trial = draw_trial(1, 3, JOB_CONSTRAINTS, (3, 5))
    smaller = list(reductions(trial))
    assert smaller
    assert all(each.size < trial.size for each in smaller)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"start_s": 2.0}, "PromptFirst"),
        ({"start_s": -1.0}, "Submission"),
        ({"hosts": (0, 1)}, "Width"),
        ({"run_s": 4.0}, "Walltime"),
        ({"hosts": ()}, "Liveness"),
    ],
)
def test_each_rule_of_schedules_is_judged(change: dict[str, Any], rule: str) -> None:
    trial = JobTrial(racks=("", ""), jobs=(TrialJob(id="0", submit_s=0, hosts=1, seconds=3),))
    jobs = BATCH_SCHEDULERS["jobs-fcfs"].run(trial)
    assert judge_schedule(Schedule(trial, jobs), "fcfs") is None
    for name, value in change.items():
        setattr(jobs[0], name, value)
    violation = judge_schedule(Schedule(trial, jobs), "fcfs")
    assert violation is not None
    assert violation.rule == rule


def test_the_command_prints_saves_and_replays(tmp_path: Path) -> None:
    saved = tmp_path / "cases.jsonl"
    runner = CliRunner()
    command = ["fuzz", "jobs-faulty-ties", "--tests", "40", "--seed", "3", "--json"]
    result = runner.invoke(app, [*command, "--save", str(saved)])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert {"target", "tests", "tests_per_s", "agreed", "defects", "seed"} <= document.keys()
    first = document["defects"][0]
    assert {"class", "constraint", "mode", "case", "shrunk", "message"} <= first.keys()
    assert msgspec.convert(first["shrunk"], JobTrial).jobs
    again = runner.invoke(app, ["fuzz", "jobs-faulty-ties", "--replay", str(saved), "--json"])
    assert again.exit_code == 1
    right = runner.invoke(app, ["fuzz", "jobs-sjf", "--replay", str(saved), "--json"])
    assert right.exit_code == 0


@pytest.mark.parametrize(
    "words",
    [["jobs-fcsf"], ["jobs-fcfs", "--vms", "3"], ["jobs-fcfs", "--constraint", "Lonely"]],
)
def test_wrong_options_are_bad_input(words: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["fuzz", *words]).exception, InvalidInput)


SCHEDULER = """
import json, sys, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
free, queue = set(), []
while True:
    message = json.loads(socket.recv())
    now, events, over = message["now"], [], False
    for event in message["events"]:
        data, kind = event["data"], event["type"]
        if kind == "SIMULATION_BEGINS":
            free = set(range(data["nb_resources"]))
        elif kind == "JOB_SUBMITTED":
            queue.append((data["job_id"], data["job"]["res"]))
        elif kind == "JOB_COMPLETED":
            free |= {int(each) for each in data["alloc"].split()}
        over |= kind == "SIMULATION_ENDS"
    if sys.argv[2] == "newest":
        queue.reverse()
    while queue and queue[0][1] <= len(free):
        name, size = queue.pop(0)
        hosts = sorted(free)[:size]
        free -= set(hosts)
        data = {"job_id": name, "alloc": " ".join(map(str, hosts))}
        events.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})
    socket.send_string(json.dumps({"now": now, "events": events}))
    if over:
        break
"""


@pytest.mark.parametrize(
    ("order", "constraints", "rules"),
    [("oldest", (), set()), ("newest", (), {"Order"}), ("oldest", ("Ban",), {"Protocol"})],
)
def test_a_batsim_scheduler_is_a_target(
    tmp_path: Path, order: str, constraints: tuple[str, ...], rules: set[str]
) -> None:
    script = tmp_path / "scheduler.py"
    # Intervals such as 0-2 are written out, as the script reads single numbers.
    script.write_text(SCHEDULER.replace('int(each) for each in data["alloc"].split()', PARSED))
    limits = CampaignLimits(tests=12, failures=1)
    target = f"batsim:{sys.executable} {script} {{endpoint}} {order}"
    promise = None if constraints else "fcfs"
    report = JobCampaign(target, constraints, (1, 2), 2, limits, promise).run()
    assert {finding.verdict.rule for finding in report.schedules} == rules
    assert all(len(finding.shrunk.jobs) <= 3 for finding in report.schedules)


PARSED = (
    'n for each in data["alloc"].split()'
    ' for n in range(int(each.split("-")[0]), int(each.split("-")[-1]) + 1)'
)
