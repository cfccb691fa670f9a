"""The cluster as arrays for the kernels: units and hosts, one column per resource.

A *unit* is what moves: one VM, or the VMs that a rule keeps together. CPU is the first column and
memory the second; the named resources of hosts follow.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.capacity.arrays import CapacityArrays
from equipoise.capacity.waterfill import Floats, Ints

# What prevents the move of a unit to a host. Integers, because kernels return them.
NO_OBSTACLE: Final = 0
SAME_HOST: Final = 1
PINNED: Final = 2
HOST_CLOSED: Final = 3
RULE_FORBIDS: Final = 4
TOO_FEW_CORES: Final = 5
NO_CAPACITY: Final = 6
MUST_BE_APART: Final = 7
FT_INCOMPATIBLE: Final = 8
NO_GAIN: Final = 9
COST_EXCEEDS_BENEFIT: Final = 10
MAKES_SCARCE: Final = 11
LEFT_LATELY: Final = 12


class MoveCostModel(NamedTuple):
    """The parameters of the cost-benefit analysis."""

    cost_benefit: bool
    spread: float
    evenness: float
    horizon_s: float
    migration_cpu_mhz: float
    slowdown: float


class ClusterArrays(NamedTuple):
    """The units and hosts. A search changes the arrays named in ``WRITTEN_ARRAYS``."""

    unit_host: Ints
    """Per unit: the row of its host."""
    movable: Ints
    allowed_row: Ints
    vcpus: Ints
    partner: Ints
    """The unit of the other VM of a fault-tolerant pair."""
    left: Ints
    """The host that the unit left lately, to which it does not return; ``NO_INDEX`` if none."""
    move_s: Floats
    load: Floats
    """The entitlement of the unit, per resource."""
    demand: Floats
    """The demand now."""
    demand_min: Floats
    """The smallest demand of the last hour."""
    demand_max: Floats
    """The largest demand of the last hour."""
    usable: Floats
    """The demand that limits let the unit use: CPU and memory only."""
    open: Ints
    """Per host: whether it accepts units."""
    cores: Ints
    kind: Ints
    """Equal for hosts that are compatible for fault-tolerant pairs."""
    stable_s: Floats
    """How long the demand of the host has been stable."""
    capacity: Floats
    """The capacity; infinite where the host has none, so that the load is zero."""
    inverse: Floats
    """1 / capacity: kernels multiply, because a division per pair is several times slower."""
    host_load: Floats
    host_demand: Floats
    host_demand_min: Floats
    host_demand_max: Floats
    host_usable: Floats
    """The ``host_`` arrays are the sums over the units of the host."""
    ledger: CapacityArrays
    """The committed capacity, with columns of its own; a search changes ``committed``."""
    allowed: Ints
    """The hosts that the rules allow: one row per set of rules; the first row allows all."""
    group_of: Ints
    """The keep-apart groups of the units; those of unit u begin at ``group_first[u]``."""
    group_first: Ints
    member: Ints
    """The units of each group, likewise."""
    member_first: Ints
    cost_model: MoveCostModel


WRITTEN_ARRAYS: Final = (
    "unit_host",
    "movable",
    "left",
    "open",
    "host_load",
    "host_demand",
    "host_demand_min",
    "host_demand_max",
    "host_usable",
)
"""The arrays that a search changes, beside ``ledger.committed``; all others stay as they are."""


class LoadTotals(NamedTuple):
    """Sums over the loads of the rebalanced hosts, per resource."""

    sums: Floats
    squares: Floats
    host_count: Floats
    """The number of hosts that have the resource."""
    weight: Floats
    """The weight of the resource, fixed at the start of the pass."""
    scarce: Ints
    """Whether the resource was scarce at the start of the pass."""
    capacity_min: Floats
    """The capacity of the smallest host."""
    capacity_max: Floats
    """The capacity of the largest host."""
