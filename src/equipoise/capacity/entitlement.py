"""Dynamic entitlement: the capacity of the cluster divided over pools and VMs, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.capacity import waterfill
from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.pool_tree import NO_LIMIT, ClaimBounds, PoolTree, cpu_claims, memory_claims
from equipoise.capacity.waterfill import CLAIM_DTYPE, NO_INDEX, TREE_DTYPE, Floats, Ints, Records
from equipoise.model.host import HostState
from equipoise.model.quantity import VmId
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

KERNELS: Final = KernelSet(*waterfill.WATERFILL_FUNCTIONS)


class ResourceClaims(NamedTuple):
    """The bounds of pools and VMs on one resource, and the demand of the VMs."""

    pools: ClaimBounds
    vms: ClaimBounds
    want: Floats


class VmClaims(NamedTuple):
    """What VMs and pools claim of CPU and of memory: their bounds, and the demand of the VMs."""

    tree: Records
    cpu: ResourceClaims
    memory: ResourceClaims

    @classmethod
    def of(cls, state: Snapshot | Draft, vms: Sequence[Vm]) -> VmClaims:
        """Return the claims of VMs, a row per VM."""
        pools = PoolTree(state.settings.pools)
        rows = pools.rows_of(vms)
        (cpu, cpu_want), (memory, memory_want) = cpu_claims(vms), memory_claims(vms)
        return cls(
            build_claim_tree(pools.parent, rows),
            ResourceClaims(pools.cpu(rows, cpu.shares), cpu, cpu_want),
            ResourceClaims(pools.memory(rows, memory.shares), memory, memory_want),
        )

    def entitlements(self, state: Snapshot | Draft, *, fast: bool) -> Floats:
        """Return the entitlement of each VM to the capacity of all hosts that are on."""
        on = [host for host in state.hosts.values() if host.state is HostState.ON]
        capacities = (
            sum(host.usable_cpu_mhz for host in on),
            sum(host.usable_memory_mib for host in on),
        )
        amounts = np.empty((len(self.cpu.want), 2))
        for column, capacity in enumerate(capacities):
            pools, own, want = self[1 + column]
            amounts[:, column] = divide_capacity(capacity, self.tree, pools, own, want, fast=fast)
        return amounts

    def usable_demands(self, *, fast: bool) -> Floats:
        """Return the demand that limits let each VM use, however much capacity there is."""
        amounts = np.empty((len(self.cpu.want), 2))
        for column in range(2):
            pools, own, want = self[1 + column]
            within = np.minimum(want, own.ceiling)
            if np.isfinite(pools.ceiling).any():
                # As much capacity as is demanded: only limits divide it, and no reservation counts.
                pools = pools._replace(floor=np.zeros(len(pools.floor)))
                own = own._replace(floor=np.zeros(len(own.floor)))
                total = float(within.sum())
                within = divide_capacity(total, self.tree, pools, own, within, fast=fast)
            amounts[:, column] = within
        return amounts


def vm_entitlements(state: Snapshot | Draft, vms: Sequence[Vm], *, fast: bool) -> Floats:
    """Return the entitlement of each VM: CPU in the first column, memory in the second.

    The capacity is that of all hosts that are on. ``fast`` selects the compiled kernels.
    """
    return VmClaims.of(state, vms).entitlements(state, fast=fast)


Entitlement = tuple[float, float]
"""CPU in MHz and memory in MiB."""


def entitlement_per_vm(state: Snapshot) -> dict[VmId, Entitlement]:
    """Return what each running VM is entitled to of the capacity of the cluster."""
    vms = [vm for vm in state.vms.values() if vm.state is VmState.RUNNING]
    rows = vm_entitlements(state, vms, fast=False).tolist()
    return {vm.id: (cpu, memory) for vm, (cpu, memory) in zip(vms, rows, strict=True)}


def divide_capacity(
    capacity: float,
    tree: Records,
    pools: ClaimBounds,
    vms: ClaimBounds,
    want: Floats,
    *,
    fast: bool,
) -> Floats:
    """Return the part of ``capacity`` that each VM gets, divided down the tree of claims.

    The reservation of a pool without VMs is ignored, because no VM can use it.
    """
    claims = np.zeros(len(tree), dtype=CLAIM_DTYPE)
    count = len(want)
    for name in ClaimBounds._fields:
        claims[name][1 : len(tree) - count] = getattr(pools, name)
        claims[name][len(tree) - count :] = getattr(vms, name)
    claims["ceiling"][0] = NO_LIMIT  # the root is the cluster, which has no limit setting
    # The walk over the tree is slow in Python, and most clusters reserve nothing for pools.
    if pools.floor.any():
        claims["floor"][~_has_vms(tree)] = 0.0
    claims["want"][len(tree) - count :] = want
    kernels = KERNELS.at(fast=fast)
    kernels.sum_demands(tree, claims, 0, len(tree), True)
    kernels.divide_down(tree, claims, 0, len(tree), capacity)
    return claims["got"][len(tree) - count :].copy()


def _has_vms(tree: Records) -> NDArray[np.bool_]:
    """Mark the nodes that are a VM or have a VM below them."""
    marked: NDArray[np.bool_] = tree["vm"] != NO_INDEX
    parent = tree["parent"]
    pools = len(tree) - np.count_nonzero(marked)
    marked[parent[pools:]] = True
    # Parents come before children, so one walk from the end reaches the root.
    for node in range(pools - 1, 0, -1):
        if marked[node]:
            marked[parent[node]] = True
    return marked


def build_claim_tree(pool_parents: Ints, vm_pools: Ints) -> Records:
    """Return the claim tree of the cluster: the root, then pools (parents first), then VMs."""
    pools, vms = len(pool_parents), len(vm_pools)
    tree = np.full(1 + pools + vms, NO_INDEX, dtype=np.int64).astype(TREE_DTYPE)
    parent = np.concatenate([pool_parents, vm_pools]) + 1  # NO_INDEX becomes row 0, the root
    tree["parent"][0] = tree["child"][:] = tree["sibling"][:] = tree["vm"][:] = NO_INDEX
    tree["parent"][1:] = parent
    tree["vm"][1 + pools :] = np.arange(vms)
    # Nodes sorted by parent: neighbours with the same parent are siblings.
    order = np.argsort(parent, kind="stable")
    nodes, above = order + 1, parent[order]
    same = above[1:] == above[:-1]
    tree["sibling"][nodes[:-1][same]] = nodes[1:][same]
    first_child = np.concatenate([[True], ~same]) if len(nodes) else np.zeros(0, dtype=bool)
    tree["child"][above[first_child]] = nodes[first_child]
    return tree
