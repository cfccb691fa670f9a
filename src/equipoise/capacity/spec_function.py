"""``entitlement`` as a function of the specification language, found by its entry point."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from equipoise.model.quantity import VmId
from equipoise.model.state.draft import Draft
from equipoise.model.vm import VmState
from equipoise.spec.evaluate.view import StateView
from equipoise.spec.functions import function

COLUMNS: Final = {"cpu": 0, "memory": 1}
"""The columns of ``vm_entitlements``."""
ROUNDING: Final = 1e-6
"""An amount of 2999.9999999 is 3000: the kernels are exact except for the last bits."""

Amounts = dict[VmId, tuple[int, int]]

_CACHE: Final[WeakKeyDictionary[Draft, tuple[int, Amounts]]] = WeakKeyDictionary()
"""Entitlements by draft, with the version of the draft they belong to.

A formula asks for the VMs of a state one by one, and the entitlement of one VM depends on all.
"""


@function("(vm, string) -> int", "the entitlement of the VM to the CPU or memory of the cluster")
def entitlement(view: StateView, vm: Any, resource: str) -> int:
    """Return the entitlement of a VM; 0 for other resources and for a VM that does not run."""
    if resource not in COLUMNS:
        return 0
    # The amount depends on every VM, pool and host, so any change makes the verdict stale.
    view.read_all()
    return _amounts(view.state).get(vm, (0, 0))[COLUMNS[resource]]


def _amounts(state: Draft) -> Amounts:
    version, amounts = _CACHE.get(state, (None, {}))
    if version != state.version:
        amounts = _compute(state)
        _CACHE[state] = state.version, amounts
    return amounts


def _compute(state: Draft) -> Amounts:
    # Imported here: loading the language must not load NumPy.
    from equipoise.capacity.entitlement import vm_entitlements  # noqa: PLC0415

    running = [vm for vm in state.vms.values() if vm.state is VmState.RUNNING]
    # Not compiled: loading the compiler takes longer than a few divisions.
    rows = vm_entitlements(state, running, fast=False).tolist()
    return {
        vm.id: (int(cpu + ROUNDING), int(memory + ROUNDING))
        for vm, (cpu, memory) in zip(running, rows, strict=True)
    }
