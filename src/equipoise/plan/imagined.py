"""What would be: a draft on top of another one, which it leaves as it is.

It costs as much as what is imagined, however large the cluster is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from equipoise.model.change.draft import Draft
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import LastMove, LastSwitch, Running
from equipoise.model.vm import Vm, VmState

K = TypeVar("K")
V = TypeVar("V")


class _Layer(Mapping[K, V]):
    """A map with some values put in place of those below."""

    __slots__ = ("_below", "own")

    def __init__(self, below: Mapping[K, V]) -> None:
        self._below = below
        self.own: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self.own[key] if key in self.own else self._below[key]

    def __contains__(self, key: object) -> bool:
        return key in self._below  # nothing is ever added

    def __iter__(self) -> Iterator[K]:
        return iter(self._below)

    def __len__(self) -> int:
        return len(self._below)


class Imagined(Draft):
    """A draft in which actions begin and end that have not. No VM and no host comes or goes."""

    def __init__(self, base: Draft) -> None:
        self._base = base
        self.version, self.at_ms = base.version, base.at_ms
        self.name, self.settings, self.history = base.name, base.settings, base.history
        self._vms: _Layer[VmId, Vm] = _Layer(base.vms)
        self._hosts: _Layer[HostId, Host] = _Layer(base.hosts)
        vms: Any = self._vms
        hosts: Any = self._hosts
        self.vms, self.hosts = vms, hosts
        started: Any = _Started(base.in_flight)
        self.in_flight = started
        self._by_vm, self._by_host = {}, {}
        self._moved: dict[VmId, HostId | None] = {}
        self.touched_vms, self.touched_hosts = {}, {}

    def note_move(self, vm: VmId, move: LastMove) -> None:
        """What is imagined teaches nothing about speed."""

    def note_switch(self, host: HostId, switch: LastSwitch) -> None:
        """Nor about who wakes."""

    def vm_names(self) -> frozenset[VmId]:
        """The names of all VMs."""
        return self._base.vm_names()

    def host_names(self) -> frozenset[HostId]:
        """The names of all hosts."""
        return self._base.host_names()

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """The VMs that run or sleep on a host."""
        stayed = (vm for vm in self._base.residents(host) if vm not in self._moved)
        return (*stayed, *(vm for vm, where in self._moved.items() if where == host))

    def runners(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host."""
        if host not in self.touched_hosts:
            return self._base.runners(host)
        vms = self.vms
        there = self.residents(host)
        return frozenset([vm for vm in there if vms[vm].state is VmState.RUNNING])

    def running_on(self, vm: VmId) -> tuple[Running, ...]:
        """The actions under way on a VM."""
        begun = self._by_vm.get(vm, {}).values()
        return (*self._left(self._base.running_on(vm)), *begun)

    def running_at(self, host: HostId) -> tuple[Running, ...]:
        """The actions under way that touch a host."""
        begun = self._by_host.get(host, {}).values()
        return (*self._left(self._base.running_at(host)), *begun)

    def put_host(self, host: Host) -> None:
        """Replace a host."""
        self._hosts.own[host.id] = host
        self.touched_hosts[host.id] = None

    def put_vm(self, vm: Vm) -> None:
        """Replace a VM."""
        before = self._vms[vm.id].host
        if before != vm.host or vm.id in self._moved:
            self._moved[vm.id] = vm.host
        self._vms.own[vm.id] = vm
        self.touched_vms[vm.id] = None
        self.touched_hosts.update((one, None) for one in (before, vm.host) if one is not None)

    def put_running(self, running: Running) -> None:
        """Note that an action is under way."""
        self._flying.own[running.step.id] = running
        self._index(running)
        self._touch(running)

    def drop_running(self, step: StepId) -> Running:
        """Note that an action is no longer under way."""
        running = self._flying[step]
        if step in self._flying.own:
            del self._flying.own[step]
            self._forget(running)
        else:
            self._flying.ended.add(step)
        self._touch(running)
        return running

    @property
    def _flying(self) -> _Started:
        flying: Any = self.in_flight
        assert isinstance(flying, _Started)
        return flying

    def _left(self, some: tuple[Running, ...]) -> Iterator[Running]:
        return (one for one in some if one.step.id not in self._flying.ended)


class _Started(Mapping[StepId, Running]):
    """The actions under way: those below that have not ended, and those that have begun."""

    __slots__ = ("_below", "ended", "own")

    def __init__(self, below: Mapping[StepId, Running]) -> None:
        self._below = below
        self.own: dict[StepId, Running] = {}
        self.ended: set[StepId] = set()

    def __getitem__(self, key: StepId) -> Running:
        if key in self.ended:
            raise KeyError(key)
        return self.own[key] if key in self.own else self._below[key]

    def __iter__(self) -> Iterator[StepId]:
        yield from (step for step in self._below if step not in self.ended)
        yield from self.own

    def __len__(self) -> int:
        return len(self._below) - len(self.ended) + len(self.own)
