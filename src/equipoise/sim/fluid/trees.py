"""The trees of the hosts, on arrays: each host, the pools that have VMs on it, and its VMs.

Built anew when a VM has moved. A pool on a host has the sum of the parts of its VMs there: of its
shares, its reservation and its limit.
"""

from __future__ import annotations

from typing import Any, Final

from equipoise.place.water import NOBODY, Ints, Records
from equipoise.sim.fluid.rows import Nodes, State

NO_LIMIT: Final = float("inf")


def plant(state: State, pools: Records, starts: Ints, order: Ints, vms: int) -> int:
    """Build the trees of all hosts and say how many nodes they have.

    ``starts`` has a place for each host and one more; ``order`` one for each VM.
    """
    sort_by_host(state.vms["host"], starts, order, vms)
    pools["stamp"][:] = NOBODY
    count = 0
    for host in range(len(starts) - 1):
        root = count
        count = plant_node(state.nodes, NOBODY, NOBODY, count)
        for place in range(starts[host], starts[host + 1]):
            pool = state.vms[order[place]]["pool"]
            while pool != NOBODY and pools[pool]["stamp"] != host:
                count = plant_pool(state.nodes, pools, pool, (host, root), count)
        for place in range(starts[host], starts[host + 1]):
            count = plant_vm(state, pools, order[place], root, count)
        state.hosts[host]["first"] = root
        state.hosts[host]["end"] = count
    return count


def sort_by_host(host_of: Ints, starts: Ints, order: Ints, vms: int) -> None:
    """Put the VMs into the order of their hosts, and note where each host's part starts."""
    starts[:] = 0
    for vm in range(vms):
        if host_of[vm] != NOBODY:
            starts[host_of[vm]] += 1
    end = 0
    for host in range(len(starts)):
        end += starts[host]
        starts[host] = end
    for vm in range(vms - 1, -1, -1):
        host = host_of[vm]
        if host != NOBODY:
            starts[host] -= 1
            order[starts[host]] = vm


def plant_node(nodes: Nodes, parent: int, vm: int, node: int) -> int:
    """Hang a node under its parent, and say where the next one goes."""
    new = nodes.tree[node]
    new["parent"] = parent
    new["child"] = NOBODY
    new["sibling"] = NOBODY
    new["vm"] = vm
    if parent != NOBODY:
        new["sibling"] = nodes.tree[parent]["child"]
        nodes.tree[parent]["child"] = node
    for claims in (nodes.cpu[node], nodes.memory[node]):
        claims["floor"] = 0.0
        claims["ceiling"] = NO_LIMIT if parent == NOBODY else 0.0
        claims["shares"] = 0.0
    return node + 1


def plant_pool(nodes: Nodes, pools: Records, pool: int, where: tuple[int, int], node: int) -> int:
    """Make a node for the topmost pool, from this one up, that the host has not yet."""
    host, root = where
    parent_of, stamp = pools["parent"], pools["stamp"]
    top = pool
    while parent_of[top] != NOBODY and stamp[parent_of[top]] != host:
        top = parent_of[top]
    above = parent_of[top]
    stamp[top] = host
    pools[top]["node"] = node
    return plant_node(nodes, root if above == NOBODY else pools[above]["node"], NOBODY, node)


def plant_vm(state: State, pools: Records, row: int, root: int, node: int) -> int:
    """Make the node of a VM, and add its parts to its pool and those above."""
    vm, nodes = state.vms[row], state.nodes
    parent = root if vm["pool"] == NOBODY else pools[vm["pool"]]["node"]
    after = plant_node(nodes, parent, row, node)
    cpu, memory = vm["cpu_weight"], vm["memory_weight"]
    claim(nodes.cpu[node], vm["cpu_floor"], vm["cpu_ceiling"], cpu)
    claim(nodes.memory[node], vm["memory_floor"], vm["memory_ceiling"], memory)
    while parent != root:
        claim(nodes.cpu[parent], vm["cpu_pool_floor"], vm["cpu_pool_ceiling"], cpu)
        claim(nodes.memory[parent], vm["memory_pool_floor"], vm["memory_pool_ceiling"], memory)
        parent = nodes.tree[parent]["parent"]
    return after


def claim(claims: Any, floor: float, ceiling: float, shares: float) -> None:
    """Add to what a node may claim."""
    claims["floor"] += floor
    claims["ceiling"] += ceiling
    claims["shares"] += shares


FUNCTIONS: Final[tuple[Any, ...]] = (
    sort_by_host,
    plant_node,
    plant_pool,
    claim,
    plant_vm,
    plant,
)
"""Callee before caller, for ``Kernels``."""
