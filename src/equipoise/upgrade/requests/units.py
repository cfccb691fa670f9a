"""Upgrade units: resources bound by dependencies along which versions would not understand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.graph import Edge, ResourceGraph, Vertex
from equipoise.model.upgrade.work import UnitId, UpgradeUnit, Work
from equipoise.model.value import FrozenMap
from equipoise.upgrade.graph.bonds import presence
from equipoise.upgrade.graph.demands import least_constituents
from equipoise.upgrade.graph.protections import protections
from equipoise.upgrade.methods import unit_of, unprotected
from equipoise.upgrade.requests.closure import units_among
from equipoise.upgrade.requests.feasible import too_small
from equipoise.upgrade.requests.project import projected
from equipoise.upgrade.requests.talk import talk
from equipoise.upgrade.state import Bond, Part, State


def units_for(
    state: State, works: dict[ResourceId, list[Work]]
) -> tuple[list[UpgradeUnit], dict[str, str]]:
    """Group the resources of a request into units. Gives the sets as well that have no method."""
    units: list[UpgradeUnit] = []
    hopeless: dict[str, str] = {}
    for those in _bound(state, works, _note_clashes(state, works)):
        name = UnitId(f"{state.taken_up}/{those[0]}")
        graph = _around(state, those)
        unit = unit_of(graph, name, those, remote_links=state.settings.remote_links)
        why = f"no method is known to change {', '.join(those)} together"
        if unit is not None:
            why = unprotected(graph, unit) or _never_spared(state, unit)
        if unit is not None and not why:
            units.append(unit)
            continue
        hopeless |= {work.set: why for id_ in those for work in works[id_]}
    return units, hopeless


def _never_spared(state: State, unit: UpgradeUnit) -> str:
    """Say why the hosts that a unit keeps off can never be spared; nothing if some day they can."""
    if not unit.degraded_hosts:
        return ""
    why = too_small(state, unit.degraded_hosts)
    return why and f"unit {unit.id} keeps {unit.degraded_hosts} hosts off: {why}"


def _note_clashes(state: State, works: dict[ResourceId, list[Work]]) -> list[Dependency]:
    """Say of each dependency between resources of a request whether it clashes on the way."""
    found: list[Dependency] = []
    for place, bond in enumerate(state.bonds):
        if bond.dependency.dependent in works and bond.dependency.sponsor in works:
            clash = clashes(state, bond, works)
            found += [bond.dependency] if clash else []
            if clash or bond.clashes:
                orders = (*bond.orders, state.taken_up) if clash else bond.orders
                state.bonds[place] = replace(bond, clashes=clash, orders=orders)
    return found


def _bound(
    state: State, works: dict[ResourceId, list[Work]], clashing: list[Dependency]
) -> list[list[ResourceId]]:
    """The resources that hang together by clashing dependencies, in the order of the cluster."""
    if not clashing:
        return []
    changed = [id_ for id_ in state.parts if id_ in works]
    # What comes or goes with a set, and what supports VMs, is the business of other rules.
    lasting = [
        one.dependency
        for one in state.bonds
        if one.set is None
        and not one.dependency.kind.is_vm_supporting
        and presence(state, one) is not None
    ]
    guarded = [one.members for one in protections(state) if one.in_service_min]
    return units_among(changed, lasting, clashing, guarded)


def clashes(state: State, bond: Bond, works: dict[ResourceId, list[Work]]) -> bool:
    """Whether the two ends of a dependency do not understand each other half way."""
    one = bond.dependency
    if bond.set is not None or one.kind.is_vm_supporting:
        return False
    if presence(state, bond) is None:
        return False
    if one.incompatible:
        return True
    dependent, sponsor = state.parts[one.dependent], state.parts[one.sponsor]
    before = projected(dependent), projected(sponsor)
    after = _changed(dependent, works), _changed(sponsor, works)
    return not (talk(state, one, before[0], after[1]) and talk(state, one, after[0], before[1]))


def _changed(part: Part, works: dict[ResourceId, list[Work]]) -> dict[ComponentId, str]:
    components = projected(part)
    for work in works[part.resource.id]:
        if work.after is None:
            components.pop(work.component, None)
        else:
            components[work.component] = work.after
    return components


def _around(state: State, members: list[ResourceId]) -> ResourceGraph:
    """The part of the new request graph that a unit lies in."""
    inside = set(members)
    return ResourceGraph(
        FrozenMap({id_: _vertex(state, state.parts[id_]) for id_ in members}),
        tuple(_edges(state, inside)),
        protections(state),
    )


def _vertex(state: State, part: Part) -> Vertex:
    host = part.resource.host
    runs_vms = host is not None and host in state.places and state.places[host].places > 0
    return Vertex(
        part.resource.id,
        part.resource.kind,
        host=host if runs_vms else None,  # of others nobody misses a place for VMs
        constituents_min=least_constituents(state, part),
    )


def _edges(state: State, inside: set[ResourceId]) -> Iterator[Edge]:
    for bond in state.bonds:
        one, holds = bond.dependency, presence(state, bond)
        # An aggregate may lie outside: that its constituents are its own must be seen all the same.
        if holds is not None and (one.dependent in inside or one.sponsor in inside):
            yield Edge(one.dependent, one.sponsor, one.kind, holds, bond.clashes, link=one.link)
