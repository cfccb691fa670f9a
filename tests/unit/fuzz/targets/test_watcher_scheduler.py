"""Watcher's strategies as a target, without Watcher: what is told, what is made of the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_known
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets.watcher_question import CONSTRAINTS, STRATEGIES, encode
from equipoise.fuzz.targets.watcher_scheduler import WATCHER, Watcher, switched
from equipoise.fuzz.trial import Outcome, Trial, Verdict, judge
from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints
from move_trials import VM, Saying, asked, guest, migrate, node

HOSTS = [node("g"), node("h"), node("k")]
VMS = [guest("a", "g"), guest("b", "h")]


def verdict(strategy: str, trial: Trial, saying: Saying) -> Verdict:
    return judge(Watcher(strategy=strategy, begin=saying.begin), trial)


def anyhow(hosts: Any = HOSTS, vms: Any = VMS) -> Trial:
    return asked("Running", hosts, vms, v="a")


def test_it_is_registered_and_tells_what_is_missing_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_known("watcher") is WATCHER
    assert WATCHER.settings["strategy"] == tuple(STRATEGIES)
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    assert WATCHER.missing().endswith("run 'python -m equipoise.fuzz.targets watcher'")


def test_sizes_states_and_measures_are_told() -> None:
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
    told = encode(asked("Running", hosts, vms, v="a"), "workload_stabilization-fullsearch")
    assert told["strategy"] == "workload_stabilization"
    assert told["parameters"] == {"host_choice": "fullsearch"}
    assert [(one["status"], one["state"]) for one in told["hosts"]] == [
        ("enabled", "up"), ("enabled", "down"), ("disabled", "up"),
    ]  # fmt: skip
    assert [one["is_measured"] for one in told["hosts"]] == [False, True, True]
    sizes = {"vcpus": 8, "memory_mib": 4096, "disk_gb": 8}
    assert told["hosts"][0].items() >= sizes.items()
    first, second = told["vms"]
    assert (first["cpu_percent"], first["memory_used_mib"], first["memory_mib"]) == (50, 1024, 2048)
    assert (second["cpu_percent"], second["memory_used_mib"]) == (None, None)
    assert [one["state"] for one in told["vms"]] == ["active", "suspended"]
    assert [one["is_excluded"] for one in told["vms"]] == [True, False]


def test_constraints_are_told_as_scope_service_and_parameters() -> None:
    told = encode(asked("Root", HOSTS, VMS, continuous=True, v="b"), "basic")
    assert [one["is_excluded"] for one in told["vms"]] == [False, True]
    told = encode(asked("Cordon", HOSTS, VMS, n="k"), "workload_balance")
    assert [one["status"] for one in told["hosts"]] == ["enabled", "enabled", "disabled"]
    hosts = [node("g", labels={"backup": "yes"}), node("h"), node("k", labels={"backup": "yes"})]
    told = encode(asked("Maintenance", hosts, VMS, n="g"), "host_maintenance")
    assert told["parameters"] == {"maintenance_node": "g", "backup_node": "k"}
    told = encode(asked("Maintenance", HOSTS, VMS, n="g"), "host_maintenance")
    assert told["parameters"] == {"maintenance_node": "g"}


@pytest.mark.parametrize(
    ("strategy", "trial", "why"),
    [
        ("basic", asked("Cordon", HOSTS, VMS, n="k"), "claims nothing of Cordon"),
        ("basic", anyhow(vms=[guest("a", "g", consumption={**VM, "vcpus": 0})]), "no VM without"),
        ("basic", anyhow([node("g", capacity={})], VMS[:1]), "no host without"),
        ("basic", anyhow(vms=[guest(name, "g") for name in "abc"]), "has not enough"),
        ("basic", anyhow(vms=[guest("a", "g", state=VmState.SLEEPING)]), "broken"),
        (
            "host_maintenance",
            asked("Maintenance", [node("g", state=HostState.STANDBY)], [], n="g"),
            "no host that is up",
        ),
    ],
)
def test_what_has_no_words_or_is_not_claimed_is_not_asked(
    strategy: str, trial: Trial, why: str
) -> None:
    with pytest.raises(Unsupported, match=why):
        encode(trial, strategy)


def test_a_good_plan_and_a_bad_one() -> None:
    good = verdict("workload_balance", anyhow(), Saying(migrate("a", "g", "k")))
    assert good.outcome is Outcome.AGREE
    assert good.steps is not None
    assert len(good.steps) == 1
    off = [node("g"), node("h", state=HostState.STANDBY)]
    bad = verdict("workload_balance", anyhow(off, VMS[:1]), Saying(migrate("a", "g", "h")))
    assert (bad.outcome, bad.message) == (Outcome.UNDER, "host_on")


def test_what_is_too_small_is_held_against_those_only_who_look_after_it() -> None:
    crowded = anyhow(vms=[guest("a", "g"), guest("b", "h"), guest("c", "h")])
    said = Saying(migrate("a", "g", "h"))
    assert verdict("basic", crowded, said).message == "capacity"
    assert verdict("workload_stabilization", crowded, said).outcome is Outcome.UNSUPPORTED
    large = guest("a", "g", consumption={**VM, "memory_gib": 1, "disk_gb": 8})
    assert (
        verdict("workload_stabilization", anyhow(vms=[large, VMS[1]]), said).message == "capacity"
    )


def test_a_crash_is_told_once_and_not_for_every_constraint() -> None:
    said = Saying(crash="KeyError (somewhere)")
    found = verdict("basic", anyhow(), said)
    assert (found.outcome, found.message) == (Outcome.CRASH, "KeyError (somewhere)")
    rooted = asked("Root", HOSTS, VMS, continuous=True, v="b")
    assert verdict("basic", rooted, said).outcome is Outcome.UNSUPPORTED


def test_who_is_excluded_and_moves_all_the_same_is_found() -> None:
    rooted = asked("Root", HOSTS, VMS, continuous=True, v="a")
    found = verdict("basic", rooted, Saying(migrate("a", "g", "k")))
    assert (found.outcome, found.harm) == (Outcome.UNDER, "introduced")


def test_what_nova_is_to_decide_is_not_judged() -> None:
    found = verdict("host_maintenance", anyhow(), Saying(migrate("a", "g", None)))
    assert found.outcome is Outcome.UNSUPPORTED


def test_a_host_is_disabled_after_those_who_leave_it_and_before_those_who_come() -> None:
    trial = anyhow()
    close = {"do": "close", "host": "g"}
    leave, come = migrate("a", "g", "k"), migrate("b", "h", "g")
    assert switched(trial, [close, leave, close]) == [leave, close]
    assert switched(trial, [leave, close, come]) == [leave, close, come]
    found = verdict("basic", trial, Saying(leave, close, come))
    assert (found.outcome, found.message) == (Outcome.UNDER, "host_on")


def test_a_host_that_is_open_is_not_opened_again() -> None:
    trial = anyhow([*HOSTS, node("m", state=HostState.MAINTENANCE)])
    opened = {"do": "open", "host": "m"}
    assert switched(trial, [{"do": "open", "host": "g"}, opened, opened]) == [opened]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_some_trials_of_all_that_a_strategy_claims_can_be_put_to_it(strategy: str) -> None:
    assert STRATEGIES[strategy].constraints <= set(CONSTRAINTS)
    for name in STRATEGIES[strategy].constraints:
        maker = Generator(library_constraints()[name], name, WATCHER.options)
        told = 0
        for trial in maker.block(range(40)).trials:
            try:
                encode(trial, strategy)
                told += 1
            except Unsupported:
                pass
        assert told > 20, name
