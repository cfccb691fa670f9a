"""SLA breaches: how long, and by how many VMs, each tenant had less than its SLA guarantees.

Both usual penalties follow from these figures: per second of a breach, or per second and missing
VM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.model.inventory import Tenant
from equipoise.model.quantity import TenantId, VmId
from equipoise.model.state.draft import Draft
from equipoise.model.vm import Vm, VmState


@dataclass(slots=True)
class SlaBreach:
    """The breaches of one tenant so far."""

    times: int = 0
    """The number of breaches."""
    seconds: float = 0.0
    """Their duration: the base of a penalty that depends on the delay alone."""
    vm_seconds: float = 0.0
    """Duration times missing VMs: the base of a proportional penalty."""
    vms_missing_max: int = 0
    """The maximum of VMs that were missing at once."""


class SlaTracker:
    """Compares the running VMs of each tenant with its SLA."""

    def __init__(self, tenants: Iterable[Tenant], state: Draft) -> None:
        self._vms_min = {tenant.id: tenant.sla.vms_min for tenant in tenants}
        self.breaches = {tenant: SlaBreach() for tenant in self._vms_min}
        self._counted: dict[VmId, tuple[TenantId, bool]] = {}
        self._running: Counter[TenantId] = Counter()
        self._requested: Counter[TenantId] = Counter()
        self._since_ms = 0
        for vm in state.vms.values():
            self._add_vm(vm)
        self._missing = {tenant: self._missing_vms(tenant) for tenant in self._vms_min}
        self._count_new_breaches({})

    def advance(self, now_ms: int) -> None:
        """Advance the time without changes."""
        elapsed_s = (now_ms - self._since_ms) / 1000
        self._since_ms = now_ms
        for tenant, missing in self._missing.items():
            if missing:
                self.breaches[tenant].seconds += elapsed_s
                self.breaches[tenant].vm_seconds += elapsed_s * missing

    def update(self, now_ms: int, touched: Iterable[VmId], state: Draft) -> None:
        """Count again the VMs that have arrived, left, stopped or started."""
        if not self._vms_min:
            return
        self.advance(now_ms)
        for name in touched:
            self._remove_vm(name)
            vm = state.vms.get(name)
            if vm is not None:
                self._add_vm(vm)
        before = self._missing
        self._missing = {tenant: self._missing_vms(tenant) for tenant in self._vms_min}
        self._count_new_breaches(before)

    def _missing_vms(self, tenant: TenantId) -> int:
        """Return how many VMs are missing to the SLA's minimum or to those that should run."""
        # A VM that the tenant has started and that does not run is missing too, even above the
        # minimum.
        guaranteed = max(self._vms_min[tenant], self._requested[tenant])
        return max(0, guaranteed - self._running[tenant])

    def _count_new_breaches(self, before: dict[TenantId, int]) -> None:
        for tenant, missing in self._missing.items():
            breach = self.breaches[tenant]
            breach.times += bool(missing) and not before.get(tenant)
            breach.vms_missing_max = max(breach.vms_missing_max, missing)

    def _add_vm(self, vm: Vm) -> None:
        if vm.tenant not in self._vms_min or vm.state not in (VmState.RUNNING, VmState.READY):
            return
        runs = vm.state is VmState.RUNNING
        self._counted[vm.id] = (vm.tenant, runs)
        self._requested[vm.tenant] += 1
        self._running[vm.tenant] += runs

    def _remove_vm(self, vm: VmId) -> None:
        known = self._counted.pop(vm, None)
        if known is not None:
            tenant, runs = known
            self._requested[tenant] -= 1
            self._running[tenant] -= runs
