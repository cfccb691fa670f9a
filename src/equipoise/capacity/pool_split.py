"""Splits pool settings over VMs and hosts: the share-, reservation- and limit-divvy of DRS.

A pool spans many hosts, and a hypervisor knows only its own VMs. The reservation and the limit of a
pool are therefore split level by level: at least the own reservation, at most the own limit, first
by demand and then by shares. The settings of a pool on one host are the sum over its VMs there.

The paper splits by shares alone when all demands fit (equation 4 applies only when they do not).
A VM can then stay below a demand that could be met; ``follow_paper`` selects that behaviour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.capacity.pool_tree import NO_LIMIT, ClaimBounds, PoolTree, cpu_claims, memory_claims
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints, ShareClaim, fill_by_shares
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, PoolId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState

ROOT = -1
"""The row of the cluster itself, above all pools."""


class SplitAmounts(NamedTuple):
    """The amount of each pool and each VM, in the order of the rows."""

    pools: Floats
    vms: Floats


class PoolSplit:
    """Splits amounts of one resource down the tree of pools."""

    def __init__(
        self, tree: PoolTree, pool: Ints, pools: ClaimBounds, vms: ClaimBounds, want: Floats
    ) -> None:
        self._reserved, self._limited = pools.floor, pools.ceiling
        self._vms_in: list[list[int]] = [[] for _ in (*tree.ids, ROOT)]
        self._pools_in: list[list[int]] = [[] for _ in (*tree.ids, ROOT)]
        for vm, row in enumerate(pool.tolist()):
            self._vms_in[ROOT if row == NO_INDEX else row].append(vm)
        # From the last row up: a pool is attached only after all pools inside it are known.
        for row in range(len(tree.ids) - 1, -1, -1):
            if self._vms_in[row] or self._pools_in[row]:  # a pool without VMs gets nothing
                parent = int(tree.parent[row])
                self._pools_in[ROOT if parent == NO_INDEX else parent].append(row)
        # A limit below the reservation wins.
        self._vms = vms._replace(floor=np.minimum(vms.floor, vms.ceiling))
        self._want = np.minimum(np.maximum(want, self._vms.floor), vms.ceiling)
        self._pools, self._asked = self._sum_claims(pools)

    def _sum_claims(self, own: ClaimBounds) -> tuple[ClaimBounds, Floats]:
        """Return the guarantee, limit and demand of each pool, including everything inside it.

        An expandable pool may guarantee more than its own reservation. No pool can use more than
        the sum of the limits of its VMs.
        """
        pools, asked = ClaimBounds(*(column.copy() for column in own)), np.zeros(len(own.floor))
        for row in range(len(asked) - 1, -1, -1):
            vms, inner = self._vms_in[row], self._pools_in[row]
            most = sum(self._vms.ceiling[vms]) + sum(pools.ceiling[inner])
            least = sum(self._vms.floor[vms]) + sum(pools.floor[inner])
            pools.ceiling[row] = min(own.ceiling[row], most)
            pools.floor[row] = min(max(own.floor[row], least), pools.ceiling[row])
            wants = sum(self._want[vms]) + sum(asked[inner])
            asked[row] = min(max(wants, pools.floor[row]), pools.ceiling[row])
        return pools, asked

    def reservations(self, root: float = 0.0, *, follow_paper: bool = False) -> SplitAmounts:
        """Split the reservation of the cluster (``root``) and of the pools."""
        return self._split_down(root, self._reserved, max, follow_paper)

    def limits(self, root: float = NO_LIMIT, *, follow_paper: bool = False) -> SplitAmounts:
        """Split the limit of the cluster (``root``) and of the pools."""
        return self._split_down(root, self._limited, min, follow_paper)

    def _split_down(
        self, root: float, own: Floats, join: Callable[..., float], follow_paper: bool
    ) -> SplitAmounts:
        """Split from the top down; ``join`` merges the part of a pool with its ``own`` setting."""
        amounts = SplitAmounts(np.zeros(len(self._asked)), np.zeros(len(self._want)))
        below = [(ROOT, root)]
        while below:
            row, amount = below.pop()
            pools, vms = self._pools_in[row], self._vms_in[row]
            parts = self._parts(row, amount, follow_paper)
            # The parts of the VMs come first, those of the pools follow.
            for vm, part in zip(vms, parts, strict=False):
                amounts.vms[vm] = part
            for pool, part in zip(pools, parts[len(vms) :], strict=True):
                amounts.pools[pool] = join(part, own[pool])
                below.append((pool, amounts.pools[pool]))
        return amounts

    def _parts(self, row: int, amount: float, follow_paper: bool) -> Sequence[float]:
        """Return the parts of the VMs, then of the pools, directly inside a row."""
        vms, pools = self._vms_in[row], self._pools_in[row]
        if amount in (0.0, NO_LIMIT):  # zero and "no limit" are the same for all
            return [amount] * (len(vms) + len(pools))
        claims = [
            *self._claims(vms, self._vms, self._want),
            *self._claims(pools, self._pools, self._asked),
        ]
        # First by demand: between the guarantee and the demand (equation 4 of the paper).
        asked = [ShareClaim(min(floor, want), want, shares) for floor, want, _, shares in claims]
        if amount <= sum(claim.ceiling for claim in asked):
            return fill_by_shares(amount, asked)
        # All demands fit. The rest is split by shares, on top of the demands or of the guarantees.
        floors = [claim.floor if follow_paper else claim.ceiling for claim in asked]
        return fill_by_shares(
            amount,
            [
                ShareClaim(floor, limit, shares)
                for floor, (_, _, limit, shares) in zip(floors, claims, strict=True)
            ],
        )

    @staticmethod
    def _claims(rows: list[int], bounds: ClaimBounds, want: Floats) -> Iterator[tuple[float, ...]]:
        """Yield floor, demand, ceiling and shares of each row."""
        for row in rows:
            yield bounds.floor[row], want[row], bounds.ceiling[row], bounds.shares[row]


class HostResourceSettings(NamedTuple):
    """The settings of a pool for one resource on one host, as whole numbers."""

    reservation: int
    limit: int | None
    shares: int


class HostPool(NamedTuple):
    """The settings of a pool on one host."""

    cpu: HostResourceSettings
    memory: HostResourceSettings


HostPools = Mapping[HostId, Mapping[PoolId, HostPool]]
"""The settings by host that is on, and by pool with VMs on that host."""


class HostPoolChange(NamedTuple):
    """A pool whose settings on a host change; ``None`` means that the pool is absent."""

    host: HostId
    pool: PoolId
    before: HostPool | None
    after: HostPool | None


def split_pools_over_hosts(snapshot: Snapshot) -> HostPools:
    """Return the settings of all pools on all hosts, split by the current demand."""
    vms = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
    tree = PoolTree(snapshot.settings.pools)
    vm_pools = tree.rows_of(vms)
    cpu_bounds, memory_bounds = cpu_claims(vms), memory_claims(vms)
    cpu = _vm_parts(tree, vm_pools, tree.cpu(vm_pools, cpu_bounds[0].shares), *cpu_bounds)
    memory = _vm_parts(
        tree, vm_pools, tree.memory(vm_pools, memory_bounds[0].shares), *memory_bounds
    )
    settings: dict[HostId, dict[PoolId, HostPool]] = {
        host.id: {} for host in snapshot.hosts.values() if host.state is HostState.ON
    }
    members: dict[tuple[HostId, PoolId], list[int]] = defaultdict(list)
    for row, vm in enumerate(vms):
        pool = vm.pool
        while pool is not None and vm.host in settings:
            members[vm.host, pool].append(row)
            above = tree.parent[tree.row[pool]]
            pool = None if above == NO_INDEX else tree.ids[above]
    for (host, pool), rows in members.items():
        settings[host][pool] = HostPool(_sum_parts(cpu, rows), _sum_parts(memory, rows))
    return settings


def host_pool_changes(before: HostPools, after: HostPools) -> tuple[HostPoolChange, ...]:
    """Return the changes that turn ``before`` into ``after`` on the hypervisors."""
    return tuple(
        HostPoolChange(host, pool, old.get(pool), new.get(pool))
        for host in dict.fromkeys((*before, *after))
        for old, new in [(before.get(host, {}), after.get(host, {}))]
        for pool in dict.fromkeys((*old, *new))
        if old.get(pool) != new.get(pool)
    )


def _vm_parts(
    tree: PoolTree, pool: Ints, pools: ClaimBounds, vms: ClaimBounds, want: Floats
) -> ClaimBounds:
    """Return the part of each VM of the shares, reservations and limits of its pools."""
    split = PoolSplit(tree, pool, pools, vms, want)
    weights = tree.weights(pool, vms.shares, pools)
    return ClaimBounds(weights, split.reservations().vms, split.limits().vms)


def _sum_parts(parts: ClaimBounds, rows: list[int]) -> HostResourceSettings:
    """Return the sum over the VMs of a pool on a host, rounded."""
    shares, floor, ceiling = (float(column[rows].sum()) for column in parts)
    return HostResourceSettings(
        # Reservations round down and limits up: the hosts together never guarantee more than the
        # pool, and never allow less. The margin keeps rounding noise from changing a whole number.
        reservation=int(floor + 1e-6),
        limit=None if ceiling == NO_LIMIT else int(np.ceil(ceiling - 1e-6)),
        # The smallest weight is 1; zero would mean no claim at all.
        shares=max(1, round(shares)),
    )
