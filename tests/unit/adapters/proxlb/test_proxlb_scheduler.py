"""ProxLB's engines as a target: the encoding and the reading of answers; without ProxLB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from balancer_trials import FixedAnswerWorker, a_balancer_trial, guest, migrate, node
from equipoise.adapters.proxlb.encode import CONSTRAINTS, encode_question
from equipoise.adapters.proxlb.scheduler import PROXLB, ProxLb
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict, judge
from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints
from unsupported_trials import unsupported

HOSTS = [node("g"), node("h"), node("k")]
VMS = [
    guest("a", "g", consumption={"memory_gib": 2}),
    guest("b", "h", consumption={"memory_gib": 2}),
]

READY = guest("c", None, state=VmState.READY)


def verdict(trial: Trial, saying: FixedAnswerWorker, engine: str = "greedy") -> TrialVerdict:
    return judge(ProxLb(engine=engine, starter=saying.starter), trial)


def anyhow(hosts: Any = HOSTS, vms: Any = VMS) -> Trial:
    return a_balancer_trial("Running", hosts, vms, v="a")


def tags(told: dict[str, Any]) -> list[list[str]]:
    return [row["tags"] for row in told["guests"]]


def test_the_entry_reports_a_missing_environment_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_scheduler("proxlb") is PROXLB
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    assert PROXLB.missing().endswith("run 'python -m equipoise.adapters.targets proxlb'")


def test_it_sees_nodes_that_are_on_and_guests_that_run() -> None:
    hosts = [node("g"), node("h", state=HostState.STANDBY), node("k", state=HostState.MAINTENANCE)]
    vms = [guest("a", "g", labels={"ignored": "yes"}), guest("c", None, state=VmState.READY)]
    told = encode_question(anyhow(hosts, vms), "greedy", "tags")
    assert told["nodes"] == [
        {"id": "g", "memory_mib": 4096, "is_maintained": False},
        {"id": "k", "memory_mib": 4096, "is_maintained": True},
    ]
    (only,) = told["guests"]
    assert (only["id"], only["host"], only["memory_mib"]) == ("a", "g", 2048)
    assert only["tags"] == ["plb_ignore_label"]


def test_constraints_are_encoded_as_tags() -> None:
    told = encode_question(a_balancer_trial("Spread", HOSTS, VMS, vs=["a", "b"]), "greedy", "tags")
    assert tags(told) == [["plb_anti_affinity_trial"], ["plb_anti_affinity_trial"]]
    told = encode_question(a_balancer_trial("Gather", HOSTS, VMS, vs=["a"]), "greedy", "tags")
    assert tags(told) == [["plb_affinity_trial"], []]
    told = encode_question(
        a_balancer_trial("Fence", HOSTS, VMS, v="a", ns=["g", "k"]), "greedy", "tags"
    )
    assert tags(told) == [["plb_pin_g", "plb_pin_k"], []]
    told = encode_question(a_balancer_trial("MaxMoves", HOSTS, VMS, v="b", nb=0), "greedy", "tags")
    assert tags(told) == [[], ["plb_ignore_trial"]]


def test_constraints_are_encoded_as_pools() -> None:
    told = encode_question(a_balancer_trial("Spread", HOSTS, VMS, vs=["a", "b"]), "cpsat", "pools")
    assert told["pools"] == {"trial": {"type": "anti-affinity"}}
    assert [row["pools"] for row in told["guests"]] == [["trial"], ["trial"]]
    told = encode_question(a_balancer_trial("Fence", HOSTS, VMS, v="a", ns=["g"]), "cpsat", "pools")
    assert told["pools"] == {"trial": {"pin": ["g"]}}
    assert [row["pools"] for row in told["guests"]] == [["trial"], []]


@pytest.mark.parametrize("name", ["Cordon", "Maintenance"])
def test_the_host_of_the_constraint_is_in_maintenance(name: str) -> None:
    told = encode_question(a_balancer_trial(name, HOSTS, VMS, n="h"), "greedy", "tags")
    assert [row["is_maintained"] for row in told["nodes"]] == [False, True, False]


def test_hosts_are_maintained_by_their_labels_where_a_guest_is_pinned() -> None:
    hosts = [node("g", labels={"maintained": "yes"}), *HOSTS[1:]]
    told = encode_question(
        a_balancer_trial("Fence", hosts, VMS, v="a", ns=["g", "k"]), "greedy", "tags"
    )
    assert [row["is_maintained"] for row in told["nodes"]] == [True, False, False]
    assert tags(told) == [["plb_pin_k"], []]
    told = encode_question(anyhow(hosts), "greedy", "tags")
    assert not any(row["is_maintained"] for row in told["nodes"])


@pytest.mark.parametrize(
    ("trial", "code", "detail"),
    [
        (a_balancer_trial("Lonely", HOSTS, VMS, vs=["a"]), "unsupported-constraint", "Lonely"),
        (a_balancer_trial("Gather", HOSTS, VMS, vs=["a", "b"]), "already-violated", "constraint"),
        (a_balancer_trial("Fence", HOSTS, VMS[:1], v="a", ns=[]), "already-violated", "constraint"),
        (a_balancer_trial("Fence", HOSTS, [READY], v="c", ns=[]), "not-promised", "pin"),
        (
            a_balancer_trial("Spread", HOSTS[:1], [VMS[0], READY], vs=["a", "c"]),
            "not-promised",
            "more guests than nodes",
        ),
        (a_balancer_trial("MaxMoves", HOSTS, VMS, v="a", nb=1), "unsupported-argument", "moves"),
        (
            a_balancer_trial("Cordon", [node("g", state=HostState.STANDBY)], [], n="g"),
            "unsupported-cluster",
            "g is not on",
        ),
        (anyhow(vms=[guest(name, "g") for name in "abc"]), "already-violated", "capacity"),
    ],
)
def test_a_trial_that_proxlb_does_not_promise_is_rejected(
    trial: Trial, code: str, detail: str
) -> None:
    with unsupported(code, detail):
        encode_question(trial, "greedy", "tags")


def test_an_introduced_violation_is_a_defect() -> None:
    apart = a_balancer_trial("Spread", HOSTS, VMS, vs=["a", "b"])
    assert verdict(apart, FixedAnswerWorker(migrate("a", "g", "k"))).outcome is TrialOutcome.AGREE
    found = verdict(apart, FixedAnswerWorker(migrate("a", "g", "h")))
    assert (found.outcome, found.message, found.harm) == (TrialOutcome.UNDER, "", "introduced")


def test_only_the_solver_promises_capacity_at_every_moment() -> None:
    four = [
        guest(name, host, consumption={"memory_gib": 2})
        for name, host in zip("abcd", "gghh", strict=True)
    ]
    said = FixedAnswerWorker(migrate("a", "g", "h", round=0), migrate("c", "h", "g", round=1))
    assert verdict(anyhow(vms=four), said).outcome is TrialOutcome.UNSUPPORTED
    found = verdict(anyhow(vms=four), said, "cpsat")
    assert (found.outcome, found.message) == (TrialOutcome.UNDER, "capacity")


def test_a_host_to_be_maintained_must_be_left_by_all_if_they_can_go_anywhere() -> None:
    maintained = a_balancer_trial("Maintenance", HOSTS, VMS[:1], n="g")
    assert (
        verdict(maintained, FixedAnswerWorker(migrate("a", "g", "k"))).outcome is TrialOutcome.AGREE
    )
    found = verdict(maintained, FixedAnswerWorker())
    assert (found.outcome, found.message) == (TrialOutcome.UNDER, "host_empty")
    small = [node("g"), node("h", capacity={"memory_gib": 1})]
    nowhere = a_balancer_trial("Maintenance", small, VMS[:1], n="g")
    assert verdict(nowhere, FixedAnswerWorker()).outcome is TrialOutcome.UNSUPPORTED


def test_a_crash_is_not_reported_for_isolated_constraints() -> None:
    said = FixedAnswerWorker(crash="KeyError (somewhere)")
    assert verdict(anyhow(), said).outcome is TrialOutcome.CRASH
    cordoned = a_balancer_trial("Cordon", HOSTS, VMS, n="k")
    assert verdict(cordoned, said).outcome is TrialOutcome.UNSUPPORTED


@pytest.mark.parametrize("rules", PROXLB.settings["rules"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_some_trials_of_every_constraint_can_be_put_to_it(name: str, rules: str) -> None:
    maker = Generator(library_constraints()[name], name, PROXLB.options)
    told = 0
    for trial in maker.block(range(60)).trials:
        try:
            encode_question(trial, "greedy", rules)
            told += 1
        except UnsupportedTrial:
            pass
    assert told > 15
