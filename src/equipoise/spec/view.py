"""What a formula sees: the state at one moment, the first and the last one, and the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.model.change.draft import Draft
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm

if TYPE_CHECKING:  # a memory looks at frames
    from equipoise.spec.tally import Memory

CPU, MEMORY = "cpu", "memory"
"""The resources that every host has; any other name is one of the named ones."""


class Reads:
    """What a formula has looked at."""

    __slots__ = ("hosts", "vms")

    def __init__(self) -> None:
        self.vms: set[VmId] = set()
        self.hosts: set[HostId] = set()

    def add(self, other: Reads) -> None:
        """Add what another look has seen."""
        self.vms |= other.vms
        self.hosts |= other.hosts


class View:
    """A state, as the functions of the language ask for it."""

    __slots__ = ("hosts", "reads", "state", "vms")

    def __init__(self, state: Draft) -> None:
        self.reads = Reads()
        """Stays empty here: only a watched view notes what it is asked for."""
        self.state = state
        self.hosts = state.hosts
        self.vms = state.vms

    @classmethod
    def of(cls, state: Snapshot | Draft) -> View:
        """The view of a snapshot or of a draft, which must not change while it is looked at."""
        return cls(Draft(state) if isinstance(state, Snapshot) else state)

    def names(self, kind: str) -> frozenset[Any]:
        """The names of all VMs or of all hosts."""
        return self.state.vm_names() if kind == "vms" else self.state.host_names()

    def everything(self) -> None:
        """Say that all VMs and hosts are looked at, for those who do not ask one by one."""

    def vm(self, name: VmId) -> Vm:
        """A VM, by its name."""
        return self.vms[name]

    def host(self, name: HostId) -> Host:
        """A host, by its name."""
        return self.hosts[name]

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """The VMs that run or sleep on a host."""
        return self.state.residents(host)

    def on_vm(self, vm: VmId) -> tuple[Step, ...]:
        """The actions under way on a VM."""
        return tuple(running.step for running in self.state.running_on(vm))

    def on_host(self, host: HostId) -> tuple[Step, ...]:
        """The actions under way that touch a host."""
        return tuple(running.step for running in self.state.running_at(host))

    def hosted(self, host: HostId) -> frozenset[VmId]:
        """The VMs that lie on a host, and those on their way to it."""
        seen = (step.footprint for step in self.on_host(host))
        coming = (one.vm for one in seen if one.vm is not None and one.target == host)
        return frozenset(self.residents(host)).union(coming)

    def running(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host; one that migrates runs on its source."""
        return self.state.runners(host)

    def consumption(self, vm: VmId, resource: str) -> int:
        """What a VM takes of a resource."""
        return consumption_of(self.vm(vm), resource)

    def capacity(self, host: HostId, resource: str) -> int:
        """What a host has of a resource for its VMs."""
        return capacity_of(self.host(host), resource)

    def demand(self, vm: VmId, resource: str) -> int:
        """What a VM would use of a resource now."""
        return demand_of(self.vm(vm), resource)


def consumption_of(vm: Vm, resource: str) -> int:
    """What a VM takes of a resource: what is reserved for it, of CPU and memory."""
    if resource == CPU:
        return vm.cpu.reservation_mhz
    if resource == MEMORY:
        return vm.memory.reservation_mib
    return vm.consumption.get(ResourceName(resource), 0)


def capacity_of(host: Host, resource: str) -> int:
    """What a host has of a resource for its VMs."""
    if resource == CPU:
        return host.usable_cpu_mhz
    if resource == MEMORY:
        return host.usable_memory_mib
    return host.capacity.get(ResourceName(resource), 0)


def demand_of(vm: Vm, resource: str) -> int:
    """What a VM would use of a resource now."""
    if resource == CPU:
        return vm.demand.cpu_mhz
    if resource == MEMORY:
        return vm.demand.memory_mib
    return vm.demand.named.get(ResourceName(resource), 0)


class Steps:
    """What a plan does with each VM and each host, in order of time."""

    __slots__ = ("of_host", "of_vm")

    def __init__(self, steps: Iterable[Step]) -> None:
        self.of_vm: dict[VmId, tuple[Step, ...]] = {}
        self.of_host: dict[HostId, tuple[Step, ...]] = {}
        for step in sorted(steps, key=lambda one: (one.start_ms, one.end_ms, one.id)):
            seen = step.footprint
            if seen.vm is not None:
                self.of_vm[seen.vm] = (*self.of_vm.get(seen.vm, ()), step)
            for host in seen.hosts:
                self.of_host[host] = (*self.of_host.get(host, ()), step)


@dataclass(slots=True)
class Frame:
    """Everything a formula may ask about while it is judged."""

    now: View
    initial: View
    final: View
    steps: Steps = field(default_factory=lambda: Steps(()))
    moments: Sequence[View] = ()
    """All moments of the plan, for ``always`` and ``sometime``."""
    memory: Memory | None = None
    """What is known of large collections in the present."""
    eternal: dict[Any, bool] | None = None
    """What was found out about all moments together, which is the same seen from each of them."""

    def at(self, view: View) -> Frame:
        """The same, looked at from another moment."""
        if view is self.now:
            return self
        return Frame(view, self.initial, self.final, self.steps, self.moments, eternal=self.eternal)


Value = Any
"""A value of the language: int, bool, str (ids and states too), frozenset, tuple, Step, or None.

``None`` is the host of a VM that has none: nowhere, which is in no set of hosts.
"""
