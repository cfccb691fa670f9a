"""The compute hosts and the VMs of tenants during an upgrade.

This module is the only writer of ``UpgradeCluster``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from equipoise.capacity.ledger import CONFIGURED_MEMORY, Claim, CommittedCapacity
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceName, TenantId, VmId
from equipoise.model.upgrade.infrastructure import ResourceGroupKind
from equipoise.model.upgrade.work import VmMove
from equipoise.model.vm import Vm, VmState

VM_CAPACITY: Final = ResourceName("vms")
"""The capacity of a host, in VMs: ``capacity: {vms: 3}``."""
ONE_VM: Final[Claim] = {VM_CAPACITY: 1}
"""What a VM claims of the capacity in VMs."""


def claim_of_size(vm: Vm) -> Claim:
    """Return what a VM that is known claims: a place, and its configured memory."""
    return {VM_CAPACITY: 1, CONFIGURED_MEMORY.label: vm.memory_mib}


def _limits(host: Host, vms_max: int) -> Claim:
    return {VM_CAPACITY: vms_max, CONFIGURED_MEMORY.label: host.configured_memory_max_mib}


@dataclass(frozen=True, slots=True)
class ComputeHost:
    """A compute host: its capacity in VMs, and whether it is up."""

    host: HostId
    vms_max: int
    up: bool = True


@dataclass(frozen=True, slots=True)
class VmPlacement:
    """A VM: its tenant, its anti-affinity groups and its host."""

    vm: VmId
    tenant: TenantId | None
    groups: tuple[GroupId, ...]
    host: HostId | None
    moves: int = 0

    @property
    def group(self) -> GroupId | None:
        """The first group, by which VMs are ordered and counted."""
        return self.groups[0] if self.groups else None


@dataclass(frozen=True, slots=True)
class MoveFailures:
    """How often the move of a VM to a host has failed, and why it failed last."""

    number: int
    reason: str


@dataclass
class UpgradeCluster:
    """Compute hosts, the VMs on them, and the VMs that wait for a host."""

    tenants: dict[TenantId, Tenant]
    compute_hosts: dict[HostId, ComputeHost]
    hosts: dict[HostId, Host]
    """The compute hosts as described. ``compute_hosts`` has their current state."""
    vms: dict[VmId, Vm] = field(default_factory=dict)
    """The VMs as described. ``placements`` has their current hosts."""
    placements: dict[VmId, VmPlacement] = field(default_factory=dict)
    residents: dict[HostId, dict[VmId, None]] = field(default_factory=dict)
    """The VMs on each host: an index of ``placements``."""
    capacity: CommittedCapacity = field(
        default_factory=lambda: CommittedCapacity({}), compare=False
    )
    """The ledger of the hosts, in VMs and their configured memory: an index of ``compute_hosts``
    and ``placements``."""
    vm_counts: dict[TenantId, int] = field(default_factory=dict)
    """The VMs of each tenant: an index of ``placements``."""
    first_vms: dict[TenantId, Vm] = field(default_factory=dict)
    """The first VM of each tenant as described: scaling copies it, also after it was removed."""
    disturbed_max: dict[GroupId, int] = field(default_factory=dict)
    """How many VMs of each anti-affinity group may move at once."""
    failed_moves: dict[VmId, dict[HostId, MoveFailures]] = field(default_factory=dict)
    """The failed moves of each VM from its host, by target, over all iterations."""
    returned_hosts: dict[HostId, None] = field(default_factory=dict)
    """Extra hosts that are no longer part of the cluster."""
    together: dict[VmId, dict[VmId, None]] = field(default_factory=dict)
    """The VMs of the affinity groups of each VM, itself included."""
    pending_scaling: list[tuple[TenantId, int]] = field(default_factory=list)
    """Scaling requests without an answer."""
    vms_added: int = 0
    """How many VMs scaling has added. The number is part of their ids."""
    vms_to_restart: dict[HostId, tuple[VmId, ...]] = field(default_factory=dict)
    """VMs of failed hosts that wait for a restart."""
    unplaced_vms: dict[HostId, tuple[VmId, ...]] = field(default_factory=dict)
    """VMs of failed hosts that found no host."""

    @classmethod
    def of(cls, inventory: Inventory) -> UpgradeCluster:
        """Return the hosts and VMs of an inventory."""
        hosts = [inventory.overcommitted(host) for host in inventory.hosts]
        # The largest VM everywhere: whatever VM moves, the count of a host is never too high.
        largest_mib = max((vm.memory_mib for vm in inventory.vms), default=1)
        cluster = cls(
            tenants={tenant.id: tenant for tenant in inventory.tenants},
            compute_hosts={
                host.id: ComputeHost(
                    host.id, _vms_max(host, largest_mib), host.state is HostState.ON
                )
                for host in hosts
            },
            hosts={host.id: host for host in hosts},
        )
        for name, compute_host in cluster.compute_hosts.items():
            limits = _limits(cluster.hosts[name], compute_host.vms_max)
            cluster.capacity.limits[name] = limits
        groups_of = _declared_groups(inventory)
        named = (group for groups in groups_of.values() for group in groups)
        cluster.disturbed_max = dict.fromkeys(named, 1)
        for tenant in inventory.tenants:
            cluster.vm_counts[tenant.id] = 0
            for group in tenant.anti_affinity:
                cluster.disturbed_max[group.id] = group.disturbed_max
                for vm_id in group.vms:
                    groups_of.setdefault(vm_id, {})[group.id] = None
        cluster.together = _affinity_mates(inventory)
        for vm in inventory.vms:
            # Only running VMs take capacity and have to move.
            host = vm.host if vm.state is VmState.RUNNING else None
            cluster._add(VmPlacement(vm.id, vm.tenant, tuple(groups_of.get(vm.id, ())), host), vm)
            if vm.tenant is not None:
                cluster.first_vms.setdefault(vm.tenant, vm)
        return cluster

    def block_of(self, vm: VmId) -> tuple[VmId, ...]:
        """Return the VMs that move together with a VM: of its affinity groups, on its host."""
        mates = self.together.get(vm)
        if mates is None:
            return (vm,)
        host = self.placements[vm].host
        return tuple(
            mate for mate in mates if mate in self.placements and self.placements[mate].host == host
        )

    def vms_free(self, host: HostId) -> int:
        """Return how many more VMs a host can run."""
        return self.capacity.free(host, VM_CAPACITY)

    def _add(self, placement: VmPlacement, described: Vm) -> None:
        self.placements[placement.vm] = placement
        self.vms[placement.vm] = described
        if placement.tenant is not None:
            self.vm_counts[placement.tenant] = self.vm_counts.get(placement.tenant, 0) + 1
        if placement.host is not None:
            self._occupy(placement.host, placement.vm)

    def _occupy(self, host: HostId, vm: VmId) -> None:
        self.residents.setdefault(host, {})[vm] = None
        self.capacity.commit(claim_of_size(self.vms[vm]), host)

    def _vacate(self, host: HostId, vm: VmId) -> None:
        del self.residents[host][vm]
        self.capacity.release(claim_of_size(self.vms[vm]), host)

    def add_vm(self, vm: Vm, host: HostId | None) -> None:
        """Add a VM. It joins the first anti-affinity group of its tenant."""
        if vm.id in self.placements:
            return
        tenant = self.tenants.get(vm.tenant) if vm.tenant is not None else None
        groups = () if tenant is None else tuple(group.id for group in tenant.anti_affinity[:1])
        self._add(VmPlacement(vm.id, None if tenant is None else tenant.id, groups, host), vm)

    def remove_vm(self, vm: VmId) -> None:
        """Remove a VM."""
        placement = self.placements.pop(vm, None)
        if placement is None:
            return
        if placement.tenant is not None:
            self.vm_counts[placement.tenant] -= 1
        if placement.host is not None:
            self._vacate(placement.host, vm)
        del self.vms[vm]
        self.failed_moves.pop(vm, None)

    def move_vm(self, vm: VmId, host: HostId | None, *, counts: bool) -> None:
        """Set the host of a VM. A move of the upgrade counts, a restart does not."""
        placement = self.placements.get(vm)
        if placement is None:
            return
        if placement.host is not None:
            self._vacate(placement.host, vm)
        if host is not None:
            self._occupy(host, vm)
        self.placements[vm] = replace(placement, host=host, moves=placement.moves + counts)
        self.failed_moves.pop(vm, None)

    def note_failed_move(self, vm: VmId, target: HostId, reason: str) -> None:
        """Record that a VM could not move to a host."""
        targets = self.failed_moves.setdefault(vm, {})
        before = targets.get(target)
        targets[target] = MoveFailures(1 if before is None else before.number + 1, reason)

    def moves_failed(self, vm: VmId, target: HostId | None = None) -> int:
        """Return how often the moves of a VM from its host failed, to one target or to all."""
        targets = self.failed_moves.get(vm, {})
        if target is None:
            return sum(failed.number for failed in targets.values())
        return targets[target].number if target in targets else 0

    def _forgive_target(self, host: HostId) -> None:
        """Forget the failed moves to a host that has changed from outside."""
        for targets in self.failed_moves.values():
            targets.pop(host, None)

    def after_moves(self, moves: Iterable[VmMove]) -> UpgradeCluster:
        """Return a copy in which VMs have moved; nothing else may change in the copy."""
        copy = replace(
            self,
            # Only what ``move_vm`` writes is copied; selections make thousands of these copies.
            residents={host: dict(vms) for host, vms in self.residents.items()},
            placements=dict(self.placements),
            failed_moves=dict(self.failed_moves),
            capacity=self.capacity.copy(),
        )
        for move in moves:
            copy.move_vm(move.vm, move.target, counts=False)
        return copy

    # Scaling of tenants

    def request_scaling(self, tenant: TenantId, vms: int) -> None:
        """Keep a scaling request until it is answered."""
        # Unknown tenants and empty requests need no answer.
        if tenant in self.tenants and vms:
            self.pending_scaling.append((tenant, vms))

    def scale(
        self, tenant: TenantId, added: Mapping[VmId, HostId], removed: Iterable[VmId]
    ) -> None:
        """Apply the answer to the oldest scaling request."""
        self.pending_scaling = self.pending_scaling[1:]
        for vm, host in added.items():
            self.vms_added += 1
            self.add_vm(self.vm_like_first(tenant, vm), host)
        for vm in removed:
            self.remove_vm(vm)

    def vm_like_first(self, tenant: TenantId, id_: VmId) -> Vm:
        """Return a description for a VM of scaling: a copy of the first VM of its tenant."""
        first = self.first_vms.get(tenant)
        if first is None:  # the tenant had no VM to copy
            return Vm(id=id_, vcpus=1, memory_mib=1, tenant=tenant)
        # A copy has no fault-tolerant partner, and scaling never starts platform VMs.
        return first.but(id=id_, ft_pair=None, agent=False)

    # Failures of hosts

    def fail_host(self, host: HostId) -> None:
        """Record that a host is down. Its VMs wait for a restart."""
        if host not in self.compute_hosts or not self.compute_hosts[host].up:
            return
        self.compute_hosts[host] = replace(self.compute_hosts[host], up=False)
        lost = tuple(self.residents.get(host, ()))
        for vm in lost:
            self.move_vm(vm, None, counts=False)
        if lost:
            self.vms_to_restart[host] = lost

    def recover_host(self, host: HostId) -> None:
        """Record that a host is up again."""
        self.compute_hosts[host] = replace(self.compute_hosts[host], up=True)
        self._forgive_target(host)

    def join_host(self, host: Host) -> None:
        """Add a host. Without a declared number of VMs it runs none."""
        vms_max = host.capacity.get(VM_CAPACITY, 0)
        self.compute_hosts.setdefault(host.id, ComputeHost(host.id, vms_max))
        self.capacity.limits.setdefault(host.id, _limits(host, vms_max))
        self.hosts.setdefault(host.id, host)

    def return_host(self, host: HostId) -> None:
        """Remove an empty extra host."""
        self.returned_hosts[host] = None
        self.compute_hosts.pop(host, None)
        self.hosts.pop(host, None)
        self.capacity.limits.pop(host, None)

    def restarted(
        self, failed: HostId, placed: Mapping[VmId, HostId], unplaced: tuple[VmId, ...]
    ) -> None:
        """Place the VMs of a failed host, as far as they found a host."""
        for vm, host in placed.items():
            self.move_vm(vm, host, counts=False)
        self.vms_to_restart.pop(failed, None)
        if unplaced:
            self.unplaced_vms[failed] = unplaced

    def retry_unplaced(self) -> None:
        """Let the next decision try again to restart unplaced VMs: capacity may be free now."""
        self.vms_to_restart |= self.unplaced_vms
        self.unplaced_vms = {}


def _vms_max(host: Host, largest_mib: int) -> int:
    """Return the capacity of a host in VMs: declared, or its memory divided by the largest VM."""
    declared = host.capacity.get(VM_CAPACITY)
    return host.configured_memory_max_mib // largest_mib if declared is None else declared


def _declared_groups(inventory: Inventory) -> dict[VmId, dict[GroupId, None]]:
    """Return the anti-affinity groups of VMs that are declared as resources."""
    vm_of = {
        resource.id: resource.vm for resource in inventory.resources if resource.vm is not None
    }
    groups_of: dict[VmId, dict[GroupId, None]] = {}
    for group in inventory.groups:
        if group.kind is ResourceGroupKind.ANTI_AFFINITY:
            for resource in group.resources:
                if resource in vm_of:
                    groups_of.setdefault(vm_of[resource], {})[group.id] = None
    return groups_of


def _affinity_mates(inventory: Inventory) -> dict[VmId, dict[VmId, None]]:
    """Return the VMs that affinity groups of resources join, directly or not."""
    vm_of = {
        resource.id: resource.vm for resource in inventory.resources if resource.vm is not None
    }
    mates: dict[VmId, dict[VmId, None]] = {}
    for group in inventory.groups:
        if group.kind is ResourceGroupKind.AFFINITY:
            members = dict.fromkeys(vm_of[id_] for id_ in group.resources if id_ in vm_of)
            joined = dict(members)
            for member in members:
                joined |= mates.get(member, {})
            for member in joined:
                mates[member] = joined
    return mates
