"""The end of a campaign: VMs return to their hosts, and extra hosts are emptied and returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from equipoise.model.quantity import GroupId, HostId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.graph.iteration_view import partition_hosts
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.gate import admit_moves
from equipoise.upgrade.vms.reserves import FreeCapacity


def wrap_up_moves(state: UpgradeState) -> tuple[VmMove, ...]:
    """Return the next round of moves; each VM is moved once, and no group is disturbed too much."""
    settings = state.settings
    if not settings.return_vms and not settings.extra_hosts:
        return ()
    partitions = partition_hosts(state)
    in_service = [
        host for host in (*partitions.old, *partitions.new) if host not in settings.extra_hosts
    ]
    # VMs return first: on another host, a VM of an extra host could take the place of one.
    return _round(state, in_service, _homeward(state, in_service)) or _round(
        state, in_service, _off_extra_hosts(state, in_service)
    )


WantedMove = tuple[VmId, HostId, Sequence[HostId]]
"""A VM, its host, and the hosts to try in order."""


def _round(
    state: UpgradeState, in_service: Sequence[HostId], wanted: Iterable[WantedMove]
) -> tuple[VmMove, ...]:
    """Return the wanted moves that fit at the same time and that the gate admits."""
    capacity = FreeCapacity(state, in_service)
    disturbed: Counter[GroupId] = Counter()
    moves: list[VmMove] = []
    for vm, source, targets in wanted:
        groups, known = state.cluster.placements[vm].groups, state.cluster.vms[vm]
        if any(disturbed[group] >= state.cluster.disturbed_max[group] for group in groups):
            continue
        target = next((host for host in targets if capacity.fits(host, groups, known)), None)
        if target is not None:
            capacity.commit(target, groups, known)
            moves.append(VmMove(vm=vm, source=source, target=target))
            disturbed.update(groups)
    admitted, _ = admit_moves(state, moves)
    return admitted


def _movable(state: UpgradeState) -> Iterator[tuple[VmId, HostId]]:
    """Yield the VMs that the wrap-up has not moved yet, with their hosts."""
    for vm, placement in state.cluster.placements.items():
        tried = vm in state.iteration.wrapped_up or state.is_pinned(vm)
        if placement.host is not None and not tried:
            yield vm, placement.host


def _homeward(state: UpgradeState, in_service: Sequence[HostId]) -> Iterator[WantedMove]:
    """Yield the VMs that can return to the host on which they started."""
    if not state.settings.return_vms:
        return
    homes = {vm.id: vm.host for vm in state.campaign.cluster.vms}
    usable = set(in_service)
    for vm, host in _movable(state):
        home = homes.get(vm)
        if home is not None and home != host and home in usable:
            yield vm, host, (home,)


def _off_extra_hosts(state: UpgradeState, in_service: Sequence[HostId]) -> Iterator[WantedMove]:
    """Yield the VMs on extra hosts, which may go to any other host."""
    for vm, host in _movable(state):
        if host in state.settings.extra_hosts:
            yield vm, host, in_service


def host_to_return(state: UpgradeState) -> HostId | None:
    """Return the next extra host without a VM, or None."""
    return next(
        (
            host
            for host in state.settings.extra_hosts
            if host in state.cluster.compute_hosts and not state.cluster.residents.get(host)
        ),
        None,
    )
