"""Small upgrade campaigns and their events for tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.model.event import Event
from equipoise.model.host import Host
from equipoise.model.inventory import AntiAffinityGroup, Inventory, Sla, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceId, ResourceName, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog, ComponentDescription, ComponentId, Recipe
from equipoise.model.upgrade.infrastructure import Resource, ResourceKind
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    RequestedChange,
    RequestId,
    SetId,
    UpgradeRequest,
)
from equipoise.model.upgrade.work import BatchId, VmBatch, VmMove
from equipoise.model.vm import Vm

OUTAGE_MS = 600


def host(number: int) -> Host:
    return Host(id=HostId(f"h{number}"), cores=8, mhz_per_core=2000, memory_mib=16_384,
                capacity={ResourceName("vms"): 2})  # fmt: skip


def campaign(tenants: Mapping[str, Sequence[int]], hosts: int = 4) -> UpgradeCampaign:
    """Upgrade the hypervisors of all hosts; each tenant has a VM on each host it names."""
    resources = tuple(
        Resource(id=ResourceId(f"h{n}"), kind=ResourceKind.HYPERVISOR, version="old",
                 host=HostId(f"h{n}"))
        for n in range(1, hosts + 1)
    )  # fmt: skip
    vms, tenant_list = [], []
    for name, host_numbers in tenants.items():
        ids = [VmId(f"{name}{n}") for n in range(1, len(host_numbers) + 1)]
        vms += [Vm(id=id_, vcpus=1, memory_mib=1024, tenant=TenantId(name), host=HostId(f"h{n}"))
                for id_, n in zip(ids, host_numbers, strict=True)]  # fmt: skip
        groups = (AntiAffinityGroup(id=GroupId(name), vms=tuple(ids)),)
        sla = Sla(vms_min=1, vms_max=len(ids) + 1, cooldown_s=100)
        tenant_list.append(Tenant(id=TenantId(name), sla=sla, anti_affinity=groups))
    cluster = Inventory(
        name="small",
        hosts=tuple(host(n) for n in range(1, hosts + 1)),
        vms=tuple(vms),
        tenants=tuple(tenant_list),
        resources=resources,
    )
    change = RequestedChange(
        does=ChangeKind.UPGRADE,
        resources=tuple(resource.id for resource in resources),
        version="new",
    )
    kernel = ComponentId("hypervisor")
    return UpgradeCampaign(
        name="small <&>",
        cluster=cluster,
        catalog=Catalog(
            descriptions=(
                ComponentDescription(component=kernel, version="old"),
                ComponentDescription(
                    component=kernel, version="new", upgrade=Recipe(duration_s=40)
                ),
            )
        ),
        requests=(
            UpgradeRequest(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),)),
        ),
        settings=UpgradeSettings(vm_move_s=20, vm_outage_ms=OUTAGE_MS, failover_hosts=0),
    )


def moving(number: int, at_ms: int, moves: Mapping[str, int], why: str = "") -> list[Event]:
    """Return events of VMs that move side by side within twenty seconds."""
    id_ = BatchId(f"{number}/vms")
    batch = VmBatch(
        id=id_,
        moves=tuple(
            VmMove(vm=VmId(vm), source=HostId("h1"), target=HostId(f"h{to}"))
            for vm, to in moves.items()
        ),
    )
    end_ms = at_ms + 20_000
    done: list[Event] = [past.VmMoved(at_ms=end_ms, batch=id_, vm=VmId(vm)) for vm in moves]
    return [past.VmBatchStarted(at_ms=at_ms, batch=batch, why=why), *done,
            past.BatchEnded(at_ms=end_ms, batch=id_)]  # fmt: skip
