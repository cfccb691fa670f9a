"""What is left as it is: a resource whose attempts are used up, a host that a VM cannot leave.

A resource that was given up is in service without the change of a set. It counts as lost for the
undo threshold of the set, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.event import (
    ResourceGivenUp,
    ResourceReleased,
    SetOutcome,
    SetUndoStarted,
)
from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import ExecutionLevel
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.in_service import Outages, outages_with
from equipoise.upgrade.graph.iteration_view import affected_hosts, build_view
from equipoise.upgrade.reason import Reason, resource_given_up, set_undo_started
from equipoise.upgrade.requests.feasibility import lasting_obstacle
from equipoise.upgrade.requests.set_conflicts import service_conflicts
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import ResourceState


def give_up_isolated(state: UpgradeState) -> ResourceGivenUp | ResourceReleased | None:
    """Put an isolated resource back into service if its last attempt was reverted.

    Members of a unit stay out: in service they would meet the new version of the others.
    """
    isolated = [
        id_ for id_, resource_state in state.resources.states.items() if resource_state.isolated
    ]
    groups = grouping(state) if isolated else None
    for id_ in isolated:
        assert groups is not None
        members = [
            state.resources.states[member] for member in groups.members[groups.group_of[id_]]
        ]
        if any(member.failed for member in members):
            continue
        levels = _next_levels(members)
        if any(level.order == 0 for level in levels):
            continue  # its undo is still to be done
        if not levels and _may_return(state, members):
            return ResourceReleased(at_ms=state.at_ms, resource=id_)
        if levels and _can_stay_behind(state, levels):
            sets = _sets(levels)
            text = f"it stays as it was: its attempts for {', '.join(sets)} are used up"
            return resource_given_up(state.at_ms, id_, sets, Reason("attempts-exhausted", text))
    return None


def _next_levels(members: Iterable[ResourceState]) -> list[ExecutionLevel]:
    """Return the levels of the oldest request that are next on some members."""
    levels = [member.levels[0] for member in members if member.levels]
    oldest = min((level.order for level in levels), default=0)
    return [level for level in levels if level.order == oldest]


def _sets(levels: Iterable[ExecutionLevel]) -> tuple[SetId, ...]:
    return tuple(dict.fromkeys(SetId(work.set) for level in levels for work in level.works))


def _can_stay_behind(state: UpgradeState, levels: Iterable[ExecutionLevel]) -> bool:
    """Return whether a resource works beside the others if it does not change with them."""
    status = state.requests.set_status
    return all(
        state.requests.is_scheduled(work.set) and not status[work.set].partitions_hosts
        for level in levels
        for work in level.works
    ) and not any(level.unit in state.resources.units for level in levels)


def _may_return(state: UpgradeState, members: Iterable[ResourceState]) -> bool:
    """Return whether isolated resources without work meet no other version in service."""
    conflicts = service_conflicts(state)
    status = state.requests.set_status
    return all(
        member.resource.id not in conflicts
        and not any(
            status[set_].partitions_hosts and status[set_].outcome is SetOutcome.APPLIED
            for set_ in member.sets
        )
        for member in members
    )


def stuck_vms(state: UpgradeState) -> dict[HostId, VmId]:
    """Return a VM on each host that it cannot leave: too many of its moves have failed."""
    stuck = (vm for vm in state.cluster.failed_moves if state.is_stuck(vm))
    hosts = ((state.cluster.placements[vm].host, vm) for vm in stuck)
    return {host: vm for host, vm in hosts if host is not None}


def stuck_reason(state: UpgradeState, host: HostId, vm: VmId) -> Reason:
    """Return why a host cannot be evacuated."""
    failed = list(state.cluster.failed_moves[vm].values())
    text = (
        f"VM {vm} cannot leave {host}: {state.cluster.moves_failed(vm)} moves failed, "
        f"the last because {failed[-1].reason}"
    )
    return Reason("vm-not-movable", text)


def give_up_unevacuated(state: UpgradeState) -> ResourceGivenUp | SetUndoStarted | None:
    """Leave what can only change without VMs that cannot move.

    An undo is not given up: it waits, with a reason that names the VM.
    """
    stuck = stuck_vms(state)
    if not stuck:
        return None
    view = build_view(state, with_vms=False)
    for vertex, group in view.control.groups.items():
        if not group.changes or group.failed or view.is_undoing(vertex):
            continue
        if not group.hosts and group.modification is not Modification.UPGRADE:
            continue  # rules 2 and 3 decide about resources that come or go
        hosts = sorted(group.hosts or affected_hosts(view, vertex))
        host = next((host for host in hosts if host in stuck), None)
        if host is None:
            continue
        reason = stuck_reason(state, host, stuck[host])
        levels = list(view.level(vertex).values())
        if _can_stay_behind(state, levels):
            return resource_given_up(state.at_ms, group.members[0], _sets(levels), reason)
        for set_ in _scheduled(state, _sets(levels)):
            return set_undo_started(state.at_ms, set_, reason)
    return None


def _scheduled(state: UpgradeState, sets: Iterable[SetId]) -> Iterator[SetId]:
    return (set_ for set_ in sets if state.requests.is_scheduled(set_))


def lost_resources(state: UpgradeState) -> Outages:
    """Return what is out of service until a repair: lost resources, and what needs them."""
    lost = (
        id_
        for id_, resource_state in state.resources.states.items()
        if resource_state.present and not resource_state.operational
    )
    return outages_with(state, tuple(lost), already={})


def set_with_lost_support(state: UpgradeState) -> SetUndoStarted | None:
    """Undo a set with a resource that can never be taken out after permanent losses."""
    lost = lost_resources(state)
    if not lost:
        return None
    for id_, resource_state in state.resources.states.items():
        if id_ in lost or not resource_state.levels or not resource_state.active:
            continue
        set_ = state.requests.first_scheduled(resource_state.levels[0].works)
        if set_ is None or resource_state.modification is not Modification.UPGRADE:
            continue
        reason = lasting_obstacle(state, id_, lost)
        if reason is not None:
            return set_undo_started(state.at_ms, set_, reason)
    return None


def repair_reasons(state: UpgradeState) -> tuple[Reason, ...]:
    """Return the repairs that could end a wait for capacity or for constituents."""
    failed = [
        id_ for id_, resource_state in state.resources.states.items() if resource_state.failed
    ]
    if not failed:
        return ()
    names = ", ".join(failed)
    text = f"{names} failed: repair it, then send the command repaired:{failed[0]}"
    return (Reason("resource-lost", text),)
