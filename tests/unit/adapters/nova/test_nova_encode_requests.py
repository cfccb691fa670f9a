"""VMs that are ready as requests to Nova's scheduler; without Nova."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.adapters.nova.encode import CONSTRAINTS, EXTRA_SPECS, PLACEABLE, encode_requests
from equipoise.fuzz.trial import Trial
from equipoise.model.host import Host, HostState
from equipoise.model.state.snapshot import RunningAction
from equipoise.model.value import FrozenMap
from equipoise.model.vm import MemorySettings, Vm
from equipoise.spec.library import library_file
from equipoise.spec.requirement import Requirement
from nova_trials import BOOT_V_ON_H, a_demand, asleep
from unsupported_trials import unsupported

NUM = a_demand("NumInstances", nb=2)


def ready(demand: Requirement, *vms: Vm, host: Host | None = None) -> Trial:
    return Trial(demand, a_cluster(host or a_host("h"), a_host("g"), vms=vms), ())


def requests(trial: Trial) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode_requests(trial).message["requests"]
    return found


def test_equal_vms_are_one_request() -> None:
    message = encode_requests(ready(NUM, a_vm("v"), asleep("x", "h"), a_vm("w"))).message
    size = {"vcpus": a_vm("v").vcpus, "memory_mib": a_vm("v").memory_mib}
    assert message["filters"] == ["NumInstancesFilter"]
    assert message["config"] == {"max_instances_per_host": 2}
    assert message["requests"] == [{"vm": {"id": "v", **size}, "vms": ["v", "w"], "group": None}]
    offers = {"vcpus": a_host("h").cores, "memory_mib": a_host("h").memory_mib}
    assert message["hosts"] == [
        {
            "id": "h",
            "instances": [{"id": "x", "vm_state": "suspended", **size}],
            "service": "up",
            **offers,
        },
        {"id": "g", "instances": [], "service": "up", **offers},
    ]


def test_vms_of_another_group_size_tenant_or_label_are_another_request() -> None:
    group = ready(a_demand("ServerGroupAntiAffinity", vs=["v", "x"], nb=1), *map(a_vm, "vwx"))
    assert [request["vms"] for request in requests(group)] == [["v", "x"], ["w"]]
    assert [request["group"] and request["group"]["members"] for request in requests(group)] == [
        ["v", "x"],
        None,
    ]
    sized = ready(NUM, a_vm("v"), a_vm("w", vcpus=4))
    assert [request["vms"] for request in requests(sized)] == [["v"], ["w"]]
    owned = ready(a_demand("MultiTenancy"), a_vm("v", tenant="t"), a_vm("w", tenant="u"))
    assert [request["vm"]["project"] for request in requests(owned)] == ["t", "u"]
    labelled = ready(
        a_demand("ImageIsolation", key="os_distro"), a_vm("v", labels={"os_distro": "d"}), a_vm("w")
    )
    assert [request["vm"].get("properties") for request in requests(labelled)] == [
        {"os_distro": "d"},
        None,
    ]


def test_hosts_are_encoded_with_labels_and_states() -> None:
    host = a_host("h", labels={"os_distro": "d"}, state=HostState.MAINTENANCE)
    message = encode_requests(
        ready(a_demand("ImageIsolation", key="os_distro"), a_vm("v"), host=host)
    ).message["hosts"]
    assert [request.get("aggregates") for request in message] == [[{"os_distro": "d"}], None]
    assert [request["service"] for request in message] == ["disabled", "up"]


def test_a_vm_that_names_others_is_placed_after_them() -> None:
    message = requests(ready(a_demand("SameHost", v="v", others=["w"]), a_vm("v"), a_vm("w")))
    assert [request["vms"] for request in message] == [["w"], ["v"]]
    assert message[1]["vm"]["vm_hints"] == {"same_host": ["w"]}
    assert "vm_hints" not in message[0]["vm"]


def test_capabilities_are_supported() -> None:
    trial = ready(a_demand("ExtraSpecs", key="size"), a_vm("v", labels={"size": ">= 4"}))
    question = encode_requests(trial, extra_specs=EXTRA_SPECS[1])
    assert question.message["filters"] == ["ComputeCapabilitiesFilter"]
    assert question.misread == "Nova reads '>= 4' as a comparison"


def test_no_ready_vm_means_no_request() -> None:
    assert requests(ready(NUM, a_vm("v", "h"))) == []
    nowhere = replace(PLAIN.initial, hosts=FrozenMap())
    assert requests(replace(PLAIN, initial=nowhere)) == []


def test_constraints_about_one_vm_or_actions_in_flight_are_unsupported() -> None:
    groups = {"ServerGroupAffinityAsCoded", "ServerGroupAntiAffinityAsCoded"}
    assert {"IoOps", "IoOpsAsCoded", "SameSubnet", *groups} == set(CONSTRAINTS) - set(PLACEABLE)
    with unsupported("unsupported-constraint"):
        encode_requests(ready(a_demand("IoOps", nb=1), a_vm("v")))


IN_FLIGHT = RunningAction(a_step("u", BOOT_V_ON_H), 1, 0)
PLAIN = ready(NUM, a_vm("v"))
UNSUPPORTED: dict[str, tuple[Trial, str, str]] = {
    "no filter": (
        ready(a_demand("Lonely", vs=["v"]), a_vm("v")),
        "unsupported-constraint",
        "Lonely",
    ),
    "a plan": (replace(PLAIN, steps=(a_step("s", BOOT_V_ON_H),)), "unsupported-plan", "given plan"),
    "in flight": (
        replace(
            PLAIN,
            initial=replace(PLAIN.initial, in_flight=FrozenMap({IN_FLIGHT.step.id: IN_FLIGHT})),
        ),
        "unsupported-cluster",
        "in flight",
    ),
    "all the time": (
        ready(Requirement(library_file("nova"), "ComputeUp", {}, continuous=True), a_vm("v")),
        "unsupported-mode",
        "discrete",
    ),
    "another": (
        ready(a_demand("SameHost", v="v", others=[]), a_vm("v", "h")),
        "unsupported-plan",
        "placement of v,",
    ),
    "consuming": (
        ready(NUM, a_vm("v", consumption={"disk": 1})),
        "unsupported-cluster",
        "Placement",
    ),
    "reserving": (
        ready(NUM, a_vm("v", memory=MemorySettings(reservation_mib=1))),
        "unsupported-cluster",
        "Placement",
    ),
}


@pytest.mark.parametrize("which", UNSUPPORTED)
def test_a_trial_that_nova_cannot_place_is_rejected(which: str) -> None:
    trial, code, detail = UNSUPPORTED[which]
    with unsupported(code, detail):
        encode_requests(trial)
