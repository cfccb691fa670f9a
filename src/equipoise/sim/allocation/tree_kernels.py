"""Kernels that build the tree of each host: the host, the pools that have VMs on it, and its VMs.

The trees are rebuilt when a VM changes its host. On a host, a pool has the sum of the parts of its
VMs there: of its shares, its reservation and its limit.
"""

from __future__ import annotations

from typing import Any, Final

from equipoise.capacity.waterfill import NO_INDEX, Ints, Records
from equipoise.sim.allocation.arrays import AllocationState, TreeNodes

NO_LIMIT: Final = float("inf")


def build_trees(state: AllocationState, pools: Records, starts: Ints, order: Ints, vms: int) -> int:
    """Build the trees of all hosts and return the number of nodes.

    ``starts`` has one element per host and one more; ``order`` one per VM.
    """
    sort_by_host(state.vms["host"], starts, order, vms)
    pools["stamp"][:] = NO_INDEX
    count = 0
    for host in range(len(starts) - 1):
        root = count
        count = add_node(state.nodes, NO_INDEX, NO_INDEX, count)
        # Pools first, then VMs: a node's parent must exist before the node.
        for index in range(starts[host], starts[host + 1]):
            pool = state.vms[order[index]]["pool"]
            while pool != NO_INDEX and pools[pool]["stamp"] != host:
                count = add_pool_node(state.nodes, pools, pool, (host, root), count)
        for index in range(starts[host], starts[host + 1]):
            count = add_vm_node(state, pools, order[index], root, count)
        state.hosts[host]["first"] = root
        state.hosts[host]["end"] = count
    return count


def sort_by_host(host_of: Ints, starts: Ints, order: Ints, vms: int) -> None:
    """Sort VMs by host (a counting sort), and set the start of each host's part."""
    starts[:] = 0
    for vm in range(vms):
        if host_of[vm] != NO_INDEX:
            starts[host_of[vm]] += 1
    end = 0
    for host in range(len(starts)):
        end += starts[host]
        starts[host] = end
    for vm in range(vms - 1, -1, -1):  # backwards, so that VMs of one host keep their order
        host = host_of[vm]
        if host != NO_INDEX:
            starts[host] -= 1
            order[starts[host]] = vm


def add_node(nodes: TreeNodes, parent: int, vm: int, node: int) -> int:
    """Add a node as first child of its parent, and return the index of the next node."""
    new = nodes.tree[node]
    new["parent"] = parent
    new["child"] = NO_INDEX
    new["sibling"] = NO_INDEX
    new["vm"] = vm
    if parent != NO_INDEX:
        new["sibling"] = nodes.tree[parent]["child"]
        nodes.tree[parent]["child"] = node
    for claims in (nodes.cpu[node], nodes.memory[node]):
        claims["floor"] = 0.0
        claims["ceiling"] = NO_LIMIT if parent == NO_INDEX else 0.0
        claims["shares"] = 0.0
    return node + 1


def add_pool_node(
    nodes: TreeNodes, pools: Records, pool: int, where: tuple[int, int], node: int
) -> int:
    """Add a node for the topmost ancestor of a pool that has no node on the host yet."""
    host, root = where
    parent_of, stamp = pools["parent"], pools["stamp"]
    top = pool
    while parent_of[top] != NO_INDEX and stamp[parent_of[top]] != host:
        top = parent_of[top]
    above = parent_of[top]
    stamp[top] = host
    pools[top]["node"] = node
    return add_node(nodes, root if above == NO_INDEX else pools[above]["node"], NO_INDEX, node)


def add_vm_node(state: AllocationState, pools: Records, row: int, root: int, node: int) -> int:
    """Add the node of a VM, and add its parts to its pool and the pools above."""
    vm, nodes = state.vms[row], state.nodes
    parent = root if vm["pool"] == NO_INDEX else pools[vm["pool"]]["node"]
    after = add_node(nodes, parent, row, node)
    cpu, memory = vm["cpu_weight"], vm["memory_weight"]
    add_claim(nodes.cpu[node], vm["cpu_floor"], vm["cpu_ceiling"], cpu)
    add_claim(nodes.memory[node], vm["memory_floor"], vm["memory_ceiling"], memory)
    while parent != root:
        add_claim(nodes.cpu[parent], vm["cpu_pool_floor"], vm["cpu_pool_ceiling"], cpu)
        add_claim(nodes.memory[parent], vm["memory_pool_floor"], vm["memory_pool_ceiling"], memory)
        parent = nodes.tree[parent]["parent"]
    return after


def add_claim(claims: Any, floor: float, ceiling: float, shares: float) -> None:
    """Add to the claims of a node."""
    claims["floor"] += floor
    claims["ceiling"] += ceiling
    claims["shares"] += shares


TREE_KERNELS: Final[tuple[Any, ...]] = (
    sort_by_host,
    add_node,
    add_pool_node,
    add_claim,
    add_vm_node,
    build_trees,
)
"""In the order of compilation for ``KernelSet``: a callee comes before its callers."""
