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
from equipoise.place.fill import Claim, fill
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

    def parts(self, pool: Ints, own: Bounds, want: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
        """Each VM's part of what its pools reserve and may have at most, by what it asks for."""
        return _Division(self, pool, own, want, bounds).parts()

    @property
    def bounded(self) -> bool:
        """Whether any pool reserves something or is limited."""
        both = (self.cpu, self.memory)
        return any((b.floor > 0).any() or np.isfinite(b.ceiling).any() for b in both)


class _Division:
    """Divides what pools reserve, and what they may have, among the VMs below them."""

    def __init__(
        self, tree: PoolTree, pool: Ints, own: Bounds, want: Floats, bounds: Bounds
    ) -> None:
        self._bounds = bounds
        self._vms: list[list[int]] = [[] for _ in tree.ids]
        self._pools: list[list[int]] = [[] for _ in tree.ids]
        for vm, row in enumerate(pool.tolist()):
            if row != NOBODY:
                self._vms[row].append(vm)
        self._tops: list[int] = []
        for row, parent in enumerate(tree.parent.tolist()):
            (self._tops if parent == NOBODY else self._pools[parent]).append(row)
        self._own = own
        self._want = np.minimum(np.maximum(want, own.floor), own.ceiling)
        self._asked = np.zeros(len(tree.ids))
        for row in range(len(tree.ids) - 1, -1, -1):
            asked = sum(self._want[vm] for vm in self._vms[row])
            asked += sum(self._asked[child] for child in self._pools[row])
            self._asked[row] = min(max(asked, bounds.floor[row]), bounds.ceiling[row])
        self._floor, self._ceiling = np.zeros(len(want)), np.full(len(want), NO_LIMIT)

    def parts(self) -> tuple[Floats, Floats]:
        """The parts of all VMs."""
        for row in self._tops:
            self._reserve(row, 0.0)
            self._limit(row, NO_LIMIT)
        return self._floor, self._ceiling

    def _claims(self, row: int) -> list[Claim]:
        bounds, own = self._bounds, self._own
        return [
            *(Claim(min(own.floor[v], self._want[v]), self._want[v], own.shares[v])
              for v in self._vms[row]),
            *(Claim(min(bounds.floor[p], self._asked[p]), self._asked[p], bounds.shares[p])
              for p in self._pools[row]),
        ]  # fmt: skip

    def _reserve(self, row: int, given: float) -> None:
        """Hand down what is reserved here, or was by those above."""
        amount = max(given, self._bounds.floor[row])
        parts = fill(amount, self._claims(row)) if amount else [0.0] * self._count(row)
        for vm, part in zip(self._vms[row], parts, strict=False):
            self._floor[vm] = part
        for pool, part in zip(self._pools[row], parts[len(self._vms[row]) :], strict=True):
            self._reserve(pool, part)

    def _limit(self, row: int, given: float) -> None:
        """Hand down what may be used: first what is asked for, then the rest by shares."""
        amount = min(given, self._bounds.ceiling[row])
        parts = [NO_LIMIT] * self._count(row)
        if amount != NO_LIMIT:
            claims = self._claims(row)
            parts = fill(amount, claims)
            rest, width = amount - sum(parts), sum(claim.shares for claim in claims)
            # Who asks for more before the next division should find some room for it.
            parts = [
                part + rest * claim.shares / width
                for part, claim in zip(parts, claims, strict=True)
            ]
        for vm, part in zip(self._vms[row], parts, strict=False):
            self._ceiling[vm] = part
        for pool, part in zip(self._pools[row], parts[len(self._vms[row]) :], strict=True):
            self._limit(pool, part)

    def _count(self, row: int) -> int:
        return len(self._vms[row]) + len(self._pools[row])


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
