"""Dynamic entitlement: the capacity of the cluster divided over pools and VMs, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.capacity import waterfill
from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.pool_tree import NO_LIMIT, ClaimBounds, PoolTree, cpu_claims, memory_claims
from equipoise.capacity.waterfill import CLAIM_DTYPE, NO_INDEX, TREE_DTYPE, Floats, Ints, Records
from equipoise.model.host import HostState
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm

KERNELS: Final = KernelSet(*waterfill.WATERFILL_FUNCTIONS)


def vm_entitlements(state: Snapshot | Draft, vms: Sequence[Vm], *, fast: bool) -> Floats:
    """Return the entitlement of each VM: CPU in the first column, memory in the second.

    The capacity is that of all hosts that are on. ``fast`` selects the compiled kernels.
    """
    pools = PoolTree(state.settings.pools)
    rows = pools.rows_of(vms)
    tree = build_claim_tree(pools.parent, rows)
    on = [host for host in state.hosts.values() if host.state is HostState.ON]
    amounts = np.empty((len(vms), 2))
    for column, (bounds_of, (own, want), capacity) in enumerate(
        (
            (pools.cpu, cpu_claims(vms), sum(host.usable_cpu_mhz for host in on)),
            (pools.memory, memory_claims(vms), sum(host.usable_memory_mib for host in on)),
        )
    ):
        amounts[:, column] = divide_capacity(
            capacity, tree, bounds_of(rows, own.shares), own, want, fast=fast
        )
    return amounts


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
