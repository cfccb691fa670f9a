"""Promises to tenants: for how long, and by how many VMs, each had less than it should have had.

Both penalty forms follow: one is paid per second of a breach, the other per second and missing VM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.model.change.draft import Draft
from equipoise.model.quantity import TenantId, VmId
from equipoise.model.tenant import Tenant
from equipoise.model.vm import Vm, VmState


@dataclass(slots=True)
class Breach:
    """What a tenant has missed so far."""

    times: int = 0
    """How often it began to miss something."""
    seconds: float = 0.0
    """For how long: the base of a penalty that depends on the delay alone."""
    vm_seconds: float = 0.0
    """The same times the number of VMs that were missing: the base of a proportional penalty."""
    vms_most: int = 0
    """The most VMs that were missing at once."""


class Promises:
    """Keeps count of what tenants have and should have."""

    def __init__(self, tenants: Iterable[Tenant], state: Draft) -> None:
        self._least = {tenant.id: tenant.sla.vms_min for tenant in tenants}
        self.breaches = {tenant: Breach() for tenant in self._least}
        self._kept: dict[VmId, tuple[TenantId, bool]] = {}
        self._running: Counter[TenantId] = Counter()
        self._meant: Counter[TenantId] = Counter()
        self._since_ms = 0
        for vm in state.vms.values():
            self._enter(vm)
        self._missing = {tenant: self._missed(tenant) for tenant in self._least}
        self._note_new({})

    def advance(self, now_ms: int) -> None:
        """Let time pass in which nobody changes."""
        passed_s = (now_ms - self._since_ms) / 1000
        self._since_ms = now_ms
        for tenant, missing in self._missing.items():
            if missing:
                self.breaches[tenant].seconds += passed_s
                self.breaches[tenant].vm_seconds += passed_s * missing

    def update(self, now_ms: int, touched: Iterable[VmId], state: Draft) -> None:
        """VMs have come, gone, stopped or started."""
        if not self._least:
            return
        self.advance(now_ms)
        for name in touched:
            self._leave(name)
            vm = state.vms.get(name)
            if vm is not None:
                self._enter(vm)
        before = self._missing
        self._missing = {tenant: self._missed(tenant) for tenant in self._least}
        self._note_new(before)

    def _missed(self, tenant: TenantId) -> int:
        """How many VMs fewer run than were promised, or than the tenant has asked for."""
        due = max(self._least[tenant], self._meant[tenant])
        return max(0, due - self._running[tenant])

    def _note_new(self, before: dict[TenantId, int]) -> None:
        for tenant, missing in self._missing.items():
            breach = self.breaches[tenant]
            breach.times += bool(missing) and not before.get(tenant)
            breach.vms_most = max(breach.vms_most, missing)

    def _enter(self, vm: Vm) -> None:
        if vm.tenant not in self._least or vm.state not in (VmState.RUNNING, VmState.READY):
            return
        runs = vm.state is VmState.RUNNING
        self._kept[vm.id] = (vm.tenant, runs)
        self._meant[vm.tenant] += 1
        self._running[vm.tenant] += runs

    def _leave(self, vm: VmId) -> None:
        known = self._kept.pop(vm, None)
        if known is not None:
            tenant, runs = known
            self._meant[tenant] -= 1
            self._running[tenant] -= runs
