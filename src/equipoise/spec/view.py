"""What a formula sees: the state at one moment, the first and the last one, and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.model.draft import Draft
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.model.snapshot import Running, Snapshot
from equipoise.model.vm import VmState

CPU, MEMORY = "cpu", "memory"
"""The resources that every host has; any other name is one of the named ones."""


class View:
    """A state, as the functions of the language ask for it. Built once per moment, lazily."""

    __slots__ = ("_hosted", "_running", "hosts", "in_flight", "vms")

    def __init__(self, state: Snapshot | Draft) -> None:
        self.hosts = state.hosts
        self.vms = state.vms
        self.in_flight: Mapping[StepId, Running] = state.in_flight
        self._hosted: dict[HostId, set[VmId]] | None = None
        self._running: dict[HostId, set[VmId]] | None = None

    def hosted(self, host: HostId) -> frozenset[VmId]:
        """The VMs that lie on a host, and those on their way to it."""
        if self._hosted is None:
            self._hosted = {}
            for vm in self.vms.values():
                if vm.host is not None:
                    self._hosted.setdefault(vm.host, set()).add(vm.id)
            for running in self.in_flight.values():
                seen = running.step.footprint
                if seen.vm is not None and seen.target is not None:
                    self._hosted.setdefault(seen.target, set()).add(seen.vm)
        return frozenset(self._hosted.get(host, ()))

    def running(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host; one that migrates runs on its source."""
        if self._running is None:
            self._running = {}
            for vm in self.vms.values():
                if vm.state is VmState.RUNNING and vm.host is not None:
                    self._running.setdefault(vm.host, set()).add(vm.id)
        return frozenset(self._running.get(host, ()))

    def consumption(self, vm: VmId, resource: str) -> int:
        """What a VM takes of a resource: what is reserved for it, of CPU and memory."""
        found = self.vms[vm]
        if resource == CPU:
            return found.cpu.reservation_mhz
        if resource == MEMORY:
            return found.memory.reservation_mib
        return found.consumption.get(ResourceName(resource), 0)

    def capacity(self, host: HostId, resource: str) -> int:
        """What a host has of a resource for its VMs."""
        found = self.hosts[host]
        if resource == CPU:
            return found.usable_cpu_mhz
        if resource == MEMORY:
            return found.usable_memory_mib
        return found.capacity.get(ResourceName(resource), 0)

    def demand(self, vm: VmId, resource: str) -> int:
        """What a VM would use of a resource now."""
        found = self.vms[vm].demand
        if resource == CPU:
            return found.cpu_mhz
        if resource == MEMORY:
            return found.memory_mib
        return found.named.get(ResourceName(resource), 0)


@dataclass(slots=True)
class Frame:
    """Everything a formula may ask about while it is judged."""

    now: View
    initial: View
    final: View
    steps: Mapping[VmId, tuple[Step, ...]] = field(default_factory=dict)
    moments: Sequence[View] = ()
    """All moments of the plan, for ``always`` and ``sometime``."""

    def at(self, view: View) -> Frame:
        """The same, looked at from another moment."""
        return Frame(view, self.initial, self.final, self.steps, self.moments)


def steps_by_vm(steps: Sequence[Step]) -> dict[VmId, tuple[Step, ...]]:
    """What a plan does with each VM, in order of time."""
    found: dict[VmId, list[Step]] = {}
    for step in sorted(steps, key=lambda one: (one.start_ms, one.end_ms, one.id)):
        vm = step.footprint.vm
        if vm is not None:
            found.setdefault(vm, []).append(step)
    return {vm: tuple(some) for vm, some in found.items()}


Value = Any
"""A value of the language: int, bool, str (ids and states too), frozenset, tuple, Step, or None.

``None`` is the host of a VM that has none: nowhere, which is in no set of hosts.
"""
