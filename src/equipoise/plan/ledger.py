"""The ledger: who holds how much of which host while a plan runs.

It sits on a draft and is derived from it: an event changes the draft (``transition`` says how),
then the ledger settles what the touched VMs hold. A VM holds its reservation and its consumption
where it runs, and from the start of an action on where it will run; so a migrating VM holds on both
hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.model.action import Allocate
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft, Touched
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


class Claim(NamedTuple):
    """What one VM holds of each host it occupies."""

    cpu_mhz: int
    memory_mib: int
    named: Mapping[ResourceName, int]


@dataclass(slots=True)
class Usage:
    """What all VMs together hold of one host."""

    cpu_mhz: int = 0
    memory_mib: int = 0
    named: dict[ResourceName, int] = field(default_factory=dict)

    def copy(self) -> Usage:
        """The same, to go on with."""
        return Usage(self.cpu_mhz, self.memory_mib, dict(self.named))

    def add(self, claim: Claim, sign: int) -> None:
        """Add a claim, or take it back with ``sign=-1``."""
        self.cpu_mhz += sign * claim.cpu_mhz
        self.memory_mib += sign * claim.memory_mib
        if not claim.named:
            return
        for name, amount in claim.named.items():
            self.named[name] = self.named.get(name, 0) + sign * amount


class Ledger:
    """A draft with the sums that capacity is judged by, kept up to date event by event."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.draft = Draft(snapshot)
        self._usage: dict[HostId, Usage] = {}
        self._held: dict[VmId, tuple[Claim, tuple[HostId, ...]]] = {}
        for vm in snapshot.vms:
            self._settle(vm)

    @classmethod
    def like(cls, base: Ledger, snapshot: Snapshot) -> Ledger:
        """A ledger of the snapshot that ``base`` is still one of, without adding up again."""
        made = cls.__new__(cls)
        made.draft = Draft(snapshot)
        made._usage = {host: usage.copy() for host, usage in base._usage.items()}
        made._held = dict(base._held)
        return made

    def apply(self, event: Event) -> Touched:
        """Let an event happen, and say what it touched."""
        transition.change(self.draft, event)
        touched = self.draft.take_touched()
        for vm in touched.vms:
            self._settle(vm)
        return touched

    def usage(self, host: HostId) -> Usage:
        """What is held of a host now."""
        return self._usage.get(host) or Usage()

    def occupied(self, vm: VmId) -> tuple[HostId, ...]:
        """The hosts on which a VM holds something now."""
        held = self._held.get(vm)
        return held[1] if held else ()

    def _settle(self, name: VmId) -> None:
        before = self._held.pop(name, None)
        if before is not None:
            self._book(*before, sign=-1)
        vm = self.draft.vms.get(name)
        now = None if vm is None else self._holding(vm)
        if now is not None:
            self._held[name] = now
            self._book(*now, sign=1)

    def _book(self, claim: Claim, hosts: tuple[HostId, ...], sign: int) -> None:
        for host in hosts:
            usage = self._usage.get(host)
            if usage is None:
                usage = self._usage[host] = Usage()
            usage.add(claim, sign)

    def _holding(self, vm: Vm) -> tuple[Claim, tuple[HostId, ...]] | None:
        """What a VM holds, and where."""
        hosts: tuple[HostId, ...] = ()
        # A sleeping agent keeps its claim: its host must be able to wake it (DRS 3.3.3).
        if vm.host is not None and (vm.state is VmState.RUNNING or vm.agent):
            hosts = (vm.host,)
        named = vm.consumption
        for running in self.draft.running_on(vm.id):
            action, target = running.step.action, running.step.footprint.target
            if target is not None and target not in hosts:
                hosts = (*hosts, target)
            if isinstance(action, Allocate):  # the larger of both amounts while it changes
                amount = max(action.amount, named.get(action.resource, 0))
                named = {**named, action.resource: amount}
        if not hosts:
            return None
        return Claim(vm.cpu.reservation_mhz, vm.memory.reservation_mib, named), hosts
