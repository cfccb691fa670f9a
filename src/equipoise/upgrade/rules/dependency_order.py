"""Rules 2 to 4: dependencies define which change comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import ChangeGroup, ChangeGroupEdge, Modification
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence
from equipoise.model.upgrade.work import UnitId, VertexId
from equipoise.upgrade.graph.build import holds_now
from equipoise.upgrade.graph.iteration_view import IterationView
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.rules.method_order import waits_for_older
from equipoise.upgrade.state.resources import ResourceState

ADD, REMOVE, UPGRADE = Modification.ADD, Modification.REMOVE, Modification.UPGRADE
SPONSOR, DEPENDENT = "sponsor", "dependent"


def remove_after_dependents(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Rule 2: a resource is removed after every resource that needs it."""
    return _blocked(view, candidates, REMOVE, removal_blocker)


def _blocked(
    view: IterationView,
    candidates: dict[VertexId, None],
    modification: Modification,
    blocker: Callable[[IterationView, ChangeGroup], Reason | None],
) -> dict[VertexId, Reason]:
    """Return the candidates with one kind of change that something blocks, each with its reason."""
    groups = [view.control.groups[vertex] for vertex in candidates]
    reasons = {
        group.id: blocker(view, group) for group in groups if group.modification is modification
    }
    return {vertex: reason for vertex, reason in reasons.items() if reason is not None}


def removal_blocker(view: IterationView, group: ChangeGroup) -> Reason | None:
    """Return the reason why a group cannot be removed yet, or None."""
    for edge in view.control.dependent_edges.get(group.id, ()):
        dependent = view.control.groups[edge.dependent]
        if edge.kind.is_vm_supporting or not holds_now(edge) or not view.present(dependent):
            continue
        return Reason("still-needed", f"{edge.dependent} still depends on it")
    # A VM-supporting resource has hosts as dependents: what counts is whether they run VMs.
    if supports_vms(view, group.id) and _stores_vms(view, group.id):
        return Reason("vms-depend", "VMs still use it")
    for resource_state in _resource_states(view, group):
        if resource_state.related is not None and not _is_done(view, resource_state.related):
            text = f"its replacement {resource_state.related} is not ready"
            return Reason("replacement-not-ready", text)
    return None


def supports_vms(view: IterationView, vertex: VertexId) -> bool:
    """Return whether VMs on other hosts depend on a group: a storage or a controller."""
    return any(edge.kind.is_vm_supporting for edge in view.control.dependent_edges.get(vertex, ()))


def _stores_vms(view: IterationView, vertex: VertexId) -> bool:
    """Return whether VMs run on hosts that depend on the group."""
    return any(
        view.state.cluster.residents.get(host)
        for edge in view.control.dependent_edges.get(vertex, ())
        if edge.kind.is_vm_supporting and holds_now(edge)
        for host in view.control.groups[edge.dependent].hosts
    )


def _is_done(view: IterationView, resource: ResourceId) -> bool:
    """Return whether a resource is present and has no work left."""
    resource_state = view.state.resources.states[resource]
    return resource_state.present and not resource_state.levels


def _resource_states(view: IterationView, group: ChangeGroup) -> list[ResourceState]:
    return [view.state.resources.states[member] for member in group.members]


def add_after_sponsors(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Rule 3: a resource is added after the resources that it needs."""
    return _blocked(view, candidates, ADD, _not_ready)


def _not_ready(view: IterationView, group: ChangeGroup) -> Reason | None:
    """Return the kind of sponsors of which a new group has too few, or None."""
    ready: dict[DependencyKind, int] = {}
    for edge in view.control.sponsor_edges.get(group.id, ()):
        sponsor = view.control.groups[edge.sponsor]
        done = not sponsor.changes and view.operational(sponsor)
        ready[edge.kind] = ready.get(edge.kind, 0) + done
    constituents_min = max(view.graph.vertices[member].constituents_min for member in group.members)
    # An aggregate needs its minimum of constituents, any other resource one sponsor of each kind.
    for kind, count in ready.items():
        needed = constituents_min if kind is DependencyKind.AGGREGATION else 1
        if count < needed:
            noun = "constituents" if kind is DependencyKind.AGGREGATION else f"sponsors ({kind})"
            return Reason("sponsors-not-ready", f"{count} of {needed} {noun} are ready")
    return None


def order_by_dependency(
    view: IterationView, candidates: dict[VertexId, None]
) -> dict[VertexId, Reason]:
    """Rule 4: one end of each dependency changes first, by the cases of the appendix."""
    eliminated: dict[VertexId, Reason] = {}
    units_of = _units_of_groups(view)
    waits_for = waits_for_older(view)
    for edge in view.control.edges:
        # Rule 6 handles peers, and rule 5 the incompatible dependencies inside a unit.
        if edge.kind.is_symmetrical or edge.incompatible:
            continue
        if edge.dependent not in candidates and edge.sponsor not in candidates:
            continue
        if units_of and not units_of.get(edge.dependent, set()).isdisjoint(
            units_of.get(edge.sponsor, ())
        ):
            continue  # rule 5 decides the order inside a unit
        if edge.dependent in waits_for.get(edge.sponsor, ()):
            continue  # the sponsor waits for an older request on the dependent
        verdict = _waiting_end(view, edge)
        if verdict is not None:
            vertex, reason = verdict
            if vertex in candidates:
                # The first reason is enough; a group can wait along many edges.
                eliminated.setdefault(vertex, reason)
    return eliminated


def _units_of_groups(view: IterationView) -> dict[VertexId, set[UnitId]]:
    """Return the upgrade units of each group."""
    units_by_group: dict[VertexId, set[UnitId]] = {}
    for unit in view.state.resources.units.values():
        for partition in unit.partitions:
            for member in partition:
                if member in view.control.group_of:
                    units_by_group.setdefault(view.control.group_of[member], set()).add(unit.id)
    return units_by_group


ORDER_CASES: Final = {
    (DependencyPresence.CURRENT_FUTURE, UPGRADE, UPGRADE): ("1a", SPONSOR),
    (DependencyPresence.CURRENT, UPGRADE, UPGRADE): ("2a", DEPENDENT),
    (DependencyPresence.CURRENT, UPGRADE, REMOVE): ("2b", DEPENDENT),
    (DependencyPresence.CURRENT, REMOVE, UPGRADE): ("2c", DEPENDENT),
    (DependencyPresence.CURRENT, REMOVE, REMOVE): ("2d", DEPENDENT),
    (DependencyPresence.FUTURE, UPGRADE, UPGRADE): ("3a", SPONSOR),
    (DependencyPresence.FUTURE, UPGRADE, ADD): ("3b", SPONSOR),
    (DependencyPresence.FUTURE, ADD, UPGRADE): ("3c", SPONSOR),
    (DependencyPresence.FUTURE, ADD, ADD): ("3d", SPONSOR),
}
"""When a dependency holds and what happens to dependent and sponsor: the case, and the first end.
"""


def _waiting_end(view: IterationView, edge: ChangeGroupEdge) -> tuple[VertexId, Reason] | None:
    """Return the end of a dependency that waits for the other end, with the reason."""
    dependent, sponsor = view.control.groups[edge.dependent], view.control.groups[edge.sponsor]
    order = ORDER_CASES.get((edge.presence, dependent.modification, sponsor.modification))
    if (
        # Cases 1b and 1d: the dependent only waits to return into service, so it has no change.
        edge.presence is DependencyPresence.CURRENT_FUTURE
        and not dependent.changes
        and not dependent.active
    ):
        if sponsor.modification is UPGRADE:
            order = "1b", SPONSOR
        elif not sponsor.changes and not sponsor.active:
            order = "1d", SPONSOR
    if order is None or _is_exempt(edge, order[0]):
        return None
    case, first = order
    waiting, ahead = (
        (edge.dependent, edge.sponsor) if first == SPONSOR else (edge.sponsor, edge.dependent)
    )
    return waiting, Reason("dependency-order", f"{ahead} changes first (case {case})")


def _is_exempt(edge: ChangeGroupEdge, case: str) -> bool:
    """Return whether a case does not apply to a kind of dependency.

    An aggregate may change while only some constituents are changed. A VM-supporting resource may
    be removed while hosts without VMs still depend on it; rule 2 checks that no VM uses it.
    """
    if edge.kind is DependencyKind.AGGREGATION:
        return case in ("2c", "3c")
    return case == "2b" and edge.kind.is_vm_supporting
