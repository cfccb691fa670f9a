"""Warnings about an inventory: values that are allowed and probably in another unit.

A host of 256 MiB, a core of 3 MHz or a VM that demands 50 GHz of one vCPU is no contradiction, so
the file is read. Advice for it is hardly what the operator wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from equipoise.model.diagnostics import Diagnostics, KeyPath
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory, Pool
from equipoise.model.vm import Vm, VmState

HOST_MIB_MIN: Final = 512
"""Less memory runs no hypervisor."""
HOST_MIB_MAX: Final = 64 * 1024 * 1024
"""64 TiB: more than any server has."""
CORE_MHZ_MIN: Final = 100
CORE_MHZ_MAX: Final = 10_000
VM_MIB_MIN: Final = 16
DEMAND_FACTOR: Final = 4
"""Turbo and a foreign CPU model explain a demand above the vCPUs, but not so many times it."""


def report_doubtful_values(inventory: Inventory, diagnostics: Diagnostics) -> None:
    """Report values that are probably in another unit than the key says."""
    for position, host in enumerate(inventory.hosts):
        _check_host(host, ("hosts", position), diagnostics)
    speed_mhz = max((host.mhz_per_core for host in inventory.hosts), default=0)
    largest_mib = max(
        (inventory.overcommitted(host).configured_memory_max_mib for host in inventory.hosts),
        default=0,
    )
    for position, vm in enumerate(inventory.vms):
        path: KeyPath = ("vms", position)
        _check_vm_cpu(vm, speed_mhz, path, diagnostics)
        _check_vm_memory(vm, largest_mib, path, diagnostics)
    for resource, keys in ((CPU_OF_POOL, "cpu"), (MEMORY_OF_POOL, "memory")):
        _check_pools(inventory, resource, keys, diagnostics)


class _PoolResource(NamedTuple):
    """A resource that pools and VMs reserve."""

    key: str
    unit: str
    of_pool: Callable[[Pool], int]
    of_vm: Callable[[Vm], int]
    expandable: Callable[[Pool], bool]


CPU_OF_POOL: Final = _PoolResource(
    "reservation_mhz",
    "MHz",
    lambda pool: pool.cpu.reservation_mhz,
    lambda vm: vm.cpu.reservation_mhz,
    lambda pool: pool.cpu_expandable,
)
MEMORY_OF_POOL: Final = _PoolResource(
    "reservation_mib",
    "MiB",
    lambda pool: pool.memory.reservation_mib,
    lambda vm: vm.memory.reservation_mib,
    lambda pool: pool.memory_expandable,
)


def _check_pools(
    inventory: Inventory, resource: _PoolResource, key: str, diagnostics: Diagnostics
) -> None:
    """Report pools that reserve less than what is inside them."""
    inside: Counter[str] = Counter()
    of_pools: Counter[str] = Counter()
    for pool in inventory.pools:
        if pool.parent is not None:
            inside[pool.parent] += resource.of_pool(pool)
            of_pools[pool.parent] += resource.of_pool(pool)
    for vm in inventory.vms:
        if vm.pool is not None and vm.state is VmState.RUNNING:
            inside[vm.pool] += resource.of_vm(vm)
    for position, pool in enumerate(inventory.pools):
        own, children = resource.of_pool(pool), inside[pool.id]
        # A pool without a reservation that takes everything from its parent is the usual case.
        usual = own == 0 and resource.expandable(pool) and not of_pools[pool.id]
        if children <= own or usual:
            continue
        what = f"{own} {resource.unit}, but its pools and VMs reserve {children} {resource.unit}"
        cure = "raise it, or lower the reservations inside"
        if resource.expandable(pool):
            what += "; the rest is taken from its parent"
        diagnostics.add(
            ("pools", position, key, resource.key), what, cure, code="pool-below-children"
        )


def _check_host(host: Host, path: KeyPath, diagnostics: Diagnostics) -> None:
    memory_mib, speed_mhz = host.memory_mib, host.mhz_per_core
    if not HOST_MIB_MIN <= memory_mib <= HOST_MIB_MAX:
        size = "little" if memory_mib < HOST_MIB_MIN else "much"
        what = f"{memory_mib} MiB is {size} memory for a host"
        cure = "write mebibytes: 256 GiB are 262144"
        diagnostics.add((*path, "memory_mib"), what, cure, code="doubtful-host-memory")
    if not CORE_MHZ_MIN <= speed_mhz <= CORE_MHZ_MAX:
        pace = "slow" if speed_mhz < CORE_MHZ_MIN else "fast"
        what = f"{speed_mhz} MHz is very {pace} for a core"
        cure = "write megahertz of one core: 2.6 GHz are 2600"
        diagnostics.add((*path, "mhz_per_core"), what, cure, code="doubtful-core-speed")


def _check_vm_cpu(vm: Vm, speed_mhz: int, path: KeyPath, diagnostics: Diagnostics) -> None:
    most_mhz = vm.vcpus * speed_mhz
    figures = (
        (("demand", "cpu_mhz"), vm.demand.cpu_mhz, DEMAND_FACTOR, "demand"),
        (("cpu", "reservation_mhz"), vm.cpu.reservation_mhz, 1, "reservation"),
    )
    for keys, mhz, factor, noun in figures:
        if most_mhz and mhz > factor * most_mhz:
            what = f"a {noun} of {mhz} MHz, but its vCPUs give at most {most_mhz} MHz on any host"
            cure = "write megahertz of all vCPUs together"
            diagnostics.add((*path, *keys), what, cure, code="doubtful-vm-cpu")


def _check_vm_memory(vm: Vm, largest_mib: int, path: KeyPath, diagnostics: Diagnostics) -> None:
    if vm.memory_mib < VM_MIB_MIN:
        what = f"{vm.memory_mib} MiB is little memory for a VM"
        cure = "write mebibytes: 8 GiB are 8192"
        diagnostics.add((*path, "memory_mib"), what, cure, code="doubtful-vm-memory")
    elif largest_mib and vm.memory_mib > largest_mib and vm.state is not VmState.TERMINATED:
        what = f"{vm.memory_mib} MiB is more than any host has for VMs, {largest_mib} MiB"
        cure = "correct the size, add a larger host, or set memory_overcommit"
        diagnostics.add((*path, "memory_mib"), what, cure, code="vm-exceeds-hosts")
