"""Snapshots: inventories, placement and pickling."""

from __future__ import annotations

import pickle

from builders import a_cluster, a_host, a_vm, an_inventory
from equipoise.model.state.snapshot import Snapshot


def test_a_snapshot_returns_its_inventory() -> None:
    inventory = an_inventory(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h2"), a_vm("v2")])
    assert Snapshot.of(inventory).inventory() == inventory


def test_placement_and_residents_agree() -> None:
    snapshot = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h2"), a_vm("v2"), a_vm("v3", "h2")]
    )
    assert snapshot.placement == {"v1": "h2", "v3": "h2"}
    assert snapshot.residents == {"h1": (), "h2": ("v1", "v3")}


def test_a_snapshot_can_be_pickled() -> None:
    snapshot = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")])
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot
