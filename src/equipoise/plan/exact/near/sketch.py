"""A sketch: a quick guess who moves where, so that the solver has little left to look for.

It looks at room only. Whatever else is demanded is the solver's business, which is given more than
one host for each VM and goes farther when the sketch is of no use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest

from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.near.allowed import Allowed
from equipoise.plan.exact.task import RuleClaim, Task
from equipoise.spec.view import CPU, MEMORY, capacity_of, consumption_of

Amounts = tuple[int, ...]


class Sketcher:
    """Keeps account of the room that is left, host by host."""

    def __init__(self, task: Task, wished: Snapshot) -> None:
        self._task = task
        self._wished = wished
        names = {name for vm in wished.vms.values() for name in vm.consumption}
        reserved = any(vm.cpu.reservation_mhz for vm in wished.vms.values())
        pinned = any(vm.memory.reservation_mib for vm in wished.vms.values())
        self._resources = (
            *((CPU,) if reserved else ()),
            *((MEMORY,) if pinned else ()),
            *sorted(names),
        )
        self._limits = dict(_limits(task))
        self._free = {host.id: self._room(host) for host in wished.hosts.values()}
        usable = [host for host in wished.hosts.values() if self._is_usable(host)]
        usable.sort(key=self._fullness)
        self._hosts = [host.id for host in usable]
        self._turn = 0
        self._allowed = Allowed(task)

    def evicted(self, misplaced: Iterable[VmId]) -> list[VmId]:
        """Of those who may be misplaced, the ones who have to go if only room counts.

        Whoever is misplaced for another reason is among them.
        """
        by_host: dict[HostId, list[VmId]] = {}
        for vm in sorted(misplaced):
            host = self._wished.vms[vm].host
            if host is not None:
                by_host.setdefault(host, []).append(vm)
        found: list[VmId] = []
        for host, vms in by_host.items():
            is_on = self._wished.hosts[host].state is HostState.ON
            found += self._shed(host, vms) if is_on and self._is_overfull(host) else vms
        return found

    def sketch(self, movers: Sequence[VmId], count: int) -> dict[VmId, list[HostId]]:
        """Find hosts for some VMs, the largest first.

        The first host of each VM is the one that is guessed, and its room is taken.
        """
        hosts: dict[VmId, list[HostId]] = {}
        for vm in sorted(movers, key=lambda one: (-sum(self._needs(one)), one)):
            hosts[vm] = self._candidates(vm, count)
            if hosts[vm]:
                self._take(hosts[vm][0], self._needs(vm), 1)
        return hosts

    def least_short(self, vm: VmId, count: int) -> list[HostId]:
        """The hosts that could hold a VM on which the least is missing for it."""
        needs, allowed = self._needs(vm), self._allowed.hosts(vm)
        short = [
            (self._shortfall(host, needs), host)
            for host in self._hosts
            if (allowed is None or host in allowed) and self._could_hold(host, needs)
        ]
        return [host for _, host in nsmallest(count, short)]

    def _could_hold(self, host: HostId, needs: Amounts) -> bool:
        whole = self._wished.hosts[host]
        return all(
            need <= self._capacity(whole, name)
            for need, name in zip(needs, self._resources, strict=True)
        )

    def _shortfall(self, host: HostId, needs: Amounts) -> float:
        free = self._free[host]
        return max(
            (
                (need - room) / need
                for need, room in zip(needs, free, strict=True)
                if need > max(0, room)
            ),
            default=0.0,
        )

    # Room

    def _needs(self, name: VmId) -> Amounts:
        vm = self._wished.vms[name]
        wanted = self._task.amounts.get(name)
        if wanted and vm.state is not VmState.RUNNING:
            vm = vm.but(consumption={**vm.consumption, **wanted})
        return self._amounts(vm)

    def _amounts(self, vm: Vm) -> Amounts:
        return tuple(consumption_of(vm, name) for name in self._resources)

    def _capacity(self, host: Host, name: str) -> int:
        whole = capacity_of(host, name)
        return min(whole, self._limits.get((host.id, name), whole))

    def _room(self, host: Host) -> list[int]:
        free = [self._capacity(host, name) for name in self._resources]
        for name in self._wished.residents[host.id]:
            vm = self._wished.vms[name]
            if vm.state is VmState.RUNNING or vm.agent:
                for place, amount in enumerate(self._amounts(vm)):
                    free[place] -= amount
        return free

    def _take(self, host: HostId, needs: Amounts, sign: int) -> None:
        free = self._free[host]
        for place, need in enumerate(needs):
            free[place] -= sign * need

    def _is_overfull(self, host: HostId) -> bool:
        return min(self._free[host], default=0) < 0

    def _shed(self, host: HostId, vms: list[VmId]) -> Iterator[VmId]:
        """The fewest VMs whose leaving makes a host fit: the smallest that does, or the largest."""
        left = list(vms)
        free = self._free[host]
        while left and self._is_overfull(host):
            worst = min(range(len(free)), key=free.__getitem__)
            left.sort(key=lambda vm: (self._needs(vm)[worst], vm))
            enough = (vm for vm in left if self._needs(vm)[worst] >= -free[worst])
            leaver = next(enough, left[-1])
            left.remove(leaver)
            self._take(host, self._needs(leaver), -1)
            yield leaver

    # Hosts

    def _candidates(self, vm: VmId, count: int) -> list[HostId]:
        needs, allowed = self._needs(vm), self._allowed.hosts(vm)
        now, found = self._wished.vms[vm].host, list[HostId]()
        for place in range(len(self._hosts)):
            host = self._hosts[(self._turn + place) % len(self._hosts)]
            free = self._free[host]
            if host == now or (allowed is not None and host not in allowed):
                continue
            if all(need <= room for need, room in zip(needs, free, strict=True) if need):
                found.append(host)
                if len(found) == count:
                    break
        self._turn += 1  # another one begins elsewhere, so that not all crowd on one host
        return found

    def _is_usable(self, host: Host) -> bool:
        claims = self._task.host_goals.get(host.id)
        return host.state is HostState.ON or (host.state is HostState.STANDBY and not claims)

    def _fullness(self, host: Host) -> tuple[bool, float]:
        wholes = (self._capacity(host, name) for name in self._resources)
        shares = (
            room / whole
            for room, whole in zip(self._free[host.id], wholes, strict=True)
            if whole > 0
        )
        return host.state is not HostState.ON, -min(shares, default=0.0)


def _limits(task: Task) -> Iterator[tuple[tuple[HostId, str], int]]:
    """What rules leave of a resource of single hosts; the tightest comes last."""
    found = [
        (one.demand.arguments["qty"], *one.demand.arguments["ns"], one.demand.arguments["id"])
        for one in task.hard
        if isinstance(one, RuleClaim)
        and one.demand.library_name == "ResourceCapacity"
        and len(one.demand.arguments["ns"]) == 1
    ]
    for most, host, name in sorted(found, reverse=True):
        yield (host, name), most
