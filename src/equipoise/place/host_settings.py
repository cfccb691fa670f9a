"""What hypervisors are to know of the pools: their settings on each host, and what is new in them.

While a VM runs, its host divides what it has by a tree of pools of its own. A pool has there the
parts of the VMs it has there: of its shares, its reservation and its limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, PoolId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.place.divvy import Divvy
from equipoise.place.pools import NO_LIMIT, Bounds, PoolTree, cpu_claims, memory_claims
from equipoise.place.water import NOBODY, Floats, Ints


class PoolOnHost(NamedTuple):
    """The settings of a pool for one resource on one host, in whole numbers."""

    reservation: int
    limit: int | None
    shares: int


class HostPool(NamedTuple):
    """The settings of a pool on one host."""

    cpu: PoolOnHost
    memory: PoolOnHost


HostPools = Mapping[HostId, Mapping[PoolId, HostPool]]
"""For each host that is on, the pools that have VMs on it."""


class Change(NamedTuple):
    """A pool whose settings on a host are to be changed; ``None`` is none."""

    host: HostId
    pool: PoolId
    before: HostPool | None
    after: HostPool | None


def host_pools(snapshot: Snapshot) -> HostPools:
    """Divide the settings of all pools among the hosts, by what their VMs ask for now."""
    vms = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
    tree = PoolTree(snapshot.settings.pools)
    rows_of = tree.rows_of(vms)
    of_cpu, of_memory = cpu_claims(vms), memory_claims(vms)
    cpu = _parts(tree, rows_of, tree.cpu(rows_of, of_cpu[0].shares), *of_cpu)
    memory = _parts(tree, rows_of, tree.memory(rows_of, of_memory[0].shares), *of_memory)
    found: dict[HostId, dict[PoolId, HostPool]] = {
        host.id: {} for host in snapshot.hosts.values() if host.state is HostState.ON
    }
    members: dict[tuple[HostId, PoolId], list[int]] = defaultdict(list)
    for row, vm in enumerate(vms):
        pool = vm.pool
        while pool is not None and vm.host in found:
            members[vm.host, pool].append(row)
            above = tree.parent[tree.row[pool]]
            pool = None if above == NOBODY else tree.ids[above]
    for (host, pool), rows in members.items():
        found[host][pool] = HostPool(_added(cpu, rows), _added(memory, rows))
    return found


def changes(before: HostPools, after: HostPools) -> tuple[Change, ...]:
    """What is to be told to the hypervisors so that they know ``after``."""
    return tuple(
        Change(host, pool, old.get(pool), new.get(pool))
        for host in dict.fromkeys((*before, *after))
        for old, new in [(before.get(host, {}), after.get(host, {}))]
        for pool in dict.fromkeys((*old, *new))
        if old.get(pool) != new.get(pool)
    )


def _parts(tree: PoolTree, pool: Ints, pools: Bounds, vms: Bounds, want: Floats) -> Bounds:
    """Each VM's part of its pools' shares, reservations and limits."""
    divvy = Divvy(tree, pool, pools, vms, want)
    weights = tree.weights(pool, vms.shares, pools)
    return Bounds(weights, divvy.reservations().vms, divvy.limits().vms)


def _added(parts: Bounds, rows: list[int]) -> PoolOnHost:
    shares, floor, ceiling = (float(column[rows].sum()) for column in parts)
    return PoolOnHost(
        # Rounded so that hosts together never guarantee more than the pool, nor allow less.
        reservation=int(floor + 1e-6),
        limit=None if ceiling == NO_LIMIT else int(np.ceil(ceiling - 1e-6)),
        shares=max(1, round(shares)),
    )
