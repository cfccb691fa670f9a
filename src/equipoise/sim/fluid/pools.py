"""What a pool's settings mean on the hosts: each VM's part of its pool's shares and bounds.

A pool lives on many hosts at once. On each it has the parts of the VMs it has there, as a cluster
manager would set it: shares are divided by shares, reservations and limits by demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from equipoise.model.pool import Pool
from equipoise.model.quantity import PoolId
from equipoise.place.water import NOBODY, Floats, Ints

NO_LIMIT = float("inf")


class Bounds(NamedTuple):
    """The settings of all pools for one resource, in the order of the rows."""

    shares: Floats
    floor: Floats
    ceiling: Floats


class PoolTree:
    """The pools as arrays, parents before children."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        ordered = _parents_first(pools)
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

    def weights(self, pool: Ints, shares: Floats, bounds: Bounds) -> Floats:
        """Each VM's part of the shares: of its pool's part of its parent's part, and so on."""
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

    def parts(self, pool: Ints, want: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
        """Each VM's part of what its pools reserve and may have at most, by what it asks for."""
        floor = self._spread(pool, want, bounds.floor, 0.0)
        ceiling = self._spread(pool, want, bounds.ceiling, NO_LIMIT)
        return floor, ceiling

    def _spread(self, pool: Ints, want: Floats, amounts: Floats, nothing: float) -> Floats:
        found = np.full(len(pool), nothing)
        for row in np.nonzero(amounts != nothing)[0]:
            members = np.isin(pool, self._below(int(row)))
            asked = want[members]
            # Who asks for nothing gets a little, so that it can begin to.
            weight = asked + max(1.0, float(asked.sum()) * 0.01 / max(1, len(asked)))
            part = amounts[row] * weight / weight.sum() if len(asked) else asked
            # Rows come parents first: an inner pool's own figure is the closer one.
            found[members] = np.minimum(found[members], part) if nothing else part
        return found

    def _below(self, top: int) -> list[int]:
        found = {top}
        for row, parent in enumerate(self.parent):
            if parent in found:
                found.add(row)
        return sorted(found)

    @property
    def bounded(self) -> bool:
        """Whether any pool reserves something or is limited."""
        both = (self.cpu, self.memory)
        return any((b.floor > 0).any() or np.isfinite(b.ceiling).any() for b in both)


def _parents_first(pools: Sequence[Pool]) -> list[Pool]:
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


def _bounds(figures: object) -> Bounds:
    rows = [
        (float(shares), float(floor), NO_LIMIT if ceiling is None else float(ceiling))
        for shares, floor, ceiling in figures  # type: ignore[attr-defined]
    ]
    columns = np.array(rows).reshape(len(rows), 3)
    return Bounds(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())
