"""Watcher's strategies as a target: the encoding and the reading of answers; without Watcher."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from balancer_trials import VM, FixedAnswerWorker, a_balancer_trial, guest, migrate, node
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.adapters.watcher.encode import CONSTRAINTS, STRATEGIES, encode_question
from equipoise.adapters.watcher.scheduler import WATCHER, Watcher, effective_switches
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict, judge
from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints
from unsupported_trials import unsupported

HOSTS = [node("g"), node("h"), node("k")]
VMS = [guest("a", "g"), guest("b", "h")]


def verdict(strategy: str, trial: Trial, saying: FixedAnswerWorker) -> TrialVerdict:
    return judge(Watcher(strategy=strategy, starter=saying.starter), trial)


def anyhow(hosts: Any = HOSTS, vms: Any = VMS) -> Trial:
    return a_balancer_trial("Running", hosts, vms, v="a")


def test_the_entry_reports_a_missing_environment_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_scheduler("watcher") is WATCHER
    assert WATCHER.settings["strategy"] == tuple(STRATEGIES)
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    assert WATCHER.missing().endswith("run 'python -m equipoise.adapters.targets watcher'")


def test_sizes_states_and_measures_are_encoded() -> None:
    hosts = [
        node("g", labels={"cpu_percent": "unknown"}),
        node("h", state=HostState.STANDBY),
        node("k", state=HostState.MAINTENANCE),
    ]
    vms = [
        guest("a", "g", labels={"cpu_percent": "50", "excluded": "yes"}),
        guest("b", "g", state=VmState.SLEEPING, labels={"cpu_percent": "unknown"}),
        guest("c", None, state=VmState.READY),
    ]
    told = encode_question(
        a_balancer_trial("Running", hosts, vms, v="a"), "workload_stabilization-fullsearch"
    )
    assert told["strategy"] == "workload_stabilization"
    assert told["parameters"] == {"host_choice": "fullsearch"}
    assert [(host["status"], host["state"]) for host in told["hosts"]] == [
        ("enabled", "up"), ("enabled", "down"), ("disabled", "up"),
    ]  # fmt: skip
    assert [host["is_measured"] for host in told["hosts"]] == [False, True, True]
    sizes = {"vcpus": 8, "memory_mib": 4096, "disk_gb": 8}
    assert told["hosts"][0].items() >= sizes.items()
    first, second = told["vms"]
    assert (first["cpu_percent"], first["memory_used_mib"], first["memory_mib"]) == (50, 1024, 2048)
    assert (second["cpu_percent"], second["memory_used_mib"]) == (None, None)
    assert [vm["state"] for vm in told["vms"]] == ["active", "suspended"]
    assert [vm["is_excluded"] for vm in told["vms"]] == [True, False]


def test_constraints_are_encoded_as_scope_service_and_parameters() -> None:
    told = encode_question(a_balancer_trial("Root", HOSTS, VMS, continuous=True, v="b"), "basic")
    assert [vm["is_excluded"] for vm in told["vms"]] == [False, True]
    told = encode_question(a_balancer_trial("Cordon", HOSTS, VMS, n="k"), "workload_balance")
    assert [host["status"] for host in told["hosts"]] == ["enabled", "enabled", "disabled"]
    hosts = [node("g", labels={"backup": "yes"}), node("h"), node("k", labels={"backup": "yes"})]
    told = encode_question(a_balancer_trial("Maintenance", hosts, VMS, n="g"), "host_maintenance")
    assert told["parameters"] == {"maintenance_node": "g", "backup_node": "k"}
    told = encode_question(a_balancer_trial("Maintenance", HOSTS, VMS, n="g"), "host_maintenance")
    assert told["parameters"] == {"maintenance_node": "g"}


@pytest.mark.parametrize(
    ("strategy", "trial", "code", "detail"),
    [
        (
            "basic",
            a_balancer_trial("Cordon", HOSTS, VMS, n="k"),
            "unsupported-constraint",
            "basic .* Cordon",
        ),
        (
            "basic",
            anyhow(vms=[guest("a", "g", consumption={**VM, "vcpus": 0})]),
            "unsupported-cluster",
            "a must have .* vcpus, memory_gib$",
        ),
        (
            "basic",
            anyhow([node("g", capacity={})], VMS[:1]),
            "unsupported-cluster",
            "g must have .* disk_gb$",
        ),
        ("basic", anyhow(vms=[guest(name, "g") for name in "abc"]), "already-violated", "capacity"),
        (
            "basic",
            anyhow(vms=[guest("a", "g", state=VmState.SLEEPING)]),
            "already-violated",
            "constraint",
        ),
        (
            "host_maintenance",
            a_balancer_trial("Maintenance", [node("g", state=HostState.STANDBY)], [], n="g"),
            "unsupported-cluster",
            "",
        ),
    ],
)
def test_a_trial_that_a_strategy_does_not_promise_is_rejected(
    strategy: str, trial: Trial, code: str, detail: str
) -> None:
    with unsupported(code, detail):
        encode_question(trial, strategy)


def test_a_good_plan_and_a_bad_one() -> None:
    good = verdict("workload_balance", anyhow(), FixedAnswerWorker(migrate("a", "g", "k")))
    assert good.outcome is TrialOutcome.AGREE
    assert good.steps is not None
    assert len(good.steps) == 1
    off = [node("g"), node("h", state=HostState.STANDBY)]
    bad = verdict(
        "workload_balance", anyhow(off, VMS[:1]), FixedAnswerWorker(migrate("a", "g", "h"))
    )
    assert (bad.outcome, bad.message) == (TrialOutcome.UNDER, "host_on")


def test_capacity_counts_only_for_strategies_that_check_it() -> None:
    crowded = anyhow(vms=[guest("a", "g"), guest("b", "h"), guest("c", "h")])
    said = FixedAnswerWorker(migrate("a", "g", "h"))
    assert verdict("basic", crowded, said).message == "capacity"
    assert verdict("workload_stabilization", crowded, said).outcome is TrialOutcome.UNSUPPORTED
    large = guest("a", "g", consumption={**VM, "memory_gib": 1, "disk_gb": 8})
    assert (
        verdict("workload_stabilization", anyhow(vms=[large, VMS[1]]), said).message == "capacity"
    )


def test_a_crash_is_reported_for_one_constraint_only() -> None:
    said = FixedAnswerWorker(crash="KeyError (somewhere)")
    found = verdict("basic", anyhow(), said)
    assert (found.outcome, found.message) == (TrialOutcome.CRASH, "KeyError (somewhere)")
    rooted = a_balancer_trial("Root", HOSTS, VMS, continuous=True, v="b")
    assert verdict("basic", rooted, said).outcome is TrialOutcome.UNSUPPORTED


def test_a_moved_excluded_vm_is_a_defect() -> None:
    rooted = a_balancer_trial("Root", HOSTS, VMS, continuous=True, v="a")
    found = verdict("basic", rooted, FixedAnswerWorker(migrate("a", "g", "k")))
    assert (found.outcome, found.harm) == (TrialOutcome.UNDER, "introduced")


def test_moves_that_nova_decides_are_unsupported() -> None:
    found = verdict("host_maintenance", anyhow(), FixedAnswerWorker(migrate("a", "g", None)))
    assert found.outcome is TrialOutcome.UNSUPPORTED


def test_a_host_is_disabled_after_its_vms_leave() -> None:
    trial = anyhow()
    close = {"do": "close", "host": "g"}
    leave, come = migrate("a", "g", "k"), migrate("b", "h", "g")
    assert effective_switches(trial, [close, leave, close]) == [leave, close]
    assert effective_switches(trial, [leave, close, come]) == [leave, close, come]
    found = verdict("basic", trial, FixedAnswerWorker(leave, close, come))
    assert (found.outcome, found.message) == (TrialOutcome.UNDER, "host_on")


def test_a_host_that_is_open_is_not_opened_again() -> None:
    trial = anyhow([*HOSTS, node("m", state=HostState.MAINTENANCE)])
    opened = {"do": "open", "host": "m"}
    assert effective_switches(trial, [{"do": "open", "host": "g"}, opened, opened]) == [opened]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_some_trials_of_all_that_a_strategy_claims_can_be_put_to_it(strategy: str) -> None:
    assert STRATEGIES[strategy].constraints <= set(CONSTRAINTS)
    for name in STRATEGIES[strategy].constraints:
        maker = Generator(library_constraints()[name], name, WATCHER.options)
        told = 0
        for trial in maker.block(range(40)).trials:
            try:
                encode_question(trial, strategy)
                told += 1
            except UnsupportedTrial:
                pass
        assert told > 20, name
