"""Entitlement per VM and pool in the documents of ``show`` and ``recommend``."""

from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.capacity.entitlement import entitlement_per_vm
from equipoise.documents.cluster import cluster_document, pool_rows
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId
from equipoise.model.vm import CpuSettings, Demand

OUTER, INNER = PoolId("outer"), PoolId("inner")


def test_vms_and_pools_have_the_part_of_the_cluster_that_is_theirs() -> None:
    """8,000 MHz for 12,000 MHz of demand: the pool reserves 5,000, and 3,000 are left for b."""
    pools = (
        Pool(id=OUTER, cpu=CpuSettings(reservation_mhz=5000, limit_mhz=5000)),
        Pool(id=INNER, parent=OUTER),
    )
    vms = [
        a_vm("a", "h1", vcpus=4, pool=INNER, demand=Demand(cpu_mhz=6000, memory_mib=512)),
        a_vm("b", "h2", vcpus=4, demand=Demand(cpu_mhz=6000, memory_mib=256)),
        a_vm("ready"),
    ]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, pools=pools)
    document = cluster_document(state)
    assert [(vm.id, vm.cpu_entitled_mhz, vm.memory_entitled_mib) for vm in document.vms] == [
        ("a", 5000, 512),
        ("b", 3000, 256),
        ("ready", 0, 0),
    ]
    outer, inner = pool_rows(state, entitlement_per_vm(state))
    assert (outer.vms, outer.cpu_demand_mhz, outer.cpu_entitled_mhz) == (1, 6000, 5000)
    assert (inner.parent, inner.cpu_entitled_mhz, inner.memory_entitled_mib) == ("outer", 5000, 512)
    assert document.pools == (outer, inner)
