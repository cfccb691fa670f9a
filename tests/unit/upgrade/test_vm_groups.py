"""A VM keeps the distance of all its anti-affinity groups, and stays with its affinity group."""

from __future__ import annotations

from campaign_auditor import audit
from equipoise.model.inventory import AntiAffinityGroup, Sla, Tenant
from equipoise.model.quantity import GroupId, ResourceId, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import UpgradeSettings
from equipoise.model.upgrade.infrastructure import (
    Resource,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
)
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_vm,
    hypervisors,
    upgrade_of,
)


def a_cluster(
    places: dict[str, int], apart: dict[str, list[str]], together: list[str], hosts: int = 4
) -> UpgradeHarness:
    """Return the upgrade of all hosts, not started yet."""
    named = [
        Resource(id=ResourceId(f"r-{vm}"), kind=ResourceKind.VIRTUAL_SERVER, vm=VmId(vm))
        for vm in together
    ]
    near = ResourceGroup(
        id=GroupId("near"),
        kind=ResourceGroupKind.AFFINITY,
        resources=tuple(resource.id for resource in named),
    )
    tenant = Tenant(
        id=TenantId("t"),
        sla=Sla(vms_max=len(places), cooldown_s=10_000),
        anti_affinity=tuple(
            AntiAffinityGroup(id=GroupId(name), vms=tuple(map(VmId, vms)))
            for name, vms in apart.items()
        ),
    )
    campaign = a_campaign(
        a_request(a_set("s", upgrade_of([f"k{n}" for n in range(1, hosts + 1)]))),
        hosts=[a_host(n, 3) for n in range(1, hosts + 1)],
        vms=[a_vm(name, host, "t") for name, host in places.items()],
        tenants=[tenant],
        resources=[*hypervisors(hosts), *named],
        settings=UpgradeSettings(vm_move_s=5, failover_hosts=0),
        groups=[near] if named else [],
    )
    return UpgradeHarness(campaign)


def test_a_vm_in_two_groups_is_apart_from_the_members_of_both() -> None:
    harness = a_cluster({"a": 1, "b": 2, "c": 1}, {"left": ["a", "b"], "right": ["b", "c"]}, [])
    harness.run()
    placed = harness.coordinator.state.cluster.placements
    assert placed[VmId("b")].groups == ("left", "right")
    assert harness.outcomes() == {"s": "applied"}
    assert audit(harness.journal.events())[0] == []


def test_vms_of_an_affinity_group_move_together_to_one_host() -> None:
    harness = a_cluster({"a": 1, "b": 1, "c": 2}, {"far": ["b", "c"]}, ["a", "b"])
    harness.run()
    assert harness.outcomes() == {"s": "applied"}
    for event in harness.events(past.VmBatchStarted):
        targets = {move.vm: move.target for move in event.batch.moves}
        assert targets.get(VmId("a")) == targets.get(VmId("b"))
    assert audit(harness.journal.events())[0] == []


def test_vms_of_an_affinity_group_restart_together() -> None:
    harness = a_cluster({"a": 1, "b": 1, "c": 2}, {"far": ["b", "c"]}, ["a", "b"])
    harness.fail_host("h1")
    (restarted,) = harness.events(past.VmsRestarted)
    assert restarted.placed[VmId("a")] == restarted.placed[VmId("b")]
    assert restarted.placed[VmId("b")] in {"h3", "h4"}, "h2 runs c, which is apart from b"
