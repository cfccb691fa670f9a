"""Links, and groups of VMs that are listed as resources."""

from __future__ import annotations

from equipoise.model.quantity import GroupId, ResourceId, VmId
from equipoise.model.resource import (
    DependencyKind,
    Resource,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
    ResourceSide,
)
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.event import BatchDecided, VmBatchStarted
from upgrade_worlds import (
    CATALOG,
    Stage,
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    a_vm,
    binds,
    hypervisors,
    switches,
    upgrade_of,
)

LINKED = Catalog(
    descriptions=(*CATALOG.descriptions, a_description("link", "v1"), a_description("link", "v2"))
)


def link(name: str) -> Resource:
    return Resource(id=ResourceId(name), kind=ResourceKind.LINK, version="v1")


def linked(links: int, *, busy: bool) -> Stage:
    """A host on switches, by a link of its own to each; its links are to be changed."""
    cables = [
        binds("k1", f"s{n}", DependencyKind.COMMUNICATION, link=ResourceId(f"l{n}"))
        for n in range(1, links + 1)
    ]
    return Stage(
        a_campaign(
            a_request(a_set("cables", upgrade_of([f"l{n}" for n in range(1, links + 1)]))),
            hosts=[a_host(n, 2) for n in range(1, 4)],
            vms=[a_vm("vm", 1, "t").but(tenant=None)] if busy else [],
            resources=[
                *hypervisors(3),
                *switches(links),
                *(link(f"l{n}") for n in range(1, links + 1)),
            ],
            dependencies=cables,
            catalog=LINKED,
        )
    )


def test_links_of_one_host_are_changed_one_after_the_other() -> None:
    stage = linked(2, busy=True)
    stage.run()
    assert [one.batch for one in stage.events(BatchDecided)] == [("l1",), ("l2",)]
    assert stage.outcomes() == {"cables": "applied"}


def test_the_only_link_of_a_host_waits_for_its_vms_to_leave() -> None:
    stage = linked(1, busy=True)
    stage.run()
    (first, *_) = stage.events(BatchDecided)
    assert not first.batch
    assert "VMs run on h1" in first.eliminated[0].reason
    idle = linked(1, busy=False)
    idle.run()
    assert idle.outcomes() == {"cables": "applied"}


def test_vms_that_the_layer_above_wants_apart_are_disturbed_one_at_a_time() -> None:
    vms = [a_vm(f"vm{n}", n, "t").but(tenant=None) for n in (1, 2)]
    listed = [
        Resource(
            id=ResourceId(f"r{n}"),
            kind=ResourceKind.VIRTUAL_SERVER,
            side=ResourceSide.SERVICE,
            vm=VmId(f"vm{n}"),
        )
        for n in (1, 2)
    ]
    apart = ResourceGroup(
        id=GroupId("apart"),
        kind=ResourceGroupKind.ANTI_AFFINITY,
        resources=(ResourceId("r1"), ResourceId("r2")),
    )
    campaign = a_campaign(
        a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, 6)]))),
        hosts=[a_host(n, 2) for n in range(1, 6)],
        vms=vms,
        resources=[*hypervisors(5), *listed],
    )
    stage = Stage(campaign.but(cluster=campaign.cluster.but(groups=(apart,))))
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}
    assert [len(one.batch.moves) for one in stage.events(VmBatchStarted)] == [1, 1]
