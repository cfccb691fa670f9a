from __future__ import annotations

import pickle

import pytest

from builders import a_cluster, a_host, a_vm, an_inventory
from equipoise.model.columns import NO_LIMIT, VM_STATES
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, VmState


def test_a_snapshot_gives_back_the_inventory_it_was_made_from() -> None:
    inventory = an_inventory(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h2"), a_vm("v2")])
    assert Snapshot.of(inventory).inventory() == inventory


def test_placement_and_residents_are_two_views_of_one_thing() -> None:
    snapshot = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h2"), a_vm("v2"), a_vm("v3", "h2")]
    )
    assert snapshot.placement == {"v1": "h2", "v3": "h2"}
    assert snapshot.residents == {"h1": (), "h2": ("v1", "v3")}


def test_columns_are_built_once_and_follow_the_order_of_the_snapshot() -> None:
    busy = a_vm(
        "v2",
        "h2",
        cpu=CpuSettings(reservation_mhz=100, limit_mhz=900, shares=7),
        demand=Demand(cpu_mhz=300, memory_mib=20),
    )
    snapshot = a_cluster(a_host("h1"), a_host("h2", cores=2), vms=[a_vm("v1"), busy])
    columns = snapshot.columns
    assert columns is snapshot.columns
    assert columns.vm_ids == ("v1", "v2")
    assert columns.vms.host.tolist() == [-1, 1]
    assert [VM_STATES[row] for row in columns.vms.state] == [VmState.READY, VmState.RUNNING]
    assert columns.vms.cpu_limit_mhz.tolist() == [NO_LIMIT, 900]
    assert columns.vms.cpu_reservation_mhz.tolist() == [0, 100]
    assert columns.vms.cpu_shares.tolist() == [1000, 7]
    assert columns.vms.cpu_demand_mhz.tolist() == [0, 300]
    assert columns.vms.memory_demand_mib.tolist() == [0, 20]
    assert columns.hosts.usable_cpu_mhz.tolist() == [4000, 2000]
    with pytest.raises(ValueError, match="read-only"):
        columns.vms.host[0] = 3


def test_a_snapshot_survives_pickling() -> None:
    snapshot = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")])
    assert snapshot.columns is not None
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot
