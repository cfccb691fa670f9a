"""Trials in the words of Nova's filters, and those that it has no words for; without Nova."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets.nova_question import encode
from equipoise.fuzz.targets.nova_words import CONSTRAINTS, EXTRA_SPECS, NO_FLAVOR
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Boot, Migrate, Suspend
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Running
from equipoise.model.value import FrozenMap
from equipoise.spec.demand import Demand
from equipoise.spec.library import of_origin
from equipoise.spec.specification import Specification
from nova_trials import COMES, a_demand, asleep, coming

UP = a_demand("ComputeUp")
DISTRO = a_demand("ImageIsolation", key="os_distro")
ZONE = a_demand("ExtraSpecs", key="zone")
W = VmId("w")


def told(demand: Demand, **given: Any) -> dict[str, Any]:
    """What is told when the last one comes."""
    return encode(coming(demand, **given))[-1].told


def test_every_constraint_of_nova_is_known_but_one_that_has_no_filter_any_more() -> None:
    assert set(of_origin("nova").constraints) - set(CONSTRAINTS) == {"AvailabilityZone"}


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
    ("name", "hint"),
    [
        ("DifferentHost", "different_host"),
        ("SameHost", "same_host"),
        ("SameHostAsCoded", "same_host"),
    ],
)
def test_the_others_are_a_hint_in_which_the_vm_itself_is_not_named(name: str, hint: str) -> None:
    question = told(a_demand(name, v="v", others=["w", "v"]), vms=[a_vm("w", "g")])
    assert question["filter"] == f"{name.removesuffix('AsCoded')}Filter"
    assert question["vm"] == {"id": "v", "vm_hints": {hint: ["w"]}}


@pytest.mark.parametrize(
    ("name", "restricted"), [("IsolatedHosts", True), ("IsolatedHostsOpen", False)]
)
def test_isolated_vms_have_one_image_and_the_others_another(name: str, restricted: bool) -> None:
    isolated, free, nobody = (
        told(a_demand(name, vs=vs, ns=["h", "g"]), vms=[a_vm("w")]) for vs in (["v"], ["w"], [])
    )
    assert (
        isolated["config"]
        == free["config"]
        == {
            "isolated_images": ["isolated"],
            "isolated_hosts": ["g", "h"],
            "restrict_isolated_hosts_to_isolated_images": restricted,
        }
    )
    assert nobody["config"]["isolated_images"] == []
    assert [one["vm"]["image"] for one in (isolated, free, nobody)] == ["isolated", "open", "open"]


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
        one, other = (encode(trial, extra_specs=name)[0].told for name in EXTRA_SPECS)
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


class TestOthersInThePlan:
    OTHERS: ClassVar[dict[str, Any]] = {
        "vms": [a_vm("w"), a_vm("x", "h"), a_vm("y", "g"), a_vm("z")],
        "others": [
            Boot(vm=W, target=HostId("h")),
            Migrate(vm=VmId("x"), source=HostId("h"), target=HostId("g")),
            Migrate(vm=VmId("y"), source=HostId("g"), target=HostId("h")),
            Boot(vm=VmId("z"), target=HostId("g")),
        ],
    }

    def test_what_is_under_way_is_a_state_of_the_instance_where_nova_has_it(self) -> None:
        question = told(a_demand("IoOps", nb=4), **self.OTHERS)
        assert question["vm"] == {"id": "v"}
        assert question["hosts"][0]["instances"] == [
            {"id": "x", "vm_state": "active", "task_state": "migrating"},
            {"id": "w", "vm_state": "building"},
        ]

    def test_who_has_come_before_the_last_one_begins_is_there(self) -> None:
        trial = coming(a_demand("IoOps", nb=4), **self.OTHERS)
        *others, last = trial.steps
        late = last.but(start_ms=others[0].end_ms, end_ms=others[0].end_ms + 1)
        question = encode(replace(trial, steps=(late, *others)))[-1].told
        assert question["vm"] == {"id": "v"}
        assert question["hosts"][0]["instances"] == [
            {"id": "y", "vm_state": "active"},
            {"id": "w", "vm_state": "active"},
        ]

    def test_where_only_the_end_counts_the_others_are_there(self) -> None:
        question = told(a_demand("NumInstances", nb=3), **self.OTHERS)
        assert question["hosts"][0]["instances"] == [
            {"id": "w", "vm_state": "active"},
            {"id": "y", "vm_state": "active"},
        ]

    def test_a_constraint_about_all_is_asked_when_each_of_them_comes(self) -> None:
        trial = coming(a_demand("NumInstances", nb=3), **self.OTHERS)
        asked = [one.told for one in encode(trial)]
        assert [one["vm"]["id"] for one in asked] == ["w", "x", "y", "z", "v"]
        assert [len(one["hosts"][0]["instances"]) for one in asked] == [1, 1, 1, 1, 2]

    def test_boots_are_asked_about_after_migrations_that_begin_with_them(self) -> None:
        asked = [one.told for one in encode(coming(a_demand("IoOps", nb=4), **self.OTHERS))]
        assert [one["vm"]["id"] for one in asked] == ["w", "z", "v"]
        moving = {"vm_state": "active", "task_state": "migrating"}
        assert [one["hosts"][0]["instances"] for one in asked[:2]] == [
            [{"id": "x", **moving}],
            [{"id": "y", **moving}],
        ]

    def test_whom_the_constraint_is_about_comes_last_and_alone_is_asked_about(self) -> None:
        demand = a_demand("SameHost", v="w", others=["v"])
        assert len(encode(coming(demand, **self.OTHERS))) == 1
        question = told(a_demand("SameHost", v="w", others=["v"]), **self.OTHERS)
        assert question["vm"] == {"id": "w", "vm_hints": {"same_host": ["v"]}}
        assert {"id": "v", "vm_state": "active"} in question["hosts"][0]["instances"]

    def test_of_several_one_comes_last_without_whom_all_is_well(self) -> None:
        labelled = {"host": a_host("h", labels={"os_distro": "d"})}
        for wrong, right in (("v", "w"), ("w", "v")):
            vms = {name: a_vm(name, labels={"os_distro": "d"}) for name in (right,)}
            vms[wrong] = a_vm(wrong, labels={"os_distro": "e"})
            question = told(
                DISTRO,
                vm=vms["v"],
                vms=[vms["w"]],
                others=[Boot(vm=W, target=HostId("h"))],
                **labelled,
            )
            assert question["vm"]["id"] == wrong

    def test_a_group_as_coded_is_where_it_was_before_the_plan(self) -> None:
        demand = a_demand("ServerGroupAffinityAsCoded", v="v", vs=["w", "y"])
        assert told(demand, **self.OTHERS)["group"] == {
            "policy": "affinity", "members": ["v", "w", "y"], "hosts": ["g"],
        }  # fmt: skip

    def test_a_vm_that_is_migrated_counts_where_it_comes_from(self) -> None:
        comes = Migrate(vm=W, source=HostId("g"), target=HostId("h"))
        snapshot = a_cluster(a_host("h"), a_host("g"), vms=[a_vm("w", "g")])
        demand = a_demand("ServerGroupAffinity", vs=["w"])
        question = encode(Trial(demand, snapshot, (a_step("s", comes),)))[0].told
        assert question["group"]["hosts"] == ["g"]
        assert question["hosts"][0] == {"id": "h", "instances": []}


OWN = Specification.read("ComputeUp ::= !(n : hosts) running(n) = {}", "own.spec")
UNTOLD: dict[str, tuple[Demand, dict[str, Any], str]] = {
    "no filter": (a_demand("Lonely", vs=["v"]), {}, "no filter of Nova is called Lonely"),
    "one's own": (Demand(OWN, "ComputeUp", {}), {}, "no filter of Nova"),
    "zones": (a_demand("AvailabilityZone", v="v", zone="z"), {}, "Placement looks after them"),
    "broken": (a_demand("NumInstances", nb=1), {"vms": [a_vm("w", "g"), a_vm("x", "g")]}, "broken"),
    "discrete": (
        Demand(of_origin("nova"), "IoOps", {"nb": 1}), {}, "hold all the time",
    ),
    "all the time": (
        Demand(of_origin("nova"), "ComputeUp", {}, continuous=True), {}, "not what is in between",
    ),
    "suspending": (
        UP,
        {"vms": [a_vm("w", "h")], "others": [Suspend(vm=W, source=HostId("h"))]},
        "booted or migrated only",
    ),
    "another": (a_demand("SameHost", v="w", others=[]), {"vms": [a_vm("w")]}, "when w comes"),
    "wrong without it": (
        a_demand("IsolatedHosts", vs=[], ns=["h"]),
        {"vms": [a_vm("w")], "others": [Boot(vm=W, target=HostId("h"))]},
        "broken already",
    ),
    "an old hint": (
        a_demand("SameSubnet", v="w", other="x"),
        {
            "vms": [a_vm("w", "h", labels={"cidr": "/8"}), a_vm("x", "h")],
            "others": [Migrate(vm=W, source=HostId("h"), target=HostId("g"))],
        },
        "the hint that it was booted with",
    ),
    "a stranger": (
        a_demand("ServerGroupAffinityAsCoded", v="w", vs=[]),
        {
            "vms": [a_vm("w", "h")],
            "others": [Migrate(vm=W, source=HostId("h"), target=HostId("g"))],
        },
        "says of no other",
    ),
    "no instances": (a_demand("NumInstances", nb=0), {}, "no limit of 0, but 1 or more"),
    "no members": (a_demand("ServerGroupAntiAffinity", vs=["v"], nb=0), {}, "no limit of 0"),
    "less than no action": (a_demand("IoOps", nb=-1), {}, "broken already"),
    "no property": (a_demand("ImageIsolation", key="zone"), {}, "'zone' is no property"),
    "no key": (a_demand("ExtraSpecs", key="a/b"), {}, "no extra spec with the key 'a/b'"),
    "list": (DISTRO, {"host": a_host("h", labels={"os_distro": "a,b"})}, "as a list"),
    "blanks": (DISTRO, {"host": a_host("h", labels={"os_distro": "a "})}, "as a list"),
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
    assert encode(trial)[0].told["vm"]["extra_specs"] == {"aggregate_instance_extra_specs:a:b": "c"}
    with pytest.raises(Unsupported, match="a way through what a host can do"):
        encode(trial, extra_specs=EXTRA_SPECS[1])


@pytest.mark.parametrize("extra_specs", EXTRA_SPECS)
def test_a_comparison_is_told_and_marked(extra_specs: str) -> None:
    trial = coming(ZONE, vm=a_vm("v", labels={"zone": ">= 4"}))
    (question,) = encode(trial, extra_specs=extra_specs)
    assert list(question.told["vm"]["extra_specs"].values()) == [">= 4"]
    assert question.odd == "Nova reads '>= 4' as a comparison"
    assert not encode(coming(ZONE, vm=a_vm("v", labels={"zone": ">=4"})))[0].odd


def test_the_size_of_a_network_is_told_and_marked_if_it_is_not_the_usual_one() -> None:
    demand, near = a_demand("SameSubnet", v="v", other="w"), [a_vm("w", "g")]
    odd, usual = (
        encode(coming(demand, vm=a_vm("v", labels={"cidr": size}), vms=near))[0]
        for size in ("/99", "/24")
    )
    assert odd.told["vm"]["hints"]["cidr"] == ["/99"]
    assert odd.odd == "Nova reads '/99' as the size of a network"
    assert not usual.odd
    alone = coming(demand, vm=a_vm("v", labels={"cidr": "/99"}), vms=[a_vm("w")])
    assert not encode(alone)[0].odd


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ((), "when a VM comes, and it does not"),
        ((Suspend(vm=W, source=HostId("h")),), "booted or migrated only"),
        ((Boot(vm=VmId("nobody"), target=HostId("h")),), "does not exist"),
        ((Boot(vm=VmId("v"), target=HostId("nowhere")),), "does not exist"),
    ],
)
def test_only_vms_that_come_to_a_host_are_asked_about(actions: tuple[Any, ...], why: str) -> None:
    steps = tuple(a_step(f"s{n}", action) for n, action in enumerate(actions))
    snapshot = a_cluster(a_host("h"), vms=[a_vm("v"), a_vm("w", "h")])
    with pytest.raises(Unsupported, match=why):
        encode(Trial(UP, snapshot, steps))


def test_what_is_under_way_is_asked_about_with_the_last_boot() -> None:
    moving = a_step("s", Migrate(vm=W, source=HostId("h"), target=HostId("g")))
    snapshot = a_cluster(a_host("h"), a_host("g"), vms=[a_vm("v"), a_vm("w", "h")])
    with pytest.raises(Unsupported, match="booted while others are under way"):
        encode(Trial(a_demand("IoOps", nb=1), snapshot, (moving,)))


def test_nothing_may_be_under_way_before_the_plan_begins() -> None:
    trial = coming(UP)
    running = Running(a_step("u", COMES), 1, 0)
    busy = replace(trial.initial, in_flight=FrozenMap({running.step.id: running}))
    with pytest.raises(Unsupported, match="under way before the plan"):
        encode(replace(trial, initial=busy))
