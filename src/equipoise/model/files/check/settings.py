"""What the operator decides: the tree of pools, the rules, and the promises to tenants."""

from __future__ import annotations

from equipoise.model.files.check.cycles import cycle_shown, cycles
from equipoise.model.files.check.machines import check_claims
from equipoise.model.files.check.roster import NamedElements, Roster, check_members
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, quoted
from equipoise.model.rule import Satisfy, StayOff, StayWithin
from equipoise.model.tenant import AntiAffinityGroup, Tenant


def check_pools(roster: Roster, found: Findings) -> None:
    """Find pools that hang nowhere or within themselves, and claims that contradict."""
    places: dict[str, int] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for place, pool in roster.pools:
        path: Path = ("pools", place)
        check_claims(pool.cpu, pool.memory, path, found)
        places.setdefault(pool.id, place)
        if pool.parent is not None and roster.pools.check(pool.parent, (*path, "parent"), found):
            parents.setdefault(pool.id, (pool.parent,))
    for cycle in cycles(parents):
        what = f"the pools lie within each other: {cycle_shown(cycle)}"
        path = ("pools", places[cycle[0]], "parent")
        found.add(path, what, "leave parent out in one of them")


def check_rules(roster: Roster, found: Findings) -> None:
    """Find rules about VMs and hosts that do not exist."""
    for place, rule in roster.rules:
        path: Path = ("rules", place)
        if not isinstance(rule, Satisfy):  # what it names is known to the language only
            check_members(rule.vms, roster.vms, (*path, "vms"), found)
        if isinstance(rule, StayWithin | StayOff):
            check_members(rule.hosts, roster.hosts, (*path, "hosts"), found)


def check_balance(roster: Roster, found: Findings) -> None:
    """Find overrides for VMs and hosts that do not exist: who means them would rely on them."""
    for vm in roster.balance.vms:
        roster.vms.check(vm, ("balance", "vms", vm), found)
    for host in roster.balance.hosts:
        roster.hosts.check(host, ("balance", "hosts", host), found)


def check_power(roster: Roster, found: Findings) -> None:
    """Find hosts that the power policy names and nobody knows, and windows that never hold."""
    for host in roster.power.hosts:
        roster.hosts.check(host, ("power", "hosts", host), found)
    for place, window in enumerate(roster.power.windows):
        path = ("power", "windows", place)
        if window.start == window.end:
            cure = "00:00 to 24:00 is all day"
            found.add((*path, "end"), f"it ends when it begins, at {window.start}", cure)
        if window.start == "24:00":
            found.add((*path, "start"), "no day begins at its end", "00:00 of the next day")
        if not window.days:
            found.add((*path, "days"), "it begins on no day", "name days, or leave it out")


def check_tenants(roster: Roster, found: Findings) -> None:
    """Find promises that cannot be kept, and groups of VMs that are somebody else's."""
    for place, tenant in roster.tenants:
        path: Path = ("tenants", place)
        if tenant.sla.vms_min > tenant.sla.vms_max:
            what = f"{tenant.sla.vms_min} is above vms_max {tenant.sla.vms_max}"
            found.add((*path, "sla", "vms_min"), what, f"at most {tenant.sla.vms_max}")
        groups = NamedElements("group", (*path, "anti_affinity"), tenant.anti_affinity, None)
        groups.check_ids(found)
        for at, group in groups:
            _check_group(group, tenant, roster, (*path, "anti_affinity", at), found)


def _check_group(
    group: AntiAffinityGroup, tenant: Tenant, roster: Roster, path: Path, found: Findings
) -> None:
    check_members(group.vms, roster.vms, (*path, "vms"), found)
    for place, name in enumerate(group.vms):
        vm = roster.vms.get(name)
        if vm is not None and vm.tenant != tenant.id:
            owner = "no tenant" if vm.tenant is None else f"the tenant {quoted(vm.tenant)}"
            what = f"{quoted(name)} belongs to {owner}"
            found.add((*path, "vms", place), what, f"write tenant: {tenant.id} at the VM")
