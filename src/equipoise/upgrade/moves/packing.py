"""Packing: on how few hosts VMs can run, and who has to move for it.

A host takes so many VMs and no two of a group. Whether that is possible at all is known from the
sizes alone, as Gale and Ryser have shown of tables of noughts and ones; who goes where is found by
letting VMs make room for each other along the shortest chains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from equipoise.model.quantity import HostId, VmId
from equipoise.upgrade.state import State


def kin(state: State, vm: VmId) -> str:
    """Whom a VM shares no host with: its group, or nobody but itself."""
    return state.seats[vm].group or vm


def fewest(groups: Iterable[int], places: Sequence[int]) -> int | None:
    """How many hosts, from the first, take groups of such sizes; nothing if all are too few.

    It is possible if and only if, for every number of groups, the largest so many are no more VMs
    than the hosts take of so many groups. Beyond the largest host only the sum of all counts.
    """
    sizes = sorted(groups, reverse=True)
    most = max(places, default=0)
    needed = [sum(sizes[:number]) for number in range(1, most)] + [sum(sizes)]
    taken = [0] * len(needed)
    for count, place in enumerate([0, *places]):
        for number in range(len(taken)):
            taken[number] += min(place, number + 1)
        if all(one <= other for one, other in zip(needed, taken, strict=True)):
            return count
    return None


class Packing:
    """VMs on hosts, as they could be."""

    def __init__(
        self, state: State, hosts: Iterable[HostId], pinned: Mapping[VmId, object]
    ) -> None:
        """Begin with the VMs as they run on these hosts; nobody who is pinned moves."""
        self._state = state
        self._newcomers: dict[VmId, str] = {}
        self._pinned = dict.fromkeys(pinned)
        self._on: dict[HostId, dict[str, VmId]] = {}
        for host in hosts:
            here = self._on[host] = {}
            for vm in state.residents.get(host, ()):
                if here.setdefault(kin(state, vm), vm) != vm:  # they share a host against the rule
                    here[vm] = vm
                    self._pinned[vm] = None
        self._roomy = [one for one in self._on if state.free(one) > 0]
        self.target: dict[VmId, HostId] = {}
        """Where VMs go that do not stay where they are."""

    def expect(self, whom: str, number: int) -> bool:
        """Find places for VMs that are not there yet, and may come."""
        vms = [VmId(f"{whom} {count}") for count in range(number)]
        self._newcomers |= dict.fromkeys(vms, whom)
        return all(self.add(vm) for vm in vms)

    def _kin(self, vm: VmId) -> str:
        return self._newcomers.get(vm) or kin(self._state, vm)

    def add(self, vm: VmId) -> bool:
        """Find a place for a VM from elsewhere: a free one, or one that others make free."""
        if vm in self._pinned:
            return False
        whom = self._kin(vm)
        for host in self._roomy:
            if whom not in self._on[host]:
                self._put(vm, host)
                if self._is_full(host):
                    self._roomy.remove(host)
                return True
        return bool(self._roomy) and self._shift(vm)

    def _is_full(self, host: HostId) -> bool:
        return len(self._on[host]) >= self._state.places[host].places

    def _put(self, vm: VmId, host: HostId) -> None:
        self._on[host][self._kin(vm)] = vm
        if vm not in self._newcomers:
            self.target[vm] = host

    def _shift(self, vm: VmId) -> bool:
        """Let VMs make room for each other, as few as possible, until one finds a free place."""
        unseen = dict.fromkeys(self._on)
        comes: dict[HostId, VmId] = {}
        leaves: dict[VmId, HostId] = {}
        queue = deque([vm])
        asked = {self._kin(vm)}
        while queue:
            one = queue.popleft()
            whom = self._kin(one)
            for host in [host for host in unseen if whom not in self._on[host]]:
                del unseen[host]
                comes[host] = one
                if not self._is_full(host):
                    self._follow(host, comes, leaves)
                    return True
                for other, resident in self._on[host].items():
                    if other not in asked and resident not in self._pinned:
                        asked.add(other)
                        leaves[resident] = host
                        queue.append(resident)
        return False

    def _follow(self, end: HostId, comes: dict[HostId, VmId], leaves: dict[VmId, HostId]) -> None:
        """Move everybody along a chain, from its end with the free place to its beginning."""
        host: HostId | None = end
        while host is not None:
            vm = comes[host]
            source = leaves.get(vm)
            if source is not None:
                del self._on[source][self._kin(vm)]
            self._put(vm, host)
            host = source
        if self._is_full(end):
            self._roomy.remove(end)
