"""The fluid state with names instead of rows: who runs where, who asks for what, who gets it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.story.physics import Physics
from equipoise.model.vm import Vm, VmState
from equipoise.place.compiled import Kernels
from equipoise.place.divvy import Divvy
from equipoise.place.pools import Bounds, PoolTree
from equipoise.place.water import NOBODY, Floats, Ints, Records
from equipoise.sim.fluid import flow, trees
from equipoise.sim.fluid.flow import ALL_CHANGED
from equipoise.sim.fluid.rows import CURVE, HOST, LIMBO, POOL, VM, State, empty_nodes, grown

CHANGE: Final = np.dtype([("at_ms", "i8"), ("row", "i8"), ("resource", "i8"), ("value", "f8")])
"""A VM asks for something else: which, when, of what (0 is CPU, 1 memory), how much."""

KERNELS: Final = Kernels(*flow.FUNCTIONS, *trees.FUNCTIONS)
NO_LIMIT: Final = float("inf")
_ROOM: Final = 64
_PARTS: Final = [
    f"{resource}_{part}"
    for resource in ("cpu", "memory")
    for part in ("weight", "pool_floor", "pool_ceiling")
]
"""What a VM has of its pool's settings."""


class Fluid:
    """All hosts and VMs as arrays, and the time up to which they are known."""

    def __init__(self, pools: PoolTree, physics: Physics) -> None:
        self.now_ms = 0
        self.pools = pools
        self.vm_row: dict[VmId, int] = {}
        self.host_row: dict[HostId, int] = {}
        self.fast = False
        self._kernels = KERNELS.plain
        self._state = State(
            np.zeros(_ROOM, dtype=VM),
            np.zeros(_ROOM, dtype=HOST),
            empty_nodes(_ROOM),
            physics.memory.balloon_pct_max / 100,
            physics.memory.swap_slowdown,
            physics.overhead_mib,
        )
        self._pool_rows = np.zeros(max(1, len(pools.ids)), dtype=POOL)
        self._pool_rows["parent"][: len(pools.ids)] = pools.parent
        self._vm_count, self._host_count = 0, 1
        self._touched: Ints = np.zeros(_ROOM, dtype=np.int64)
        self._dirty = 0
        self._moved = True

    @property
    def vms(self) -> Records:
        """The rows of the VMs, those that have left included."""
        return self._state.vms[: self._vm_count]

    @property
    def hosts(self) -> Records:
        """The rows of the hosts, ``LIMBO`` and those that have left included."""
        return self._state.hosts[: self._host_count]

    def compile(self) -> None:
        """Work in machine code from now on, which is worth it for large clusters or long runs."""
        self.fast, self._kernels = True, KERNELS.fast

    # Who is there

    def put_host(self, host: Host, *, waking: bool = False) -> None:
        """Add a host, or note what has become of it."""
        row = self.host_row.get(host.id)
        if row is None:
            row = self._new_host(host.id)
        self._touch(row)
        one = self._state.hosts[row]
        one["awake"] = host.state is HostState.ON
        one["cpu"], one["memory"] = host.usable_cpu_mhz, host.usable_memory_mib
        one["cpu_all"] = host.cpu_mhz
        one["power_curve"] = _power_curve(host)
        one["watts_asleep"] = _watts_asleep(host, waking)
        one["watts_saved"] = _watts_saved(host, waking)
        one["asleep"] = host.state is HostState.STANDBY and not waking

    def drop_host(self, host: HostId) -> None:
        """A host has left; its sums stay."""
        row = self.host_row.pop(host, None)
        if row is not None:
            self._touch(row)
            one = self._state.hosts[row]
            one["awake"] = one["cpu"] = one["memory"] = one["watts_asleep"] = 0
            one["watts_saved"] = one["asleep"] = 0

    def put_vm(self, vm: Vm) -> int:
        """Add a VM, or note what has become of it, and give its row."""
        row = self.vm_row.get(vm.id)
        if row is None:
            row = self._new_vm(vm)
        self._write_claims(row, vm)
        one = self._state.vms[row]
        before = int(one["host"])
        host = self._host_of(vm, before)
        if host != before:
            self._touch(before)
            self._touch(host)
            one["host"], self._moved = host, True
            if host in (LIMBO, NOBODY):
                one["cpu_got"] = one["memory_got"] = one["ready"] = 0
        return row

    def drop_vm(self, vm: VmId) -> None:
        """A VM has left; its sums stay."""
        row = self.vm_row.pop(vm, None)
        if row is not None:
            self._touch(int(self._state.vms[row]["host"]))
            self._state.vms[row]["host"], self._moved = NOBODY, True

    def _host_of(self, vm: Vm, before: int) -> int:
        if vm.state is VmState.RUNNING and vm.host is not None:
            return self.host_row[vm.host]
        # What has run and is ready now was stopped by a fault, and is missed.
        missed = vm.state is VmState.READY and before != NOBODY
        return LIMBO if missed else NOBODY

    def miss(self, vm: VmId) -> None:
        """A VM that never ran is meant to run from now on."""
        row = self.vm_row[vm]
        if self._state.vms[row]["host"] == NOBODY:
            self._touch(LIMBO)
            self._state.vms[row]["host"], self._moved = LIMBO, True

    # What they ask for, and what disturbs them

    def set_demand(self, rows: Ints, cpu: Floats, memory: Floats) -> None:
        """VMs ask for something else from now on; NaN leaves a figure as it is."""
        vms = self._state.vms
        for host in np.unique(vms["host"][rows]):
            self._touch(int(host))
        for name, figures in (("cpu_want", cpu), ("memory_want", memory)):
            vms[name][rows] = np.where(np.isnan(figures), vms[name][rows], figures)

    def set_pace(self, vm: VmId, pace: float) -> None:
        """A VM may run at a part of its speed from now on."""
        row = self.vm_row.get(vm)
        if row is not None:
            self._touch(int(self._state.vms[row]["host"]))
            self._state.vms[row]["pace"] = pace

    def take(self, host: HostId, cpu_mhz: float, memory_mib: float) -> None:
        """Something besides the VMs needs so much more of a host, or less."""
        row = self.host_row.get(host)
        if row is not None:
            self._touch(row)
            self._state.hosts[row]["cpu_taken"] += cpu_mhz
            self._state.hosts[row]["memory_taken"] += memory_mib

    # Time

    def pass_changes(self, changes: Records) -> None:
        """Let demands change; all of it lies between now and the next ``advance``."""
        self.settle()
        if len(changes):
            self._kernels.pass_time(self._state, changes, self._touched)

    def advance(self, now_ms: int) -> None:
        """Let time pass in which nothing changes."""
        self.settle()
        self.now_ms = now_ms

    def settle(self) -> None:
        """Divide anew the hosts on which something has changed."""
        if self._moved:
            self._replant()
        if self._dirty:
            self._kernels.divide_marked(self._state, self._touched, self._dirty)
            self._dirty = 0

    def add_up(self) -> None:
        """Bring all sums up to now."""
        self.settle()
        self._kernels.add_time_everywhere(self._state, self._host_count, self.now_ms)

    def refresh_pools(self) -> None:
        """Divide what pools reserve and may have by what their VMs ask for now."""
        if self.pools.bounded:
            for row in range(self._host_count):
                self._touch(row)
            self._moved = True

    def _touch(self, host: int) -> None:
        self._dirty = self._kernels.mark(
            self._state, host, self.now_ms, ALL_CHANGED, self._touched, self._dirty
        )

    def _replant(self) -> None:
        before = self.vms[_PARTS].copy() if self.pools.ids else None
        self._weigh()
        if before is not None:
            # Who comes or goes changes what the others of its pool weigh, wherever they are.
            for host in np.unique(self.vms["host"][before != self.vms[_PARTS]]):
                self._touch(int(host))
        vms, hosts = self._vm_count, self._host_count
        most = vms + hosts * (1 + len(self.pools.ids))
        if len(self._state.nodes.tree) < most:
            self._state = self._state._replace(nodes=empty_nodes(2 * most))
        starts, order = np.zeros(hosts + 1, dtype=np.int64), np.zeros(vms, dtype=np.int64)
        self._kernels.plant(self._state, self._pool_rows, starts, order, vms)
        self._moved = False

    def _weigh(self) -> None:
        vms, pools = self.vms, self.pools
        runs = vms["host"] > LIMBO
        for name, bounds_of in (("cpu", pools.cpu), ("memory", pools.memory)):
            if not pools.ids:
                vms[f"{name}_weight"] = vms[f"{name}_shares"]
                continue
            pool = vms["pool"][runs]
            shares, want = vms[f"{name}_shares"][runs], vms[f"{name}_want"][runs]
            bounds = bounds_of(pool, shares)
            vms[f"{name}_weight"][runs] = pools.weights(pool, shares, bounds)
            if pools.bounded:
                own = Bounds(shares, vms[f"{name}_floor"][runs], vms[f"{name}_ceiling"][runs])
                divvy = Divvy(pools, pool, bounds, own, want)
                vms[f"{name}_pool_floor"][runs] = divvy.reservations().vms
                vms[f"{name}_pool_ceiling"][runs] = divvy.limits().vms

    def _new_host(self, host: HostId) -> int:
        row = self._host_count
        self._host_count += 1
        if self._host_count >= len(self._state.hosts):
            self._state = self._state._replace(hosts=grown(self._state.hosts, 2 * self._host_count))
            self._touched = np.resize(self._touched, 2 * self._host_count)
        self.host_row[host] = row
        self._state.hosts[row]["last_ms"] = self.now_ms
        self._moved = True
        return row

    def _new_vm(self, vm: Vm) -> int:
        row = self._vm_count
        self._vm_count += 1
        if self._vm_count >= len(self._state.vms):
            self._state = self._state._replace(vms=grown(self._state.vms, 2 * self._vm_count))
        self.vm_row[vm.id] = row
        one = self._state.vms[row]
        one["host"], one["pace"] = NOBODY, 1.0
        one["cpu_want"] = vm.demand.cpu_mhz
        one["memory_want"] = min(vm.demand.memory_mib, vm.memory_mib)
        return row

    def _write_claims(self, row: int, vm: Vm) -> None:
        one = self._state.vms[row]
        one["size"] = vm.memory_mib
        one["pool"] = NOBODY if vm.pool is None else self.pools.row[vm.pool]
        limit = NO_LIMIT if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
        one["cpu_floor"], one["cpu_ceiling"] = vm.cpu.reservation_mhz, limit
        one["cpu_shares"], one["cpu_pool_ceiling"] = vm.cpu.shares, NO_LIMIT
        most = vm.memory_mib if vm.memory.limit_mib is None else vm.memory.limit_mib
        one["memory_floor"] = vm.memory.reservation_mib
        one["memory_ceiling"] = min(most, vm.memory_mib)
        one["memory_shares"], one["memory_pool_ceiling"] = vm.memory.shares, NO_LIMIT

    def rows_of(self, vms: Iterable[VmId]) -> Ints:
        """The rows of some VMs."""
        return np.array([self.vm_row[vm] for vm in vms], dtype=np.int64)


def _power_curve(host: Host) -> Floats:
    return _evenly(host.power.curve)


@lru_cache(maxsize=256)
def _evenly(figures: tuple[int, ...]) -> Floats:
    """Most hosts of a cluster have the same figures."""
    places = np.linspace(0, 1, CURVE)
    return np.interp(places, np.linspace(0, 1, len(figures)), figures)


def _watts_asleep(host: Host, waking: bool) -> float:
    if host.state is HostState.FAILED:
        return 0
    if host.state is HostState.MAINTENANCE or waking:
        return host.power.idle_watts
    return host.power.standby_watts


def _watts_saved(host: Host, waking: bool) -> float:
    """What it would draw on top, were it on and idle; less than nothing if waking takes more."""
    if host.state is not HostState.STANDBY or not host.power.known:
        return 0
    return host.power.curve[0] - _watts_asleep(host, waking)
