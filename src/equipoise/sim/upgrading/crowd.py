"""The VMs of a cluster as a rolling upgrade sees them: who is where, and where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.upgrade.event import ScalingAnswered, VmsRestarted
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.state import State


class Crowd:
    """Where VMs run. Whoever needs a place gets the first that fits, in an order by chance."""

    def __init__(self, start: State, chance: Random) -> None:
        self._chance = chance
        self._capacity = {one: place.places for one, place in start.places.items()}
        self._tenants = start.tenants
        self._tenant_of = {vm: seat.tenant for vm, seat in start.seats.items()}
        self._group_of = {vm: seat.group for vm, seat in start.seats.items()}
        self._host_of = {vm: seat.host for vm, seat in start.seats.items()}
        self._new = 0
        self.residents: dict[HostId, dict[VmId, None]] = {one: {} for one in self._capacity}
        for vm, host in self._host_of.items():
            if host is not None:
                self.residents[host][vm] = None
        self.leaving: set[HostId] = set()
        """Hosts that are about to be changed: nobody goes there."""
        self.down = {one for one, place in start.places.items() if not place.up}

    def put(self, vm: VmId, host: HostId | None) -> None:
        """Let a VM run there, and nowhere else."""
        before = self._host_of.get(vm)
        if before is not None:
            self.residents[before].pop(vm, None)
        if host is not None:
            self.residents[host][vm] = None
        self._host_of[vm] = host

    def moves(self, hosts: Sequence[HostId]) -> tuple[VmMove, ...]:
        """Where the VMs of hosts go, all at once; those that fit nowhere are left out."""
        found = []
        coming: dict[HostId, list[VmId]] = {}
        for source in hosts:
            for vm in self.residents[source]:
                target = self._place(self._group_of[vm], coming)
                if target is not None:
                    coming.setdefault(target, []).append(vm)
                    found.append(VmMove(vm=vm, source=source, target=target))
        return tuple(found)

    def scaled(self, at_ms: int, tenant: TenantId, vms: int) -> ScalingAnswered:
        """Start VMs of a tenant, or remove its latest ones."""
        own = [vm for vm, whose in self._tenant_of.items() if whose == tenant]
        sla = self._tenants[tenant].sla
        if vms < 0:
            gone = tuple(own[len(own) - min(-vms, max(0, len(own) - sla.vms_min)) :])
            for vm in gone:
                self.put(vm, None)
                del self._tenant_of[vm], self._host_of[vm], self._group_of[vm]
            return ScalingAnswered(at_ms=at_ms, tenant=tenant, removed=gone)
        wanted = min(vms, max(0, sla.vms_max - len(own)))
        groups = self._tenants[tenant].anti_affinity
        added: dict[VmId, HostId] = {}
        for _ in range(wanted):
            group = groups[0].id if groups else None
            host = self._place(group, {})
            if host is not None:
                self._new += 1
                vm = VmId(f"{tenant}-new-{self._new}")
                self._tenant_of[vm], self._group_of[vm] = tenant, group
                self.put(vm, host)
                added[vm] = host
        return ScalingAnswered(at_ms=at_ms, tenant=tenant, added=added, refused=wanted - len(added))

    def failed(self, at_ms: int, host: HostId) -> VmsRestarted:
        """Start the VMs of a failed host elsewhere."""
        self.down.add(host)
        placed: dict[VmId, HostId] = {}
        unplaced: list[VmId] = []
        for vm in list(self.residents[host]):
            target = self._place(self._group_of[vm], {})
            self.put(vm, target)
            if target is None:
                unplaced.append(vm)
            else:
                placed[vm] = target
        return VmsRestarted(at_ms=at_ms, host=host, placed=placed, unplaced=tuple(unplaced))

    def _place(self, group: GroupId | None, coming: dict[HostId, list[VmId]]) -> HostId | None:
        """A host in use with room, or an empty one; members of a group do not share one."""
        hosts = [one for one in self._capacity if one not in self.leaving | self.down]
        self._chance.shuffle(hosts)
        hosts.sort(key=lambda one: not (self.residents[one] or coming.get(one)))
        for one in hosts:
            there = [*self.residents[one], *coming.get(one, ())]
            alone = group is None or all(self._group_of[vm] != group for vm in there)
            if alone and len(there) < self._capacity[one]:
                return one
        return None
