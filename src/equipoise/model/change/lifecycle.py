"""The life of hosts and VMs: from which state to which state each action leads."""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.model.action import (
    Action,
    Boot,
    EnterMaintenance,
    Forge,
    HostAction,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState


class Passage(NamedTuple):
    """A VM's way from one state and place to another."""

    vm: VmId
    state_before: VmState
    host_before: HostId | None
    state_after: VmState
    host_after: HostId | None


def passage(action: Action) -> Passage | None:
    """Say which way an action takes its VM; ``None`` if it does not change state or place.

    ``Kill`` is not here: it is allowed from every state.
    """
    match action:
        case Forge(vm=vm):
            return Passage(vm, VmState.INIT, None, VmState.READY, None)
        case Boot(vm=vm, target=target):
            return Passage(vm, VmState.READY, None, VmState.RUNNING, target)
        case Shutdown(vm=vm, source=source):
            return Passage(vm, VmState.RUNNING, source, VmState.READY, None)
        case (
            Migrate(vm=vm, source=source, target=target)
            | Reinstantiate(vm=vm, source=source, target=target)
        ):
            return Passage(vm, VmState.RUNNING, source, VmState.RUNNING, target)
        case Suspend(vm=vm, source=source):
            return Passage(vm, VmState.RUNNING, source, VmState.SLEEPING, source)
        case Resume(vm=vm, source=source, target=target):
            return Passage(vm, VmState.SLEEPING, source, VmState.RUNNING, target)
        case _:
            return None


HOST_PASSAGES: Final[dict[type[HostAction], tuple[HostState, HostState]]] = {
    PowerOn: (HostState.STANDBY, HostState.ON),
    PowerOff: (HostState.ON, HostState.STANDBY),
    EnterMaintenance: (HostState.ON, HostState.MAINTENANCE),
    LeaveMaintenance: (HostState.MAINTENANCE, HostState.ON),
}
"""The state a host action needs, and the one it leads to."""
