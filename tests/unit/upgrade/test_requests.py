"""From what is asked for to what is done: complementary changes, refusals, what matches already."""

from __future__ import annotations

import pytest

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind, Resource, ResourceKind
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Need
from equipoise.model.upgrade.event import SetEnded
from equipoise.model.upgrade.request import Change, ChangeKind, SetId, Window
from equipoise.model.upgrade.settings import UpgradeSettings
from upgrade_worlds import (
    CATALOG,
    Stage,
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


def needing(*needs: Need, component: str = "switch", version: str = "v2") -> Catalog:
    """The usual catalog, with needs for one of its versions."""
    told = tuple(
        one.but(needs=needs) if (one.component, one.version) == (component, version) else one
        for one in CATALOG.descriptions
    )
    return Catalog(descriptions=told)


def need(
    component: str, *versions: str, along: DependencyKind | None, install: bool = False
) -> Need:
    return Need(component=ComponentId(component), versions=versions, along=along, install=install)


def network(catalog: Catalog, *sets: object, **more: object) -> Stage:
    links = [binds(f"k{n}", f"s{s}", COMMUNICATION) for n in range(1, 5) for s in (1, 2)]
    return Stage(
        a_campaign(
            a_request(*sets),  # type: ignore[arg-type]
            hosts=HOSTS,
            resources=hypervisors(4) + switches(2),
            dependencies=[*links, binds("s1", "s2", DependencyKind.PEER_STATELESS)],
            catalog=catalog,
            **more,  # type: ignore[arg-type]
        )
    )


def test_whoever_does_not_fit_any_more_is_changed_as_well() -> None:
    catalog = needing(need("hypervisor", "v2", "v3", along=COMMUNICATION).but(tolerant=True))
    stage = network(
        catalog, a_set("net", upgrade_of(["s1", "s2"], undo_threshold=1), attempts_max=3)
    )
    stage.run()
    (complement,) = [
        one
        for one in stage.coordinator.state.standings[SetId("net")].set.changes
        if one.complements
    ]
    assert complement.resources == ("k1", "k2", "k3", "k4")
    assert complement.version == "v3", "the last version that will do"
    assert complement.undo_threshold == 3, "as many may be missing as of the switches"
    assert stage.outcomes() == {"net": "applied"}
    assert [stage.version(f"k{n}") for n in range(1, 5)] == ["v3"] * 4


def test_a_component_that_another_needs_on_the_same_resource_is_installed() -> None:
    catalog = needing(need("agent", along=None), component="hypervisor")
    stage = network(catalog, a_set("hosts", upgrade_of(["k1"])))
    stage.run()
    installed = stage.coordinator.state.parts[ResourceId("k1")].components
    assert installed == {"hypervisor": "v2", "agent": "v3"}


def test_needs_that_nothing_can_meet_refuse_the_set_before_anything_is_touched() -> None:
    catalog = needing(need("hypervisor", "v9", along=COMMUNICATION))
    stage = network(catalog, a_set("net", upgrade_of(["s1"])), a_set("k", upgrade_of(["k1"])))
    stage.run()
    assert stage.outcomes() == {"net": "refused", "k": "applied"}
    assert stage.version("s1") == "v1"
    (end,) = [one for one in stage.events(SetEnded) if one.set == "net"]
    assert "needs hypervisor v9 on k1" in end.reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (upgrade_of(["nobody"]), "there is no resource nobody"),
        (upgrade_of(["s1"], "v7"), "does not describe switch v7"),
        (upgrade_of(["s1"], undo_threshold=2), "2 resources are to be operational"),
    ],
)
def test_what_can_never_succeed_is_refused_with_the_reason(change: Change, why: str) -> None:
    stage = network(CATALOG, a_set("bad", change))
    stage.run()
    standing = stage.coordinator.state.standings[SetId("bad")]
    assert stage.outcomes() == {"bad": "refused"}
    assert why in standing.reason


def test_a_window_that_is_too_short_is_found_before_the_start() -> None:
    window = Window(opens_s=0, closes_s=15)
    stage = network(CATALOG, a_set("net", upgrade_of(["s1"]), windows=(window,)))
    stage.run()
    assert "no window is longer than 15 s" in stage.coordinator.state.standings[SetId("net")].reason


def test_a_budget_that_no_load_can_satisfy_is_found_before_the_start() -> None:
    vms = [f"t-{n}" for n in range(1, 4)]
    stage = network(
        CATALOG,
        a_set("hosts", upgrade_of(["k1"])),
        vms=[a_vm(vm, n, "t") for n, vm in enumerate(vms, 1)],
        tenants=[a_tenant("t", vms, most=4, least=3)],
        settings=UpgradeSettings(failover_hosts=1),
    )
    stage.run()
    assert stage.outcomes() == {"hosts": "refused"}
    assert "tenants have 3 VMs or more" in stage.coordinator.state.standings[SetId("hosts")].reason


def test_an_aggregate_that_can_spare_nobody_is_found_before_the_start() -> None:
    store = Resource(id=ResourceId("v"), kind=ResourceKind.VIRTUAL_SHARED_STORAGE, version="v1")
    parts = [
        binds("v", f"k{n}", DependencyKind.AGGREGATION, constituents_min=4) for n in range(1, 5)
    ]
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k2"]))),
            hosts=HOSTS,
            resources=[*hypervisors(4), store],
            dependencies=parts,
        )
    )
    stage.run()
    why = stage.coordinator.state.standings[SetId("hosts")].reason
    assert why == "v needs 4 of its 4 constituents at any time, so that k2 can never be taken out"


def test_what_matches_already_is_left_alone() -> None:
    stage = network(CATALOG, a_set("none", upgrade_of(["s1", "s2"], "v1")))
    stage.run()
    assert stage.outcomes() == {"none": "applied"}
    assert stage.journal.lines() is not None
    assert not stage.coordinator.state.parts[ResourceId("s1")].applied


def test_resources_come_and_go() -> None:
    new = Resource(id=ResourceId("s3"), kind=ResourceKind.SWITCH, version="v2")
    link = binds("k1", "s3", COMMUNICATION)
    stage = network(
        CATALOG,
        a_set(
            "more",
            Change(does=ChangeKind.ADD, new=(new,), dependencies=(link,)),
            Change(does=ChangeKind.REMOVE, resources=(ResourceId("k4"),)),
        ),
    )
    stage.run()
    assert stage.outcomes() == {"more": "applied"}
    assert stage.version("s3") == "v2"
    assert not stage.coordinator.state.parts[ResourceId("k4")].present


def test_mixed_versions_that_do_not_understand_need_a_method() -> None:
    """Until a method is known for a unit, its set is refused rather than done in a wrong order."""
    peers = need("switch", "v2", along=DependencyKind.PEER_STATELESS)
    stage = network(needing(peers), a_set("net", upgrade_of(["s1", "s2"])))
    stage.run()
    standing = stage.coordinator.state.standings[SetId("net")]
    units = stage.coordinator.state.units.values()
    assert any(set(unit.resources) == {"s1", "s2"} for unit in units) or (
        "no method is known" in standing.reason
    )


def test_descriptions_are_found_by_component_and_version() -> None:
    assert a_description("switch", "v2").upgrade is not None
