"""Pinned VMs: which VMs must not be moved now, and why."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.model.host import HostState
from equipoise.model.policy import HostOverride, VmOverride
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot


class PinReason(NamedTuple):
    """Why a VM is pinned to its host."""

    code: str
    sentence: str


def pinned_vms(snapshot: Snapshot) -> dict[VmId, PinReason]:
    """Return the VMs that must not move now, not even for a rule, each with the reason."""
    hosts = _pinned_hosts(snapshot)
    pinned: dict[VmId, PinReason] = {}
    for vm in snapshot.vms.values():
        if vm.agent:
            pinned[vm.id] = PinReason("agent", f"it is an agent of {vm.host}")
        elif vm.host in hosts:
            pinned[vm.id] = hosts[vm.host]
    for running in snapshot.in_flight.values():
        vm_id = running.step.footprint.vm
        if vm_id is not None:
            pinned[vm_id] = PinReason("action-running", f"step {running.step.id} works on it")
    for vm_id, override in snapshot.settings.balance.vms.items():
        if override is VmOverride.OFF and vm_id in snapshot.vms:
            pinned[vm_id] = PinReason("policy-override", "the balance policy pins it")
    return pinned


def _pinned_hosts(snapshot: Snapshot) -> dict[HostId | None, PinReason]:
    """Return the hosts whose VMs are all pinned."""
    overrides = snapshot.settings.balance.hosts
    pinned: dict[HostId | None, PinReason] = {}
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            pinned[host.id] = PinReason("host-off", f"{host.id} is {host.state}, not on")
        elif overrides.get(host.id) is HostOverride.OFF and host.requested is None:
            pinned[host.id] = PinReason("policy-override", f"the balance policy excludes {host.id}")
    return pinned
