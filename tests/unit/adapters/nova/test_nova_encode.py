"""Trials in the words of Nova's filters, and those that it has no words for; without Nova."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.adapters.nova.encode import (
    CONSTRAINTS,
    EXTRA_SPECS,
    NO_FLAVOR_NAME,
    encode_questions,
)
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Boot, Migrate, Suspend
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import RunningAction
from equipoise.model.value import FrozenMap
from equipoise.spec.library import library_file
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import Specification
from nova_trials import BOOT_V_ON_H, a_demand, a_placement, asleep
from unsupported_trials import unsupported

UP = a_demand("ComputeUp")
DISTRO = a_demand("ImageIsolation", key="os_distro")
ZONE = a_demand("ExtraSpecs", key="zone")
W = VmId("w")


def message(demand: Requirement, **given: Any) -> dict[str, Any]:
    """The question of the last placement."""
    return encode_questions(a_placement(demand, **given))[-1].message


def test_every_constraint_of_nova_is_known_but_one_that_has_no_filter_any_more() -> None:
    assert set(library_file("nova").constraints) - set(CONSTRAINTS) == {"AvailabilityZone"}


def test_a_question_has_the_filter_the_vm_the_host_and_its_instances() -> None:
    vms = [a_vm("runs", "h"), asleep("sleeps", "h"), a_vm("elsewhere", "g")]
    assert message(a_demand("NumInstances", nb=3), vms=vms) == {
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
    def test_a_member_has_its_group_with_the_hosts_of_the_others(
        self, name: str, arguments: dict[str, Any]
    ) -> None:
        demand = a_demand(name, vs=["v", "w", "x"], **arguments)
        question = message(demand, vms=[asleep("w", "g"), a_vm("x")])
        assert question["filter"] == "ServerGroupAffinityFilter"
        assert question["group"] == {
            "policy": "affinity",
            "members": ["v", "w", "x"],
            "hosts": ["g"],
        }

    @pytest.mark.parametrize("name", ["ServerGroupAffinity", "ServerGroupAntiAffinity"])
    def test_a_vm_that_is_no_member_has_no_group(self, name: str) -> None:
        limit = {"nb": 1} if name == "ServerGroupAntiAffinity" else {}
        assert message(a_demand(name, vs=["w"], **limit), vms=[a_vm("w", "g")])["group"] is None

    def test_how_many_may_be_on_a_host_is_a_rule_of_the_group(self) -> None:
        question = message(a_demand("ServerGroupAntiAffinity", vs=["v"], nb=2))
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
    question = message(a_demand(name, v="v", others=["w", "v"]), vms=[a_vm("w", "g")])
    assert question["filter"] == f"{name.removesuffix('AsCoded')}Filter"
    assert question["vm"] == {"id": "v", "vm_hints": {hint: ["w"]}}


@pytest.mark.parametrize(
    ("name", "restricted"), [("IsolatedHosts", True), ("IsolatedHostsOpen", False)]
)
def test_isolated_vms_have_one_image_and_the_others_another(name: str, restricted: bool) -> None:
    isolated, free, no_images = (
        message(a_demand(name, vs=vs, ns=["h", "g"]), vms=[a_vm("w")]) for vs in (["v"], ["w"], [])
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
    assert no_images["config"]["isolated_images"] == []
    assert [row["vm"]["image"] for row in (isolated, free, no_images)] == [
        "isolated",
        "open",
        "open",
    ]


class TestLabels:
    def test_a_label_of_a_host_is_metadata_of_an_aggregate(self) -> None:
        host = a_host("h", labels={"filter_tenant_id": "t", "zone": "z"})
        question = message(a_demand("MultiTenancy"), host=host, vm=a_vm("v", tenant="u"))
        assert question["vm"] == {"id": "v", "project": "u"}
        assert question["hosts"][0]["aggregates"] == [{"filter_tenant_id": "t"}]

    def test_a_label_that_is_empty_is_none(self) -> None:
        host = a_host("h", labels={"os_distro": ""})
        question = message(DISTRO, host=host, vm=a_vm("v", labels={"os_distro": ""}))
        assert question["vm"] == {"id": "v"}
        assert "aggregates" not in question["hosts"][0]

    @pytest.mark.parametrize(("labels", "name"), [({"flavor": "f"}, "f"), ({}, NO_FLAVOR_NAME)])
    def test_the_label_flavor_is_the_name_of_the_flavour(
        self, labels: dict[str, str], name: str
    ) -> None:
        host = a_host("h", labels={"instance_type": "f"})
        question = message(a_demand("TypeAffinity"), host=host, vm=a_vm("v", labels=labels))
        assert question["vm"] == {"id": "v", "flavor": name}
        assert question["hosts"][0]["aggregates"] == [{"instance_type": "f"}]

    def test_a_label_of_a_vm_is_a_property_of_its_image(self) -> None:
        question = message(DISTRO, vm=a_vm("v", labels={"os_distro": "d", "zone": "z"}))
        assert question["vm"] == {"id": "v", "properties": {"os_distro": "d"}}

    def test_extra_specs_are_matched_with_aggregates_or_capabilities(self) -> None:
        trial = a_placement(
            ZONE, host=a_host("h", labels={"zone": "y"}), vm=a_vm("v", labels={"zone": "z"})
        )
        one, other = (encode_questions(trial, extra_specs=name)[0].message for name in EXTRA_SPECS)
        assert one["filter"] == "AggregateInstanceExtraSpecsFilter"
        assert one["vm"]["extra_specs"] == {"aggregate_instance_extra_specs:zone": "z"}
        assert one["hosts"][0]["aggregates"] == [{"zone": "y"}]
        assert other["filter"] == "ComputeCapabilitiesFilter"
        assert other["vm"]["extra_specs"] == {"capabilities:label_zone": "z"}
        assert other["hosts"][0]["capabilities"] == {"label_zone": "y"}

    def test_hosts_with_the_same_label_are_in_one_network(self) -> None:
        demand, vms = a_demand("SameSubnet", v="v", other="w"), [a_vm("w", "g")]
        near = message(demand, vms=vms)
        far = message(demand, vms=vms, host=a_host("h", labels={"subnet": "s"}))
        assert near["vm"]["hints"] == {"build_near_host_ip": ["10.0.0.2"], "cidr": ["/24"]}
        assert far["vm"]["hints"] == {"build_near_host_ip": ["10.0.1.2"], "cidr": ["/24"]}
        assert near["hosts"][0]["ip"] == far["hosts"][0]["ip"] == "10.0.0.1"

    def test_a_vm_that_does_not_run_gives_no_hint(self) -> None:
        question = message(a_demand("SameSubnet", v="v", other="w"), vms=[asleep("w", "g")])
        assert question["vm"] == {"id": "v"}


@pytest.mark.parametrize(
    ("capacity", "aggregates"),
    [({}, None), ({"instances": 0}, None), ({"instances": 2}, [{"max_instances_per_host": "2"}])],
)
def test_a_host_without_a_limit_is_in_no_aggregate_and_nothing_else_limits_it(
    capacity: dict[str, int], aggregates: list[dict[str, str]] | None
) -> None:
    host = a_host("h", capacity=capacity)
    question = message(a_demand("AggregateNumInstances"), host=host, vms=[a_vm("w", "h")])
    assert question["hosts"][0].get("aggregates") == aggregates
    assert question["config"] == {"max_instances_per_host": 3}


@pytest.mark.parametrize(
    ("state", "service"),
    [("on", "up"), ("standby", "down"), ("failed", "down"), ("maintenance", "disabled")],
)
def test_a_host_that_is_not_on_is_silent_or_disabled(state: str, service: str) -> None:
    question = message(UP, host=a_host("h", state=HostState(state)))
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

    def test_actions_in_flight_are_states_of_instances(self) -> None:
        question = message(a_demand("IoOps", nb=4), **self.OTHERS)
        assert question["vm"] == {"id": "v"}
        assert question["hosts"][0]["instances"] == [
            {"id": "x", "vm_state": "active", "task_state": "migrating"},
            {"id": "w", "vm_state": "building"},
        ]

    def test_ended_placements_are_instances(self) -> None:
        trial = a_placement(a_demand("IoOps", nb=4), **self.OTHERS)
        *others, last = trial.steps
        late = last.but(start_ms=others[0].end_ms, end_ms=others[0].end_ms + 1)
        question = encode_questions(replace(trial, steps=(late, *others)))[-1].message
        assert question["vm"] == {"id": "v"}
        assert question["hosts"][0]["instances"] == [
            {"id": "y", "vm_state": "active"},
            {"id": "w", "vm_state": "active"},
        ]

    def test_where_only_the_end_counts_the_others_are_there(self) -> None:
        question = message(a_demand("NumInstances", nb=3), **self.OTHERS)
        assert question["hosts"][0]["instances"] == [
            {"id": "w", "vm_state": "active"},
            {"id": "y", "vm_state": "active"},
        ]

    def test_a_constraint_about_all_vms_is_judged_for_each_placement(self) -> None:
        trial = a_placement(a_demand("NumInstances", nb=3), **self.OTHERS)
        asked = [question.message for question in encode_questions(trial)]
        assert [request["vm"]["id"] for request in asked] == ["w", "x", "y", "z", "v"]
        assert [len(request["hosts"][0]["instances"]) for request in asked] == [1, 1, 1, 1, 2]

    def test_boots_are_judged_after_simultaneous_migrations(self) -> None:
        asked = [
            question.message
            for question in encode_questions(a_placement(a_demand("IoOps", nb=4), **self.OTHERS))
        ]
        assert [request["vm"]["id"] for request in asked] == ["w", "z", "v"]
        moving = {"vm_state": "active", "task_state": "migrating"}
        assert [request["hosts"][0]["instances"] for request in asked[:2]] == [
            [{"id": "x", **moving}],
            [{"id": "y", **moving}],
        ]

    def test_the_vm_of_the_constraint_is_placed_last(self) -> None:
        demand = a_demand("SameHost", v="w", others=["v"])
        assert len(encode_questions(a_placement(demand, **self.OTHERS))) == 1
        question = message(a_demand("SameHost", v="w", others=["v"]), **self.OTHERS)
        assert question["vm"] == {"id": "w", "vm_hints": {"same_host": ["v"]}}
        assert {"id": "v", "vm_state": "active"} in question["hosts"][0]["instances"]

    def test_the_last_placement_is_the_one_that_may_violate(self) -> None:
        labelled = {"host": a_host("h", labels={"os_distro": "d"})}
        for wrong, right in (("v", "w"), ("w", "v")):
            vms = {name: a_vm(name, labels={"os_distro": "d"}) for name in (right,)}
            vms[wrong] = a_vm(wrong, labels={"os_distro": "e"})
            question = message(
                DISTRO,
                vm=vms["v"],
                vms=[vms["w"]],
                others=[Boot(vm=W, target=HostId("h"))],
                **labelled,
            )
            assert question["vm"]["id"] == wrong

    def test_a_group_as_coded_is_where_it_was_before_the_plan(self) -> None:
        demand = a_demand("ServerGroupAffinityAsCoded", v="v", vs=["w", "y"])
        assert message(demand, **self.OTHERS)["group"] == {
            "policy": "affinity", "members": ["v", "w", "y"], "hosts": ["g"],
        }  # fmt: skip

    def test_a_vm_that_is_migrated_counts_where_it_comes_from(self) -> None:
        comes = Migrate(vm=W, source=HostId("g"), target=HostId("h"))
        snapshot = a_cluster(a_host("h"), a_host("g"), vms=[a_vm("w", "g")])
        demand = a_demand("ServerGroupAffinity", vs=["w"])
        question = encode_questions(Trial(demand, snapshot, (a_step("s", comes),)))[0].message
        assert question["group"]["hosts"] == ["g"]
        assert question["hosts"][0] == {"id": "h", "instances": []}


OWN = Specification.read("ComputeUp ::= !(n : hosts) running(n) = {}", "own.spec")
UNSUPPORTED: dict[str, tuple[Requirement, dict[str, Any], str, str]] = {
    "no filter": (a_demand("Lonely", vs=["v"]), {}, "unsupported-constraint", "Lonely"),
    "one's own": (Requirement(OWN, "ComputeUp", {}), {}, "unsupported-constraint", "ComputeUp"),
    "zones": (a_demand("AvailabilityZone", v="v", zone="z"), {}, "unsupported-constraint", "zones"),
    "broken": (
        a_demand("NumInstances", nb=1),
        {"vms": [a_vm("w", "g"), a_vm("x", "g")]},
        "already-violated",
        "",
    ),
    "discrete": (
        Requirement(library_file("nova"), "IoOps", {"nb": 1}),
        {},
        "unsupported-mode",
        "continuous",
    ),
    "all the time": (
        Requirement(library_file("nova"), "ComputeUp", {}, continuous=True),
        {},
        "unsupported-mode",
        "discrete",
    ),
    "suspending": (
        UP,
        {"vms": [a_vm("w", "h")], "others": [Suspend(vm=W, source=HostId("h"))]},
        "unsupported-plan",
        "boots and migrations",
    ),
    "another": (
        a_demand("SameHost", v="w", others=[]),
        {"vms": [a_vm("w")]},
        "unsupported-plan",
        "placement of w,",
    ),
    "wrong without it": (
        a_demand("IsolatedHosts", vs=[], ns=["h"]),
        {"vms": [a_vm("w")], "others": [Boot(vm=W, target=HostId("h"))]},
        "already-violated",
        "",
    ),
    "an old hint": (
        a_demand("SameSubnet", v="w", other="x"),
        {
            "vms": [a_vm("w", "h", labels={"cidr": "/8"}), a_vm("x", "h")],
            "others": [Migrate(vm=W, source=HostId("h"), target=HostId("g"))],
        },
        "unsupported-plan",
        "hint",
    ),
    "a stranger": (
        a_demand("ServerGroupAffinityAsCoded", v="w", vs=[]),
        {
            "vms": [a_vm("w", "h")],
            "others": [Migrate(vm=W, source=HostId("h"), target=HostId("g"))],
        },
        "unsupported-plan",
        "outside the group",
    ),
    "no instances": (a_demand("NumInstances", nb=0), {}, "unsupported-argument", "limit is 0"),
    "no members": (
        a_demand("ServerGroupAntiAffinity", vs=["v"], nb=0),
        {},
        "unsupported-argument",
        "limit is 0",
    ),
    "less than no action": (a_demand("IoOps", nb=-1), {}, "already-violated", ""),
    "no property": (a_demand("ImageIsolation", key="zone"), {}, "unsupported-argument", "'zone'"),
    "no key": (a_demand("ExtraSpecs", key="a/b"), {}, "unsupported-argument", "'a/b'"),
    "list": (
        DISTRO,
        {"host": a_host("h", labels={"os_distro": "a,b"})},
        "ambiguous-value",
        "os_distro=",
    ),
    "blanks": (
        DISTRO,
        {"host": a_host("h", labels={"os_distro": "a "})},
        "ambiguous-value",
        "os_distro=",
    ),
}


@pytest.mark.parametrize("which", UNSUPPORTED)
def test_a_trial_that_nova_cannot_express_is_rejected(which: str) -> None:
    demand, given, code, detail = UNSUPPORTED[which]
    with unsupported(code, detail):
        message(demand, **given)


def test_a_limit_of_0_is_valid_for_actions_in_flight() -> None:
    assert message(a_demand("IoOps", nb=0))["config"] == {"max_io_ops_per_host": 0}


def test_a_key_with_colons_is_no_capability_but_an_extra_spec() -> None:
    trial = a_placement(a_demand("ExtraSpecs", key="a:b"), vm=a_vm("v", labels={"a:b": "c"}))
    assert encode_questions(trial)[0].message["vm"]["extra_specs"] == {
        "aggregate_instance_extra_specs:a:b": "c"
    }
    with unsupported("unsupported-argument", "'a:b'"):
        encode_questions(trial, extra_specs=EXTRA_SPECS[1])


@pytest.mark.parametrize("extra_specs", EXTRA_SPECS)
def test_a_comparison_is_encoded_and_marked_as_misread(extra_specs: str) -> None:
    trial = a_placement(ZONE, vm=a_vm("v", labels={"zone": ">= 4"}))
    (question,) = encode_questions(trial, extra_specs=extra_specs)
    assert list(question.message["vm"]["extra_specs"].values()) == [">= 4"]
    assert question.misread == "Nova reads '>= 4' as a comparison"
    assert not encode_questions(a_placement(ZONE, vm=a_vm("v", labels={"zone": ">=4"})))[0].misread


def test_an_unusual_network_size_is_marked_as_misread() -> None:
    demand, near = a_demand("SameSubnet", v="v", other="w"), [a_vm("w", "g")]
    misread, usual = (
        encode_questions(a_placement(demand, vm=a_vm("v", labels={"cidr": size}), vms=near))[0]
        for size in ("/99", "/24")
    )
    assert misread.message["vm"]["hints"]["cidr"] == ["/99"]
    assert misread.misread == "Nova reads '/99' as the size of a network"
    assert not usual.misread
    alone = a_placement(demand, vm=a_vm("v", labels={"cidr": "/99"}), vms=[a_vm("w")])
    assert not encode_questions(alone)[0].misread


@pytest.mark.parametrize(
    ("actions", "code", "detail"),
    [
        ((), "unsupported-plan", "placement of a VM,"),
        ((Suspend(vm=W, source=HostId("h")),), "unsupported-plan", "boots and migrations"),
        ((Boot(vm=VmId("unknown"), target=HostId("h")),), "unsupported-plan", "does not exist"),
        ((Boot(vm=VmId("v"), target=HostId("unknown")),), "unsupported-plan", "does not exist"),
    ],
)
def test_only_boots_and_migrations_of_known_vms_are_judged(
    actions: tuple[Any, ...], code: str, detail: str
) -> None:
    steps = tuple(a_step(f"s{n}", action) for n, action in enumerate(actions))
    snapshot = a_cluster(a_host("h"), vms=[a_vm("v"), a_vm("w", "h")])
    with unsupported(code, detail):
        encode_questions(Trial(UP, snapshot, steps))


def test_the_last_step_must_be_a_boot_for_actions_in_flight() -> None:
    moving = a_step("s", Migrate(vm=W, source=HostId("h"), target=HostId("g")))
    snapshot = a_cluster(a_host("h"), a_host("g"), vms=[a_vm("v"), a_vm("w", "h")])
    with unsupported("unsupported-plan", "boot"):
        encode_questions(Trial(a_demand("IoOps", nb=1), snapshot, (moving,)))


def test_actions_in_flight_before_the_plan_are_unsupported() -> None:
    trial = a_placement(UP)
    running = RunningAction(a_step("u", BOOT_V_ON_H), 1, 0)
    busy = replace(trial.initial, in_flight=FrozenMap({running.step.id: running}))
    with unsupported("unsupported-cluster", "in flight"):
        encode_questions(replace(trial, initial=busy))
