"""VMs that can never leave a host: its change would wait for ever."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import StayOff, StayWithin
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.state import UpgradeState


def pinned_to(state: UpgradeState, hosts: Iterable[HostId]) -> Reason | None:
    """Return which VM can run on no other host than one of these, or None.

    Hosts that are down may come back, so they count as targets.
    """
    rules = [
        rule
        for rule in state.campaign.cluster.rules
        if isinstance(rule, StayWithin | StayOff) and rule.hard
    ]
    if not rules:
        return None
    places = {name for name, host in state.cluster.compute_hosts.items() if host.vms_max}
    allowed: dict[VmId, set[HostId]] = {}
    named: dict[VmId, list[str]] = {}
    for rule in rules:
        of_rule = set(rule.hosts) if isinstance(rule, StayWithin) else places - set(rule.hosts)
        for vm in rule.vms:
            allowed[vm] = allowed.get(vm, places) & of_rule
            named.setdefault(vm, []).append(rule.id)
    for host in hosts:
        for vm in state.cluster.residents.get(host, ()):
            if vm in allowed and not allowed[vm] - {host} and not _may_be_removed(state, vm):
                text = f"{vm} on {host} may run on no other host (rule {', '.join(named[vm])})"
                return Reason("vms-pinned", text)
    return None


def _may_be_removed(state: UpgradeState, vm: VmId) -> bool:
    """Return whether the tenant of a VM may scale in."""
    tenant = state.cluster.placements[vm].tenant
    return (
        tenant is not None
        and state.cluster.vm_counts[tenant] > state.cluster.tenants[tenant].sla.vms_min
    )
