"""Trials in the words of Nova's filters, and those that it has no words for; without Nova."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets.nova_question import CONSTRAINTS, EXTRA_SPECS, NO_FLAVOR, encode
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Boot, Migrate, Suspend
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.demand import Demand
from equipoise.spec.library import of_origin
from equipoise.spec.specification import Specification
from nova_trials import COMES, a_demand, asleep, coming

UP = a_demand("ComputeUp")
DISTRO = a_demand("ImageIsolation", key="os_distro")
ZONE = a_demand("ExtraSpecs", key="zone")
W = VmId("w")


def told(demand: Demand, **given: Any) -> dict[str, Any]:
    return encode(coming(demand, **given))


def test_every_constraint_of_nova_is_known_but_one_that_has_no_filter_any_more() -> None:
    assert set(of_origin("nova").constraints) - CONSTRAINTS == {"AvailabilityZone"}


def test_a_question_names_the_filter_the_vm_the_host_and_who_is_there() -> None:
    vms = [a_vm("runs", "h"), asleep("sleeps", "h"), a_vm("elsewhere", "g")]
    assert told(a_demand("NumInstances", nb=3), vms=vms) == {
        "filter": "NumInstancesFilter",
        "vm": {"id": "v"},
        "hosts": [
            {
                "id": "h",
                "instances": [
                    {"id": "runs", "vm_state": "active"},
                    {"id": "sleeps", "vm_state": "suspended"},
                ],
            }
        ],
        "config": {"max_instances_per_host": 3},
        "group": None,
    }


class TestGroups:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [("ServerGroupAffinity", {}), ("ServerGroupAffinityAsCoded", {"v": "v"})],
    )
    def test_a_member_is_told_of_its_group_and_where_the_others_lie(
        self, name: str, arguments: dict[str, Any]
    ) -> None:
        demand = a_demand(name, vs=["v", "w", "x"], **arguments)
        question = told(demand, vms=[asleep("w", "g"), a_vm("x")])
        assert question["filter"] == "ServerGroupAffinityFilter"
        assert question["group"] == {
            "policy": "affinity",
            "members": ["v", "w", "x"],
            "hosts": ["g"],
        }

    @pytest.mark.parametrize("name", ["ServerGroupAffinity", "ServerGroupAntiAffinity"])
    def test_a_vm_that_is_no_member_has_no_group(self, name: str) -> None:
        limit = {"nb": 1} if name == "ServerGroupAntiAffinity" else {}
        assert told(a_demand(name, vs=["w"], **limit), vms=[a_vm("w", "g")])["group"] is None

    def test_how_many_may_be_on_a_host_is_a_rule_of_the_group(self) -> None:
        question = told(a_demand("ServerGroupAntiAffinity", vs=["v"], nb=2))
        assert question["filter"] == "ServerGroupAntiAffinityFilter"
        assert question["group"] == {
            "policy": "anti-affinity", "members": ["v"], "hosts": [], "max_server_per_host": 2,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "hint"), [("DifferentHost", "different_host"), ("SameHost", "same_host")]
)
def test_the_others_are_a_hint(name: str, hint: str) -> None:
    question = told(a_demand(name, v="v", others=["w", "v"]), vms=[a_vm("w", "g")])
    assert question["filter"] == f"{name}Filter"
    assert question["vm"] == {"id": "v", "vm_hints": {hint: ["v", "w"]}}


@pytest.mark.parametrize(
    ("name", "restricted"), [("IsolatedHosts", True), ("IsolatedHostsOpen", False)]
)
def test_isolated_vms_are_isolated_images(name: str, restricted: bool) -> None:
    assert told(a_demand(name, vs=["v"], ns=["h", "g"]))["config"] == {
        "isolated_images": ["v"],
        "isolated_hosts": ["g", "h"],
        "restrict_isolated_hosts_to_isolated_images": restricted,
    }


class TestLabels:
    def test_a_label_of_a_host_is_metadata_of_an_aggregate(self) -> None:
        host = a_host("h", labels={"filter_tenant_id": "t", "zone": "z"})
        question = told(a_demand("MultiTenancy"), host=host, vm=a_vm("v", tenant="u"))
        assert question["vm"] == {"id": "v", "project": "u"}
        assert question["hosts"][0]["aggregates"] == [{"filter_tenant_id": "t"}]

    def test_a_label_that_is_empty_is_none(self) -> None:
        host = a_host("h", labels={"os_distro": ""})
        question = told(DISTRO, host=host, vm=a_vm("v", labels={"os_distro": ""}))
        assert question["vm"] == {"id": "v"}
        assert "aggregates" not in question["hosts"][0]

    @pytest.mark.parametrize(("labels", "name"), [({"flavor": "f"}, "f"), ({}, NO_FLAVOR)])
    def test_the_label_flavor_is_the_name_of_the_flavour(
        self, labels: dict[str, str], name: str
    ) -> None:
        host = a_host("h", labels={"instance_type": "f"})
        question = told(a_demand("TypeAffinity"), host=host, vm=a_vm("v", labels=labels))
        assert question["vm"] == {"id": "v", "flavor": name}
        assert question["hosts"][0]["aggregates"] == [{"instance_type": "f"}]

    def test_a_label_of_a_vm_is_a_property_of_its_image(self) -> None:
        question = told(DISTRO, vm=a_vm("v", labels={"os_distro": "d", "zone": "z"}))
        assert question["vm"] == {"id": "v", "properties": {"os_distro": "d"}}

    def test_extra_specs_are_asked_of_aggregates_or_of_capabilities(self) -> None:
        trial = coming(
            ZONE, host=a_host("h", labels={"zone": "y"}), vm=a_vm("v", labels={"zone": "z"})
        )
        one, other = (encode(trial, extra_specs=name) for name in EXTRA_SPECS)
        assert one["filter"] == "AggregateInstanceExtraSpecsFilter"
        assert one["vm"]["extra_specs"] == {"aggregate_instance_extra_specs:zone": "z"}
        assert one["hosts"][0]["aggregates"] == [{"zone": "y"}]
        assert other["filter"] == "ComputeCapabilitiesFilter"
        assert other["vm"]["extra_specs"] == {"capabilities:label_zone": "z"}
        assert other["hosts"][0]["capabilities"] == {"label_zone": "y"}

    def test_hosts_with_the_same_label_are_in_one_network(self) -> None:
        demand, vms = a_demand("SameSubnet", v="v", other="w"), [a_vm("w", "g")]
        near = told(demand, vms=vms)
        far = told(demand, vms=vms, host=a_host("h", labels={"subnet": "s"}))
        assert near["vm"]["hints"] == {"build_near_host_ip": ["10.0.0.2"], "cidr": ["/24"]}
        assert far["vm"]["hints"] == {"build_near_host_ip": ["10.0.1.2"], "cidr": ["/24"]}
        assert near["hosts"][0]["ip"] == far["hosts"][0]["ip"] == "10.0.0.1"

    def test_nobody_is_near_a_vm_that_does_not_run(self) -> None:
        question = told(a_demand("SameSubnet", v="v", other="w"), vms=[asleep("w", "g")])
        assert question["vm"] == {"id": "v"}


@pytest.mark.parametrize(
    ("capacity", "aggregates"),
    [({}, None), ({"instances": 0}, None), ({"instances": 2}, [{"max_instances_per_host": "2"}])],
)
def test_a_host_without_a_limit_is_in_no_aggregate_and_nothing_else_limits_it(
    capacity: dict[str, int], aggregates: list[dict[str, str]] | None
) -> None:
    host = a_host("h", capacity=capacity)
    question = told(a_demand("AggregateNumInstances"), host=host, vms=[a_vm("w", "h")])
    assert question["hosts"][0].get("aggregates") == aggregates
    assert question["config"] == {"max_instances_per_host": 3}


@pytest.mark.parametrize(
    ("state", "service"),
    [("on", "up"), ("standby", "down"), ("failed", "down"), ("maintenance", "disabled")],
)
def test_a_host_that_is_not_on_is_silent_or_disabled(state: str, service: str) -> None:
    question = told(UP, host=a_host("h", state=HostState(state)))
    assert question["hosts"][0]["service"] == service


def test_what_is_under_way_is_a_state_of_the_instance_where_nova_has_it() -> None:
    question = told(
        a_demand("IoOps", nb=4),
        vms=[a_vm("w"), a_vm("x", "h"), a_vm("y", "g"), a_vm("z")],
        under_way=[
            Boot(vm=W, target=HostId("h")),
            Migrate(vm=VmId("x"), source=HostId("h"), target=HostId("g")),
            Migrate(vm=VmId("y"), source=HostId("g"), target=HostId("h")),
            Boot(vm=VmId("z"), target=HostId("g")),
        ],
    )
    assert question["hosts"][0]["instances"] == [
        {"id": "x", "vm_state": "active", "task_state": "migrating"},
        {"id": "w", "vm_state": "building"},
    ]


OWN = Specification.read("ComputeUp ::= !(n : hosts) running(n) = {}", "own.spec")
UNTOLD: dict[str, tuple[Demand, dict[str, Any], str]] = {
    "no filter": (a_demand("Lonely", vs=["v"]), {}, "no filter of Nova is called Lonely"),
    "one's own": (Demand(OWN, "ComputeUp", {}), {}, "no filter of Nova"),
    "zones": (a_demand("AvailabilityZone", v="v", zone="z"), {}, "Placement looks after them"),
    "broken": (a_demand("NumInstances", nb=1), {"vms": [a_vm("w", "g"), a_vm("x", "g")]}, "broken"),
    "discrete": (
        Demand(of_origin("nova"), "IoOps", {"nb": 1}), {}, "hold all the time",
    ),
    "under way": (
        UP, {"vms": [a_vm("w")], "under_way": [Boot(vm=W, target=HostId("g"))]}, "under way",
    ),
    "suspending": (
        a_demand("IoOps", nb=1),
        {"vms": [a_vm("w", "h")], "under_way": [Suspend(vm=W, source=HostId("h"))]},
        "only boots and migrations",
    ),
    "another": (a_demand("SameHost", v="w", others=[]), {"vms": [a_vm("w")]}, "when w comes"),
    "a stranger": (
        a_demand("ServerGroupAffinityAsCoded", v="v", vs=[]), {}, "only a member of a group",
    ),
    "no instances": (a_demand("NumInstances", nb=0), {}, "no limit of 0, but 1 or more"),
    "no members": (a_demand("ServerGroupAntiAffinity", vs=["v"], nb=0), {}, "no limit of 0"),
    "less than no action": (a_demand("IoOps", nb=-1), {}, "broken already"),
    "no property": (a_demand("ImageIsolation", key="zone"), {}, "'zone' is no property"),
    "no key": (a_demand("ExtraSpecs", key="a/b"), {}, "no extra spec with the key 'a/b'"),
    "list": (DISTRO, {"host": a_host("h", labels={"os_distro": "a,b"})}, "as a list"),
    "blanks": (DISTRO, {"host": a_host("h", labels={"os_distro": "a "})}, "as a list"),
    "operator": (ZONE, {"vm": a_vm("v", labels={"zone": ">= 4"})}, "'>= 4' as a comparison"),
}  # fmt: skip


@pytest.mark.parametrize("which", UNTOLD)
def test_what_nova_has_no_words_for_is_not_told_at_all(which: str) -> None:
    demand, given, why = UNTOLD[which]
    with pytest.raises(Unsupported, match=why):
        told(demand, **given)


def test_no_limit_is_a_limit_for_what_is_under_way() -> None:
    assert told(a_demand("IoOps", nb=0))["config"] == {"max_io_ops_per_host": 0}


def test_a_key_with_colons_is_no_capability_but_an_extra_spec() -> None:
    trial = coming(a_demand("ExtraSpecs", key="a:b"), vm=a_vm("v", labels={"a:b": "c"}))
    assert encode(trial)["vm"]["extra_specs"] == {"aggregate_instance_extra_specs:a:b": "c"}
    with pytest.raises(Unsupported, match="a way through what a host can do"):
        encode(trial, extra_specs=EXTRA_SPECS[1])


@pytest.mark.parametrize(
    "actions",
    [
        (),
        (COMES, COMES),
        (Suspend(vm=W, source=HostId("h")),),
        (Boot(vm=VmId("nobody"), target=HostId("h")),),
        (Boot(vm=VmId("v"), target=HostId("nowhere")),),
    ],
)
def test_only_one_vm_that_comes_to_a_host_is_asked_about(actions: tuple[Any, ...]) -> None:
    steps = tuple(a_step(f"s{n}", action) for n, action in enumerate(actions))
    snapshot = a_cluster(a_host("h"), vms=[a_vm("v"), a_vm("w", "h")])
    with pytest.raises(Unsupported, match=r"and nothing else|does not exist"):
        encode(Trial(UP, snapshot, steps))
