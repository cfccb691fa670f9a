"""The allocator: maps VM and host names to rows, and keeps where each VM runs and what it gets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.pool_split import PoolSplit
from equipoise.capacity.pool_tree import ClaimBounds, PoolTree
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints, Records
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.physics import Physics
from equipoise.model.vm import Vm, VmState
from equipoise.sim.allocation.kernels import (
    ALL_CHANGED,
    ALLOCATION_KERNELS,
    HOST_DTYPE,
    POOL_DTYPE,
    POWER_CURVE_POINTS,
    UNPLACED,
    VM_DTYPE,
    AllocationState,
    empty_nodes,
    grow_rows,
)

DEMAND_CHANGE_DTYPE: Final = np.dtype(
    [("at_ms", "i8"), ("row", "i8"), ("resource", "i8"), ("value", "f8")]
)
"""A change of demand: when, the row of the VM, the resource (0 is CPU, 1 memory), the new value."""

KERNELS: Final = KernelSet(*ALLOCATION_KERNELS)
NO_LIMIT: Final = float("inf")
_ROWS_AT_FIRST: Final = 64
_POOL_COLUMNS: Final = [
    f"{resource}_{part}"
    for resource in ("cpu", "memory")
    for part in ("weight", "pool_floor", "pool_ceiling")
]
"""The share of its pool's settings that each VM has."""


class ResourceAllocator:
    """All hosts and VMs as arrays, and the time up to which they are known.

    Changes only mark their hosts. Marked hosts are divided together, in ``reallocate``.
    """

    def __init__(self, pools: PoolTree, physics: Physics) -> None:
        self.now_ms = 0
        self.pools = pools
        self.vm_row: dict[VmId, int] = {}
        self.host_row: dict[HostId, int] = {}
        self.fast = False
        self._kernels = KERNELS.plain
        self._state = AllocationState(
            np.zeros(_ROWS_AT_FIRST, dtype=VM_DTYPE),
            np.zeros(_ROWS_AT_FIRST, dtype=HOST_DTYPE),
            empty_nodes(_ROWS_AT_FIRST),
            physics.memory.balloon_pct_max / 100,
            physics.memory.swap_slowdown,
            physics.overhead_mib,
        )
        self._pool_rows = np.zeros(max(1, len(pools.ids)), dtype=POOL_DTYPE)
        self._pool_rows["parent"][: len(pools.ids)] = pools.parent
        # Row 0 of the hosts is ``UNPLACED``.
        self._vm_count, self._host_count = 0, 1
        self._changed_hosts: Ints = np.zeros(_ROWS_AT_FIRST, dtype=np.int64)
        self._changed_count = 0
        self._trees_are_stale = True

    @property
    def vms(self) -> Records:
        """The rows of the VMs, including VMs that have left."""
        return self._state.vms[: self._vm_count]

    @property
    def hosts(self) -> Records:
        """The rows of the hosts, including ``UNPLACED`` and hosts that have left."""
        return self._state.hosts[: self._host_count]

    def compile(self) -> None:
        """Use compiled kernels from now on; they pay off for large clusters and long runs."""
        self.fast, self._kernels = True, KERNELS.fast

    # Hosts and VMs

    def put_host(self, host: Host, *, waking: bool = False) -> None:
        """Add a host, or update its state and capacity."""
        row = self.host_row.get(host.id)
        if row is None:
            row = self._new_host(host.id)
        self._mark_changed(row)
        record = self._state.hosts[row]
        record["is_on"] = host.state is HostState.ON
        record["cpu"], record["memory"] = host.usable_cpu_mhz, host.usable_memory_mib
        record["cpu_all"] = host.cpu_mhz
        record["power_curve"] = _resampled_curve(host.power.curve)
        record["watts_off"] = _watts_off(host, waking)
        record["watts_saved"] = _watts_saved(host, waking)
        record["in_standby"] = host.state is HostState.STANDBY and not waking

    def drop_host(self, host: HostId) -> None:
        """Remove a host that has left; its totals stay."""
        row = self.host_row.pop(host, None)
        if row is not None:
            self._mark_changed(row)
            record = self._state.hosts[row]
            # The row stays: the energy and the totals of the host belong to the run.
            record["is_on"] = record["cpu"] = record["memory"] = record["watts_off"] = 0
            record["watts_saved"] = record["in_standby"] = 0

    def put_vm(self, vm: Vm) -> int:
        """Add a VM, or update its host and its claims; return its row."""
        row = self.vm_row.get(vm.id)
        if row is None:
            row = self._new_vm(vm)
        self._write_claims(row, vm)
        record = self._state.vms[row]
        before = int(record["host"])
        host = self._host_of(vm, before)
        if host != before:
            self._mark_changed(before)
            self._mark_changed(host)
            record["host"], self._trees_are_stale = host, True
            # No host divides anything for it any more, so its last allocation would stay for ever.
            if host in (UNPLACED, NO_INDEX):
                record["cpu_allocated"] = record["memory_allocated"] = record["ready"] = 0
        return row

    def drop_vm(self, vm: VmId) -> None:
        """Remove a VM that has left; its totals stay."""
        row = self.vm_row.pop(vm, None)
        if row is not None:
            self._mark_changed(int(self._state.vms[row]["host"]))
            self._state.vms[row]["host"], self._trees_are_stale = NO_INDEX, True

    def _host_of(self, vm: Vm, before: int) -> int:
        if vm.state is VmState.RUNNING and vm.host is not None:
            return self.host_row[vm.host]
        # A ready VM that ran before was stopped by a fault. It should run, so it counts as down.
        is_unplaced = vm.state is VmState.READY and before != NO_INDEX
        return UNPLACED if is_unplaced else NO_INDEX

    def mark_unplaced(self, vm: VmId) -> None:
        """Count a VM that never ran as down until it starts."""
        row = self.vm_row[vm]
        if self._state.vms[row]["host"] == NO_INDEX:
            self._mark_changed(UNPLACED)
            self._state.vms[row]["host"], self._trees_are_stale = UNPLACED, True

    # Demand and disturbances

    def set_demand(self, rows: Ints, cpu: Floats, memory: Floats) -> None:
        """Set the demand of VMs from now on; NaN keeps the present figure."""
        vms = self._state.vms
        for host in np.unique(vms["host"][rows]):
            self._mark_changed(int(host))
        for name, figures in (("cpu_demand", cpu), ("memory_demand", memory)):
            vms[name][rows] = np.where(np.isnan(figures), vms[name][rows], figures)

    def set_vm_speed(self, vm: VmId, speed: float) -> None:
        """Let a VM run at a share of its full speed from now on."""
        row = self.vm_row.get(vm)
        if row is not None:
            self._mark_changed(int(self._state.vms[row]["host"]))
            self._state.vms[row]["speed"] = speed

    def add_host_overhead(self, host: HostId, cpu_mhz: float, memory_mib: float) -> None:
        """Add to what a host needs besides its VMs; negative amounts reduce it."""
        row = self.host_row.get(host)
        if row is not None:
            self._mark_changed(row)
            self._state.hosts[row]["cpu_overhead"] += cpu_mhz
            self._state.hosts[row]["memory_overhead"] += memory_mib

    # Time

    def apply_changes(self, changes: Records) -> None:
        """Apply changes of demand, all of which lie between now and the next ``advance``."""
        self.reallocate()
        if len(changes):
            self._kernels.apply_demand_changes(self._state, changes, self._changed_hosts)

    def advance(self, now_ms: int) -> None:
        """Advance the time without changes."""
        self.reallocate()
        self.now_ms = now_ms

    def reallocate(self) -> None:
        """Divide the hosts on which something has changed."""
        if self._trees_are_stale:
            self._rebuild_trees()
        if self._changed_count:
            self._kernels.share_changed_hosts(self._state, self._changed_hosts, self._changed_count)
            self._changed_count = 0

    def update_totals(self) -> None:
        """Bring all totals up to now."""
        self.reallocate()
        self._kernels.accumulate_all(self._state, self._host_count, self.now_ms)

    def refresh_pools(self) -> None:
        """Divide the reservations and limits of pools by the present demand of their VMs."""
        # Without reservations and limits of pools the split depends on shares alone, not on demand.
        if self.pools.bounded:
            for row in range(self._host_count):
                self._mark_changed(row)
            self._trees_are_stale = True

    def _mark_changed(self, host: int) -> None:
        self._changed_count = self._kernels.mark_changed(
            self._state, host, self.now_ms, ALL_CHANGED, self._changed_hosts, self._changed_count
        )

    def _rebuild_trees(self) -> None:
        before = self.vms[_POOL_COLUMNS].copy() if self.pools.ids else None
        self._update_weights()
        if before is not None:
            # A VM that starts or stops changes the weight of the other VMs of its pool, on all
            # hosts. Those hosts must be divided too.
            for host in np.unique(self.vms["host"][before != self.vms[_POOL_COLUMNS]]):
                self._mark_changed(int(host))
        vms, hosts = self._vm_count, self._host_count
        nodes_max = vms + hosts * (1 + len(self.pools.ids))
        if len(self._state.nodes.tree) < nodes_max:
            # Doubled, so that the arrays grow rarely while VMs arrive.
            self._state = self._state._replace(nodes=empty_nodes(2 * nodes_max))
        starts, order = np.zeros(hosts + 1, dtype=np.int64), np.zeros(vms, dtype=np.int64)
        self._kernels.build_trees(self._state, self._pool_rows, starts, order, vms)
        self._trees_are_stale = False

    def _update_weights(self) -> None:
        vms, pools = self.vms, self.pools
        runs = vms["host"] > UNPLACED
        for name, bounds_of in (("cpu", pools.cpu), ("memory", pools.memory)):
            if not pools.ids:
                vms[f"{name}_weight"] = vms[f"{name}_shares"]
                continue
            pool = vms["pool"][runs]
            shares, demand = vms[f"{name}_shares"][runs], vms[f"{name}_demand"][runs]
            bounds = bounds_of(pool, shares)
            vms[f"{name}_weight"][runs] = pools.weights(pool, shares, bounds)
            if pools.bounded:
                own = ClaimBounds(shares, vms[f"{name}_floor"][runs], vms[f"{name}_ceiling"][runs])
                split = PoolSplit(pools, pool, bounds, own, demand)
                vms[f"{name}_pool_floor"][runs] = split.reservations().vms
                vms[f"{name}_pool_ceiling"][runs] = split.limits().vms

    def _new_host(self, host: HostId) -> int:
        row = self._host_count
        self._host_count += 1
        if self._host_count >= len(self._state.hosts):
            self._state = self._state._replace(
                hosts=grow_rows(self._state.hosts, 2 * self._host_count)
            )
            self._changed_hosts = np.resize(self._changed_hosts, 2 * self._host_count)
        self.host_row[host] = row
        self._state.hosts[row]["last_ms"] = self.now_ms
        self._trees_are_stale = True
        return row

    def _new_vm(self, vm: Vm) -> int:
        row = self._vm_count
        self._vm_count += 1
        if self._vm_count >= len(self._state.vms):
            self._state = self._state._replace(vms=grow_rows(self._state.vms, 2 * self._vm_count))
        self.vm_row[vm.id] = row
        record = self._state.vms[row]
        record["host"], record["speed"] = NO_INDEX, 1.0
        record["cpu_demand"] = vm.demand.cpu_mhz
        record["memory_demand"] = min(vm.demand.memory_mib, vm.memory_mib)
        return row

    def _write_claims(self, row: int, vm: Vm) -> None:
        record = self._state.vms[row]
        record["size"] = vm.memory_mib
        record["pool"] = NO_INDEX if vm.pool is None else self.pools.row[vm.pool]
        cpu_limit = NO_LIMIT if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
        record["cpu_floor"], record["cpu_ceiling"] = vm.cpu.reservation_mhz, cpu_limit
        record["cpu_shares"], record["cpu_pool_ceiling"] = vm.cpu.shares, NO_LIMIT
        memory_limit = vm.memory_mib if vm.memory.limit_mib is None else vm.memory.limit_mib
        record["memory_floor"] = vm.memory.reservation_mib
        record["memory_ceiling"] = min(memory_limit, vm.memory_mib)
        record["memory_shares"], record["memory_pool_ceiling"] = vm.memory.shares, NO_LIMIT

    def rows_of(self, vms: Iterable[VmId]) -> Ints:
        """Return the rows of VMs."""
        return np.array([self.vm_row[vm] for vm in vms], dtype=np.int64)


@lru_cache(maxsize=256)
def _resampled_curve(figures: tuple[int, ...]) -> Floats:
    """Return a curve with ``POWER_CURVE_POINTS`` points; cached, since many hosts share one."""
    points = np.linspace(0, 1, POWER_CURVE_POINTS)
    return np.interp(points, np.linspace(0, 1, len(figures)), figures)


def _watts_off(host: Host, waking: bool) -> float:
    """Return the power of a host that runs no VMs because it is not on."""
    if host.state is HostState.FAILED:
        return 0
    if host.state is HostState.MAINTENANCE or waking:
        return host.power.idle_watts
    return host.power.standby_watts


def _watts_saved(host: Host, waking: bool) -> float:
    """Return the difference to an idle host that is on; negative if waking draws more."""
    if host.state is not HostState.STANDBY or not host.power.known:
        return 0
    return host.power.curve[0] - _watts_off(host, waking)
