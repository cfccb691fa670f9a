"""Reservation-divvy and limit-divvy: what a pool reserves or may have, handed down to its VMs.

A pool spans many hosts, and a hypervisor knows only its own VMs. So what the pool has is divided
among those below it, level by level: nobody below the own reservation, nobody above the own limit,
in between first to those who ask for it, then by shares.

The paper hands it out by shares alone when there is enough for all demands (equation 4 applies only
when there is not). Then somebody may be held below a demand that could be met; ``to_the_letter``
does it so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.place.fill import Claim, fill
from equipoise.place.pools import NO_LIMIT, Bounds, PoolTree
from equipoise.place.water import NOBODY, Floats, Ints

ROOT = -1
"""The row of the cluster itself, above all pools."""


class Divvied(NamedTuple):
    """What each pool and each VM has got, in the order of the rows."""

    pools: Floats
    vms: Floats


class Divvy:
    """Hands amounts of one resource down the tree of pools."""

    def __init__(
        self, tree: PoolTree, pool: Ints, pools: Bounds, vms: Bounds, want: Floats
    ) -> None:
        self._reserved, self._limited = pools.floor, pools.ceiling
        self._vms_in: list[list[int]] = [[] for _ in (*tree.ids, ROOT)]
        self._pools_in: list[list[int]] = [[] for _ in (*tree.ids, ROOT)]
        for vm, row in enumerate(pool.tolist()):
            self._vms_in[ROOT if row == NOBODY else row].append(vm)
        for row in range(len(tree.ids) - 1, -1, -1):
            if self._vms_in[row] or self._pools_in[row]:  # nobody is there to use it otherwise
                parent = int(tree.parent[row])
                self._pools_in[ROOT if parent == NOBODY else parent].append(row)
        self._vms = vms._replace(floor=np.minimum(vms.floor, vms.ceiling))
        self._want = np.minimum(np.maximum(want, self._vms.floor), vms.ceiling)
        self._pools, self._asked = self._added_up(pools)

    def _added_up(self, own: Bounds) -> tuple[Bounds, Floats]:
        """What pools really guarantee, can use and ask for, with all that is in them.

        An expandable pool may guarantee more than it reserves; none can use more than its VMs.
        """
        pools, asked = Bounds(*(column.copy() for column in own)), np.zeros(len(own.floor))
        for row in range(len(asked) - 1, -1, -1):
            vms, inner = self._vms_in[row], self._pools_in[row]
            most = sum(self._vms.ceiling[vms]) + sum(pools.ceiling[inner])
            least = sum(self._vms.floor[vms]) + sum(pools.floor[inner])
            pools.ceiling[row] = min(own.ceiling[row], most)
            pools.floor[row] = min(max(own.floor[row], least), pools.ceiling[row])
            wanted = sum(self._want[vms]) + sum(asked[inner])
            asked[row] = min(max(wanted, pools.floor[row]), pools.ceiling[row])
        return pools, asked

    def reservations(self, root: float = 0.0, *, to_the_letter: bool = False) -> Divvied:
        """Hand down what the cluster (``root``) and the pools reserve."""
        return self._hand_down(root, self._reserved, max, to_the_letter)

    def limits(self, root: float = NO_LIMIT, *, to_the_letter: bool = False) -> Divvied:
        """Hand down what the cluster (``root``) and the pools may have at most."""
        return self._hand_down(root, self._limited, min, to_the_letter)

    def _hand_down(
        self, root: float, own: Floats, join: Callable[..., float], to_the_letter: bool
    ) -> Divvied:
        """From the top down; a pool has what it was given or, by itself, what it has of its own."""
        found = Divvied(np.zeros(len(self._asked)), np.zeros(len(self._want)))
        below = [(ROOT, root)]
        while below:
            row, amount = below.pop()
            pools, vms = self._pools_in[row], self._vms_in[row]
            parts = self._parts(row, amount, to_the_letter)
            for vm, part in zip(vms, parts, strict=False):
                found.vms[vm] = part
            for pool, part in zip(pools, parts[len(vms) :], strict=True):
                found.pools[pool] = join(part, own[pool])
                below.append((pool, found.pools[pool]))
        return found

    def _parts(self, row: int, amount: float, to_the_letter: bool) -> Sequence[float]:
        vms, pools = self._vms_in[row], self._pools_in[row]
        if amount in (0.0, NO_LIMIT):  # nothing to hand out, or nothing to hold back
            return [amount] * (len(vms) + len(pools))
        claims = [
            *((self._vms.floor[v], self._want[v], self._vms.ceiling[v], self._vms.shares[v])
              for v in vms),
            *((self._pools.floor[p], self._asked[p], self._pools.ceiling[p], self._pools.shares[p])
              for p in pools),
        ]  # fmt: skip
        asked = [Claim(min(floor, want), want, shares) for floor, want, _, shares in claims]
        if amount <= sum(claim.ceiling for claim in asked):
            return fill(amount, asked)
        floors = [claim.floor if to_the_letter else claim.ceiling for claim in asked]
        return fill(
            amount,
            [
                Claim(floor, limit, shares)
                for floor, (_, _, limit, shares) in zip(floors, claims, strict=True)
            ],
        )
