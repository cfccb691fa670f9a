"""In service means: it works, and so does what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from campaign_auditor import audit
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog, ComponentId, ComponentRequirement
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    Resource,
    ResourceKind,
)
from equipoise.model.upgrade.request import CommandKind, UpgradeCommand
from equipoise.upgrade.graph.in_service import is_in_service, outages_with
from equipoise.upgrade.graph.iteration_view import partition_hosts
from upgrade_clusters import (
    CATALOG,
    STRICT,
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

PEERS = DependencyKind.PEER_STATELESS
LINKED = DependencyKind.COMMUNICATION


def controllers(count: int, least: int) -> tuple[list[Resource], list[Dependency]]:
    """Return peers of versions that do not work together, and the service that needs some."""
    names = [f"c{n}" for n in range(1, count + 1)]
    plane = Resource(id=ResourceId("plane"), kind=ResourceKind.VIRTUAL_CLUSTER, version="v1")
    members = [
        Resource(id=ResourceId(name), kind=ResourceKind.STORAGE_CONTROLLER, version="v1")
        for name in names
    ]
    needs = [
        binds("plane", name, DependencyKind.AGGREGATION, constituents_min=least) for name in names
    ]
    needs += [binds(a, b, PEERS) for a, b in pairwise(names)]
    return [plane, *members], needs


def clashing_catalog() -> Catalog:
    name = "storage_controller"
    own = [
        a_description(
            name,
            version,
            needs=(
                ComponentRequirement(component=ComponentId(name), versions=(version,), along=PEERS),
            ),
        )
        for version in ("v1", "v2")
    ]
    return CATALOG.but(descriptions=(*CATALOG.descriptions, *own))


def controlled(count: int, least: int) -> UpgradeHarness:
    resources, needs = controllers(count, least)
    names = [f"c{n}" for n in range(1, count + 1)]
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("s", upgrade_of(names))),
            hosts=[a_host(1, 1)],
            resources=resources,
            dependencies=needs,
            catalog=clashing_catalog(),
        )
    )


def audited(harness: UpgradeHarness) -> list[str]:
    findings, _ = audit(harness.journal.events())
    return findings


@pytest.mark.parametrize(("count", "least"), [(3, 2), (5, 3), (4, 3)])
def test_clashing_constituents_without_enough_of_one_version_are_refused(
    count: int, least: int
) -> None:
    """Either version must serve alone once: that takes twice the minimum."""
    harness = controlled(count, least)
    harness.run()
    (end,) = harness.events(past.SetEnded)
    assert (end.outcome, end.code) == (past.SetOutcome.REFUSED, "constituents-short")
    assert not harness.events(past.BatchStarted)


@pytest.mark.parametrize(("count", "least"), [(3, 1), (4, 2), (5, 2), (6, 3)])
def test_clashing_constituents_never_fall_below_the_minimum(count: int, least: int) -> None:
    harness = controlled(count, least)
    harness.run()
    assert harness.outcomes() == {"s": "applied"}
    assert audited(harness) == []


def racks(
    vms: Sequence[tuple[str, int]], hosts: int = 6, per_rack: int = 2, most: int | None = None
) -> UpgradeHarness:
    """One switch for each rack of hosts; only the switches are upgraded."""
    count = hosts // per_rack
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("s", upgrade_of([f"s{n}" for n in range(1, count + 1)]))),
            hosts=[a_host(n, 3) for n in range(1, hosts + 1)],
            vms=[a_vm(name, host, "t") for name, host in vms],
            tenants=[a_tenant("t", [name for name, _ in vms], most=most or len(vms))],
            resources=hypervisors(hosts) + switches(count),
            dependencies=[
                binds(f"k{n}", f"s{(n - 1) // per_rack + 1}", LINKED) for n in range(1, hosts + 1)
            ],
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=0),
        )
    )


def test_hosts_of_a_rack_are_evacuated_before_its_only_switch_changes() -> None:
    harness = racks([("a", 1), ("b", 2), ("c", 4)])
    harness.run()
    assert harness.outcomes() == {"s": "applied"}
    assert audited(harness) == []
    moved = [move for event in harness.events(past.VmBatchStarted) for move in event.batch.moves]
    assert {move.source for move in moved} >= {"h4"}


def test_an_evacuation_that_is_impossible_names_the_host_and_the_vm() -> None:
    """Four VMs of one group fit on four hosts only: two of six hosts may go, three may not."""
    harness = racks([("a", 1), ("b", 2), ("c", 3), ("d", 4)], per_rack=3)
    harness.run()
    paused = [event for event in harness.events(past.IterationEnded) if event.paused][-1]
    assert "not-evacuable" in paused.codes
    for named in ("h1", "s1"):
        assert named in paused.paused


def test_a_switch_on_which_all_hosts_depend_is_refused() -> None:
    harness = racks([("a", 1)], hosts=2, per_rack=2)
    harness.run()
    (end,) = harness.events(past.SetEnded)
    assert (end.outcome, end.code) == (past.SetOutcome.REFUSED, "not-evacuable")


def test_hosts_behind_a_switch_that_is_off_are_no_capacity() -> None:
    harness = racks([("a", 1)])
    state = harness.coordinator.state
    state.resources.put(state.resources.states[ResourceId("s2")].but(active=False))
    found = partition_hosts(state)
    assert [*found.old, *found.new] == ["h1", "h2", "h5", "h6"]
    assert not is_in_service(state, ResourceId("k3"))
    harness.scale("t", 0)
    state.resources.put(state.resources.states[ResourceId("s2")].but(active=True))
    assert is_in_service(state, ResourceId("k3"))


def test_what_a_resource_takes_out_follows_dependencies_upward() -> None:
    """A sponsor with an alternative takes nothing out; two together do."""
    resources = hypervisors(1) + switches(2)
    needs = [binds("k1", name, LINKED) for name in ("s1", "s2")]
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("s", upgrade_of(["s1"]))),
            hosts=[a_host(1, 1)],
            resources=resources,
            dependencies=needs,
            catalog=STRICT,
        )
    )
    state = harness.coordinator.state
    first, second = ResourceId("s1"), ResourceId("s2")
    assert set(outages_with(state, [first])) == {first}
    assert set(outages_with(state, [first, second])) == {first, second, "k1"}
    assert set(outages_with(state, [second], already={first: first})) == {second, "k1"}


def test_two_switches_of_one_host_do_not_change_together() -> None:
    """They are no declared peers; together they would cut off the VM of the host."""
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("s", upgrade_of(["s1", "s2"]))),
            hosts=[a_host(1, 1)],
            vms=[a_vm("a", 1, "t").but(tenant=None)],
            resources=hypervisors(1) + switches(2),
            dependencies=[binds("k1", name, LINKED) for name in ("s1", "s2")],
        )
    )
    harness.run()
    assert harness.outcomes() == {"s": "applied"}
    assert [event.batch for event in harness.events(past.BatchDecided)] == [("s1",), ("s2",)]
    assert audited(harness) == []


def test_a_wait_after_a_loss_names_the_repair() -> None:
    """The undo of one controller waits for the repair of the other, and then ends."""
    lost = [True]

    def fails(task: object) -> str:
        if getattr(task, "resource", "") == "c2" and lost[0]:
            lost[0] = False
            return "lost"
        return ""

    resources, needs = controllers(3, 2)
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("s", upgrade_of(["c1", "c2", "c3"]))),
            hosts=[a_host(1, 1)],
            resources=resources,
            dependencies=[need for need in needs if not need.kind.is_symmetrical],
            catalog=CATALOG.but(
                descriptions=(
                    *CATALOG.descriptions,
                    *(a_description("storage_controller", version) for version in ("v1", "v2")),
                )
            ),
        ),
        fails=fails,
    )
    harness.run()
    paused = [event for event in harness.events(past.IterationEnded) if event.paused][-1]
    assert "resource-lost" in paused.codes
    assert "repaired:c2" in paused.paused
    assert harness.outcomes() == {"s": "undoing"}
    harness.record(
        past.UpgradeCommanded(
            at_ms=harness.now_ms,
            command=UpgradeCommand(order=CommandKind.REPAIRED, resource=ResourceId("c2")),
        )
    )
    harness.run()
    assert harness.outcomes() == {"s": "undone"}
    assert audited(harness) == []
