"""The arrays of the allocator, and the kernels that share a host among its VMs and add totals."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.capacity import waterfill
from equipoise.capacity.waterfill import (
    CLAIM_DTYPE,
    NO_INDEX,
    TREE_DTYPE,
    Ints,
    Records,
    divide_down,
    sum_demands,
)
from equipoise.model.host import watts_at

UNPLACED: Final = 0
"""The host row of VMs that should run and have no host; they get nothing."""
POWER_CURVE_POINTS: Final = 16
"""The number of points of each host's power curve."""


def _floats(*names: str) -> list[tuple[str, str]]:
    return [(name, "f8") for name in names]


def _integers(*names: str) -> list[tuple[str, str]]:
    return [(name, "i8") for name in names]


VM_DTYPE: Final = np.dtype(
    [
        # The row of its host; UNPLACED if it should run and has none; NO_INDEX if it is not
        # supposed to run.
        *_integers("host", "pool"),
        # Configured memory.
        *_floats("size"),
        # Its claims. The weight is its part of the shares of its pool, times the part of the pool
        # in its parent, up to the root. The last two are its parts of the reservation and the
        # limit of its pool.
        *_floats("cpu_floor", "cpu_ceiling", "cpu_shares", "cpu_weight"),
        *_floats("cpu_pool_floor", "cpu_pool_ceiling"),
        *_floats("memory_floor", "memory_ceiling", "memory_shares", "memory_weight"),
        *_floats("memory_pool_floor", "memory_pool_ceiling"),
        # Its speed: 1, less while it migrates, 0 while it is stopped for the switch.
        *_floats("speed"),
        # Its demand and allocation now, and the share of time that it waits for a CPU.
        *_floats("cpu_demand", "cpu_allocated", "ready", "memory_demand", "memory_allocated"),
        # Totals are amounts times milliseconds.
        *_floats(
            "cpu_demand_sum", "cpu_allocated_sum", "memory_demand_sum", "memory_allocated_sum"
        ),
        *_floats("ready_sum", "seen_ms", "run_ms", "down_ms"),
    ]
)

HOST_DTYPE: Final = np.dtype(
    [
        # 1 if VMs can run on it; CPU_CHANGED or ALL_CHANGED until it is divided again.
        *_integers("is_on", "changed"),
        # The time up to which the totals are known.
        *_integers("last_ms"),
        # Its nodes: the host itself, the pools on it, its VMs.
        *_integers("first", "end"),
        # Capacity for VMs; all CPU including the part that the host keeps; what migrations use.
        *_floats("cpu", "cpu_all", "cpu_overhead", "memory", "memory_overhead"),
        # Watts from no use to full use; watts while it is not on; watts now; what it would draw
        # more if it were on and idle; 1 if it is in standby.
        ("power_curve", "f8", (POWER_CURVE_POINTS,)),
        *_floats("watts_off", "watts", "watts_saved", "in_standby"),
        *_floats("cpu_demand", "cpu_used", "memory_demand", "memory_used", "ballooned", "swapped"),
        # Totals are amounts times milliseconds.
        *_floats("cpu_used_sum", "cpu_sum", "memory_sum", "energy", "energy_saved", "standby_ms"),
    ]
)

POOL_DTYPE: Final = np.dtype(_integers("parent", "node", "stamp"))
"""The parent pool; the node of the pool on the host whose tree was built last, and that host."""


class TreeNodes(NamedTuple):
    """The trees of all hosts, one after the other."""

    tree: Records
    cpu: Records
    memory: Records


class AllocationState(NamedTuple):
    """All arrays and constants that the kernels use."""

    vms: Records
    hosts: Records
    nodes: TreeNodes
    balloon_share_max: float
    """The maximum share of a VM's memory that the balloon reclaims."""
    swap_slowdown: float
    overhead_mib: float
    """Memory that each running VM needs besides its configured memory."""


def empty_nodes(count: int) -> TreeNodes:
    """Return arrays for ``count`` nodes, all zero."""
    return TreeNodes(
        np.zeros(count, dtype=TREE_DTYPE),
        np.zeros(count, dtype=CLAIM_DTYPE),
        np.zeros(count, dtype=CLAIM_DTYPE),
    )


def grow_rows(rows: Records, count: int) -> Records:
    """Return a copy of the rows with ``count`` rows; new rows are zero."""
    longer = np.zeros(count, dtype=rows.dtype)
    longer[: len(rows)] = rows
    return longer


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


CPU_CHANGED: Final = 1
ALL_CHANGED: Final = 2


def accumulate_host(state: AllocationState, host: int, now_ms: int) -> None:
    """Bring the totals of a host and its VMs up to now."""
    record = state.hosts[host]
    elapsed_ms = float(now_ms - record["last_ms"])
    if elapsed_ms <= 0.0:
        return
    record["last_ms"] = now_ms
    record["energy"] += record["watts"] * elapsed_ms
    record["cpu_used_sum"] += record["cpu_used"] * elapsed_ms
    record["cpu_sum"] += record["cpu"] * elapsed_ms
    record["memory_sum"] += record["memory"] * elapsed_ms
    if record["is_on"] == 0:
        record["energy_saved"] += record["watts_saved"] * elapsed_ms
        record["standby_ms"] += record["in_standby"] * elapsed_ms
    vm_of = state.nodes.tree["vm"]
    for node in range(record["first"], record["end"]):
        if vm_of[node] != NO_INDEX:
            accumulate_vm(state.vms[vm_of[node]], elapsed_ms, host == UNPLACED)


def accumulate_vm(vm: Any, elapsed_ms: float, is_unplaced: bool) -> None:
    """Add the elapsed time to the totals of a VM; an unplaced VM is down and gets nothing."""
    vm["seen_ms"] += elapsed_ms
    vm["cpu_demand_sum"] += vm["cpu_demand"] * elapsed_ms
    vm["memory_demand_sum"] += vm["memory_demand"] * elapsed_ms
    if is_unplaced or vm["speed"] == 0.0:
        vm["down_ms"] += elapsed_ms
    if not is_unplaced:
        vm["cpu_allocated_sum"] += vm["cpu_allocated"] * elapsed_ms
        vm["memory_allocated_sum"] += vm["memory_allocated"] * elapsed_ms
        vm["ready_sum"] += vm["ready"] * elapsed_ms
        vm["run_ms"] += elapsed_ms


def accumulate_all(state: AllocationState, count: int, now_ms: int) -> None:
    """Bring the totals of all hosts up to now."""
    for host in range(count):
        accumulate_host(state, host, now_ms)


def share_memory(state: AllocationState, host: int) -> None:
    """Give the VMs of a host their active memory, and reclaim the memory that does not fit.

    The balloon reclaims idle memory first, up to its maximum; the rest is swapped.
    """
    record, tree, claims = state.hosts[host], state.nodes.tree, state.nodes.memory
    first, end, vm_of = record["first"], record["end"], tree["vm"]
    want, got, vms = claims["want"], claims["got"], state.vms
    size, demand, idle = 0.0, 0.0, 0.0
    capacity = record["memory"] - record["memory_overhead"]
    for node in range(first, end):
        if vm_of[node] != NO_INDEX:
            vm = vms[vm_of[node]]
            capacity -= state.overhead_mib
            active = vm["memory_demand"]
            want[node] = active
            demand += active
            size += vm["size"]
            idle += min(vm["size"] - active, state.balloon_share_max * vm["size"])
    sum_demands(tree, claims, first, end, False)
    # Overheads can exceed a small host.
    capacity = max(0.0, capacity)
    divide_down(tree, claims, first, end, capacity)
    used = 0.0
    for node in range(first, end):
        if vm_of[node] != NO_INDEX:
            vms[vm_of[node]]["memory_allocated"] = got[node]
            used += got[node]
    record["memory_used"] = used
    record["memory_demand"] = demand
    reclaimed = max(0.0, size - capacity)
    # What the balloon cannot take is swapped, and only swapped memory slows a VM down.
    record["ballooned"] = min(reclaimed, idle)
    record["swapped"] = reclaimed - record["ballooned"]


def share_cpu(state: AllocationState, host: int) -> None:
    """Give the VMs of a host their CPU. A VM that swaps or migrates can use less."""
    record, tree, claims = state.hosts[host], state.nodes.tree, state.nodes.cpu
    first, end, vm_of = record["first"], record["end"], tree["vm"]
    want, got, vms = claims["want"], claims["got"], state.vms
    demand = 0.0
    for node in range(first, end):
        if vm_of[node] != NO_INDEX:
            vm = vms[vm_of[node]]
            usable = vm["cpu_demand"]
            demand += usable
            # Demand is counted before the slowdown: a VM that migrates still wants all of it.
            usable *= vm["speed"]
            if vm["memory_allocated"] < vm["memory_demand"]:
                missing = 1.0 - vm["memory_allocated"] / vm["memory_demand"]
                usable /= 1.0 + state.swap_slowdown * missing
            want[node] = usable
            vm["ready"] = usable  # kept here until the allocation is known
    sum_demands(tree, claims, first, end, False)
    divide_down(tree, claims, first, end, max(0.0, record["cpu"] - record["cpu_overhead"]))
    used = 0.0
    for node in range(first, end):
        if vm_of[node] != NO_INDEX:
            vm = vms[vm_of[node]]
            vm["cpu_allocated"] = got[node]
            vm["ready"] = 1.0 - got[node] / vm["ready"] if vm["ready"] > got[node] else 0.0
            used += got[node]
    record["cpu_used"] = used
    record["cpu_demand"] = demand


def update_power(host: Any) -> None:
    """Set the power of a host by its curve, linear between two points."""
    if host["is_on"] == 0:
        host["watts"] = host["watts_off"]
        return
    use = (host["cpu_used"] + host["cpu_overhead"]) / host["cpu_all"]
    host["watts"] = watts_at(host["power_curve"], use)


def share_host(state: AllocationState, host: int) -> None:
    """Divide a host among its VMs."""
    record = state.hosts[host]
    changed = record["changed"]
    record["changed"] = 0
    if host == UNPLACED:
        return
    if record["is_on"] == 0:
        record["cpu_used"] = 0.0
        record["cpu_demand"] = 0.0
        record["memory_used"] = 0.0
        record["memory_demand"] = 0.0
        record["ballooned"] = 0.0
        record["swapped"] = 0.0
    else:
        # Memory first: a VM that lacks memory uses less CPU.
        if changed == ALL_CHANGED:
            share_memory(state, host)
        share_cpu(state, host)
    update_power(record)


def mark_changed(
    state: AllocationState, host: int, now_ms: int, changed: int, touched: Ints, count: int
) -> int:
    """Bring the totals of a host up to now and mark it, before something on it changes.

    Returns the new number of marked hosts in ``touched``.
    """
    if host == NO_INDEX:
        return count
    record = state.hosts[host]
    before = record["changed"]
    if changed > before:
        record["changed"] = changed
    # Already marked at this instant: its totals are up to date and it is in the list.
    if before != 0:
        return count
    accumulate_host(state, host, now_ms)
    touched[count] = host
    return count + 1


def share_changed_hosts(state: AllocationState, touched: Ints, count: int) -> None:
    """Divide all marked hosts among their VMs."""
    for index in range(count):
        share_host(state, touched[index])


def apply_demand_changes(state: AllocationState, changes: Records, touched: Ints) -> None:
    """Apply changes of demand in order of time; each host is divided once per instant."""
    vms, at_ms = state.vms, changes["at_ms"]
    index, end = 0, len(changes)
    while index < end:
        now_ms = at_ms[index]
        count = 0
        while index < end and at_ms[index] == now_ms:
            change = changes[index]
            vm = vms[change["row"]]
            # CPU demand does not affect the division of memory, so memory is not divided again.
            kind = CPU_CHANGED if change["resource"] == 0 else ALL_CHANGED
            count = mark_changed(state, vm["host"], now_ms, kind, touched, count)
            if kind == CPU_CHANGED:
                vm["cpu_demand"] = change["value"]
            else:
                vm["memory_demand"] = change["value"]
            index += 1
        share_changed_hosts(state, touched, count)


ALLOCATION_KERNELS: Final[tuple[Any, ...]] = (
    *waterfill.WATERFILL_FUNCTIONS,
    watts_at,
    accumulate_vm,
    accumulate_host,
    accumulate_all,
    share_memory,
    share_cpu,
    update_power,
    share_host,
    mark_changed,
    share_changed_hosts,
    apply_demand_changes,
    sort_by_host,
    add_node,
    add_pool_node,
    add_claim,
    add_vm_node,
    build_trees,
)
"""In the order of compilation for ``KernelSet``: a callee comes before its callers."""
