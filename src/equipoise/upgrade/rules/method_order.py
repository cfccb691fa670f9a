"""Rule 5: the order inside a unit, and older requests before newer ones."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.work import UnitId, VertexId
from equipoise.upgrade.graph.dependencies import PRESENT_NOW, presence
from equipoise.upgrade.graph.iteration_view import IterationView, has_unit_work, next_partition
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.compatibility import are_compatible
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import ResourceState, TrackedDependency, components_after


def waits_for_older(view: IterationView) -> dict[VertexId, dict[VertexId, ResourceId]]:
    """Return, for each group, the groups that change before it, with the resource concerned.

    An older request changes such a group first, or its undo comes before the undo of this group.
    Two groups of one request wait for each other in this way if the undo of an older request has
    changed the versions from which they start: the unit of the request does not know these.
    """
    state = view.state
    waits: dict[VertexId, dict[VertexId, ResourceId]] = {}
    if state.requests.scheduled < 2:  # noqa: PLR2004  (one request is older than no other)
        return waits
    for tracked in state.resources.dependencies:
        ends = tracked.dependency.dependent, tracked.dependency.sponsor
        if not all(
            end in state.resources.states and state.resources.states[end].levels for end in ends
        ):
            continue
        if presence(state, tracked) not in PRESENT_NOW:
            continue
        for newer, older in (ends, ends[::-1]):
            newer_state, older_state = state.resources.states[newer], state.resources.states[older]
            orders = _next_request(older_state), _next_request(newer_state)
            goes_first = 0 < orders[0] < orders[1] or (
                orders[0] == orders[1] and (orders[0] == 0 or _is_ordered_by_versions(tracked))
            )
            # The method of a unit orders its members.
            is_one_unit = newer_state.levels[0].unit == older_state.levels[0].unit
            # Compatible versions need no order between requests.
            if (
                goes_first
                and not is_one_unit
                and not are_compatible(
                    state,
                    tracked.dependency,
                    _components_after_next(newer_state),
                    dict(older_state.components),
                )
            ):
                group_of = view.control.group_of
                waits.setdefault(group_of[newer], {})[group_of[older]] = older
    return waits


def _is_ordered_by_versions(tracked: TrackedDependency) -> bool:
    """Return whether incompatible versions along a dependency define an order in one request.

    Other rules handle dependencies that a set adds or removes, and VM-supporting ones.
    """
    return tracked.set is None and not tracked.dependency.kind.is_vm_supporting


def after_older_requests(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Return the groups that would be incompatible with a resource that changes first."""
    return {
        vertex: Reason("version-conflict", f"{resource} changes first: versions are incompatible")
        for vertex, waits in waits_for_older(view).items()
        if vertex in candidates
        for resource in list(waits.values())[:1]
    }


def _next_request(resource_state: ResourceState) -> int:
    """Return the number of the request of the next level; 0 is an undo."""
    return resource_state.levels[0].order


def _components_after_next(resource_state: ResourceState) -> dict[ComponentId, str]:
    """Return the components of a resource after its next level."""
    return components_after(resource_state.components, resource_state.levels[0].works)


def unit_order(view: IterationView, candidates: dict[VertexId, None]) -> dict[VertexId, Reason]:
    """Rule 5: remove groups outside the current partition of their unit, or of a newer request."""
    state = view.state
    # Later entries overwrite earlier ones: the order of the unit is the reason that the operator
    # can act on.
    eliminated = _incompatible_returns(view, candidates) | _on_new_partition(view, candidates)
    eliminated |= after_older_requests(view, candidates)
    for unit in state.resources.units.values():
        current = next_partition(state, unit)
        if current is None:
            continue
        for index, partition in enumerate(unit.partitions):
            for vertex in {view.control.group_of[member] for member in partition}:
                if vertex not in candidates:
                    continue
                has_work = any(has_unit_work(state, member, unit.id) for member in partition)
                if index != current and any(_is_next(state, m, unit.id) for m in partition):
                    text = f"partition {current + 1} of its unit changes first"
                    eliminated[vertex] = Reason("partition-order", text)
                # A changed partition may have work of a later request: the unit must finish first.
                elif not has_work and index != current and view.control.groups[vertex].changes:
                    text = f"its unit {unit.id} is not finished"
                    eliminated[vertex] = Reason("unit-not-finished", text)
    return eliminated


def _is_next(state: UpgradeState, resource: ResourceId, unit: UnitId) -> bool:
    """Return whether the next work of a resource belongs to a unit, and not to an older one."""
    resource_state = state.resources.states.get(resource)
    return (
        resource_state is not None
        and has_unit_work(state, resource, unit)
        and resource_state.levels[0].unit == unit
    )


def _on_new_partition(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Return groups on hosts of the new partition: other sets change them when it is undivided."""
    if not view.host_partitions.divided:
        return {}
    text = "its host is in the new partition while the hosts are divided"
    reason = Reason("other-host-partition", text)
    return {
        vertex: reason
        for vertex in candidates
        if any(host in view.host_partitions.new for host in view.control.groups[vertex].hosts)
    }


def _incompatible_returns(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Return the groups that stay out of service because an incompatible version is in service.

    This happens after a set was cancelled half way.
    """
    groups = view.control.groups
    off = [
        member for member in candidates if not groups[member].active and not groups[member].changes
    ]
    compatible = view.compatible_groups(off)
    reason = Reason("version-conflict", "an incompatible version is in service")
    eliminated = {member: reason for member in off if member not in compatible}
    for vertex in eliminated:
        conflicts = [
            other
            for member in groups[vertex].members
            for other in view.service_conflicts.get(member, ())
        ]
        if conflicts:
            eliminated[vertex] = Reason(
                "version-conflict", f"{conflicts[0]} in service has another version"
            )
    return eliminated
