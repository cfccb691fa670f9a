"""The partial parallel universe (PPU): old and new VM-supporting infrastructure side by side.

Rule 7: a storage is replaced only while enough hosts carry both configurations (equation 7). VMs
leave the storage hosts first.
"""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import VertexId, VmMove
from equipoise.upgrade.graph.dependencies import constituents_needed
from equipoise.upgrade.graph.iteration_view import IterationView
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import SetProgress
from equipoise.upgrade.vms.reserves import FreeCapacity
from equipoise.upgrade.vms.rounds import within_disturbance


def replacement_capacity(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Rule 7: remove groups of a replacement for which equation 7 does not hold."""
    shortages = {
        set_: reason
        for set_, pairs in replacements(view.state).items()
        for old, new in pairs
        if (reason := _host_shortage(view.state, old, new))
    }
    eliminated: dict[VertexId, Reason] = {}
    for vertex in candidates:
        shortage = next((shortages[id_] for id_ in view.sets(vertex) if id_ in shortages), None)
        # An undo has its own reserve and must always be able to run.
        if shortage is not None and not view.is_undoing(vertex):
            eliminated[vertex] = shortage
    return eliminated


def replacements(state: UpgradeState) -> dict[SetId, list[tuple[ResourceId, ResourceId]]]:
    """Return the pairs of old and new resource of each scheduled set, while the old one exists."""
    pairs: dict[SetId, list[tuple[ResourceId, ResourceId]]] = {}
    for status in state.requests.set_status.values():
        if status.progress is not SetProgress.SCHEDULED:
            continue
        for change in status.set.changes:
            for new in change.new:
                old = change.replaces
                if (
                    old is not None
                    and old in state.resources.states
                    and state.resources.states[old].present
                ):
                    pairs.setdefault(status.id, []).append((old, new.id))
    return pairs


def storage_hosts(
    state: UpgradeState, old: ResourceId, new: ResourceId
) -> dict[ResourceId, HostId | None]:
    """Return the operational constituents of the old or the new storage, with their hosts."""
    constituents: dict[ResourceId, HostId | None] = {}
    for tracked in state.resources.dependencies:
        dependency = tracked.dependency
        if dependency.kind is DependencyKind.AGGREGATION and dependency.dependent in (old, new):
            resource_state = state.resources.states[dependency.sponsor]
            host = resource_state.resource.host
            if resource_state.operational and (
                host is None or state.cluster.compute_hosts[host].up
            ):
                constituents[dependency.sponsor] = host
    return constituents


def _host_shortage(state: UpgradeState, old: ResourceId, new: ResourceId) -> Reason | None:
    """Check equation 7: hosts without VMs against the needs of both configurations."""
    hosts = storage_hosts(state, old, new)
    if not hosts:
        return None
    idle = sum(host is None or not state.cluster.residents.get(host) for host in hosts.values())
    needed = [constituents_needed(state, state.resources.states[id_]) for id_ in (old, new)]
    if idle >= sum(needed):
        return None
    text = (
        f"{old} needs {needed[0]} hosts and {new} needs {needed[1]} more; "
        f"{idle} of their hosts run no VMs"
    )
    return Reason("replacement-hosts-short", text)


def clear_storage_hosts(view: IterationView) -> tuple[VmMove, ...]:
    """Return moves that free the hosts on which old and new storage need to be built."""
    state = view.state
    built_on = hosts_of_replaced_storage(state)
    leaving = [
        vm
        for host in view.host_partitions.old
        if host in built_on
        for vm in state.cluster.residents.get(host, ())
        if not state.is_pinned(vm) and vm not in state.iteration.consolidated_from
    ]
    if not leaving:
        return ()
    targets = [
        host
        for host in view.host_partitions.old
        if host not in built_on and state.cluster.vms_free(host) > 0
    ]
    return within_disturbance(state, _pack(state, leaving, targets))


def hosts_of_replaced_storage(state: UpgradeState) -> dict[HostId, None]:
    """Return the hosts that carry a storage under replacement."""
    return {
        host: None
        for pairs in replacements(state).values()
        for old, new in pairs
        for host in storage_hosts(state, old, new).values()
        if host is not None
    }


def _pack(state: UpgradeState, vms: list[VmId], hosts: list[HostId]) -> list[VmMove]:
    """Pack VMs on as few of the last hosts as possible."""
    # Few hosts, taken from the end: the hosts at the front change first and should stay free.
    for count in range(1, len(hosts) + 1):
        moves = _place(state, vms, hosts[-count:])
        if len(moves) == len(vms):
            return moves
    return _place(state, vms, hosts)


def _place(state: UpgradeState, vms: Iterable[VmId], hosts: list[HostId]) -> list[VmMove]:
    """Place each VM on the first host with free capacity; VMs without a host are left out."""
    capacity = FreeCapacity(state, hosts)
    moves: list[VmMove] = []
    for vm in vms:
        placement, known = state.cluster.placements[vm], state.cluster.vms[vm]
        target = next(
            (host for host in hosts if capacity.fits(host, placement.groups, known)), None
        )
        if target is not None and placement.host is not None:
            capacity.commit(target, placement.groups, known)
            moves.append(VmMove(vm=vm, source=placement.host, target=target))
    return moves
