"""What an observation of the real cluster changes in an upgrade: VMs and hosts come and go."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.event import (
    Event,
    HostFailed,
    HostJoined,
    HostRecovered,
    VmArrived,
    VmChanged,
    VmLeft,
)
from equipoise.model.host import HostState
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.work import TaskBatch, VmBatch
from equipoise.model.vm import Vm, VmState
from equipoise.upgrade.state import UpgradeState


def observed_events(state: UpgradeState, inventory: Inventory, at_ms: int) -> list[Event]:
    """Return the events that lead from the recorded state to an observation.

    Left out is what the open schedule works on: the engine reports that itself.
    """
    known = set(state.cluster.compute_hosts) | {host.id for host in inventory.hosts}
    moving, changing = _moving(state), _changing(state)
    # Hosts first: a VM may have arrived on a new one, and VMs of a failed one wait for a restart.
    return [
        *_host_events(state, inventory, at_ms, changing),
        *_vm_events(state, inventory, at_ms, moving, known),
    ]


def _moving(state: UpgradeState) -> set[VmId]:
    open_batch = state.iteration.open_batch
    if open_batch is None or not isinstance(open_batch.schedule, VmBatch):
        return set()
    return {move.vm for move in open_batch.schedule.moves}


def _changing(state: UpgradeState) -> set[HostId]:
    open_batch = state.iteration.open_batch
    if open_batch is None or not isinstance(open_batch.schedule, TaskBatch):
        return set()
    # A host may be down for a while because it restarts.
    return {task.host for task in open_batch.schedule.tasks if task.host is not None}


def _host_events(
    state: UpgradeState, inventory: Inventory, at_ms: int, changing: set[HostId]
) -> Iterator[Event]:
    seen = {host.id: host for host in inventory.hosts}
    for id_, compute_host in state.cluster.compute_hosts.items():
        if id_ in changing:
            continue
        host = seen.get(id_)
        is_on = host is not None and host.state is HostState.ON
        if compute_host.up and not is_on:
            how = "it is missing" if host is None else f"its state is {host.state}"
            yield HostFailed(at_ms=at_ms, host=id_, reason=f"the observation: {how}")
        elif is_on and not compute_host.up:
            yield HostRecovered(at_ms=at_ms, host=id_)
    for id_, host in seen.items():
        if id_ not in state.cluster.compute_hosts and id_ not in state.cluster.returned_hosts:
            yield HostJoined(at_ms=at_ms, host=host)


def _vm_events(
    state: UpgradeState,
    inventory: Inventory,
    at_ms: int,
    moving: set[VmId],
    known: set[HostId],
) -> Iterator[Event]:
    placements = state.cluster.placements
    seen: set[VmId] = set()
    for vm in inventory.vms:
        seen.add(vm.id)
        host = vm.host if vm.state is VmState.RUNNING and vm.host in known else None
        if vm.id in moving:
            continue
        placement = placements.get(vm.id)
        if placement is None:
            yield VmArrived(at_ms=at_ms, vm=_at(vm, host))
        elif placement.host != host:
            yield VmChanged(at_ms=at_ms, vm=_at(vm, host))
    for id_ in placements:
        if id_ not in seen and id_ not in moving:
            yield VmLeft(at_ms=at_ms, vm=id_)


def _at(vm: Vm, host: HostId | None) -> Vm:
    return vm.but(host=host, state=VmState.READY if host is None else VmState.RUNNING)
