"""Packing kernels: evacuate a host onto others, or relieve busy hosts. Plain arithmetic.

A unit goes to the first host that can carry it; hosts that go into standby last are tried first. So
some hosts become full and others empty. A host carries a unit if its expected demand stays within
the target utilisation in every window.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final, NamedTuple

from equipoise.balance.rebalance.cluster_arrays import NO_OBSTACLE, ClusterArrays
from equipoise.balance.rebalance.greedy_kernels import (
    find_obstacle,
    has_capacity,
    move_unit,
    must_be_apart,
)
from equipoise.capacity.arrays import LEDGER_FUNCTIONS, unit_fits
from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.waterfill import NO_INDEX, Ints
from equipoise.power.utilisation import WindowDemand

REFUSALS_MAX: Final = 256
"""Limits the time of ``relieve`` in large clusters."""


class UnitPacking(NamedTuple):
    """The units to place, the hosts to try, and the array for the result."""

    units: Ints
    """The units, in the order in which they are placed."""
    hosts: Ints
    """The hosts, in the order in which they are tried."""
    part: float
    """The part of a host that may be used."""
    windows: Ints
    """The windows that must hold."""
    target: Ints
    """The host of each unit; ``NO_INDEX`` if it stays."""


def expected_need(
    observed: WindowDemand, window: int, host: int, unit: int, resource: int
) -> float:
    """Return the expected demand on a host in a window, with ``unit`` unless it is ``NO_INDEX``."""
    begin, end = observed.first[window], observed.first[window + 1]
    total, count = 0.0, end - begin
    for sample in range(begin, end):
        total += observed.hosts[sample, host, resource]
        if unit != NO_INDEX:
            total += observed.units[sample, unit, resource]
    mean: float = total / count
    if count == 1:
        return mean
    # Two passes instead of a sum of squares: with demands of many GHz the difference of two large
    # sums loses the deviation.
    square = 0.0
    for sample in range(begin, end):
        off = observed.hosts[sample, host, resource] - mean
        if unit != NO_INDEX:
            off += observed.units[sample, unit, resource]
        square += off * off
    deviation: float = observed.deviations[window] * sqrt(square / count)
    return mean + deviation


def can_carry(
    arrays: ClusterArrays, observed: WindowDemand, packing: UnitPacking, host: int, unit: int
) -> bool:
    """Return whether the expected demand on a host, with a unit, is within the target."""
    for resource in range(observed.hosts.shape[2]):
        limit = packing.part * arrays.capacity[host, resource]
        for index in range(len(packing.windows)):
            if expected_need(observed, packing.windows[index], host, unit, resource) > limit:
                return False
    return True


def move_with_demand(arrays: ClusterArrays, observed: WindowDemand, unit: int, host: int) -> None:
    """Move a unit to another host, in the arrays and in the observed demand."""
    unit_host = arrays.unit_host[unit]
    for sample in range(len(observed.units)):
        for resource in range(observed.units.shape[2]):
            observed.hosts[sample, unit_host, resource] -= observed.units[sample, unit, resource]
            observed.hosts[sample, host, resource] += observed.units[sample, unit, resource]
    move_unit(arrays, unit, host)


def pack(arrays: ClusterArrays, observed: WindowDemand, packing: UnitPacking) -> int:
    """Move each unit to the first host that can carry it, until a unit finds none.

    Returns how many units moved.
    """
    for index in range(len(packing.units)):
        unit, target = packing.units[index], NO_INDEX
        for choice in range(len(packing.hosts)):
            host = packing.hosts[choice]
            if find_obstacle(arrays, unit, host) == NO_OBSTACLE and can_carry(
                arrays, observed, packing, host, unit
            ):
                target = host
                break
        packing.target[index] = target
        if target == NO_INDEX:
            return index
        move_with_demand(arrays, observed, unit, target)
    return len(packing.units)


def fill_level(
    arrays: ClusterArrays, observed: WindowDemand, packing: UnitPacking, host: int, unit: int
) -> float:
    """Return the expected utilisation of a host with a unit, of CPU or memory, the larger one."""
    most = 0.0
    for resource in range(observed.hosts.shape[2]):
        for index in range(len(packing.windows)):
            part = expected_need(observed, packing.windows[index], host, unit, resource)
            most = max(most, part * arrays.inverse[host, resource])
    return most


def spread(arrays: ClusterArrays, observed: WindowDemand, packing: UnitPacking) -> int:
    """Move each unit to the host with the lowest utilisation then; return how many moved."""
    for index in range(len(packing.units)):
        unit, target, least = packing.units[index], NO_INDEX, packing.part
        for choice in range(len(packing.hosts)):
            host = packing.hosts[choice]
            if find_obstacle(arrays, unit, host) == NO_OBSTACLE:
                level = fill_level(arrays, observed, packing, host, unit)
                if level < least:
                    target, least = host, level
        packing.target[index] = target
        if target == NO_INDEX:
            return index
        move_with_demand(arrays, observed, unit, target)
    return len(packing.units)


def relieve(arrays: ClusterArrays, observed: WindowDemand, packing: UnitPacking) -> None:
    """Move units off hosts above the target, each to the first host that can carry it.

    After ``REFUSALS_MAX`` units in a row without a host, the helpers count as full.
    """
    refused = 0
    for index in range(len(packing.units)):
        unit = packing.units[index]
        # Earlier units of the same host may have relieved it already.
        if can_carry(arrays, observed, packing, arrays.unit_host[unit], NO_INDEX):
            continue
        refused += 1
        for choice in range(len(packing.hosts)):
            host = packing.hosts[choice]
            if find_obstacle(arrays, unit, host) == NO_OBSTACLE and can_carry(
                arrays, observed, packing, host, unit
            ):
                packing.target[index] = host
                move_with_demand(arrays, observed, unit, host)
                refused = 0
                break
        if refused >= REFUSALS_MAX:
            return


def restore_units(arrays: ClusterArrays, observed: WindowDemand, units: Ints, homes: Ints) -> None:
    """Move units back to the given hosts."""
    for index in range(len(units)):
        if arrays.unit_host[units[index]] != homes[index]:
            move_with_demand(arrays, observed, units[index], homes[index])


PACKING_FUNCTIONS: Final[tuple[Any, ...]] = (
    *LEDGER_FUNCTIONS,
    has_capacity,
    must_be_apart,
    find_obstacle,
    move_unit,
    expected_need,
    can_carry,
    move_with_demand,
    pack,
    fill_level,
    spread,
    relieve,
    restore_units,
)
"""Callee before caller, for ``KernelSet``."""
KERNELS: Final = KernelSet(
    *PACKING_FUNCTIONS,
    inline=(unit_fits, has_capacity, must_be_apart, find_obstacle, expected_need),
    entry_points=(pack, spread, relieve, restore_units),
)
