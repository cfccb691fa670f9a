"""What a formula reads: the state at one moment, the initial and the final state, and the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm

if TYPE_CHECKING:  # ``incremental`` imports this module
    from equipoise.spec.evaluate.incremental import CollectionCache

CPU, MEMORY = "cpu", "memory"
CONFIGURED_MEMORY, VCPUS = "configured_memory", "vcpus"
HOST_RESOURCES: Final = (CPU, MEMORY, CONFIGURED_MEMORY, VCPUS)
"""The resources that every host has; any other name is a named resource."""


UNLIMITED: Final = 10**15
"""The vCPUs that a host has for its VMs if their number is not limited."""


class ReadSet:
    """The VMs and hosts that a formula has read."""

    __slots__ = ("hosts", "vms")

    def __init__(self) -> None:
        self.vms: set[VmId] = set()
        self.hosts: set[HostId] = set()

    def add(self, other: ReadSet) -> None:
        """Add what another evaluation has read."""
        self.vms |= other.vms
        self.hosts |= other.hosts


class StateView:
    """A state, as the functions of the language read it."""

    __slots__ = ("hosts", "reads", "state", "vms")

    def __init__(self, state: Draft) -> None:
        self.reads = ReadSet()
        """Empty here: only ``TrackingView`` records what it reads."""
        # Shortcuts: formulas look up VMs and hosts in their innermost loops.
        self.state = state
        self.hosts = state.hosts
        self.vms = state.vms

    @classmethod
    def of(cls, state: Snapshot | Draft) -> StateView:
        """Return a view of a snapshot or of a draft, which must not change while it is read."""
        return cls(Draft(state) if isinstance(state, Snapshot) else state)

    def names(self, kind: str) -> frozenset[Any]:
        """Return the names of all VMs or of all hosts."""
        return self.state.vm_names() if kind == "vms" else self.state.host_names()

    def read_all(self) -> None:
        """Record that all VMs and hosts are read; this view records nothing."""

    def vm(self, name: VmId) -> Vm:
        """Return a VM by its name."""
        return self.vms[name]

    def host(self, name: HostId) -> Host:
        """Return a host by its name."""
        return self.hosts[name]

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """Return the VMs that run or sleep on a host."""
        return self.state.residents(host)

    def on_vm(self, vm: VmId) -> tuple[Step, ...]:
        """Return the actions under way on a VM."""
        return tuple(running.step for running in self.state.actions_on_vm(vm))

    def on_host(self, host: HostId) -> tuple[Step, ...]:
        """Return the actions under way that touch a host."""
        return tuple(running.step for running in self.state.actions_on_host(host))

    def hosted(self, host: HostId) -> frozenset[VmId]:
        """Return the VMs that run or sleep on a host, and those on their way to it."""
        # The target of an action counts from its start, before the VM has arrived.
        footprints = (step.footprint for step in self.on_host(host))
        coming = (seen.vm for seen in footprints if seen.vm is not None and seen.target == host)
        return frozenset(self.residents(host)).union(coming)

    def running(self, host: HostId) -> frozenset[VmId]:
        """Return the VMs that run on a host; a migrating VM runs on its source."""
        return self.state.running_vms(host)

    def consumption(self, vm: VmId, resource: str) -> int:
        """Return the amount of a resource that a VM takes."""
        return consumption_of(self.vm(vm), resource)

    def capacity(self, host: HostId, resource: str) -> int:
        """Return the amount of a resource that a host has for its VMs."""
        return capacity_of(self.host(host), resource)

    def demand(self, vm: VmId, resource: str) -> int:
        """Return the amount of a resource that a VM would use now."""
        return demand_of(self.vm(vm), resource)


def consumption_of(vm: Vm, resource: str) -> int:
    """Return the amount of a resource that a VM takes; of CPU and memory, its reservation."""
    if resource == CPU:
        return vm.cpu.reservation_mhz
    if resource == MEMORY:
        return vm.memory.reservation_mib
    if resource == CONFIGURED_MEMORY:
        return vm.memory_mib
    if resource == VCPUS:
        return vm.vcpus
    return vm.consumption.get(ResourceName(resource), 0)


def capacity_of(host: Host, resource: str) -> int:
    """Return the amount of a resource that a host has for its VMs."""
    if resource == CPU:
        return host.usable_cpu_mhz
    if resource == MEMORY:
        return host.usable_memory_mib
    if resource == CONFIGURED_MEMORY:
        return host.configured_memory_max_mib
    if resource == VCPUS:
        return UNLIMITED if host.vcpus_max is None else host.vcpus_max
    return host.capacity.get(ResourceName(resource), 0)


def demand_of(vm: Vm, resource: str) -> int:
    """Return the amount of a resource that a VM would use now."""
    if resource == CPU:
        return vm.demand.cpu_mhz
    if resource == MEMORY:
        return vm.demand.memory_mib
    return vm.demand.named.get(ResourceName(resource), 0)


class PlanSteps:
    """The steps of a plan by VM and by host, in order of time."""

    __slots__ = ("of_host", "of_vm")

    def __init__(self, steps: Iterable[Step]) -> None:
        self.of_vm: dict[VmId, tuple[Step, ...]] = {}
        self.of_host: dict[HostId, tuple[Step, ...]] = {}
        for step in sorted(steps, key=lambda timed: (timed.start_ms, timed.end_ms, timed.id)):
            seen = step.footprint
            if seen.vm is not None:
                self.of_vm[seen.vm] = (*self.of_vm.get(seen.vm, ()), step)
            for host in seen.hosts:
                self.of_host[host] = (*self.of_host.get(host, ()), step)


@dataclass(slots=True)
class EvaluationContext:
    """Everything that a formula may read while it is evaluated."""

    now: StateView
    initial: StateView
    final: StateView
    steps: PlanSteps = field(default_factory=lambda: PlanSteps(()))
    moments: Sequence[StateView] = ()
    """All moments of the plan, for ``always`` and ``sometime``."""
    collections: CollectionCache | None = None
    """The cached large collections of the current state."""
    temporal_cache: dict[Any, bool] | None = None
    """Values of ``always`` and ``sometime``, which are the same at every moment."""

    def at(self, view: StateView) -> EvaluationContext:
        """Return the same context at another moment."""
        # The same context keeps its cached collections, which belong to this state only.
        if view is self.now:
            return self
        return EvaluationContext(
            view,
            self.initial,
            self.final,
            self.steps,
            self.moments,
            temporal_cache=self.temporal_cache,
        )
