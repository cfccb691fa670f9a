"""Campaigns against the real strategies of Watcher, and what they must find."""

from __future__ import annotations

from collections.abc import Iterator
from re import sub

import pytest

from balancer_trials import a_balancer_trial, guest, node
from command import call
from equipoise.adapters.targets.environment import PYTHON_TARGETS, find_environment
from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.adapters.targets.worker import TargetCrash, Worker, start_worker
from equipoise.adapters.watcher.encode import STRATEGIES
from equipoise.adapters.watcher.scheduler import WATCHER, Watcher
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.campaign.findings import judge_baseline
from equipoise.fuzz.trial import TrialOutcome, judge
from equipoise.fuzz.trial.stored import StoredTrial, read_lines
from equipoise.model.action import EnterMaintenance, Migrate

TARGET = PYTHON_TARGETS["watcher"]
HOME = "watcher/decision_engine/strategy/strategies"
UNDER, CRASH = TrialOutcome.UNDER, TrialOutcome.CRASH
NO_DISK = ("Running", UNDER, "capacity")
UNMEASURED = f"KeyError ({HOME}/workload_stabilization.py:# in calculate_migration_case)"
TWICE = "NetworkXError (watcher/decision_engine/model/model_root.py:# in migrate_instance)"
NO_MEASURE = f"KeyError ({HOME}/workload_balance.py:# in choose_instance_to_migrate)"
NOT_RELEASED = (
    "ValidationError (watcher/decision_engine/goal/efficacy/base.py:#"
    " in validate_efficacy_indicators)"
)
KNOWN = {
    "workload_stabilization": {("Running", CRASH, UNMEASURED), NO_DISK},
    "workload_stabilization-fullsearch": {
        ("Running", CRASH, UNMEASURED),
        ("Running", CRASH, TWICE),
        NO_DISK,
    },
    "workload_stabilization-cycle": {("Running", CRASH, UNMEASURED), NO_DISK},
    "workload_balance": {("Running", CRASH, NO_MEASURE)},
    "vm_workload_consolidation": {("Running", CRASH, NOT_RELEASED)},
    "node_resource_consolidation": {("Root", UNDER, ""), ("Running", UNDER, "vm_life")},
    "host_maintenance": {("Running", UNDER, "vm_life"), ("Running", UNDER, "host_on")},
}


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    if find_environment("watcher") is None:
        pytest.skip(f"{TARGET.about} is not in {TARGET.folder}: '{TARGET.command}' puts it there")
    with start_worker("watcher") as worker:
        yield worker


def made(strategy: str, worker: Worker) -> Scheduler:
    return Watcher(strategy=strategy, starter=lambda: worker)


def saved(strategy: str) -> list[StoredTrial]:
    lines = read_lines(TARGET.findings.read_bytes(), str(TARGET.findings))
    usual = {"strategy": WATCHER.settings["strategy"][0]}
    return [line for line in lines if usual | dict(line.settings) == {"strategy": strategy}]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_the_saved_findings_are_found_again(worker: Worker, strategy: str) -> None:
    known = saved(strategy)
    found = {
        (finding.constraint, finding.outcome, sub(r"\d+", "#", finding.message))
        for finding in known
    }
    assert found == KNOWN.get(strategy, set())
    assert judge_baseline(made(strategy, worker), known).disappeared == ()
    for finding in known:
        assert len(finding.case.cluster.hosts) <= 3
        assert len(finding.case.cluster.vms) <= 3


@pytest.mark.parametrize("strategy", ["vm_workload_consolidation", "basic", "workload_balance"])
def test_a_campaign_finds_nothing_that_is_not_known(worker: Worker, strategy: str) -> None:
    scheduler, limits = made(strategy, worker), CampaignLimits(tests=300)
    names = ("Running", "Root", "MaxMoves")
    report = FuzzCampaign("watcher", scheduler, names, WATCHER.options, 5, limits).run()
    assert judge_baseline(scheduler, saved(strategy)).new(report) == []
    assert report.outcomes[TrialOutcome.AGREE] > 200


@pytest.mark.parametrize(("status", "breaks"), [("disabled", True), ("enabled", False)])
def test_a_host_that_consolidation_enables_counts_as_less_than_none_released(
    worker: Worker, status: str, breaks: bool
) -> None:
    """Without sleeping VMs: two running VMs use more CPU than g has, and h would take one."""
    host = {"state": "up", "memory_mib": 4096, "disk_gb": 8, "is_measured": True}
    vm = {"host": "g", "state": "active", "vcpus": 2, "memory_mib": 1024, "disk_gb": 1}
    used = {"cpu_percent": 100, "memory_used_mib": 512, "is_excluded": False}
    question = {
        "strategy": "vm_workload_consolidation",
        "parameters": {},
        "hosts": [
            {"id": "g", "status": "enabled", "vcpus": 3, **host},
            {"id": "h", "status": status, "vcpus": 2, **host},
        ],
        "vms": [{"id": "v", **vm, **used}, {"id": "w", **vm, **used}],
    }
    (said,) = worker.act([question])
    assert isinstance(said, TargetCrash) is breaks
    if isinstance(said, TargetCrash):
        assert sub(r"\d+", "#", said.what) == NOT_RELEASED


def test_consolidation_empties_a_host_and_disables_it(worker: Worker) -> None:
    trial = a_balancer_trial(
        "Running", [node("g"), node("h")], [guest("a", "g"), guest("b", "h")], v="a"
    )
    found = judge(made("vm_workload_consolidation", worker), trial)
    assert found.outcome is TrialOutcome.AGREE
    assert found.steps is not None
    assert [type(step.action) for step in found.steps] == [Migrate, EnterMaintenance]


def test_the_command_says_that_all_it_finds_is_known(worker: Worker) -> None:
    del worker  # only to skip where Watcher is not
    done = call("fuzz", "watcher", "--tests", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of them new; 0 known findings not found again" in done.stdout
