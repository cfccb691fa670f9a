"""Requests: complementary changes, refusals, matching resources, dependencies."""

from __future__ import annotations

import pytest

from builders import figures
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.campaign import UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog, ComponentId, ComponentRequirement
from equipoise.model.upgrade.event import BatchDecided, SetEnded
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    Resource,
    ResourceKind,
)
from equipoise.model.upgrade.request import (
    ChangeKind,
    CommandKind,
    MaintenanceWindow,
    RequestedChange,
    SetId,
)
from equipoise.upgrade.graph.dependencies import presence
from upgrade_clusters import (
    CATALOG,
    UpgradeHarness,
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    binds,
    hypervisors,
    switches,
    upgrade_of,
)

COMMUNICATION = DependencyKind.COMMUNICATION
HOSTS = [a_host(n, 2) for n in range(1, 5)]


def needing(
    *needs: ComponentRequirement, component: str = "switch", version: str = "v2"
) -> Catalog:
    """Return the usual catalog, with needs for one version."""
    descriptions = tuple(
        described.but(needs=needs)
        if (described.component, described.version) == (component, version)
        else described
        for described in CATALOG.descriptions
    )
    return Catalog(descriptions=descriptions)


def need(
    component: str, *versions: str, along: DependencyKind | None, install: bool = False
) -> ComponentRequirement:
    return ComponentRequirement(
        component=ComponentId(component), versions=versions, along=along, install=install
    )


def network(catalog: Catalog, *sets: object, **more: object) -> UpgradeHarness:
    links = [binds(f"k{n}", f"s{s}", COMMUNICATION) for n in range(1, 5) for s in (1, 2)]
    return UpgradeHarness(
        a_campaign(
            a_request(*sets),  # type: ignore[arg-type]
            hosts=HOSTS,
            resources=hypervisors(4) + switches(2),
            dependencies=[*links, binds("s1", "s2", DependencyKind.PEER_STATELESS)],
            catalog=catalog,
            **more,  # type: ignore[arg-type]
        )
    )


def test_a_resource_that_no_longer_fits_changes_as_well() -> None:
    catalog = needing(need("hypervisor", "v2", "v3", along=COMMUNICATION).but(tolerant=True))
    harness = network(
        catalog, a_set("net", upgrade_of(["s1", "s2"], undo_threshold=1), attempts_max=3)
    )
    harness.run()
    (complement,) = [
        change
        for change in harness.coordinator.state.requests.set_status[SetId("net")].set.changes
        if change.complements
    ]
    assert complement.resources == ("k1", "k2", "k3", "k4")
    assert complement.version == "v3", "the last suitable version"
    assert complement.undo_threshold == 3, "as many may be lost as of the switches"
    assert harness.outcomes() == {"net": "applied"}
    assert [harness.version(f"k{n}") for n in range(1, 5)] == ["v3"] * 4


def test_a_component_needed_on_the_same_resource_is_installed() -> None:
    catalog = needing(need("agent", along=None), component="hypervisor")
    harness = network(catalog, a_set("hosts", upgrade_of(["k1"])))
    harness.run()
    installed = harness.coordinator.state.resources.states[ResourceId("k1")].components
    assert installed == {"hypervisor": "v2", "agent": "v3"}


def test_a_set_with_unmet_needs_is_refused_before_any_change() -> None:
    catalog = needing(need("hypervisor", "v9", along=COMMUNICATION))
    harness = network(catalog, a_set("net", upgrade_of(["s1"])), a_set("k", upgrade_of(["k1"])))
    harness.run()
    assert harness.outcomes() == {"net": "refused", "k": "applied"}
    assert harness.version("s1") == "v1"
    (end,) = [event for event in harness.events(SetEnded) if event.set == "net"]
    assert end.code == "requirement-conflict"
    assert "hypervisor v9" in end.reason


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upgrade_of(["missing"]), "unknown-resource"),
        (upgrade_of(["s1"], "v7"), "no-description"),
        (upgrade_of(["s1"], undo_threshold=2), "threshold-too-high"),
    ],
)
def test_a_set_that_can_never_succeed_is_refused_with_a_code(
    change: RequestedChange, code: str
) -> None:
    harness = network(CATALOG, a_set("bad", change))
    harness.run()
    status = harness.coordinator.state.requests.set_status[SetId("bad")]
    assert harness.outcomes() == {"bad": "refused"}
    assert status.reason.code == code


def test_a_set_with_too_short_a_window_is_refused() -> None:
    window = MaintenanceWindow(opens_s=0, closes_s=15)
    harness = network(CATALOG, a_set("net", upgrade_of(["s1"]), windows=(window,)))
    harness.run()
    status = harness.coordinator.state.requests.set_status[SetId("net")]
    assert status.reason.code == "window-too-short"
    assert "15 s" in status.reason.text


def test_a_set_is_refused_if_capacity_can_never_suffice() -> None:
    vms = [f"t-{n}" for n in range(1, 4)]
    harness = network(
        CATALOG,
        a_set("hosts", upgrade_of(["k1"])),
        vms=[a_vm(vm, n, "t") for n, vm in enumerate(vms, 1)],
        tenants=[a_tenant("t", vms, most=4, least=3)],
        settings=UpgradeSettings(failover_hosts=1),
    )
    harness.run()
    assert harness.outcomes() == {"hosts": "refused"}
    status = harness.coordinator.state.requests.set_status[SetId("hosts")]
    assert status.reason.code == "capacity-too-small"
    assert 3 in figures(status.reason.text)


def test_a_set_is_refused_if_its_aggregate_needs_all_constituents() -> None:
    store = Resource(id=ResourceId("v"), kind=ResourceKind.VIRTUAL_SHARED_STORAGE, version="v1")
    constituents = [
        binds("v", f"k{n}", DependencyKind.AGGREGATION, constituents_min=4) for n in range(1, 5)
    ]
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k2"]))),
            hosts=HOSTS,
            resources=[*hypervisors(4), store],
            dependencies=constituents,
        )
    )
    harness.run()
    status = harness.coordinator.state.requests.set_status[SetId("hosts")]
    assert status.reason.code == "constituents-short"
    assert "4 of its 4" in status.reason.text


def test_a_matching_resource_is_not_changed() -> None:
    harness = network(CATALOG, a_set("none", upgrade_of(["s1", "s2"], "v1")))
    harness.run()
    assert harness.outcomes() == {"none": "applied"}
    assert harness.journal.lines() is not None
    assert not harness.coordinator.state.resources.states[ResourceId("s1")].applied


def test_resources_are_added_and_removed() -> None:
    new = Resource(id=ResourceId("s3"), kind=ResourceKind.SWITCH, version="v2")
    link = binds("k1", "s3", COMMUNICATION)
    harness = network(
        CATALOG,
        a_set(
            "more",
            RequestedChange(does=ChangeKind.ADD, new=(new,), dependencies=(link,)),
            RequestedChange(does=ChangeKind.REMOVE, resources=(ResourceId("k4"),)),
        ),
    )
    harness.run()
    assert harness.outcomes() == {"more": "applied"}
    assert harness.version("s3") == "v2"
    assert not harness.coordinator.state.resources.states[ResourceId("k4")].present


def test_incompatible_mixed_versions_need_a_method() -> None:
    """The resources form a unit with a method, or their set is refused."""
    peers = need("switch", "v2", along=DependencyKind.PEER_STATELESS)
    harness = network(needing(peers), a_set("net", upgrade_of(["s1", "s2"])))
    harness.run()
    status = harness.coordinator.state.requests.set_status[SetId("net")]
    units = harness.coordinator.state.resources.units.values()
    assert any(set(unit.resources) == {"s1", "s2"} for unit in units) or (
        status.reason.code == "no-method"
    )


def test_a_description_has_an_upgrade_recipe() -> None:
    assert a_description("switch", "v2").upgrade is not None


STORAGE = DependencyKind.STORAGE


def change_of(does: ChangeKind, *dependencies: Dependency) -> RequestedChange:
    return RequestedChange(does=does, dependencies=dependencies)


def harness_of(
    *changes: RequestedChange, dependencies: tuple[Dependency, ...] = ()
) -> UpgradeHarness:
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("wires", *changes)),
            hosts=[a_host(1, 0)],
            resources=switches(3),
            dependencies=dependencies,
        )
    )


def lasting(harness: UpgradeHarness) -> list[tuple[str, str, str]]:
    """Return the dependencies that hold at the end."""
    state = harness.coordinator.state
    presences = [
        (presence(state, tracked), tracked.dependency) for tracked in state.resources.dependencies
    ]
    assert all(holds in (None, DependencyPresence.CURRENT_FUTURE) for holds, _ in presences)
    return [
        (dependency.dependent, dependency.sponsor, dependency.kind.value)
        for holds, dependency in presences
        if holds
    ]


def test_an_added_dependency_holds_at_the_end() -> None:
    harness = harness_of(change_of(ChangeKind.ADD, binds("s1", "s2", STORAGE)))
    harness.run()
    assert harness.outcomes() == {"wires": "applied"}
    assert lasting(harness) == [("s1", "s2", "storage")]


def test_a_removed_dependency_does_not_hold_at_the_end() -> None:
    dependency = binds("s1", "s2", STORAGE)
    harness = harness_of(change_of(ChangeKind.REMOVE, dependency), dependencies=(dependency,))
    harness.run()
    assert lasting(harness) == []


def test_a_changed_dependency_holds_once_with_its_new_values() -> None:
    old = binds("s1", "s2", DependencyKind.AGGREGATION, constituents_min=1)
    new = binds("s1", "s2", DependencyKind.AGGREGATION, constituents_min=2)
    harness = harness_of(change_of(ChangeKind.UPGRADE, new), dependencies=(old,))
    harness.run()
    assert lasting(harness) == [("s1", "s2", "aggregation")]
    tracked = harness.coordinator.state.resources.dependencies
    (kept,) = [item.dependency for item in tracked if presence(harness.coordinator.state, item)]
    assert kept.constituents_min == 2


def test_a_dependency_of_a_set_orders_its_changes_and_ends_with_its_undo() -> None:
    change = upgrade_of(["s1", "s2"]).but(dependencies=(binds("s1", "s2", STORAGE),))
    harness = harness_of(change)
    harness.run()
    batches = [event.batch for event in harness.events(BatchDecided) if event.batch]
    assert batches == [("s2",), ("s1",)], "the sponsor changes first (case 3a)"
    assert lasting(harness) == [("s1", "s2", "storage")]
    again = harness_of(change)
    again.step()
    again.command(CommandKind.UNDO, "wires")
    again.run()
    assert again.outcomes() == {"wires": "undone"}
    assert lasting(again) == []


def test_a_dependency_on_an_unknown_resource_is_refused() -> None:
    harness = harness_of(change_of(ChangeKind.ADD, binds("s1", "s9", STORAGE)))
    harness.run()
    assert harness.outcomes() == {"wires": "refused"}


def test_the_removal_of_an_unknown_dependency_is_refused() -> None:
    harness = harness_of(change_of(ChangeKind.REMOVE, binds("s1", "s2", STORAGE)))
    harness.run()
    assert harness.outcomes() == {"wires": "refused"}
    assert ResourceId("s1") in harness.coordinator.state.resources.states
