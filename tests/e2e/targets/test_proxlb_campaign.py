"""Campaigns against the real engines of ProxLB, and what they must find."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from balancer_trials import a_balancer_trial, guest, node
from command import call
from equipoise.adapters.proxlb.scheduler import PROXLB, ProxLb
from equipoise.adapters.targets.environment import PYTHON_TARGETS, find_environment
from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.adapters.targets.worker import Worker, start_worker
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.campaign.findings import judge_baseline
from equipoise.fuzz.trial import TrialOutcome, judge
from equipoise.fuzz.trial.stored import StoredTrial, read_lines, trial_of

TARGET = PYTHON_TARGETS["proxlb"]
USUAL = {name: values[0] for name, values in PROXLB.settings.items()}
SETTINGS = list(product(*PROXLB.settings.values()))
EVACUATED, PINNED = ("Maintenance", "capacity"), ("Fence", "capacity")
GREEDY = {
    EVACUATED,
    PINNED,
    ("Fence", ""),
    ("Gather", ""),
    ("Spread", ""),
    ("Spread", "capacity"),
    ("Running", "capacity"),
}
CPSAT = {EVACUATED, PINNED, ("Gather", ""), ("Spread", ""), ("Spread", "capacity")}
KNOWN = {"greedy": GREEDY, "cpsat": CPSAT}


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    if find_environment("proxlb") is None:
        pytest.skip(f"{TARGET.about} is not in {TARGET.folder}: '{TARGET.command}' puts it there")
    with start_worker("proxlb") as worker:
        yield worker


def made(engine: str, rules: str, worker: Worker) -> Scheduler:
    return ProxLb(engine=engine, rules=rules, starter=lambda: worker)


def saved(engine: str, rules: str) -> list[StoredTrial]:
    lines = read_lines(TARGET.findings.read_bytes(), str(TARGET.findings))
    wanted = {"engine": engine, "rules": rules}
    return [line for line in lines if USUAL | dict(line.settings) == wanted]


@pytest.mark.parametrize(("engine", "rules"), SETTINGS)
def test_the_saved_findings_are_found_again(worker: Worker, engine: str, rules: str) -> None:
    known = saved(engine, rules)
    assert {finding.outcome for finding in known} == {TrialOutcome.UNDER}
    assert {(finding.constraint, finding.message) for finding in known} == KNOWN[engine]
    assert judge_baseline(made(engine, rules, worker), known).disappeared == ()


def test_a_campaign_finds_nothing_that_is_not_known_and_most_of_it(worker: Worker) -> None:
    scheduler, limits = made("greedy", "pools", worker), CampaignLimits(tests=1200)
    report = FuzzCampaign("proxlb", scheduler, PROXLB.constraints, PROXLB.options, 5, limits).run()
    assert judge_baseline(scheduler, saved("greedy", "pools")).new(report) == []
    assert len(report.findings) >= 3
    assert report.outcomes[TrialOutcome.AGREE] > 600


def test_nodes_in_maintenance_get_no_guests_and_ignored_guests_stay(
    worker: Worker,
) -> None:
    names, limits = ("Cordon", "MaxMoves"), CampaignLimits(tests=600)
    for engine in ("greedy", "cpsat"):
        scheduler = made(engine, "tags", worker)
        report = FuzzCampaign("proxlb", scheduler, names, PROXLB.options, 6, limits).run()
        assert report.findings == []
        limits = CampaignLimits(tests=60)  # the solver takes its time


def test_an_empty_node_is_used(worker: Worker) -> None:
    vms = [guest(name, "g", consumption={"memory_gib": 1}) for name in "abcd"]
    trial = a_balancer_trial("Running", [node("g"), node("h")], vms, v="a")
    for engine in ("greedy", "cpsat"):
        found = judge(made(engine, "tags", worker), trial)
        assert found.outcome is TrialOutcome.AGREE
        assert found.steps


def test_the_command_says_that_all_it_finds_is_known(worker: Worker) -> None:
    del worker  # only to skip where ProxLB is not
    done = call("fuzz", "proxlb", "--tests", "800", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of them new; 0 known findings not found again" in done.stdout


def test_the_solver_reads_the_data_of_the_greedy_engine(worker: Worker) -> None:
    """It believes that a node is as large as all that the greedy engine has put there."""
    (stored,) = [
        finding for finding in saved("cpsat", "tags") if finding.constraint == "Maintenance"
    ]
    found = judge(made("cpsat", "tags", worker), trial_of(stored))
    assert (found.outcome, found.message) == (TrialOutcome.UNDER, "capacity")
