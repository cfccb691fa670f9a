"""VMs that are ready as requests to Nova's scheduler; without Nova."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets.nova_requests import PLACED, encode_requests
from equipoise.fuzz.targets.nova_words import CONSTRAINTS, EXTRA_SPECS
from equipoise.fuzz.trial import Trial
from equipoise.model.host import Host, HostState
from equipoise.model.snapshot import Running
from equipoise.model.value import FrozenMap
from equipoise.model.vm import MemorySettings, Vm
from equipoise.spec.demand import Demand
from equipoise.spec.library import of_origin
from nova_trials import COMES, a_demand, asleep

NUM = a_demand("NumInstances", nb=2)


def ready(demand: Demand, *vms: Vm, host: Host | None = None) -> Trial:
    return Trial(demand, a_cluster(host or a_host("h"), a_host("g"), vms=vms), ())


def requests(trial: Trial) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode_requests(trial).told["requests"]
    return found


def test_vms_that_are_alike_are_one_request() -> None:
    told = encode_requests(ready(NUM, a_vm("v"), asleep("x", "h"), a_vm("w"))).told
    size = {"vcpus": a_vm("v").vcpus, "memory_mib": a_vm("v").memory_mib}
    assert told["filters"] == ["NumInstancesFilter"]
    assert told["config"] == {"max_instances_per_host": 2}
    assert told["requests"] == [{"vm": {"id": "v", **size}, "vms": ["v", "w"], "group": None}]
    offers = {"vcpus": a_host("h").cores, "memory_mib": a_host("h").memory_mib}
    assert told["hosts"] == [
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
    assert [one["vms"] for one in requests(group)] == [["v", "x"], ["w"]]
    assert [one["group"] and one["group"]["members"] for one in requests(group)] == [
        ["v", "x"],
        None,
    ]
    sized = ready(NUM, a_vm("v"), a_vm("w", vcpus=4))
    assert [one["vms"] for one in requests(sized)] == [["v"], ["w"]]
    owned = ready(a_demand("MultiTenancy"), a_vm("v", tenant="t"), a_vm("w", tenant="u"))
    assert [one["vm"]["project"] for one in requests(owned)] == ["t", "u"]
    labelled = ready(
        a_demand("ImageIsolation", key="os_distro"), a_vm("v", labels={"os_distro": "d"}), a_vm("w")
    )
    assert [one["vm"].get("properties") for one in requests(labelled)] == [{"os_distro": "d"}, None]


def test_hosts_are_told_by_their_labels_and_states() -> None:
    host = a_host("h", labels={"os_distro": "d"}, state=HostState.MAINTENANCE)
    told = encode_requests(
        ready(a_demand("ImageIsolation", key="os_distro"), a_vm("v"), host=host)
    ).told["hosts"]
    assert [one.get("aggregates") for one in told] == [[{"os_distro": "d"}], None]
    assert [one["service"] for one in told] == ["disabled", "up"]


def test_who_names_others_comes_when_they_are_there() -> None:
    told = requests(ready(a_demand("SameHost", v="v", others=["w"]), a_vm("v"), a_vm("w")))
    assert [one["vms"] for one in told] == [["w"], ["v"]]
    assert told[1]["vm"]["vm_hints"] == {"same_host": ["w"]}
    assert "vm_hints" not in told[0]["vm"]


def test_capabilities_are_asked_as_well() -> None:
    trial = ready(a_demand("ExtraSpecs", key="size"), a_vm("v", labels={"size": ">= 4"}))
    question = encode_requests(trial, extra_specs=EXTRA_SPECS[1])
    assert question.told["filters"] == ["ComputeCapabilitiesFilter"]
    assert question.odd == "Nova reads '>= 4' as a comparison"


def test_nothing_is_asked_for_nobody() -> None:
    assert requests(ready(NUM, a_vm("v", "h"))) == []
    nowhere = replace(PLAIN.initial, hosts=FrozenMap())
    assert requests(replace(PLAIN, initial=nowhere)) == []


def test_what_is_about_one_vm_or_about_what_is_under_way_cannot_be_asked() -> None:
    groups = {"ServerGroupAffinityAsCoded", "ServerGroupAntiAffinityAsCoded"}
    assert {"IoOps", "IoOpsAsCoded", "SameSubnet", *groups} == set(CONSTRAINTS) - set(PLACED)
    with pytest.raises(Unsupported, match="about a single VM"):
        encode_requests(ready(a_demand("IoOps", nb=1), a_vm("v")))


UNDER_WAY = Running(a_step("u", COMES), 1, 0)
PLAIN = ready(NUM, a_vm("v"))
UNTOLD: dict[str, tuple[Trial, str]] = {
    "no filter": (ready(a_demand("Lonely", vs=["v"]), a_vm("v")), "no filter of Nova"),
    "a plan": (replace(PLAIN, steps=(a_step("s", COMES),)), "takes none"),
    "under way": (
        replace(
            PLAIN,
            initial=replace(PLAIN.initial, in_flight=FrozenMap({UNDER_WAY.step.id: UNDER_WAY})),
        ),
        "under way",
    ),
    "all the time": (
        ready(Demand(of_origin("nova"), "ComputeUp", {}, continuous=True), a_vm("v")),
        "what is in between",
    ),
    "another": (ready(a_demand("SameHost", v="v", others=[]), a_vm("v", "h")), "when v comes"),
    "consuming": (ready(NUM, a_vm("v", consumption={"disk": 1})), "Placement"),
    "reserving": (ready(NUM, a_vm("v", memory=MemorySettings(reservation_mib=1))), "Placement"),
}


@pytest.mark.parametrize("which", UNTOLD)
def test_what_nova_has_no_words_for_is_not_told_at_all(which: str) -> None:
    trial, why = UNTOLD[which]
    with pytest.raises(Unsupported, match=why):
        encode_requests(trial)
