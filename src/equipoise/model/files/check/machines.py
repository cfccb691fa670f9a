"""Hosts and VMs: sizes, claims, and who lies where."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Protocol

from equipoise.model.files.check.roster import NamedElements, Roster
from equipoise.model.files.check.usage import check_usage
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, listed, quoted
from equipoise.model.host import Host, HostState, PowerFigures
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState

_FIGURES_MIN: Final = 2


class KnownHosts(Protocol):
    """Those who know which hosts there are."""

    def check(self, name: str, path: Path, found: Findings) -> bool:
        """Say whether there is a host of that name, and find it wrong if not."""

    def get(self, name: str) -> Host | None:
        """The host of that name, if it could be read."""


def check_hosts(roster: Roster, found: Findings) -> None:
    """Find hosts that make no sense."""
    for place, host in roster.hosts:
        check_host(host, ("hosts", place), found)


def check_host(host: Host, path: Path, found: Findings) -> None:
    """Find a host that keeps more than it has, or draws more at rest than at work."""
    if host.reserve.cpu_mhz > host.cpu_mhz:
        what = f"{host.reserve.cpu_mhz} is more than the host has"
        found.add((*path, "reserve", "cpu_mhz"), what, f"at most {host.cpu_mhz}")
    if host.reserve.memory_mib > host.memory_mib:
        what = f"{host.reserve.memory_mib} is more than the host has"
        found.add((*path, "reserve", "memory_mib"), what, f"at most {host.memory_mib}")
    if host.power.idle_watts > host.power.peak_watts:
        what = f"{host.power.idle_watts} is more than peak_watts {host.power.peak_watts}"
        cure = f"at most {host.power.peak_watts}, or raise peak_watts"
        found.add((*path, "power", "idle_watts"), what, cure)
    if host.power.cap_watts is not None and host.power.cap_watts < host.power.curve[0]:
        what = f"{host.power.cap_watts} is less than it draws when it does nothing"
        cure = f"at least {host.power.curve[0]}, or leave it out"
        found.add((*path, "power", "cap_watts"), what, cure)
    _check_managed(host.power, (*path, "power", "managed_watts"), found)


def _check_managed(power: PowerFigures, path: Path, found: Findings) -> None:
    figures = power.managed_watts
    if power.managed and len(figures) < _FIGURES_MIN:
        what = f"has {len(figures)} of at least {_FIGURES_MIN} figures, though managed is true"
        found.add(path, what, "give the watts from no use to full use, evenly spaced")
    for place, (before, watts) in enumerate(pairwise(figures), start=1):
        if watts < before:
            what = f"{watts} is below the figure before it, {before}"
            found.add((*path, place), what, f"at least {before}")


def check_vms(roster: Roster, found: Findings) -> None:
    """Find VMs in places that cannot be, and with claims that contradict each other."""
    for place, vm in roster.vms:
        path: Path = ("vms", place)
        check_place(vm, roster.hosts, path, found)
        check_vm(vm, roster, path, found)
        if vm.ft_pair is not None:
            check_pair(vm, vm.ft_pair, roster.vms, (*path, "ft_pair"), found)


def check_vm(vm: Vm, roster: Roster, path: Path, found: Findings) -> None:
    """Find claims that contradict each other, and a pool or tenant that does not exist."""
    check_claims(vm.cpu, vm.memory, path, found)
    _check_memory(vm, path, found)
    if vm.replaceable and vm.template is None:
        what = "is true, but there is no template to make the VM anew from"
        found.add((*path, "replaceable"), what, "name the template, or leave it out")
    if vm.usage is not None:
        check_usage(vm, vm.usage, (*path, "usage"), found)
    if vm.pool is not None:
        roster.pools.check(vm.pool, (*path, "pool"), found)
    if vm.tenant is not None:
        roster.tenants.check(vm.tenant, (*path, "tenant"), found)


def check_claims(cpu: CpuSettings, memory: MemorySettings, path: Path, found: Findings) -> None:
    """Find more guaranteed than allowed."""
    if cpu.limit_mhz is not None and cpu.reservation_mhz > cpu.limit_mhz:
        what = f"{cpu.reservation_mhz} is above limit_mhz {cpu.limit_mhz}"
        found.add((*path, "cpu", "reservation_mhz"), what, f"at most {cpu.limit_mhz}")
    if memory.limit_mib is not None and memory.reservation_mib > memory.limit_mib:
        what = f"{memory.reservation_mib} is above limit_mib {memory.limit_mib}"
        found.add((*path, "memory", "reservation_mib"), what, f"at most {memory.limit_mib}")


def _check_memory(vm: Vm, path: Path, found: Findings) -> None:
    cure = f"at most {vm.memory_mib}, or raise memory_mib"
    if vm.memory.reservation_mib > vm.memory_mib:
        what = f"{vm.memory.reservation_mib} is above the configured memory_mib {vm.memory_mib}"
        found.add((*path, "memory", "reservation_mib"), what, cure)
    if vm.demand.memory_mib > vm.memory_mib:
        what = f"{vm.demand.memory_mib} is above the configured memory_mib {vm.memory_mib}"
        found.add((*path, "demand", "memory_mib"), what, cure)


def check_place(vm: Vm, hosts: KnownHosts, path: Path, found: Findings) -> None:
    """Find a VM that is where it cannot be."""
    if vm.host is None:
        if vm.state in (VmState.RUNNING, VmState.SLEEPING):
            what = f"is missing, though the VM {quoted(vm.id)} is {vm.state}"
            found.add((*path, "host"), what, "name its host, or write state: ready")
        return
    if vm.state not in (VmState.RUNNING, VmState.SLEEPING):
        what = f"a VM that is {vm.state} has no host, found {quoted(vm.host)}"
        found.add((*path, "host"), what, "leave host out, or write state: running")
    elif hosts.check(vm.host, (*path, "host"), found):
        host = hosts.get(vm.host)
        if host is not None:
            _check_guest(vm, host, path, found)


def _check_guest(vm: Vm, host: Host, path: Path, found: Findings) -> None:
    """Find a VM that its host cannot carry, whatever its size."""
    if vm.state is VmState.RUNNING and host.state is not HostState.ON:
        what = f"the VM {quoted(vm.id)} is running, but its host {quoted(host.id)} is {host.state}"
        cure = "write state: sleeping" if vm.agent else "name a host that is on, or another state"
        found.add((*path, "host"), what, cure)
    check_offers(vm, host, path, found)


def check_offers(vm: Vm, host: Host, path: Path, found: Findings) -> None:
    """Find a VM that takes of what its host does not have."""
    for name, amount in vm.consumption.items():
        if amount > 0 and name not in host.capacity:
            what = f"its host {quoted(host.id)} does not offer {quoted(name)}"
            offers = f"it offers: {listed(host.capacity)}" if host.capacity else "it offers nothing"
            found.add((*path, "consumption", name), what, offers + " in capacity")


def check_pair(vm: Vm, name: str, vms: NamedElements[Vm], path: Path, found: Findings) -> None:
    """Find a fault-tolerant pair that is none, or not apart."""
    if name == vm.id:
        found.add(path, "a VM is not its own pair", "name another VM")
        return
    if not vms.check(name, path, found):
        return
    other = vms.get(name)
    if other is None:
        return
    if other.ft_pair != vm.id:
        names = "none" if other.ft_pair is None else quoted(other.ft_pair)
        what = f"the pair is not mutual: {quoted(name)} names {names}"
        found.add(path, what, f"write ft_pair: {vm.id} there, or leave it out here")
    elif vm.host is not None and vm.host == other.host and vm.id < name:
        what = f"{quoted(vm.id)} and {quoted(name)} are both on {quoted(vm.host)}"
        found.add(path, what, "a pair needs two hosts")
