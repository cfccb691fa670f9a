"""Trials in BtrPlace's words, and what it has none for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from btrplace_trials import (
    a_demand,
    a_trial,
    boot,
    do,
    kill,
    move,
    resume,
    sleep,
    stop,
    suspend,
    wake,
)
from builders import a_host, a_step, a_vm
from equipoise.adapters.btrplace.encode import CONSTRAINTS, encode_question
from equipoise.adapters.btrplace.scheduler import TRIAL_OPTIONS
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Allocate, EnterMaintenance, Forge, Migrate, Reinstantiate
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.snapshot import RunningAction
from equipoise.model.value import FrozenMap
from equipoise.model.vm import CpuSettings, VmState
from equipoise.spec.library import library_constraints, library_file
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import Specification
from unsupported_trials import unsupported

NOTHING = a_demand("Spread", vs=[])
A, H1, H2 = VmId("a"), HostId("h1"), HostId("h2")


def told(name: str, **arguments: Any) -> Any:
    return encode_question(a_trial(a_demand(name, **arguments)), repair=False)["constraint"]


def test_every_constraint_of_btrplace_is_known_but_one_that_was_never_published() -> None:
    theirs = set(library_file("btrplace").constraints)
    assert theirs - set(CONSTRAINTS) == {"MostlySpread"}
    assert theirs >= set(CONSTRAINTS)


def test_a_cluster_is_encoded_with_numbers() -> None:
    question = encode_question(a_trial(NOTHING), repair=True)
    assert question["origin"]["mapping"] == {
        "readyVMs": [2, 3],
        "onlineNodes": {
            "0": {"runningVMs": [0], "sleepingVMs": []},
            "1": {"runningVMs": [1], "sleepingVMs": []},
            "2": {"runningVMs": [], "sleepingVMs": [4]},
        },
        "offlineNodes": [3],
    }
    (resource,) = (view for view in question["origin"]["views"] if "rcId" in view)
    assert resource["rcId"] == "licences"
    assert resource["nodes"] == {"0": 2, "1": 2, "2": 2, "3": 2}
    assert resource["vms"] == {"0": 1, "1": 1, "2": 1, "3": 1, "4": 1}
    assert question["repair"] is True


def test_a_plan_is_encoded_in_seconds() -> None:
    steps = (
        do(wake("h4"), 0, 2),
        do(boot("r", "h4"), 2, 5),
        do(move("a", "h1", "h2")),
        do(sleep("h1"), 1, 3),
        do(suspend("b", "h2")),
        do(resume("s", "h3", "h2")),
        do(kill("q"), 0, 2),
    )
    actions = encode_question(a_trial(NOTHING, *steps), repair=False)["actions"]
    kept = [{key: value for key, value in action.items() if key != "hooks"} for action in actions]
    assert kept == [
        {"id": "migrateVM", "vm": 0, "from": 0, "to": 1, "start": 0, "end": 1},
        {"id": "suspendVM", "vm": 1, "from": 1, "to": 1, "start": 0, "end": 1},
        {"id": "resumeVM", "vm": 4, "from": 2, "to": 1, "start": 0, "end": 1},
        {"id": "bootNode", "node": 3, "start": 0, "end": 2},
        {"id": "killVM", "vm": 2, "start": 0, "end": 2},
        {"id": "shutdownNode", "node": 0, "start": 1, "end": 3},
        {"id": "bootVM", "vm": 3, "on": 3, "start": 2, "end": 5},
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Spread", {"vs": ["b", "a"]}, {"id": "spread", "vms": [0, 1], "continuous": False}),
        ("Gather", {"vs": []}, {"id": "gather", "vms": [], "continuous": False}),
        ("Lonely", {"vs": ["s"]}, {"id": "lonely", "vms": [4], "continuous": False}),
        (
            "Split", {"parts": [["b", "a"], ["q"]]},
            {"id": "split", "parts": [[0, 1], [2]], "continuous": False},
        ),
        (
            "Among", {"vs": ["a"], "parts": [["h2", "h1"], ["h4"]]},
            {"id": "among", "vms": [0], "parts": [[0, 1], [3]], "continuous": False},
        ),
        (
            "SplitAmong", {"vs": [["a"]], "parts": []},
            {"id": "splitAmong", "vParts": [[0]], "pParts": [], "continuous": False},
        ),
        (
            "Fence", {"v": "a", "ns": ["h1"], "continuous": True},
            {"id": "fence", "vm": 0, "nodes": [0], "continuous": True},
        ),
        (
            "Ban", {"v": "b", "ns": ["h3", "h1"]},
            {"id": "ban", "vm": 1, "nodes": [0, 2], "continuous": False},
        ),
        ("Root", {"v": "a"}, {"id": "root", "vm": 0, "continuous": True}),
        ("Quarantine", {"n": "h2"}, {"id": "quarantine", "node": 1, "continuous": True}),
        ("Running", {"v": "a"}, {"id": "running", "vm": 0, "continuous": False}),
        ("Online", {"n": "h4"}, {"id": "online", "node": 3, "continuous": False}),
        (
            "MaxOnline", {"ns": ["h4"], "nb": 0},
            {"id": "maxOnline", "nodes": [3], "amount": 0, "continuous": False},
        ),
        (
            "RunningCapacity", {"ns": ["h1"], "nb": 5, "continuous": True},
            {"id": "runningCapacity", "nodes": [0], "amount": 5, "continuous": True},
        ),
        (
            "ResourceCapacity", {"ns": ["h1"], "id": "licences", "qty": 3},
            {
                "id": "resourceCapacity", "nodes": [0], "rc": "licences", "amount": 3,
                "continuous": False,
            },
        ),
        ("ShareableResource", {"id": "licences", "continuous": True}, None),
        (
            "Preserve", {"v": "a", "id": "licences", "amount": 1},
            {"id": "preserve", "vm": 0, "rc": "licences", "amount": 1, "continuous": False},
        ),
        (
            "Overbook", {"n": "h1", "id": "licences", "percent": 150},
            {
                "id": "overbook", "node": 0, "rc": "licences", "ratio": 1.5, "continuous": False,
            },
        ),
        ("Seq", {"vs": ("r", "a")}, {"id": "seq", "vms": [3, 0]}),
        ("Sync", {"vs": ["a"]}, {"id": "Sync", "vms": [0]}),
        ("NoDelay", {"v": "a"}, {"id": "noDelay", "vm": 0}),
        ("Deadline", {"v": "a", "ms": 3_723_999}, {
            "id": "Deadline", "vm": 0, "timestamp": "+01:02:03",
        }),
        ("Precedence", {"before": "b", "after": "a"}, {"id": "Precedence", "vm1": 1, "vm2": 0}),
        ("Serialize", {"vs": ["a", "b"]}, {"id": "Serialize", "vms": [0, 1]}),
    ],
)  # fmt: skip
def test_a_constraint_is_encoded_as_in_files(
    name: str, arguments: dict[str, Any], expected: Any
) -> None:
    assert told(name, **arguments) == expected


def test_a_forged_vm_is_encoded_with_its_template() -> None:
    vms = [a_vm("n", state=VmState.INIT, template="image"), a_vm("m", state=VmState.INIT)]
    made = a_trial(a_demand("Ready", v="n"), do(Forge(vm=VmId("n"))), vms=vms)
    question = encode_question(made, repair=False)
    assert question["unmade"] == {"0": "image"}
    assert question["origin"]["mapping"]["readyVMs"] == []


def with_host(state: HostState) -> Trial:
    return a_trial(NOTHING, hosts=[a_host("h", state=state)], vms=[])


def with_vm(demand: Requirement, **fields: Any) -> Trial:
    return a_trial(demand, vms=[a_vm("v", **fields)])


def under_way() -> Trial:
    trial = a_trial(NOTHING)
    running = RunningAction(a_step("u", move("a", "h1", "h2")), 1, 0)
    initial = replace(trial.initial, in_flight=FrozenMap({running.step.id: running}))
    return Trial(trial.demand, initial, ())


def reserving() -> Trial:
    claim = CpuSettings(reservation_mhz=4000)
    vms = [a_vm("v", "h1", cpu=claim), a_vm("w", "h2", cpu=claim)]
    return a_trial(NOTHING, do(move("w", "h2", "h1")), vms=vms)


def full(demand: Requirement) -> Trial:
    return a_trial(demand, do(boot("r", "h1")), do(boot("q", "h1")))


ALLOCATE = Allocate(vm=A, resource=ResourceName("licences"), amount=0)
RECREATE = Reinstantiate(vm=A, source=H1, target=H2)
OWN = Specification.read("Spread(vs <: vms) ::= vs = {}", "own.spec")


@pytest.mark.parametrize(
    ("trial", "code", "detail"),
    [
        (under_way(), "unsupported-cluster", "in flight"),
        (with_host(HostState.MAINTENANCE), "unsupported-cluster", "h is maintenance"),
        (with_host(HostState.FAILED), "unsupported-cluster", "h is failed"),
        (with_vm(NOTHING, state=VmState.TERMINATED), "unsupported-cluster", "v is terminated"),
        (
            with_vm(a_demand("Ready", v="v"), state=VmState.INIT, template="t"),
            "unsupported-cluster",
            "v is not forged",
        ),
        (
            with_vm(a_demand("Split", parts=[["v"]]), state=VmState.INIT, template="t"),
            "unsupported-cluster",
            "v is not forged",
        ),
        (
            a_trial(NOTHING, do(move("a", "h1", "h2")), do(move("a", "h2", "h3"), 1)),
            "unsupported-plan",
            "a has 2 actions",
        ),
        (a_trial(NOTHING, do(ALLOCATE)), "unsupported-plan", "allocate"),
        (a_trial(NOTHING, do(RECREATE)), "unsupported-plan", "reinstantiate"),
        (
            a_trial(NOTHING, do(EnterMaintenance(host=HostId("h3")))),
            "unsupported-plan",
            "enter_maintenance",
        ),
        (
            a_trial(NOTHING, a_step("s", move("a", "h1", "h2"), 0, 1500)),
            "unsupported-plan",
            "s0? must .* whole seconds",
        ),
        (
            a_trial(NOTHING, a_step("s", move("a", "h1", "h2"), 1, 2000)),
            "unsupported-plan",
            "s0? must .* whole seconds",
        ),
        (a_trial(NOTHING, do(kill("a"), 1)), "unsupported-plan", "kills a VM later than at 0 s"),
        (a_trial(NOTHING, do(stop("r", "h1"))), "unsupported-plan", "r is ready, not running"),
        (
            a_trial(NOTHING, do(Migrate(vm=A, source=H2, target=HostId("h3")))),
            "unsupported-plan",
            "a is on h1, not on h2",
        ),
        (reserving(), "unsupported-cluster", "w needs 4000 MHz"),
        (
            full(a_demand("Overbook", n="h1", id="licences", percent=150)),
            "unsupported-argument",
            "Overbook",
        ),
        (a_trial(a_demand("MostlySpread", vs=[], nb=1)), "unsupported-constraint", "MostlySpread"),
        (a_trial(a_demand("ComputeUp")), "unsupported-constraint", "ComputeUp"),
        (
            a_trial(Requirement(OWN, "Spread", {"vs": frozenset()})),
            "unsupported-constraint",
            "no constraint Spread",
        ),
        (
            a_trial(a_demand("Preserve", v="a", id="cpu", amount=1)),
            "unsupported-argument",
            "'cpu'",
        ),
        (
            a_trial(a_demand("ShareableResource", id="licences", continuous=False)),
            "unsupported-mode",
            "continuous",
        ),
        (a_trial(a_demand("Seq", vs=(), continuous=True)), "unsupported-mode", "Seq"),
        (
            a_trial(a_demand("Deadline", v="a", ms=43_200_000)),
            "unsupported-argument",
            "twelve hours",
        ),
    ],
)
def test_a_trial_that_btrplace_cannot_express_is_rejected(
    trial: Trial, code: str, detail: str
) -> None:
    with unsupported(code, detail):
        encode_question(trial, repair=False)


@pytest.mark.parametrize(
    "trial",
    [
        full(NOTHING),
        full(a_demand("Overbook", n="h1", id="licences", percent=100)),
        a_trial(NOTHING, do(boot("r", "h4"))),
        a_trial(NOTHING, do(sleep("h1"))),
    ],
)
def test_an_impossible_plan_is_encoded_if_btrplace_knows_why(trial: Trial) -> None:
    assert trial.objections
    assert encode_question(trial, repair=False)["actions"]


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_most_trials_of_the_options_are_supported(name: str) -> None:
    maker = Generator(library_constraints()[name], name, TRIAL_OPTIONS, 0)
    reasons = [_reason(trial) for trial in maker.block(range(40)).trials]
    assert reasons.count(None) > len(reasons) // 2
    for reason in filter(None, reasons):
        is_late_kill = reason.code == "unsupported-plan" and "kills a VM later" in reason.reason
        assert is_late_kill or reason.code == "unsupported-mode"


def _reason(trial: Trial) -> UnsupportedTrial | None:
    """Why BtrPlace cannot express a trial."""
    try:
        encode_question(trial, repair=False)
    except UnsupportedTrial as error:
        return error
    return None
