"""Who is where at the start: nodes that are on or off, and the VMs on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from equipoise.model.files.btrplace.form import Mapping, Numbers
from equipoise.model.files.btrplace.names import host_name, vm_name
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState

_TOP: Path = ("model", "mapping")


@dataclass(slots=True)
class Places:
    """The nodes and VMs of an instance, by their numbers."""

    hosts: dict[int, HostId]
    online: frozenset[int]
    vms: dict[int, VmId] = field(default_factory=dict)
    running: dict[int, HostId] = field(default_factory=dict)
    sleeping: dict[int, HostId] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()

    def meet(self, vms: Iterable[int]) -> None:
        """Take note of VMs, who need not be there yet: they can be forged."""
        for number in set(vms) - self.vms.keys():
            self.vms[number] = vm_name(number)

    def place_of(self, vm: int) -> tuple[VmState, HostId | None]:
        """The state of a VM and its host. Whom the mapping does not name is not made yet."""
        host = self.running.get(vm)
        if host is not None:
            return VmState.RUNNING, host
        host = self.sleeping.get(vm)
        if host is not None:
            return VmState.SLEEPING, host
        return (VmState.READY if vm in self.ready else VmState.INIT), None


def places_of(mapping: Mapping, found: Findings) -> Places:
    """Read who is where, and find who is in two places at once."""
    nodes = sorted({*mapping.online, *mapping.offline})
    places = Places({node: host_name(node) for node in nodes}, frozenset(mapping.online))
    if not nodes:
        found.add((*_TOP, "onlineNodes"), "there is no node", "list at least one")
    if len(nodes) < len(mapping.online) + len(mapping.offline):
        _find_doubled(_nodes(mapping), "node", "a node is online or offline, once", found)
    for node, residents in mapping.online.items():
        host = places.hosts[node]
        places.running.update(dict.fromkeys(residents.running, host))
        places.sleeping.update(dict.fromkeys(residents.sleeping, host))
    places.ready = frozenset(mapping.ready)
    for group in (places.running, places.sleeping, mapping.ready):
        places.meet(group)
    listed = sum(len(one.running) + len(one.sleeping) for one in mapping.online.values())
    if len(places.vms) < listed + len(mapping.ready):
        _find_doubled(_vms(mapping), "VM", "a VM is in one place, once", found)
    return places


def _nodes(mapping: Mapping) -> Iterator[tuple[Path, int]]:
    for node in mapping.online:
        yield (*_TOP, "onlineNodes", str(node)), node
    yield from _listed((*_TOP, "offlineNodes"), mapping.offline)


def _vms(mapping: Mapping) -> Iterator[tuple[Path, int]]:
    yield from _listed((*_TOP, "readyVMs"), mapping.ready)
    for node, residents in mapping.online.items():
        path: Path = (*_TOP, "onlineNodes", str(node))
        yield from _listed((*path, "runningVMs"), residents.running)
        yield from _listed((*path, "sleepingVMs"), residents.sleeping)


def _listed(path: Path, numbers: Numbers) -> Iterator[tuple[Path, int]]:
    for place, number in enumerate(numbers):
        yield (*path, place), number


def _find_doubled(
    listed: Iterator[tuple[Path, int]], noun: str, cure: str, found: Findings
) -> None:
    first: dict[int, Path] = {}
    for path, number in listed:
        if number in first:
            found.add(path, f"the {noun} {number} is also in", cure, first=first[number])
        first.setdefault(number, path)
