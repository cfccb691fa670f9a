"""Kinds of dependencies."""

from __future__ import annotations

from equipoise.model.upgrade.infrastructure import DependencyKind


def test_three_kinds_are_symmetrical_and_two_support_vms() -> None:
    symmetrical = {kind for kind in DependencyKind if kind.is_symmetrical}
    assert len(symmetrical) == 3
    assert {kind for kind in DependencyKind if kind.is_vm_supporting} == {
        DependencyKind.VM_SUPPORTING_STORAGE,
        DependencyKind.VM_SUPPORTING_CONTROLLER,
    }
    assert not symmetrical & {DependencyKind.AGGREGATION, DependencyKind.COMMUNICATION}
