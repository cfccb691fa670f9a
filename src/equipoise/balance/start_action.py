"""The action by which a VM gets its host in a placement: it starts, resumes or moves."""

from __future__ import annotations

from equipoise.model.action import Action, Boot, Migrate, Resume
from equipoise.model.quantity import HostId
from equipoise.model.vm import Vm, VmState


def start_action(vm: Vm, host: HostId) -> Action:
    """Return the action after which a VM runs on a host."""
    if vm.host is None:
        return Boot(vm=vm.id, target=host)
    if vm.state is VmState.SLEEPING:
        return Resume(vm=vm.id, source=vm.host, target=host)
    return Migrate(vm=vm.id, source=vm.host, target=host)


def is_placeable(vm: Vm, *, resident: bool) -> bool:
    """Return whether a placement may choose a host for a VM; with ``resident``, another host."""
    if vm.agent:
        return False
    if resident and vm.state in {VmState.SLEEPING, VmState.RUNNING}:
        return True
    return vm.state is VmState.READY


def host_to_leave(vm: Vm) -> HostId | None:
    """Return the host on which a VM runs; a sleeping VM may resume on its own."""
    return vm.host if vm.state is VmState.RUNNING else None
