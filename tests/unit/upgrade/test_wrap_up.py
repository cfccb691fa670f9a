"""The end of a campaign: VMs return to their hosts, and extra hosts are returned."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.event import VmArrived
from equipoise.model.inventory import Tenant
from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings
from equipoise.model.upgrade.event import CampaignEnded, HostReturned, VmBatchStarted
from equipoise.model.upgrade.work import VmBatch
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)


def campaign(hosts: int = 4, *, apart: bool = True, **more: Any) -> UpgradeCampaign:
    """Two VMs on each of the first hosts; the last host is empty and up to date."""
    names = [f"k{n}" for n in range(1, hosts)]
    vms = [a_vm(f"{tenant}-{n}", n, tenant) for n in range(1, hosts) for tenant in "ab"]
    tenants: list[Tenant] = [
        a_tenant(tenant, [f"{tenant}-{n}" for n in range(1, hosts)] if apart else [], most=hosts)
        for tenant in "ab"
    ]
    return a_campaign(
        a_request(a_set("all", upgrade_of(names))),
        hosts=[a_host(n, 2 if apart else 3) for n in range(1, hosts + 1)],
        vms=vms,
        tenants=[tenant.but(sla=tenant.sla.but(vms_max=hosts - 1)) for tenant in tenants],
        resources=hypervisors(hosts - 1),
        settings=UpgradeSettings(vm_move_s=5, failover_hosts=0, **more),
    )


def run(made: UpgradeCampaign) -> UpgradeHarness:
    harness = UpgradeHarness(made)
    harness.run()
    assert harness.outcomes() == {"all": "applied"}
    return harness


def away(harness: UpgradeHarness) -> list[VmId]:
    homes = {vm.id: vm.host for vm in harness.campaign.cluster.vms}
    placements = harness.coordinator.state.cluster.placements
    return [vm for vm, placed in placements.items() if placed.host != homes[vm]]


def test_by_default_vms_stay_where_they_are() -> None:
    assert away(run(campaign()))


def test_vms_return_to_their_hosts_group_by_group() -> None:
    harness = run(campaign(return_vms=True))
    assert away(harness) == []
    for event in harness.events(VmBatchStarted):
        assert isinstance(event.batch, VmBatch)
        groups = [move.vm.split("-")[0] for move in event.batch.moves]
        assert len(groups) == len(set(groups)), "one VM of each group at a time"


def test_extra_hosts_are_emptied_and_returned_at_the_end() -> None:
    harness = run(campaign(extra_hosts=(HostId("h4"),)))
    assert [event.host for event in harness.events(HostReturned)] == ["h4"]
    cluster = harness.coordinator.state.cluster
    assert "h4" not in cluster.compute_hosts
    assert all(placed.host != "h4" for placed in cluster.placements.values())
    events = list(harness.journal.events())
    assert isinstance(events[-1], CampaignEnded)


def test_a_host_that_cannot_be_emptied_stays() -> None:
    """A VM arrives at the end; with it, one VM of its group is on each host."""
    harness = UpgradeHarness(campaign(extra_hosts=(HostId("h4"),)))
    for _ in range(200):
        if all(harness.version(f"k{n}") == "v2" for n in (1, 2, 3)):
            break
        harness.step()
    residents = harness.coordinator.state.cluster.residents
    free = next(n for n in (1, 2, 3, 4) if len(residents.get(HostId(f"h{n}"), ())) < 2)
    harness.record(VmArrived(at_ms=harness.now_ms, vm=a_vm("a-9", free, "a")))
    harness.run()
    assert harness.coordinator.ended
    assert harness.coordinator.state.cluster.vm_counts == {"a": 4, "b": 3}
    assert not harness.events(HostReturned)


def test_a_move_that_fails_is_not_repeated_for_ever() -> None:
    harness = UpgradeHarness(campaign(return_vms=True))
    for _ in range(200):
        if all(harness.version(f"k{n}") == "v2" for n in (1, 2, 3)):
            break
        harness.step()
    harness.down.add("h1")  # moves from and to it fail
    harness.run()
    assert harness.coordinator.ended
    assert harness.outcomes() == {"all": "applied"}


@settings(max_examples=40, deadline=None)
@given(hosts=st.integers(3, 6), apart=st.booleans(), returns=st.booleans(), extra=st.booleans())
def test_every_campaign_with_a_wrap_up_ends_within_its_groups(
    hosts: int, apart: bool, returns: bool, extra: bool
) -> None:
    last = HostId(f"h{hosts}")
    harness = run(
        campaign(hosts, apart=apart, return_vms=returns, extra_hosts=(last,) if extra else ())
    )
    assert harness.coordinator.ended
    assert bool(harness.events(HostReturned)) is extra
    if returns:
        assert away(harness) == []
    residents = harness.coordinator.state.cluster.residents
    for vms in residents.values():
        tenants = [vm.split("-")[0] for vm in vms]
        assert not apart or len(tenants) == len(set(tenants))
