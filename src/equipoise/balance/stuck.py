"""Who may not be moved now, and why."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.model.host import HostState
from equipoise.model.policy import HostOverride, VmOverride
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot


class Stuck(NamedTuple):
    """Why somebody may not be moved."""

    code: str
    sentence: str


def stuck_vms(snapshot: Snapshot) -> dict[VmId, Stuck]:
    """The VMs that nobody may move now, not even for a rule."""
    still = _still(snapshot)
    found: dict[VmId, Stuck] = {}
    for vm in snapshot.vms.values():
        if vm.agent:
            found[vm.id] = Stuck("agent", f"it is an agent of {vm.host} and stays with it")
        elif vm.host in still:
            found[vm.id] = still[vm.host]
    for running in snapshot.in_flight.values():
        busy = running.step.footprint.vm
        if busy is not None:
            found[busy] = Stuck("busy", f"it is part of step {running.step.id}, which is under way")
    for name, fixed in snapshot.settings.balance.vms.items():
        if fixed is VmOverride.OFF and name in snapshot.vms:
            found[name] = Stuck("override", "the policy says that it is never moved")
    return found


def _still(snapshot: Snapshot) -> dict[HostId | None, Stuck]:
    """The hosts that nobody leaves."""
    overrides = snapshot.settings.balance.hosts
    found: dict[HostId | None, Stuck] = {}
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            found[host.id] = Stuck("host_off", f"{host.id} is {host.state}, not on")
        elif overrides.get(host.id) is HostOverride.OFF and host.requested is None:
            found[host.id] = Stuck("override", f"{host.id} is left alone by the policy")
    return found
