"""Protection groups and redundant links: as many members stay in service as needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from equipoise.model.quantity import GroupId, ResourceId, VmId
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.event import (
    BatchDecided,
    SetEnded,
    SetUndoStarted,
    TaskFinished,
    VmBatchStarted,
)
from equipoise.model.upgrade.infrastructure import (
    DependencyKind,
    Resource,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
    ResourceSide,
)
from equipoise.model.upgrade.request import ChangeKind, RequestedChange
from equipoise.model.upgrade.work import TaskKind, UpgradeTask
from upgrade_clusters import (
    CATALOG,
    STRICT,
    UpgradeHarness,
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    a_vm,
    binds,
    hypervisors,
    never,
    protects,
    switches,
    upgrade_of,
)

NAMES = ["s1", "s2", "s3", "s4"]
POTENTIAL = ResourceGroupKind.POTENTIAL_PROTECTION


def harness_of(
    *groups: ResourceGroup,
    changed: Sequence[str] = NAMES,
    fails: Callable[[UpgradeTask], str] = never,
    attempts: int = 1,
) -> UpgradeHarness:
    change = upgrade_of(changed, undo_threshold=0)
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("net", change, attempts_max=attempts)),
            hosts=[a_host(1, 1)],
            resources=switches(4),
            groups=groups,
        ),
        fails=fails,
    )


def batches(harness: UpgradeHarness) -> list[list[str]]:
    return [sorted(event.batch) for event in harness.events(BatchDecided) if event.batch]


def waiting(harness: UpgradeHarness, iteration: int = 0) -> dict[str, tuple[int, str]]:
    return {
        vertex: (elimination.rule, elimination.code)
        for elimination in harness.events(BatchDecided)[iteration].eliminated
        for vertex in elimination.vertices
    }


def test_members_of_a_protection_group_change_one_at_a_time() -> None:
    harness = harness_of(protects("routers", ["s1", "s2"]))
    harness.run()
    assert batches(harness) == [["s1", "s3", "s4"], ["s2"]]
    assert waiting(harness) == {"s2": (6, "peer-in-batch")}
    assert harness.outcomes() == {"net": "applied"}


@pytest.mark.parametrize(
    ("numbers", "sizes"),
    [
        ({"in_service_min": 2}, [2, 2]),
        ({"out_max": 3}, [3, 1]),
        ({"in_service_min": 1, "out_max": 2}, [2, 2]),
        ({"in_service_min": 3, "out_max": 2}, [1, 1, 1, 1]),
    ],
)
def test_a_batch_takes_as_many_members_as_the_group_can_spare(
    numbers: dict[str, object], sizes: list[int]
) -> None:
    harness = harness_of(protects("g", NAMES, **numbers))
    harness.run()
    assert [len(batch) for batch in batches(harness)] == sizes


def test_potential_members_allow_one_more_and_change_first() -> None:
    harness = harness_of(
        protects("able", NAMES, kind=POTENTIAL), protects("now", ["s1", "s2"], within="able")
    )
    harness.run()
    assert batches(harness) == [["s1", "s3", "s4"], ["s2"]]


def test_a_potential_group_without_holders_protects_nothing() -> None:
    harness = harness_of(protects("able", NAMES, kind=POTENTIAL))
    harness.run()
    assert batches(harness) == [NAMES]


def test_a_set_is_undone_if_a_lost_member_leaves_no_spare() -> None:
    def fails(task: UpgradeTask) -> str:
        return "lost" if task.resource == "s1" else ""

    harness = harness_of(protects("g", ["s1", "s2"], in_service_min=1), fails=fails)
    harness.run()
    assert harness.version("s2") == "v1", "otherwise no member would be in service"
    assert harness.outcomes() == {"net": "undone"}
    assert harness.events(SetUndoStarted)[0].code == "protection-group-short"


def test_a_member_waits_while_the_host_of_another_member_is_down() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1"]))),
            hosts=[a_host(n, 1) for n in range(1, 4)],
            resources=hypervisors(3),
            groups=[protects("g", ["k1", "k2"])],
        )
    )
    harness.fail_host("h2")
    harness.run()
    assert waiting(harness)["k1"] == (0, "protection-group-short")
    harness.recover_host("h2")
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}


def test_a_member_that_a_change_cuts_off_counts_as_out_of_service() -> None:
    """Two switches, each the only one of a member: both at once would leave none in service."""
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1", "s2"]))),
            hosts=[a_host(1, 0), a_host(2, 0)],
            resources=[*hypervisors(2), *switches(2)],
            dependencies=[binds(f"k{n}", f"s{n}", DependencyKind.COMMUNICATION) for n in (1, 2)],
            groups=[protects("g", ["k1", "k2"])],
        )
    )
    harness.run()
    assert batches(harness) == [["s1"], ["s2"]]


@pytest.mark.parametrize(
    ("group", "change", "figures"),
    [
        (
            protects("g", ["s1", "s2"], in_service_min=2),
            upgrade_of(["s1"]),
            "needs 2 of 2 members",
        ),
        (
            protects("g", ["s1", "s2", "s3"], in_service_min=2),
            RequestedChange(does=ChangeKind.REMOVE, resources=(ResourceId("s1"), ResourceId("s2"))),
            "needs 2 members; 1 remain",
        ),
    ],
)
def test_a_set_is_refused_if_its_group_can_never_spare_the_members(
    group: ResourceGroup, change: RequestedChange, figures: str
) -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("net", change)), hosts=[a_host(1, 1)], resources=switches(4),
            groups=[group],
        )
    )  # fmt: skip
    harness.run()
    assert harness.outcomes() == {"net": "refused"}
    end = harness.events(SetEnded)[0]
    assert end.code == "protection-group-short"
    assert figures in end.reason


def test_a_set_that_cuts_off_all_members_of_a_group_is_refused() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1"]))),
            hosts=[a_host(1, 0), a_host(2, 0)],
            resources=[*hypervisors(2), *switches(1)],
            dependencies=[binds(f"k{n}", "s1", DependencyKind.COMMUNICATION) for n in (1, 2)],
            groups=[protects("g", ["k1", "k2"])],
        )
    )
    harness.run()
    assert harness.outcomes() == {"net": "refused"}
    end = harness.events(SetEnded)[0]
    assert end.code == "protection-group-short"
    assert "k1, k2" in end.reason


def incompatible_peers(group: ResourceGroup) -> UpgradeHarness:
    """Return two peers with strict versions, and two more switches of one group."""
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("net", upgrade_of(NAMES))),
            hosts=[a_host(1, 1)],
            resources=switches(4),
            dependencies=[binds("s1", "s2", DependencyKind.PEER_STATELESS)],
            groups=[group],
            catalog=STRICT,
        )
    )


def test_a_unit_keeps_the_required_members_in_service() -> None:
    harness = incompatible_peers(protects("g", ["s1", "s3"], in_service_min=1))
    in_service: list[int] = []

    def watch(event: object) -> None:
        """Count at the end of each work: between works the halves are switched."""
        resource_states = harness.coordinator.state.resources.states
        if isinstance(event, TaskFinished) and event.kind is TaskKind.APPLY:
            in_service.append(sum(resource_states[ResourceId(id_)].active for id_ in ("s1", "s3")))

    harness.watch.append(watch)
    harness.run()
    assert harness.outcomes() == {"net": "applied"}
    assert min(in_service) == 1


def test_a_unit_that_takes_too_many_members_out_is_refused() -> None:
    harness = incompatible_peers(protects("g", NAMES, in_service_min=3))
    harness.run()
    assert harness.outcomes() == {"net": "refused"}
    end = harness.events(SetEnded)[0]
    assert end.code == "protection-group-short"
    assert "3 of 4" in end.reason


def test_an_undo_does_not_wait_for_a_lost_member() -> None:
    def fails(task: UpgradeTask) -> str:
        if task.resource == "s2" and task.kind is TaskKind.APPLY:
            return "lost"
        return ""

    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1", "s2"]))),
            hosts=[a_host(1, 1)],
            resources=switches(2),
            groups=[protects("g", ["s1", "s2"])],
            catalog=CATALOG,
        ),
        fails=fails,
    )
    harness.run()
    assert harness.outcomes() == {"net": "undone"}
    assert harness.version("s1") == "v1"


def test_the_replacement_of_a_member_counts_as_a_member() -> None:
    new = switches(5)[4]
    swap = RequestedChange(
        does=ChangeKind.ADD, new=(new.but(version="v2"),), replaces=ResourceId("s1")
    )
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("swap", swap), a_set("other", upgrade_of(["s2"]))),
            hosts=[a_host(1, 1)],
            resources=switches(2),
            groups=[protects("g", ["s1", "s2"], in_service_min=1)],
        )
    )
    harness.run()
    assert harness.outcomes() == {"swap": "applied", "other": "applied"}
    assert harness.version("s2") == "v2"


LINKED = Catalog(
    descriptions=(*CATALOG.descriptions, a_description("link", "v1"), a_description("link", "v2"))
)


def link(name: str) -> Resource:
    return Resource(id=ResourceId(name), kind=ResourceKind.LINK, version="v1")


def linked(links: int, *, busy: bool) -> UpgradeHarness:
    """Return a host with one link to each switch; the request changes the links."""
    cables = [
        binds("k1", f"s{n}", DependencyKind.COMMUNICATION, link=ResourceId(f"l{n}"))
        for n in range(1, links + 1)
    ]
    return UpgradeHarness(
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


def test_links_of_one_host_change_one_after_the_other() -> None:
    harness = linked(2, busy=True)
    harness.run()
    assert [event.batch for event in harness.events(BatchDecided)] == [("l1",), ("l2",)]
    assert harness.outcomes() == {"cables": "applied"}


def test_the_only_link_of_a_host_waits_until_its_vms_have_moved() -> None:
    harness = linked(1, busy=True)
    harness.run()
    (moved,) = harness.events(VmBatchStarted)
    assert [(move.vm, move.source) for move in moved.batch.moves] == [("vm", "h1")]
    (decided,) = harness.events(BatchDecided)
    assert decided.batch == ("l1",), "the batch is decided when the host is empty"
    assert harness.outcomes() == {"cables": "applied"}
    idle = linked(1, busy=False)
    idle.run()
    assert idle.outcomes() == {"cables": "applied"}


def test_vms_of_an_anti_affinity_group_move_one_at_a_time() -> None:
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
    harness = UpgradeHarness(campaign.but(cluster=campaign.cluster.but(groups=(apart,))))
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}
    assert [len(event.batch.moves) for event in harness.events(VmBatchStarted)] == [1, 1]
