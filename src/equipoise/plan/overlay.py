"""A draft on top of another draft, which stays unchanged.

The cost depends on the number of changes, not on the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from equipoise.model.host import Host
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import LastMove, LastPowerChange, RunningAction
from equipoise.model.vm import Vm, VmState

K = TypeVar("K")
V = TypeVar("V")


class _MapOverlay(Mapping[K, V]):
    """A map in which some values replace those of the map below."""

    __slots__ = ("_below", "own")

    def __init__(self, below: Mapping[K, V]) -> None:
        self._below = below
        self.own: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self.own[key] if key in self.own else self._below[key]

    def __contains__(self, key: object) -> bool:
        return key in self._below  # an overlay replaces values and adds no keys

    def __iter__(self) -> Iterator[K]:
        return iter(self._below)

    def __len__(self) -> int:
        return len(self._below)


class OverlayDraft(Draft):
    """A draft with hypothetical starts and ends of actions. VMs and hosts stay the same."""

    def __init__(self, base: Draft) -> None:
        self._base = base
        self.version, self.at_ms = base.version, base.at_ms
        self.name, self.settings, self.history = base.name, base.settings, base.history
        self._vms: _MapOverlay[VmId, Vm] = _MapOverlay(base.vms)
        self._hosts: _MapOverlay[HostId, Host] = _MapOverlay(base.hosts)
        vms: Any = self._vms
        hosts: Any = self._hosts
        self.vms, self.hosts = vms, hosts
        started: Any = _InFlightOverlay(base.in_flight)
        self.in_flight = started
        self._by_vm, self._by_host = {}, {}
        self._moved: dict[VmId, HostId | None] = {}
        self.touched_vms, self.touched_hosts = {}, {}

    def note_move(self, vm: VmId, move: LastMove) -> None:
        """Ignore the move: a hypothetical one is no measurement of speed."""

    def note_power_change(self, host: HostId, switch: LastPowerChange) -> None:
        """Ignore the switch: a hypothetical one is no measurement."""

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

    def running_vms(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host."""
        if host not in self.touched_hosts:
            return self._base.running_vms(host)
        vms = self.vms
        there = self.residents(host)
        return frozenset([vm for vm in there if vms[vm].state is VmState.RUNNING])

    def actions_on_vm(self, vm: VmId) -> tuple[RunningAction, ...]:
        """The actions under way on a VM."""
        begun = self._by_vm.get(vm, {}).values()
        return (*self._still_running(self._base.actions_on_vm(vm)), *begun)

    def actions_on_host(self, host: HostId) -> tuple[RunningAction, ...]:
        """The actions under way that touch a host."""
        begun = self._by_host.get(host, {}).values()
        return (*self._still_running(self._base.actions_on_host(host)), *begun)

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
        hosts = (host for host in (before, vm.host) if host is not None)
        self.touched_hosts.update(dict.fromkeys(hosts))

    def put_action(self, running: RunningAction) -> None:
        """Add an action that is under way."""
        self._in_flight_overlay.own[running.step.id] = running
        self._index(running)
        self._touch(running)

    def drop_action(self, step: StepId) -> RunningAction:
        """Remove an action that has ended."""
        running = self._in_flight_overlay[step]
        if step in self._in_flight_overlay.own:
            del self._in_flight_overlay.own[step]
            self._forget(running)
        else:
            self._in_flight_overlay.ended.add(step)
        self._touch(running)
        return running

    @property
    def _in_flight_overlay(self) -> _InFlightOverlay:
        in_flight: Any = self.in_flight
        assert isinstance(in_flight, _InFlightOverlay)
        return in_flight

    def _still_running(self, actions: tuple[RunningAction, ...]) -> Iterator[RunningAction]:
        ended = self._in_flight_overlay.ended
        return (running for running in actions if running.step.id not in ended)


class _InFlightOverlay(Mapping[StepId, RunningAction]):
    """The actions under way: those below that have not ended, and those that began above."""

    __slots__ = ("_below", "ended", "own")

    def __init__(self, below: Mapping[StepId, RunningAction]) -> None:
        self._below = below
        self.own: dict[StepId, RunningAction] = {}
        self.ended: set[StepId] = set()

    def __getitem__(self, key: StepId) -> RunningAction:
        if key in self.ended:
            raise KeyError(key)
        return self.own[key] if key in self.own else self._below[key]

    def __iter__(self) -> Iterator[StepId]:
        yield from (step for step in self._below if step not in self.ended)
        yield from self.own

    def __len__(self) -> int:
        return len(self._below) - len(self.ended) + len(self.own)
