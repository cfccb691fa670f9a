"""The tree of pools as arrays, and each VM's part of the shares that its pools have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.model.pool import Pool, scaled_shares
from equipoise.model.quantity import PoolId
from equipoise.model.vm import Vm
from equipoise.place.water import NOBODY, Floats, Ints

NO_LIMIT = float("inf")


class Bounds(NamedTuple):
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
            [NOBODY if pool.parent is None else self.row[pool.parent] for pool in ordered],
            dtype=np.int64,
        )
        self._scalable = [pool.scalable for pool in ordered]
        self._cpu, self._memory = _cpu_bounds(ordered), _memory_bounds(ordered)

    def rows_of(self, vms: Iterable[Vm]) -> Ints:
        """The row of each VM's pool, or ``NOBODY``."""
        rows = [NOBODY if vm.pool is None else self.row[vm.pool] for vm in vms]
        return np.array(rows, dtype=np.int64)

    def cpu(self, pool: Ints, shares: Floats) -> Bounds:
        """What the pools may claim of the CPU while VMs of such shares run in them."""
        return self._with(self._cpu, pool, shares)

    def memory(self, pool: Ints, shares: Floats) -> Bounds:
        """What the pools may claim of the memory while VMs of such shares run in them."""
        return self._with(self._memory, pool, shares)

    def _with(self, own: Bounds, pool: Ints, shares: Floats) -> Bounds:
        if not any(self._scalable):
            return own
        found, inside = own.shares.copy(), self._sums(pool, shares)
        for row in range(len(self.ids) - 1, -1, -1):
            if self._scalable[row]:
                found[row] = scaled_shares(found[row], inside[row])
            if self.parent[row] != NOBODY and inside[row]:
                inside[self.parent[row]] += found[row]
        return own._replace(shares=found)

    def _sums(self, pool: Ints, shares: Floats) -> Floats:
        """The shares of the VMs directly in each pool."""
        inside = pool != NOBODY
        sums = np.bincount(pool[inside], weights=shares[inside], minlength=len(self.ids))
        return sums.astype(np.float64)

    def weights(self, pool: Ints, shares: Floats, bounds: Bounds) -> Floats:
        """The share-divvy: each VM's part of its pool's part of its parent's part, and so on.

        Demands play no role in it; pools without a VM have no part.
        """
        inside = pool != NOBODY
        if not inside.any():
            return shares.copy()
        sums = self._sums(pool, shares)
        for row in range(len(self.ids) - 1, -1, -1):
            if self.parent[row] != NOBODY and sums[row]:
                sums[self.parent[row]] += bounds.shares[row]
        part = bounds.shares.copy()
        for row, parent in enumerate(self.parent):
            if parent != NOBODY and sums[row]:
                part[row] *= part[parent] / sums[parent]
        found = shares.copy()
        found[inside] = shares[inside] * (part / np.where(sums > 0, sums, 1.0))[pool[inside]]
        return found

    @property
    def bounded(self) -> bool:
        """Whether any pool reserves something or is limited."""
        both = (self._cpu, self._memory)
        return any((b.floor > 0).any() or np.isfinite(b.ceiling).any() for b in both)


def cpu_claims(vms: Sequence[Vm]) -> tuple[Bounds, Floats]:
    """What VMs may claim of the CPU, and what they ask for."""
    return _cpu_bounds(vms), np.array([vm.demand.cpu_mhz for vm in vms], dtype=np.float64)


def memory_claims(vms: Sequence[Vm]) -> tuple[Bounds, Floats]:
    """What VMs may claim of the memory, never more than their size, and what they ask for."""
    bounds, sizes = _memory_bounds(vms), np.array([vm.memory_mib for vm in vms], dtype=np.float64)
    want = np.array([vm.demand.memory_mib for vm in vms], dtype=np.float64)
    return bounds._replace(ceiling=np.minimum(bounds.ceiling, sizes)), want


def parents_first(pools: Sequence[Pool]) -> list[Pool]:
    """The pools, each after the one it is in."""
    ordered: list[Pool] = []
    placed: set[PoolId | None] = {None}
    waiting = list(pools)
    while waiting:
        now = [pool for pool in waiting if pool.parent in placed]
        assert now, "pools in a circle are refused when files are read"
        ordered += now
        placed.update(pool.id for pool in now)
        waiting = [pool for pool in waiting if pool.id not in placed]
    return ordered


def _cpu_bounds(some: Sequence[Vm | Pool]) -> Bounds:
    cpus = [one.cpu for one in some]
    return _bounds(
        [cpu.shares for cpu in cpus],
        [cpu.reservation_mhz for cpu in cpus],
        [cpu.limit_mhz for cpu in cpus],
    )


def _memory_bounds(some: Sequence[Vm | Pool]) -> Bounds:
    memories = [one.memory for one in some]
    return _bounds(
        [memory.shares for memory in memories],
        [memory.reservation_mib for memory in memories],
        [memory.limit_mib for memory in memories],
    )


def _bounds(
    shares: Sequence[float], floors: Sequence[float], limits: Sequence[float | None]
) -> Bounds:
    ceilings = [NO_LIMIT if limit is None else limit for limit in limits]
    return Bounds(*(np.array(one, dtype=np.float64) for one in (shares, floors, ceilings)))
