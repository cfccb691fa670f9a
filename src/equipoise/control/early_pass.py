"""Early passes: which events call for a pass before the next regular one, and when it runs.

Between two regular passes lie minutes. A pass runs earlier when a host fails, returns or has to
leave, and when a VM has to start. The first such event opens a window; the pass runs when it ends,
and further events within it do not postpone it. A plan that is under way goes on to its end, except
when VMs are lost: then no further step of it starts, and the pass runs beside its last actions.
"""

from __future__ import annotations

from enum import IntEnum

from equipoise.model.action import LeaveMaintenance
from equipoise.model.event import (
    ActionFinished,
    Event,
    HostChanged,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    VmArrived,
    VmChanged,
    VmCrashed,
)
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId
from equipoise.model.state.draft import Draft
from equipoise.model.vm import Vm, VmState


class Urgency(IntEnum):
    """How soon a pass is needed because of an event."""

    NONE = 0
    """With the next regular pass."""
    SOON = 1
    """Within the delay, unless a plan is under way."""
    LOST_VMS = 2
    """Within the delay; a plan that is under way makes room."""


def urgency(event: Event, before: Draft) -> Urgency:
    """Return how soon an event needs a pass; ``before`` is the state without the event."""
    match event:
        case HostFailed() | HostLeft():
            return Urgency.LOST_VMS if _stops_vms(event.host, before) else Urgency.SOON
        case VmCrashed():
            vm = before.vms.get(event.vm)
            return Urgency.NONE if vm is None or vm.agent else Urgency.LOST_VMS
        case HostRecovered() | HostJoined():
            return Urgency.SOON
        case HostChanged():
            return _host_urgency(before.hosts.get(event.host.id), event.host)
        case VmArrived():
            return _vm_urgency(None, event.vm)
        case VmChanged():
            return _vm_urgency(before.vms.get(event.vm.id), event.vm)
        case ActionFinished():
            running = before.in_flight.get(event.step)
            is_back = running is not None and isinstance(running.step.action, LeaveMaintenance)
            return Urgency.SOON if is_back else Urgency.NONE
        case _:
            return Urgency.NONE


def _stops_vms(host: HostId, before: Draft) -> bool:
    """Whether VMs that run on a host need another one when it fails."""
    if host not in before.hosts:
        return False
    return any(not before.vms[vm].agent for vm in before.running_vms(host))


def _host_urgency(before: Host | None, after: Host) -> Urgency:
    """Return whether a host has failed, has returned, or has to leave."""
    state_before = None if before is None else before.state
    if after.state is not state_before and HostState.FAILED in (after.state, state_before):
        return Urgency.LOST_VMS if after.state is HostState.FAILED else Urgency.SOON
    is_back = after.state is HostState.ON and state_before is not HostState.ON
    requested = None if before is None else before.requested
    return Urgency.SOON if is_back or after.requested is not requested else Urgency.NONE


def _vm_urgency(before: Vm | None, after: Vm) -> Urgency:
    """Return whether a VM waits for its start now, and did not before."""
    if after.agent or after.state is not VmState.READY:
        return Urgency.NONE
    if before is None or before.state is VmState.READY:
        return Urgency.SOON if before is None else Urgency.NONE
    return Urgency.LOST_VMS if before.state is VmState.RUNNING else Urgency.SOON
