"""Inventories: hosts, VMs and their measured usage, pools, rules, tenants, policies; and
amendments of an inventory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Final, Protocol

from equipoise.files.check.references import (
    InventoryIndex,
    NamedElements,
    check_at_most,
    check_members,
    find_cycles,
    format_cycle,
)
from equipoise.model.diagnostics import (
    Diagnostic,
    Diagnostics,
    KeyPath,
    TooManyDiagnostics,
    format_list,
    quoted,
)
from equipoise.model.host import Host, HostState, PowerProfile
from equipoise.model.inventory import Amendment, AntiAffinityGroup, Inventory, Tenant, amend
from equipoise.model.rule import Satisfy, StayOff, StayWithin
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState, VmUsage

_CPU_TIMES: Final = ("cpu_run_ms", "cpu_sleep_ms", "cpu_ready_ms")
_PAGES: Final = ("pages_sampled", "pages_touched")
_REQUIRED_TOGETHER: Final = (
    (_CPU_TIMES, _CPU_TIMES, "the three times belong to one interval: give all of them, or none"),
    ((*_CPU_TIMES, "cpu_stall_pct"), ("cpu_used_mhz",), "give the CPU that the VM used on average"),
    (_PAGES, _PAGES, "give both, or none"),
    (("memory_stall_pct",), ("memory_used_mib",), "give the memory that the VM used"),
)
"""If one of the first keys is given, all of the second are required; then the cure."""
_EXCLUSIVE: Final = (
    ("cpu_stall_pct", _CPU_TIMES),
    ("memory_used_mib", _PAGES),
    ("memory_stall_pct", _PAGES),
)
"""The first key excludes all of the second."""


def check_usage(vm: Vm, usage: VmUsage, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report measured figures that are incomplete or contradict each other."""
    if vm.demand.cpu_mhz or vm.demand.memory_mib:
        what = "the VM has a demand as well"
        cure = "leave demand out: it is derived from usage"
        diagnostics.add(path, what, cure, code="contradiction")
    _check_combinations(usage, path, diagnostics)
    sampled, touched, used = usage.pages_sampled, usage.pages_touched, usage.memory_used_mib
    excess = f"is more than pages_sampled {sampled}"
    check_at_most(touched, sampled, excess, (*path, "pages_touched"), diagnostics)
    _check_vm_memory(vm, used, (*path, "memory_used_mib"), diagnostics)


def _check_combinations(usage: VmUsage, path: KeyPath, diagnostics: Diagnostics) -> None:
    given = [key for key in VmUsage.__struct_fields__ if getattr(usage, key) is not None]
    missing: set[str] = set()
    for stated, needed, cure in _REQUIRED_TOGETHER:
        reason = next((key for key in stated if key in given), None)
        for key in needed:
            if reason is not None and key not in given and key not in missing:
                missing.add(key)
                what = f"is missing, although {reason} is given"
                diagnostics.add((*path, key), what, cure, code="missing-key")
    for key, excluded in _EXCLUSIVE:
        other = next((name for name in excluded if name in given), None)
        if key in given and other is not None:
            what = f"{other} already determines the same demand"
            cure = f"leave one of them out: {key} or {', '.join(excluded)}"
            diagnostics.add((*path, key), what, cure, code="contradiction")


_MANAGED_WATTS_MIN: Final = 2


class HostDirectory(Protocol):
    """The hosts that a VM may name."""

    def check(self, name: str, path: KeyPath, diagnostics: Diagnostics) -> bool:
        """Return whether a host has that name; report the name if not."""

    def get(self, name: str) -> Host | None:
        """Return the host of that name, if it could be read."""


def check_hosts(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Check all hosts of an inventory."""
    for position, host in index.hosts:
        check_host(host, ("hosts", position), diagnostics)


def check_host(host: Host, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a host with inconsistent reserves or power figures."""
    for key in ("cpu_mhz", "memory_mib"):
        reserved, whole = getattr(host.reserve, key), getattr(host, key)
        excess = "is more than the host has"
        check_at_most(reserved, whole, excess, (*path, "reserve", key), diagnostics)
    idle, peak = host.power.idle_watts, host.power.peak_watts
    excess, cure = f"is more than peak_watts {peak}", ", or raise peak_watts"
    check_at_most(idle, peak, excess, (*path, "power", "idle_watts"), diagnostics, cure)
    if host.power.cap_watts is not None and host.power.cap_watts < host.power.curve[0]:
        what = f"{host.power.cap_watts} is less than the host draws when idle"
        cure = f"at least {host.power.curve[0]}, or leave it out"
        diagnostics.add((*path, "power", "cap_watts"), what, cure, code="out-of-range")
    _check_managed_power(host.power, (*path, "power", "managed_watts"), diagnostics)


def _check_managed_power(power: PowerProfile, path: KeyPath, diagnostics: Diagnostics) -> None:
    figures = power.managed_watts
    if power.managed and len(figures) < _MANAGED_WATTS_MIN:
        what = f"has {len(figures)} of at least {_MANAGED_WATTS_MIN} figures, but managed is true"
        cure = "give the watts from no use to full use, evenly spaced"
        diagnostics.add(path, what, cure, code="out-of-range")
    for position, (before, watts) in enumerate(pairwise(figures), start=1):
        if watts < before:
            what = f"{watts} is below the figure before it, {before}"
            diagnostics.add((*path, position), what, f"at least {before}", code="out-of-range")


def check_vms(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Check all VMs of an inventory and their hosts."""
    for position, vm in index.vms:
        path: KeyPath = ("vms", position)
        check_vm_host(vm, index.hosts, path, diagnostics)
        check_vm(vm, index, path, diagnostics)
        if vm.ft_pair is not None:
            check_ft_pair(vm, vm.ft_pair, index.vms, (*path, "ft_pair"), diagnostics)


def check_vm(vm: Vm, index: InventoryIndex, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report inconsistent settings of a VM, and a pool or tenant that does not exist."""
    check_reservations(vm.cpu, vm.memory, path, diagnostics)
    reserved = vm.memory.reservation_mib
    _check_vm_memory(vm, reserved, (*path, "memory", "reservation_mib"), diagnostics)
    _check_vm_memory(vm, vm.demand.memory_mib, (*path, "demand", "memory_mib"), diagnostics)
    if vm.replaceable and vm.template is None:
        what = "is true, but the VM has no template to be replaced from"
        cure = "name the template, or leave it out"
        diagnostics.add((*path, "replaceable"), what, cure, code="missing-key")
    if vm.usage is not None:
        check_usage(vm, vm.usage, (*path, "usage"), diagnostics)
    if vm.pool is not None:
        index.pools.check(vm.pool, (*path, "pool"), diagnostics)
    if vm.tenant is not None:
        index.tenants.check(vm.tenant, (*path, "tenant"), diagnostics)


def check_reservations(
    cpu: CpuSettings, memory: MemorySettings, path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Report reservations above the limit."""
    excess, here = f"is above limit_mhz {cpu.limit_mhz}", (*path, "cpu", "reservation_mhz")
    check_at_most(cpu.reservation_mhz, cpu.limit_mhz, excess, here, diagnostics)
    excess, here = f"is above limit_mib {memory.limit_mib}", (*path, "memory", "reservation_mib")
    check_at_most(memory.reservation_mib, memory.limit_mib, excess, here, diagnostics)


def _check_vm_memory(vm: Vm, amount: int | None, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report an amount of memory that exceeds the size of the VM."""
    excess = f"is above the configured memory_mib {vm.memory_mib}"
    check_at_most(amount, vm.memory_mib, excess, path, diagnostics, ", or raise memory_mib")


def check_vm_host(vm: Vm, hosts: HostDirectory, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a VM without the host that its state requires, or with one that it excludes."""
    if vm.host is None:
        if vm.state in (VmState.RUNNING, VmState.SLEEPING):
            what = f"is missing, but the VM {quoted(vm.id)} is {vm.state}"
            cure = "name its host, or write state: ready"
            diagnostics.add((*path, "host"), what, cure, code="missing-key")
        return
    if vm.state not in (VmState.RUNNING, VmState.SLEEPING):
        what = f"a VM that is {vm.state} has no host, found {quoted(vm.host)}"
        cure = "leave host out, or write state: running"
        diagnostics.add((*path, "host"), what, cure, code="contradiction")
    elif hosts.check(vm.host, (*path, "host"), diagnostics):
        host = hosts.get(vm.host)
        if host is not None:
            _check_vm_on_host(vm, host, path, diagnostics)


def _check_vm_on_host(vm: Vm, host: Host, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a VM that cannot be on its host, whatever its size."""
    if vm.state is VmState.RUNNING and host.state is not HostState.ON:
        what = f"the VM {quoted(vm.id)} is running, but its host {quoted(host.id)} is {host.state}"
        cure = "write state: sleeping" if vm.agent else "name a host that is on, or another state"
        diagnostics.add((*path, "host"), what, cure, code="contradiction")
    check_named_resources(vm, host, path, diagnostics)


def check_named_resources(vm: Vm, host: Host, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report named resources that a VM consumes and its host does not offer."""
    for name, amount in vm.consumption.items():
        if amount > 0 and name not in host.capacity:
            what = f"its host {quoted(host.id)} does not offer {quoted(name)}"
            offers = (
                f"it offers: {format_list(host.capacity)}" if host.capacity else "it offers nothing"
            )
            diagnostics.add(
                (*path, "consumption", name), what, offers + " in capacity", code="contradiction"
            )


def check_ft_pair(
    vm: Vm, name: str, vms: NamedElements[Vm], path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Report a fault-tolerant pair that is not mutual, or whose VMs share a host."""
    if name == vm.id:
        diagnostics.add(path, "a VM is not its own pair", "name another VM", code="contradiction")
        return
    if not vms.check(name, path, diagnostics):
        return
    other = vms.get(name)
    if other is None:
        return
    if other.ft_pair != vm.id:
        names = "none" if other.ft_pair is None else quoted(other.ft_pair)
        what = f"the pair is not mutual: {quoted(name)} names {names}"
        diagnostics.add(
            path, what, f"write ft_pair: {vm.id} there, or leave it out here", code="contradiction"
        )
    # Both VMs name each other; the first id reports the pair once.
    elif vm.host is not None and vm.host == other.host and vm.id < name:
        what = f"{quoted(vm.id)} and {quoted(name)} are both on {quoted(vm.host)}"
        diagnostics.add(path, what, "a pair needs two hosts", code="contradiction")


def check_pools(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report pools with an unknown parent, in a cycle, or with inconsistent settings."""
    positions: dict[str, int] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for position, pool in index.pools:
        path: KeyPath = ("pools", position)
        check_reservations(pool.cpu, pool.memory, path, diagnostics)
        # Of two pools with one id the first counts; the second is reported as a duplicate.
        positions.setdefault(pool.id, position)
        if pool.parent is not None and index.pools.check(
            pool.parent, (*path, "parent"), diagnostics
        ):
            parents.setdefault(pool.id, (pool.parent,))
    for cycle in find_cycles(parents):
        what = f"the pools are parents of each other: {format_cycle(cycle)}"
        path = ("pools", positions[cycle[0]], "parent")
        diagnostics.add(path, what, "leave parent out in one of them", code="cycle")


def check_rule_members(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report rules about VMs and hosts that do not exist."""
    for position, rule in index.rules:
        path: KeyPath = ("rules", position)
        if not isinstance(rule, Satisfy):  # the specification language checks its arguments
            check_members(rule.vms, index.vms, (*path, "vms"), diagnostics)
        if isinstance(rule, StayWithin | StayOff):
            check_members(rule.hosts, index.hosts, (*path, "hosts"), diagnostics)


def check_balance_policy(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report settings of the balance policy for VMs and hosts that do not exist."""
    for vm in index.balance.vms:
        index.vms.check(vm, ("balance", "vms", vm), diagnostics)
    for host in index.balance.hosts:
        index.hosts.check(host, ("balance", "hosts", host), diagnostics)


def check_power_policy(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report hosts of the power policy that do not exist, and windows that never hold."""
    for host in index.power.hosts:
        index.hosts.check(host, ("power", "hosts", host), diagnostics)
    for position, window in enumerate(index.power.windows):
        path = ("power", "windows", position)
        if window.start == window.end:
            what = f"the window ends when it starts, at {window.start}"
            cure = "for all day write start 00:00 and end 24:00"
            diagnostics.add((*path, "end"), what, cure, code="out-of-range")
        if window.start == "24:00":
            what = "a window cannot start at the end of a day"
            cure = "write 00:00 of the next day"
            diagnostics.add((*path, "start"), what, cure, code="out-of-range")
        if not window.days:
            cure = "name days, or leave it out for all days"
            diagnostics.add((*path, "days"), "the window has no day", cure, code="empty-value")


def check_tenants(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report inconsistent SLAs, and anti-affinity groups with VMs of other tenants."""
    for position, tenant in index.tenants:
        path: KeyPath = ("tenants", position)
        least, most = tenant.sla.vms_min, tenant.sla.vms_max
        excess = f"is above vms_max {most}"
        check_at_most(least, most, excess, (*path, "sla", "vms_min"), diagnostics)
        groups = NamedElements("group", (*path, "anti_affinity"), tenant.anti_affinity, None)
        groups.check_ids(diagnostics)
        for group_position, group in groups:
            here = (*path, "anti_affinity", group_position)
            _check_anti_affinity(group, tenant, index, here, diagnostics)


def _check_anti_affinity(
    group: AntiAffinityGroup,
    tenant: Tenant,
    index: InventoryIndex,
    path: KeyPath,
    diagnostics: Diagnostics,
) -> None:
    check_members(group.vms, index.vms, (*path, "vms"), diagnostics)
    for position, name in enumerate(group.vms):
        vm = index.vms.get(name)
        if vm is not None and vm.tenant != tenant.id:
            owner = "no tenant" if vm.tenant is None else f"the tenant {quoted(vm.tenant)}"
            what = f"{quoted(name)} belongs to {owner}"
            cure = f"write tenant: {tenant.id} at the VM"
            diagnostics.add((*path, "vms", position), what, cure, code="contradiction")


ClusterCheck = Callable[[Inventory, Diagnostics], None]
"""A further check of the inventory in a file, by a caller that knows more than the model."""


def check_amendment(
    amendment: Amendment, base: Inventory, check_whole: ClusterCheck, diagnostics: Diagnostics
) -> None:
    """Report the problems of an amendment and of the cluster that it makes of ``base``."""
    _check_amendment_names(amendment, base, diagnostics)
    # With a duplicate or unknown name the merged cluster would report it a second time.
    if len(diagnostics):
        return
    whole = Diagnostics()
    with suppress(TooManyDiagnostics):
        check_whole(amend(base, amendment), whole)
    for diagnostic in whole.all():
        if _is_in_amendment(diagnostic, amendment):
            path, what, cure, first = diagnostic[:4]
            diagnostics.add(path, what, cure, first, code=diagnostic.code)


def _check_amendment_names(amendment: Amendment, base: Inventory, diagnostics: Diagnostics) -> None:
    for kind in ("hosts", "vms", "pools", "rules"):
        taken = {element.id for element in getattr(base, kind)}
        for position, element in enumerate(getattr(amendment, kind)):
            if element.id in taken:
                what = f"the cluster already has {quoted(element.id)}"
                cure = "use another id"
                diagnostics.add((kind, position, "id"), what, cure, code="duplicate-name")
    vms = [vm.id for vm in (*base.vms, *amendment.vms)]
    for name in amendment.demand:
        if name not in vms:
            diagnostics.add_unknown(("demand", name), "VM", name, vms)
    rules = [rule.id for rule in base.rules]
    for position, rule in enumerate(amendment.without_rules):
        if rule not in rules:
            diagnostics.add_unknown(("without_rules", position), "rule", rule, rules)


def _is_in_amendment(diagnostic: Diagnostic, amendment: Amendment) -> bool:
    """Whether a problem lies in the amendment.

    ``amend`` puts new elements first. The rest is the base, which was checked before.
    """
    kind, *rest = diagnostic.path
    if kind in ("balance", "power"):
        return getattr(amendment, kind) is not None
    new = getattr(amendment, str(kind), ())
    return bool(rest) and isinstance(rest[0], int) and rest[0] < len(new)
