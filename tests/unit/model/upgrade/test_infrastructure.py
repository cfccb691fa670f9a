"""Kinds of resources and dependencies."""

from __future__ import annotations

from equipoise.model.upgrade.infrastructure import DependencyKind, ResourceKind, ResourceLayer


def test_every_kind_of_resource_has_a_layer() -> None:
    layers = {kind: kind.layer for kind in ResourceKind}
    assert layers[ResourceKind.SERVER] is ResourceLayer.PHYSICAL
    assert layers[ResourceKind.HYPERVISOR] is ResourceLayer.FACILITY
    assert layers[ResourceKind.NIC_FIRMWARE] is ResourceLayer.FACILITY
    assert layers[ResourceKind.VIRTUAL_SWITCH] is ResourceLayer.VIRTUAL
    assert set(layers.values()) == set(ResourceLayer)


def test_three_kinds_are_symmetrical_and_two_support_vms() -> None:
    symmetrical = {kind for kind in DependencyKind if kind.is_symmetrical}
    assert len(symmetrical) == 3
    assert {kind for kind in DependencyKind if kind.is_vm_supporting} == {
        DependencyKind.VM_SUPPORTING_STORAGE,
        DependencyKind.VM_SUPPORTING_CONTROLLER,
    }
    assert not symmetrical & {DependencyKind.AGGREGATION, DependencyKind.COMMUNICATION}
