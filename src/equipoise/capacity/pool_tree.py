"""The tree of pools as arrays, with shares, reservations and limits per pool and VM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints
from equipoise.model.inventory import Pool, scaled_shares
from equipoise.model.quantity import PoolId
from equipoise.model.vm import Vm

NO_LIMIT = float("inf")


class ClaimBounds(NamedTuple):
    """Shares, reservations and limits of one resource, one row per pool or VM."""

    shares: Floats
    floor: Floats
    ceiling: Floats


class PoolTree:
    """The pools as arrays, parents before children."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        ordered = parents_first(pools)
        self.ids = tuple(pool.id for pool in ordered)
        self.row = {pool.id: row for row, pool in enumerate(ordered)}
        self.parent: Ints = np.array(
            [NO_INDEX if pool.parent is None else self.row[pool.parent] for pool in ordered],
            dtype=np.int64,
        )
        self._scalable = [pool.scalable for pool in ordered]
        self._cpu, self._memory = _cpu_bounds(ordered), _memory_bounds(ordered)

    def rows_of(self, vms: Iterable[Vm]) -> Ints:
        """Return the row of the pool of each VM; ``NO_INDEX`` for a VM outside all known pools."""
        rows = [NO_INDEX if vm.pool is None else self.row.get(vm.pool, NO_INDEX) for vm in vms]
        return np.array(rows, dtype=np.int64)

    def cpu(self, pool: Ints, shares: Floats) -> ClaimBounds:
        """Return the CPU bounds of the pools; ``pool`` and ``shares`` describe the running VMs."""
        return self._with_scaled_shares(self._cpu, pool, shares)

    def memory(self, pool: Ints, shares: Floats) -> ClaimBounds:
        """Return the memory bounds of the pools, as ``cpu`` does for the CPU."""
        return self._with_scaled_shares(self._memory, pool, shares)

    def _with_scaled_shares(self, own: ClaimBounds, pool: Ints, shares: Floats) -> ClaimBounds:
        """Return ``own`` with the shares of scalable pools multiplied by the shares inside them."""
        # The usual case: no copy.
        if not any(self._scalable):
            return own
        scaled, inside = own.shares.copy(), self._sums(pool, shares)
        # From the last row up: children come after parents, so their shares are final here.
        for row in range(len(self.ids) - 1, -1, -1):
            if self._scalable[row]:
                scaled[row] = scaled_shares(scaled[row], inside[row])
            # A pool without VMs has no weight in its parent.
            if self.parent[row] != NO_INDEX and inside[row]:
                inside[self.parent[row]] += scaled[row]
        return own._replace(shares=scaled)

    def _sums(self, pool: Ints, shares: Floats) -> Floats:
        """Return the sum of the shares of the VMs directly in each pool."""
        inside = pool != NO_INDEX
        sums = np.bincount(pool[inside], weights=shares[inside], minlength=len(self.ids))
        return sums.astype(np.float64)

    def weights(self, pool: Ints, shares: Floats, bounds: ClaimBounds) -> Floats:
        """Return the share-divvy of the DRS paper: the weight of each VM in the whole cluster.

        A VM has its part of the weight of its pool, the pool its part of the weight of its parent,
        and so on. Demands are not considered. Pools without VMs have no weight.
        """
        inside = pool != NO_INDEX
        if not inside.any():
            return shares.copy()
        sums = self._sums(pool, shares)
        for row in range(len(self.ids) - 1, -1, -1):
            if self.parent[row] != NO_INDEX and sums[row]:
                sums[self.parent[row]] += bounds.shares[row]
        part = bounds.shares.copy()
        for row, parent in enumerate(self.parent):
            if parent != NO_INDEX and sums[row]:
                part[row] *= part[parent] / sums[parent]
        weights = shares.copy()
        weights[inside] = shares[inside] * (part / np.where(sums > 0, sums, 1.0))[pool[inside]]
        return weights

    @property
    def bounded(self) -> bool:
        """Whether any pool has a reservation or a limit."""
        resources = (self._cpu, self._memory)
        return any(
            (bounds.floor > 0).any() or np.isfinite(bounds.ceiling).any() for bounds in resources
        )


def cpu_claims(vms: Sequence[Vm]) -> tuple[ClaimBounds, Floats]:
    """Return the CPU bounds and the CPU demand of VMs."""
    return _cpu_bounds(vms), np.array([vm.demand.cpu_mhz for vm in vms], dtype=np.float64)


def memory_claims(vms: Sequence[Vm]) -> tuple[ClaimBounds, Floats]:
    """Return the memory bounds, with the configured memory as a limit, and the memory demand."""
    bounds, sizes = _memory_bounds(vms), np.array([vm.memory_mib for vm in vms], dtype=np.float64)
    want = np.array([vm.demand.memory_mib for vm in vms], dtype=np.float64)
    return bounds._replace(ceiling=np.minimum(bounds.ceiling, sizes)), want


def parents_first(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools ordered so that each comes after its parent."""
    ordered: list[Pool] = []
    placed: set[PoolId | None] = {None}
    waiting = list(pools)
    while waiting:
        ready = [pool for pool in waiting if pool.parent in placed]
        assert ready, "the reader of files refuses pools that form a circle"
        ordered += ready
        placed.update(pool.id for pool in ready)
        waiting = [pool for pool in waiting if pool.id not in placed]
    return ordered


def _cpu_bounds(claimants: Sequence[Vm | Pool]) -> ClaimBounds:
    cpus = [claimant.cpu for claimant in claimants]
    return _bounds(
        [cpu.shares for cpu in cpus],
        [cpu.reservation_mhz for cpu in cpus],
        [cpu.limit_mhz for cpu in cpus],
    )


def _memory_bounds(claimants: Sequence[Vm | Pool]) -> ClaimBounds:
    memories = [claimant.memory for claimant in claimants]
    return _bounds(
        [memory.shares for memory in memories],
        [memory.reservation_mib for memory in memories],
        [memory.limit_mib for memory in memories],
    )


def _bounds(
    shares: Sequence[float], floors: Sequence[float], limits: Sequence[float | None]
) -> ClaimBounds:
    ceilings = [NO_LIMIT if limit is None else limit for limit in limits]
    columns = (shares, floors, ceilings)
    return ClaimBounds(*(np.array(column, dtype=np.float64) for column in columns))
