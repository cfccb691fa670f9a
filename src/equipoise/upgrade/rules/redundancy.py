"""Rule 6: peers change one at a time, never the last one; protection groups keep their minimum."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.event import SetUndoStarted
from equipoise.model.upgrade.graph import ChangeGroup, Modification, ProtectionGroup
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.work import UpgradeMethod, VertexId
from equipoise.upgrade.graph.build import holds_now
from equipoise.upgrade.graph.dependencies import is_down
from equipoise.upgrade.graph.in_service import is_in_service
from equipoise.upgrade.graph.iteration_view import IterationView
from equipoise.upgrade.graph.protection import protection_groups
from equipoise.upgrade.reason import Reason, set_undo_started
from equipoise.upgrade.rules.dependency_order import removal_blocker, supports_vms
from equipoise.upgrade.state import UpgradeState


def keep_protection_groups(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Remove members that their protection group cannot spare beside the others of the batch.

    Members without an assignment are kept in the batch first: no other member has to take over.
    """
    groups = _guarded_groups(view)
    if not groups:
        return {}
    holders = {holder for group in groups for holder in group.holders}
    eliminated: dict[VertexId, Reason] = {}
    out: dict[str, dict[ResourceId, VertexId]] = {}
    # Greedy in this order: the first members that the group can spare stay candidates.
    for vertex in sorted(candidates, key=lambda vertex: _protection_rank(view, vertex, holders)):
        lost = _out_with(view, vertex)
        touched = [group for group in groups if not lost.isdisjoint(group.in_service)]
        shortfalls = (
            _shortfall_reason(view, vertex, group, lost, out.get(group.id, {})) for group in touched
        )
        reason = next((shortfall for shortfall in shortfalls if shortfall), None)
        if reason is not None:
            eliminated[vertex] = reason
            continue
        for group in touched:
            out.setdefault(group.id, {}).update(dict.fromkeys(lost, vertex))
    return eliminated


def held_by_failures(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Return members that their group could spare if no host were down.

    This belongs to rule 0, because a failed host may return.
    """
    held: dict[VertexId, Reason] = {}
    for group in _guarded_groups(view):
        resource_states = {member: view.state.resources.states[member] for member in group.members}
        down = [
            member
            for member, resource_state in resource_states.items()
            if is_down(view.state, resource_state)
        ]
        if not down:
            continue
        for vertex in candidates:
            lost = _out_with(view, vertex).intersection(group.in_service)
            staying = len(group.in_service) - len(lost)
            # Only the failed hosts are missing: with them the group could spare the member.
            short = staying < group.in_service_min <= staying + len(down)
            if lost and short and not view.is_undoing(vertex):
                text = f"protection group {group.id} cannot spare it while {down[0]} is down"
                held.setdefault(vertex, Reason("protection-group-short", text))
    return held


def _guarded_groups(view: IterationView) -> list[ProtectionGroup]:
    """Return the protection groups that need members in service."""
    return [group for group in view.graph.protections if group.in_service_min]


def is_taken_out(group: ChangeGroup) -> bool:
    """Return whether the change interrupts the service of a group. An added group has none yet."""
    return group.modification in (Modification.UPGRADE, Modification.REMOVE) and group.active


def _out_with(view: IterationView, vertex: VertexId) -> set[ResourceId]:
    """Return the resources that are out of service while a group changes.

    These are its members and all resources that cannot work without them.
    """
    group = view.control.groups[vertex]
    if not is_taken_out(group):
        return set()
    if group.modification is Modification.REMOVE:
        return set(group.members)  # rule 2: no resource depends on it any more
    return set(view.outages_with(vertex))


def _protection_rank(
    view: IterationView, vertex: VertexId, holders: set[ResourceId]
) -> tuple[bool, int, bool, int]:
    """Order undo work first, then urgent sets, then groups without an assignment."""
    holds = not holders.isdisjoint(view.control.groups[vertex].members)
    return not view.is_undoing(vertex), -view.priority(vertex), holds, view.position[vertex]


def _shortfall_reason(
    view: IterationView,
    vertex: VertexId,
    group: ProtectionGroup,
    lost: set[ResourceId],
    out: dict[ResourceId, VertexId],
) -> Reason | None:
    """Return why a protection group cannot spare the members that leave with a vertex."""
    if view.is_undoing(vertex) and not out:
        return None  # a lost member must not block the undo of the others
    returning = view.returning_members(vertex)
    serving = {
        *(member for member in group.in_service if member not in lost and member not in out),
        *(member for member in group.members if member in returning),
    }
    if len(serving) >= group.in_service_min:
        return None
    in_batch = [other for member, other in out.items() if member in group.in_service]
    if in_batch:
        text = f"{in_batch[0]} of the same protection group {group.id} is in the batch"
        return Reason("peer-in-batch", text)
    text = (
        f"protection group {group.id} needs {group.in_service_min} of {len(group.members)} "
        f"members in service; {len(group.in_service)} are in service"
    )
    return Reason("protection-group-short", text)


def unspareable_set(state: UpgradeState) -> SetUndoStarted | None:
    """Undo a set that needs a member which its group can never spare after permanent losses."""
    for group in protection_groups(state):
        lost = [
            member for member in group.members if not state.resources.states[member].operational
        ]
        # Without a permanent loss the group can spare a member once another one has returned.
        if not lost or not group.in_service_min or group.spare:
            continue
        for member in group.in_service:
            levels = state.resources.states[member].levels
            set_ = state.requests.first_scheduled(levels[0].works if levels else ())
            if set_ is not None:
                text = (
                    f"{member} cannot be taken out: protection group {group.id} "
                    f"needs all remaining members because {lost[0]} is lost"
                )
                reason = Reason("protection-group-short", text)
                return set_undo_started(state.at_ms, set_, reason)
    return None


def keep_redundancy(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Rule 6: remove peers of groups in the batch, and constituents that are needed."""
    eliminated = _peers(view, candidates)
    # The thesis also removes what depends on a peer in the batch. By default rule 4 already orders
    # those, and more groups can change per iteration.
    if view.state.settings.readings.peer_paths:
        eliminated |= _peer_paths(view, candidates, eliminated)
    # What is already removed must not count as being in the batch.
    staying = {vertex: None for vertex in candidates if vertex not in eliminated}
    eliminated |= _redundant_links(view, staying) | _constituents(view, staying)
    return eliminated | keep_protection_groups(
        view, {vertex: None for vertex in candidates if vertex not in eliminated}
    )


def _peers(view: IterationView, candidates: dict[VertexId, None]) -> dict[VertexId, Reason]:
    """Return the groups whose peer changes first or is out of service."""
    eliminated: dict[VertexId, Reason] = {}
    for vertex in candidates:
        if not is_taken_out(view.control.groups[vertex]):
            continue
        unit = view.unit(vertex)
        for peer in view.control.peers.get(vertex, ()):
            peer_group = view.control.groups[peer]
            if unit is not None and set(peer_group.members) & set(unit.resources):
                continue  # the method of their unit keeps them apart
            # Of two peers in the batch the later one waits.
            if peer in candidates and peer not in eliminated and is_taken_out(peer_group):
                # The peer changes first: by priority of the sets, then by position.
                if _peer_rank(view, peer) < _peer_rank(view, vertex):
                    eliminated[vertex] = Reason("peer-in-batch", f"its peer {peer} is in the batch")
                    break
            elif _is_missing(view, peer_group) and not view.is_undoing(vertex):
                text = f"its peer {peer} is out of service"
                eliminated[vertex] = Reason("peer-out-of-service", text)
                break
    return eliminated


def _is_missing(view: IterationView, group: ChangeGroup) -> bool:
    """Return whether a group should be in service and is not.

    Undo work does not wait for it: otherwise a lost resource would block the undo of its peer.
    """
    return view.present(group) and not view.operational(group)


def _peer_rank(view: IterationView, vertex: VertexId) -> tuple[int, int]:
    return -view.priority(vertex), view.position[vertex]


def _peer_paths(
    view: IterationView, candidates: dict[VertexId, None], eliminated: dict[VertexId, Reason]
) -> dict[VertexId, Reason]:
    """Return the groups that depend, directly or not, on a peer in the batch."""
    more: dict[VertexId, Reason] = {}
    for vertex in candidates:
        group = view.control.groups[vertex]
        if vertex in eliminated or vertex not in view.control.peers or not is_taken_out(group):
            continue
        queue, seen = [vertex], {vertex}
        for current in queue:
            for edge in view.control.dependent_edges.get(current, ()):
                if edge.dependent not in seen and edge.kind is not DependencyKind.AGGREGATION:
                    seen.add(edge.dependent)
                    queue.append(edge.dependent)
                    if edge.dependent in candidates:
                        text = f"it depends on the peer {vertex}, which is in the batch"
                        more.setdefault(edge.dependent, Reason("peer-in-batch", text))
    return more


def _redundant_links(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Return links of a resource whose other link is in the batch."""
    eliminated: dict[VertexId, Reason] = {}
    staying: dict[VertexId, VertexId] = {}
    for edge in view.control.edges:
        if edge.link is None or not holds_now(edge):
            continue
        link = view.control.group_of[edge.link]
        if link not in candidates or link in eliminated:
            continue
        # The first link found stays in the batch; the order of the edges makes it the same every
        # time.
        first = staying.setdefault(edge.dependent, link)
        if first != link:
            text = f"{edge.dependent} needs it while {first} is out of service"
            eliminated[link] = Reason("peer-in-batch", text)
    return eliminated


def _constituents(view: IterationView, candidates: dict[VertexId, None]) -> dict[VertexId, Reason]:
    """Return the constituents that their aggregate cannot spare: one of them changes at a time."""
    eliminated: dict[VertexId, Reason] = {}
    # Several members of one group can be constituents of the same aggregate.
    aggregates: dict[ResourceId, dict[ResourceId, None]] = {}
    for edge in view.graph.edges:
        if edge.kind is DependencyKind.AGGREGATION and holds_now(edge):
            aggregates.setdefault(edge.dependent, {})[edge.sponsor] = None
    group_of = view.control.group_of
    for aggregate, constituents in aggregates.items():
        group = view.control.groups[group_of[aggregate]]
        if group.id in {group_of[member] for member in constituents}:
            continue
        if not view.operational(group) or _is_removed_unused(view, group.id, candidates):
            continue
        needed = view.graph.vertices[aggregate].constituents_min
        serving = {member for member in constituents if is_in_service(view.state, member)}
        chosen: VertexId | None = None
        for vertex in dict.fromkeys(group_of[member] for member in constituents):
            if (
                vertex not in candidates
                or vertex in eliminated
                or not is_taken_out(view.control.groups[vertex])
            ):
                continue
            left = (serving - _out_with(view, vertex)) | (
                view.returning_members(vertex) & constituents.keys()
            )
            # At most one group of constituents changes per iteration.
            if len(left) < needed:
                text = f"{aggregate} needs {needed} constituents; {len(serving)} are in service"
                eliminated[vertex] = Reason("constituents-short", text)
            elif chosen is not None and not _is_by_constituents(view, vertex):
                text = f"{chosen}, another constituent of {aggregate}, is in the batch"
                eliminated[vertex] = Reason("peer-in-batch", text)
            else:
                chosen = vertex
    return eliminated


def _is_by_constituents(view: IterationView, vertex: VertexId) -> bool:
    unit = view.unit(vertex)
    return unit is not None and unit.method is UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS


def _is_removed_unused(
    view: IterationView, aggregate: VertexId, candidates: dict[VertexId, None]
) -> bool:
    """Return whether this batch removes a VM-supporting aggregate that no VM uses any more."""
    group = view.control.groups[aggregate]
    return (
        group.modification is Modification.REMOVE
        and aggregate in candidates
        and supports_vms(view, aggregate)
        and not removal_blocker(view, group)
    )
