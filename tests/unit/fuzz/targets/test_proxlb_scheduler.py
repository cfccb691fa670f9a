"""ProxLB's engines as a target: what is told, and what is made of the answer; without ProxLB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_known
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets.proxlb_question import CONSTRAINTS, encode
from equipoise.fuzz.targets.proxlb_scheduler import PROXLB, ProxLb
from equipoise.fuzz.trial import Outcome, Trial, Verdict, judge
from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints
from move_trials import Saying, asked, guest, migrate, node

HOSTS = [node("g"), node("h"), node("k")]
VMS = [
    guest("a", "g", consumption={"memory_gib": 2}),
    guest("b", "h", consumption={"memory_gib": 2}),
]

READY = guest("c", None, state=VmState.READY)


def verdict(trial: Trial, saying: Saying, engine: str = "greedy") -> Verdict:
    return judge(ProxLb(engine=engine, begin=saying.begin), trial)


def anyhow(hosts: Any = HOSTS, vms: Any = VMS) -> Trial:
    return asked("Running", hosts, vms, v="a")


def tags(told: dict[str, Any]) -> list[list[str]]:
    return [one["tags"] for one in told["guests"]]


def test_it_is_registered_and_tells_what_is_missing_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_known("proxlb") is PROXLB
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    assert PROXLB.missing().endswith("run 'python -m equipoise.fuzz.targets proxlb'")


def test_it_sees_nodes_that_are_on_and_guests_that_run() -> None:
    hosts = [node("g"), node("h", state=HostState.STANDBY), node("k", state=HostState.MAINTENANCE)]
    vms = [guest("a", "g", labels={"ignored": "yes"}), guest("c", None, state=VmState.READY)]
    told = encode(anyhow(hosts, vms), "greedy", "tags")
    assert told["nodes"] == [
        {"id": "g", "memory_mib": 4096, "is_maintained": False},
        {"id": "k", "memory_mib": 4096, "is_maintained": True},
    ]
    (only,) = told["guests"]
    assert (only["id"], only["host"], only["memory_mib"]) == ("a", "g", 2048)
    assert only["tags"] == ["plb_ignore_label"]


def test_constraints_are_told_by_tags() -> None:
    told = encode(asked("Spread", HOSTS, VMS, vs=["a", "b"]), "greedy", "tags")
    assert tags(told) == [["plb_anti_affinity_trial"], ["plb_anti_affinity_trial"]]
    told = encode(asked("Gather", HOSTS, VMS, vs=["a"]), "greedy", "tags")
    assert tags(told) == [["plb_affinity_trial"], []]
    told = encode(asked("Fence", HOSTS, VMS, v="a", ns=["g", "k"]), "greedy", "tags")
    assert tags(told) == [["plb_pin_g", "plb_pin_k"], []]
    told = encode(asked("MaxMoves", HOSTS, VMS, v="b", nb=0), "greedy", "tags")
    assert tags(told) == [[], ["plb_ignore_trial"]]


def test_constraints_are_told_by_pools() -> None:
    told = encode(asked("Spread", HOSTS, VMS, vs=["a", "b"]), "cpsat", "pools")
    assert told["pools"] == {"trial": {"type": "anti-affinity"}}
    assert [one["pools"] for one in told["guests"]] == [["trial"], ["trial"]]
    told = encode(asked("Fence", HOSTS, VMS, v="a", ns=["g"]), "cpsat", "pools")
    assert told["pools"] == {"trial": {"pin": ["g"]}}
    assert [one["pools"] for one in told["guests"]] == [["trial"], []]


@pytest.mark.parametrize("name", ["Cordon", "Maintenance"])
def test_a_host_is_told_to_be_maintained(name: str) -> None:
    told = encode(asked(name, HOSTS, VMS, n="h"), "greedy", "tags")
    assert [one["is_maintained"] for one in told["nodes"]] == [False, True, False]


def test_hosts_are_maintained_by_their_labels_where_a_guest_is_pinned() -> None:
    hosts = [node("g", labels={"maintained": "yes"}), *HOSTS[1:]]
    told = encode(asked("Fence", hosts, VMS, v="a", ns=["g", "k"]), "greedy", "tags")
    assert [one["is_maintained"] for one in told["nodes"]] == [True, False, False]
    assert tags(told) == [["plb_pin_k"], []]
    told = encode(anyhow(hosts), "greedy", "tags")
    assert not any(one["is_maintained"] for one in told["nodes"])


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (asked("Lonely", HOSTS, VMS, vs=["a"]), "no words"),
        (asked("Gather", HOSTS, VMS, vs=["a", "b"]), "broken"),
        (asked("Fence", HOSTS, VMS[:1], v="a", ns=[]), "broken"),
        (asked("Fence", HOSTS, [READY], v="c", ns=[]), "pinned to no node"),
        (asked("Spread", HOSTS[:1], [VMS[0], READY], vs=["a", "c"]), "more guests than nodes"),
        (asked("MaxMoves", HOSTS, VMS, v="a", nb=1), "how often"),
        (asked("Cordon", [node("g", state=HostState.STANDBY)], [], n="g"), "is not on"),
        (anyhow(vms=[guest(name, "g") for name in "abc"]), "has not enough"),
    ],
)
def test_what_has_no_words_or_is_not_promised_is_not_asked(trial: Trial, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        encode(trial, "greedy", "tags")


def test_what_it_breaks_is_found() -> None:
    apart = asked("Spread", HOSTS, VMS, vs=["a", "b"])
    assert verdict(apart, Saying(migrate("a", "g", "k"))).outcome is Outcome.AGREE
    found = verdict(apart, Saying(migrate("a", "g", "h")))
    assert (found.outcome, found.message, found.harm) == (Outcome.UNDER, "", "introduced")


def test_only_the_solver_promises_room_at_every_moment() -> None:
    four = [
        guest(name, host, consumption={"memory_gib": 2})
        for name, host in zip("abcd", "gghh", strict=True)
    ]
    said = Saying(migrate("a", "g", "h", round=0), migrate("c", "h", "g", round=1))
    assert verdict(anyhow(vms=four), said).outcome is Outcome.UNSUPPORTED
    found = verdict(anyhow(vms=four), said, "cpsat")
    assert (found.outcome, found.message) == (Outcome.UNDER, "capacity")


def test_a_host_to_be_maintained_must_be_left_by_all_if_they_can_go_anywhere() -> None:
    maintained = asked("Maintenance", HOSTS, VMS[:1], n="g")
    assert verdict(maintained, Saying(migrate("a", "g", "k"))).outcome is Outcome.AGREE
    found = verdict(maintained, Saying())
    assert (found.outcome, found.message) == (Outcome.UNDER, "host_empty")
    small = [node("g"), node("h", capacity={"memory_gib": 1})]
    nowhere = asked("Maintenance", small, VMS[:1], n="g")
    assert verdict(nowhere, Saying()).outcome is Outcome.UNSUPPORTED


def test_a_crash_is_told_but_not_with_what_is_judged_by_itself() -> None:
    said = Saying(crash="KeyError (somewhere)")
    assert verdict(anyhow(), said).outcome is Outcome.CRASH
    cordoned = asked("Cordon", HOSTS, VMS, n="k")
    assert verdict(cordoned, said).outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize("rules", PROXLB.settings["rules"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_some_trials_of_every_constraint_can_be_put_to_it(name: str, rules: str) -> None:
    maker = Generator(library_constraints()[name], name, PROXLB.options)
    told = 0
    for trial in maker.block(range(60)).trials:
        try:
            encode(trial, "greedy", rules)
            told += 1
        except Unsupported:
            pass
    assert told > 15
