from __future__ import annotations

from equipoise.model.resource import DependencyKind, ResourceKind, ResourceLayer


def test_every_kind_of_resource_has_its_layer() -> None:
    layers = {kind: kind.layer for kind in ResourceKind}
    assert layers[ResourceKind.SERVER] is ResourceLayer.PHYSICAL
    assert layers[ResourceKind.HYPERVISOR] is ResourceLayer.FACILITY
    assert layers[ResourceKind.NIC_FIRMWARE] is ResourceLayer.FACILITY
    assert layers[ResourceKind.VIRTUAL_SWITCH] is ResourceLayer.VIRTUAL
    assert set(layers.values()) == set(ResourceLayer)


def test_peers_bind_both_ways_and_some_sponsors_keep_vms_going() -> None:
    both_ways = {kind for kind in DependencyKind if kind.is_symmetrical}
    assert len(both_ways) == 3
    assert {kind for kind in DependencyKind if kind.is_vm_supporting} == {
        DependencyKind.VM_SUPPORTING_STORAGE,
        DependencyKind.VM_SUPPORTING_CONTROLLER,
    }
    assert not both_ways & {DependencyKind.AGGREGATION, DependencyKind.COMMUNICATION}
