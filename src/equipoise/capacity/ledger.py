"""The capacity ledger: how much of each host is committed while a plan runs.

The ledger is derived from a draft. An event changes the draft (``transition`` defines how), then
the ledger updates the claims of the touched VMs. A VM holds its reservation and its consumption on
the host where it runs and, from the start of an action, on the target host. A migrating VM
therefore holds capacity on both hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.model.action import Allocate
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


class VmClaim(NamedTuple):
    """The capacity that one VM holds on each host it occupies."""

    cpu_mhz: int
    memory_mib: int
    named: Mapping[ResourceName, int]


@dataclass(slots=True)
class HostUsage:
    """The sum of the claims of all VMs on one host."""

    cpu_mhz: int = 0
    memory_mib: int = 0
    named: dict[ResourceName, int] = field(default_factory=dict)

    def copy(self) -> HostUsage:
        """Return an independent copy."""
        return HostUsage(self.cpu_mhz, self.memory_mib, dict(self.named))

    def add(self, claim: VmClaim, sign: int) -> None:
        """Add a claim, or remove it with ``sign=-1``."""
        self.cpu_mhz += sign * claim.cpu_mhz
        self.memory_mib += sign * claim.memory_mib
        if not claim.named:
            return
        for name, amount in claim.named.items():
            self.named[name] = self.named.get(name, 0) + sign * amount


class CapacityLedger:
    """A draft with the committed capacity of each host, updated event by event."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.draft = Draft(snapshot)
        self._usage: dict[HostId, HostUsage] = {}
        self._held: dict[VmId, tuple[VmClaim, tuple[HostId, ...]]] = {}
        for vm in snapshot.vms:
            self._update_vm(vm)

    @classmethod
    def like(cls, base: CapacityLedger, snapshot: Snapshot) -> CapacityLedger:
        """Return a ledger of ``snapshot`` with the sums of ``base``, a ledger of the same state."""
        ledger = cls.__new__(cls)
        ledger.draft = Draft(snapshot)
        ledger._usage = {host: usage.copy() for host, usage in base._usage.items()}
        ledger._held = dict(base._held)
        return ledger

    def apply(self, event: Event) -> TouchedEntities:
        """Apply an event to the draft, and return the entities it touched."""
        transition.apply_to_draft(self.draft, event)
        touched = self.draft.pop_touched()
        for vm in touched.vms:
            self._update_vm(vm)
        return touched

    def usage(self, host: HostId) -> HostUsage:
        """Return what is committed on a host now."""
        return self._usage.get(host) or HostUsage()

    def occupied(self, vm: VmId) -> tuple[HostId, ...]:
        """Return the hosts on which a VM holds capacity now."""
        held = self._held.get(vm)
        return held[1] if held else ()

    def _update_vm(self, name: VmId) -> None:
        """Replace the claim of a VM by its claim in the current draft."""
        before = self._held.pop(name, None)
        if before is not None:
            self._add_to_hosts(*before, sign=-1)
        vm = self.draft.vms.get(name)
        now = None if vm is None else self._claim_of(vm)
        if now is not None:
            self._held[name] = now
            self._add_to_hosts(*now, sign=1)

    def _add_to_hosts(self, claim: VmClaim, hosts: tuple[HostId, ...], sign: int) -> None:
        for host in hosts:
            usage = self._usage.get(host)
            if usage is None:
                usage = self._usage[host] = HostUsage()
            usage.add(claim, sign)

    def _claim_of(self, vm: Vm) -> tuple[VmClaim, tuple[HostId, ...]] | None:
        """Return the claim of a VM and the hosts it counts on, or ``None``."""
        hosts: tuple[HostId, ...] = ()
        # A sleeping agent keeps its claim: its host must be able to wake it (DRS 3.3.3).
        if vm.host is not None and (vm.state is VmState.RUNNING or vm.agent):
            hosts = (vm.host,)
        named = vm.consumption
        for running in self.draft.actions_on_vm(vm.id):
            action, target = running.step.action, running.step.footprint.target
            if target is not None and target not in hosts:
                hosts = (*hosts, target)
            if isinstance(action, Allocate):  # while the amount changes, the larger one counts
                amount = max(action.amount, named.get(action.resource, 0))
                named = {**named, action.resource: amount}
        if not hosts:
            return None
        return VmClaim(vm.cpu.reservation_mhz, vm.memory.reservation_mib, named), hosts
