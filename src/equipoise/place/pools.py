"""The tree of pools as arrays, and each VM's part of the shares that its pools have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.model.pool import Pool
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
        self.cpu = _bounds((p.cpu.shares, p.cpu.reservation_mhz, p.cpu.limit_mhz) for p in ordered)
        self.memory = _bounds(
            (p.memory.shares, p.memory.reservation_mib, p.memory.limit_mib) for p in ordered
        )

    def rows_of(self, vms: Iterable[Vm]) -> Ints:
        """The row of each VM's pool, or ``NOBODY``."""
        rows = [NOBODY if vm.pool is None else self.row[vm.pool] for vm in vms]
        return np.array(rows, dtype=np.int64)

    def weights(self, pool: Ints, shares: Floats, bounds: Bounds) -> Floats:
        """The share-divvy: each VM's part of its pool's part of its parent's part, and so on.

        Demands play no role in it; pools without a VM have no part.
        """
        inside = pool != NOBODY
        if not inside.any():
            return shares.copy()
        sums = np.bincount(pool[inside], weights=shares[inside], minlength=len(self.ids))
        present = sums > 0
        for row in range(len(self.ids) - 1, -1, -1):
            parent = self.parent[row]
            if parent != NOBODY and present[row]:
                present[parent] = True
                sums[parent] += bounds.shares[row]
        part = np.zeros(len(self.ids))
        for row, parent in enumerate(self.parent):
            own = bounds.shares[row]
            part[row] = own if parent == NOBODY else part[parent] * own / max(sums[parent], own)
        found = shares.copy()
        found[inside] = shares[inside] * (part / np.where(sums > 0, sums, 1.0))[pool[inside]]
        return found

    @property
    def bounded(self) -> bool:
        """Whether any pool reserves something or is limited."""
        both = (self.cpu, self.memory)
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
