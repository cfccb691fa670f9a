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
        self._cpu = _bounds((p.cpu.shares, p.cpu.reservation_mhz, p.cpu.limit_mhz) for p in ordered)
        self._memory = _bounds(
            (p.memory.shares, p.memory.reservation_mib, p.memory.limit_mib) for p in ordered
        )

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


def cpu_claims(vms: Iterable[Vm]) -> tuple[Bounds, Floats]:
    """What VMs may claim of the CPU, and what they ask for."""
    return _claims((vm.cpu.shares, vm.cpu.reservation_mhz, vm.cpu.limit_mhz, vm.demand.cpu_mhz)
                   for vm in vms)  # fmt: skip


def memory_claims(vms: Iterable[Vm]) -> tuple[Bounds, Floats]:
    """What VMs may claim of the memory, never more than their size, and what they ask for."""
    return _claims(
        (
            vm.memory.shares,
            vm.memory.reservation_mib,
            min(vm.memory_mib, NO_LIMIT if vm.memory.limit_mib is None else vm.memory.limit_mib),
            vm.demand.memory_mib,
        )
        for vm in vms
    )


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


def _bounds(figures: Iterable[tuple[float, float, float | None]]) -> Bounds:
    bounds, _ = _claims((*one, 0.0) for one in figures)
    return bounds


def _claims(
    figures: Iterable[tuple[float, float, float | None, float]],
) -> tuple[Bounds, Floats]:
    rows = [
        (shares, floor, NO_LIMIT if ceiling is None else ceiling, want)
        for shares, floor, ceiling, want in figures
    ]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 4).T.copy()
    return Bounds(table[0], table[1], table[2]), table[3]
