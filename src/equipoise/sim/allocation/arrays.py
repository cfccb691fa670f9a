"""The arrays of the allocator: one record per VM and per host."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from equipoise.capacity.waterfill import CLAIM_DTYPE, TREE_DTYPE, Records

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
