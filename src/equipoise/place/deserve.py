"""What each VM deserves of the cluster, for all VMs at once, on arrays.

The same as ``entitlements``; for whoever asks often, or for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.host import HostState
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm
from equipoise.place import water
from equipoise.place.compiled import Kernels
from equipoise.place.pools import NO_LIMIT, Bounds, PoolTree, cpu_claims, memory_claims
from equipoise.place.water import CLAIMS, NOBODY, TREE, Floats, Ints, Records

KERNELS: Final = Kernels(*water.FUNCTIONS)


def entitled(snapshot: Snapshot, vms: Sequence[Vm], *, fast: bool) -> Floats:
    """What each VM deserves of the CPU, in the first column, and of the memory, in the second."""
    pools = PoolTree(snapshot.settings.pools)
    rows = pools.rows_of(vms)
    tree = pool_tree(pools.parent, rows)
    on = [host for host in snapshot.hosts.values() if host.state is HostState.ON]
    found = np.empty((len(vms), 2))
    for column, (bounds_of, (own, want), capacity) in enumerate(
        (
            (pools.cpu, cpu_claims(vms), sum(host.usable_cpu_mhz for host in on)),
            (pools.memory, memory_claims(vms), sum(host.usable_memory_mib for host in on)),
        )
    ):
        found[:, column] = deserve(
            capacity, tree, bounds_of(rows, own.shares), own, want, fast=fast
        )
    return found


def deserve(
    capacity: float, tree: Records, pools: Bounds, vms: Bounds, want: Floats, *, fast: bool
) -> Floats:
    """Divide a capacity among VMs, down the tree that ``pool_tree`` has made for them.

    A pool without VMs is as if it were not there: nobody could use what it reserves.
    """
    claims = np.zeros(len(tree), dtype=CLAIMS)
    count = len(want)
    for name in Bounds._fields:
        claims[name][1 : len(tree) - count] = getattr(pools, name)
        claims[name][len(tree) - count :] = getattr(vms, name)
    claims["ceiling"][0] = NO_LIMIT
    if pools.floor.any():
        claims["floor"][~_inhabited(tree)] = 0.0
    claims["want"][len(tree) - count :] = want
    kernels = KERNELS.at(fast=fast)
    kernels.add_up(tree, claims, 0, len(tree), True)
    kernels.flow_down(tree, claims, 0, len(tree), capacity)
    return claims["got"][len(tree) - count :].copy()


def _inhabited(tree: Records) -> NDArray[np.bool_]:
    """Which nodes are VMs or have some below them."""
    found: NDArray[np.bool_] = tree["vm"] != NOBODY
    parent = tree["parent"]
    pools = len(tree) - np.count_nonzero(found)
    found[parent[pools:]] = True
    for node in range(pools - 1, 0, -1):
        if found[node]:
            found[parent[node]] = True
    return found


def pool_tree(pool_parents: Ints, vm_pools: Ints) -> Records:
    """The tree of the cluster: its root, then the pools, parents first, then the VMs."""
    pools, vms = len(pool_parents), len(vm_pools)
    tree = np.full(1 + pools + vms, NOBODY, dtype=np.int64).astype(TREE)
    parent = np.concatenate([pool_parents, vm_pools]) + 1  # NOBODY becomes the root
    tree["parent"][0] = tree["child"][:] = tree["sibling"][:] = tree["vm"][:] = NOBODY
    tree["parent"][1:] = parent
    tree["vm"][1 + pools :] = np.arange(vms)
    order = np.argsort(parent, kind="stable")
    nodes, above = order + 1, parent[order]
    same = above[1:] == above[:-1]
    tree["sibling"][nodes[:-1][same]] = nodes[1:][same]
    eldest = np.concatenate([[True], ~same]) if len(nodes) else np.zeros(0, dtype=bool)
    tree["child"][above[eldest]] = nodes[eldest]
    return tree
