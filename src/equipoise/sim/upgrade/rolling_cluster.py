"""The cluster during a rolling upgrade: where its VMs run, and which hosts an outage takes down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from equipoise.capacity.ledger import CommittedCapacity
from equipoise.model.quantity import GroupId, HostId, ResourceId, TenantId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.event import ScalingAnswered, VmsRestarted
from equipoise.model.upgrade.infrastructure import Dependency, DependencyKind, DependencyPresence
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.cluster import ONE_VM


class RollingPlacement:
    """The host of each VM. A VM goes to the first host with capacity, in random order."""

    def __init__(self, start: UpgradeState, rng: Random) -> None:
        self._rng = rng
        self._capacity = start.cluster.capacity.copy()
        self._tenants = start.cluster.tenants
        self._tenant_of = {vm: placed.tenant for vm, placed in start.cluster.placements.items()}
        self._group_of = {vm: placed.group for vm, placed in start.cluster.placements.items()}
        self._host_of = {vm: placed.host for vm, placed in start.cluster.placements.items()}
        self._new_count = 0
        self.residents: dict[HostId, dict[VmId, None]] = {
            host: {} for host in start.cluster.compute_hosts
        }
        for vm, host in self._host_of.items():
            if host is not None:
                self.residents[host][vm] = None
        self.leaving: set[HostId] = set()
        """Hosts of the next batch, which receive no VMs."""
        self.down = {id_ for id_, host in start.cluster.compute_hosts.items() if not host.up}

    def put(self, vm: VmId, host: HostId | None) -> None:
        """Set the host of a VM; ``None`` if it runs nowhere."""
        before = self._host_of.get(vm)
        if before is not None:
            del self.residents[before][vm]
            self._capacity.release(ONE_VM, before)
        if host is not None:
            self.residents[host][vm] = None
            self._capacity.commit(ONE_VM, host)
        self._host_of[vm] = host

    def moves(self, hosts: Sequence[HostId]) -> tuple[VmMove, ...]:
        """Return moves of the VMs of hosts; a VM that fits nowhere has none."""
        moves = []
        incoming: dict[HostId, list[VmId]] = {}
        # A moving VM takes capacity on its target at once and frees its source at the end.
        capacity = self._capacity.copy()
        for source in hosts:
            for vm in self.residents[source]:
                target = self._find_host(self._group_of[vm], capacity, incoming)
                if target is not None:
                    capacity.commit(ONE_VM, target)
                    incoming.setdefault(target, []).append(vm)
                    moves.append(VmMove(vm=vm, source=source, target=target))
        return tuple(moves)

    def scale(self, at_ms: int, tenant: TenantId, vms: int) -> ScalingAnswered:
        """Start VMs of a tenant, or remove its latest ones."""
        own = [vm for vm, owner in self._tenant_of.items() if owner == tenant]
        sla = self._tenants[tenant].sla
        if vms < 0:
            removed = tuple(own[len(own) - min(-vms, max(0, len(own) - sla.vms_min)) :])
            for vm in removed:
                self.put(vm, None)
                del self._tenant_of[vm], self._host_of[vm], self._group_of[vm]
            return ScalingAnswered(at_ms=at_ms, tenant=tenant, removed=removed)
        allowed = min(vms, max(0, sla.vms_max - len(own)))
        groups = self._tenants[tenant].anti_affinity
        added: dict[VmId, HostId] = {}
        for _ in range(allowed):
            group = groups[0].id if groups else None
            host = self._find_host(group, self._capacity, {})
            if host is not None:
                self._new_count += 1
                vm = VmId(f"{tenant}-new-{self._new_count}")
                self._tenant_of[vm], self._group_of[vm] = tenant, group
                self.put(vm, host)
                added[vm] = host
        refused = allowed - len(added)
        return ScalingAnswered(at_ms=at_ms, tenant=tenant, added=added, refused=refused)

    def restart_vms(self, at_ms: int, host: HostId) -> VmsRestarted:
        """Start the VMs of a failed host elsewhere."""
        self.down.add(host)
        placed: dict[VmId, HostId] = {}
        unplaced: list[VmId] = []
        for vm in list(self.residents[host]):
            target = self._find_host(self._group_of[vm], self._capacity, {})
            self.put(vm, target)
            if target is None:
                unplaced.append(vm)
            else:
                placed[vm] = target
        return VmsRestarted(at_ms=at_ms, host=host, placed=placed, unplaced=tuple(unplaced))

    def _find_host(
        self,
        group: GroupId | None,
        capacity: CommittedCapacity,
        incoming: dict[HostId, list[VmId]],
    ) -> HostId | None:
        """Return a host with capacity and without a VM of the group; used hosts before empty ones.

        The order among hosts of equal use is random.
        """
        hosts = [host for host in self.residents if host not in self.leaving | self.down]
        self._rng.shuffle(hosts)
        hosts.sort(key=lambda host: not (self.residents[host] or incoming.get(host)))
        for host in hosts:
            vms = [*self.residents[host], *incoming.get(host, ())]
            keeps_apart = group is None or all(self._group_of[vm] != group for vm in vms)
            if keeps_apart and capacity.fits(ONE_VM, host):
                return host
        return None


_ALL_REQUIRED = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)
"""A dependent of these kinds needs all its sponsors; of other kinds one sponsor is enough."""


class OutageSpread:
    """The dependencies between resources, to find the hosts that an outage takes down."""

    def __init__(self, campaign: UpgradeCampaign) -> None:
        cluster = campaign.cluster
        self._host_of = {resource.id: resource.host for resource in cluster.resources}
        self._sponsors: dict[ResourceId, dict[DependencyKind, list[ResourceId]]] = {}
        self._dependents: dict[ResourceId, list[ResourceId]] = {}
        self._sponsors_min: dict[ResourceId, int] = {}
        self._replacements: dict[ResourceId, ResourceId] = {}
        """The replacement of each resource that has been replaced."""
        for dependency in cluster.dependencies:
            is_future = dependency.presence is DependencyPresence.FUTURE
            if not is_future and not dependency.kind.is_symmetrical:
                self._add_dependency(dependency)
        descriptions = {
            (description.component, description.version): description
            for description in campaign.catalog.descriptions
        }
        for resource in cluster.resources:
            component = ComponentId(resource.component or resource.kind.value)
            known = descriptions.get((component, resource.version))
            if known is not None and known.constituents_min is not None:
                self._sponsors_min[resource.id] = known.constituents_min

    def _add_dependency(self, dependency: Dependency) -> None:
        dependent, sponsor = dependency.dependent, dependency.sponsor
        kinds = self._sponsors.setdefault(dependent, {})
        kinds.setdefault(dependency.kind, []).append(sponsor)
        self._dependents.setdefault(sponsor, []).append(dependent)
        if dependency.constituents_min is not None:
            self._sponsors_min[dependent] = max(
                dependency.constituents_min, self._sponsors_min.get(dependent, 0)
            )

    def replace(self, old: ResourceId, new: ResourceId) -> None:
        """Let ``new`` take over what ``old`` did."""
        self._replacements[old] = new

    def hosts(self, out_of_service: Iterable[ResourceId]) -> set[HostId]:
        """Return the hosts whose VMs are down while these resources are out of service."""
        down = dict.fromkeys(out_of_service)
        queue = list(down)
        for resource in queue:  # the queue grows while the outage spreads
            for dependent in self._dependents.get(resource, ()):
                if dependent not in down and self._goes_down(dependent, down):
                    down[dependent] = None
                    queue.append(dependent)
        return {host for resource in down if (host := self._host_of.get(resource)) is not None}

    def supported(self, sponsor: ResourceId) -> set[HostId]:
        """Return the hosts whose VMs depend on a storage or a controller."""
        return {
            host
            for dependent, kinds in self._sponsors.items()
            if any(
                kind.is_vm_supporting and sponsor in sponsors for kind, sponsors in kinds.items()
            )
            and (host := self._host_of.get(dependent)) is not None
        }

    def _goes_down(self, resource: ResourceId, down: dict[ResourceId, None]) -> bool:
        for kind, sponsors in self._sponsors[resource].items():
            up = [
                sponsor
                for sponsor in sponsors
                if self._replacements.get(sponsor, sponsor) not in down
            ]
            if kind in _ALL_REQUIRED:
                required = len(sponsors)
            elif kind is DependencyKind.AGGREGATION:
                required = self._sponsors_min.get(resource, 1)
            else:
                required = 1
            # A cluster file may declare fewer sponsors than the catalog requires; then all of them
            # are needed.
            if len(up) < min(required, len(sponsors)):
                return True
        return False
