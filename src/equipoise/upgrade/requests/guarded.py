"""Sets that a protection group can never spare, found before anything is touched."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.graph import Protection
from equipoise.model.upgrade.request import ChangeSet
from equipoise.upgrade.graph.bonds import PRESENT, presence
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.protections import protections
from equipoise.upgrade.requests.bind import removed_by
from equipoise.upgrade.requests.complete import Impossible
from equipoise.upgrade.state import State


def check_protections(state: State, set_: ChangeSet) -> None:
    """A group can never spare one who is to be changed, or has too few members afterwards."""
    guarded = [one for one in protections(state) if one.in_service_min]
    if not guarded:
        return
    gone = removed_by(set_)
    touched = dict.fromkeys(id_ for change in set_.changes for id_ in change.resources)
    needs = _needs(state)
    for one in touched:
        if one in gone:
            continue  # nobody needs it by then: rule 2
        out = _out_with(state, needs, one)
        for group in guarded:
            _check_leaving(group, out.intersection(group.members))
    for group in guarded:
        _check_left(state, group, gone)


def _check_leaving(group: Protection, leaving: set[ResourceId]) -> None:
    if leaving and len(group.members) - len(leaving) < group.in_service_min:
        raise Impossible(
            f"protection group {group.id} needs {group.in_service_min} of {len(group.members)} "
            f"in service at any time, so that {', '.join(sorted(leaving))} can never be taken out"
        )


def _check_left(state: State, group: Protection, gone: set[ResourceId]) -> None:
    """What is removed is missed for ever, if somebody said how many there must be."""
    said = next(one.in_service_min for one in state.campaign.cluster.groups if one.id == group.id)
    left = [one for one in group.members if one not in gone]
    if said is not None and len(left) < min(said, len(group.members)):
        raise Impossible(
            f"protection group {group.id} needs {said} members, and {len(left)} would be left"
        )


Needs = dict[ResourceId, dict[DependencyKind, list[ResourceId]]]


def _needs(state: State) -> Needs:
    """What each resource needs now, by kind: of each kind one sponsor will do."""
    found: Needs = {}
    for bond in state.bonds:
        one = bond.dependency
        direct = not one.kind.is_symmetrical and one.kind is not DependencyKind.AGGREGATION
        if direct and presence(state, bond) in PRESENT:
            found.setdefault(one.dependent, {}).setdefault(one.kind, []).append(one.sponsor)
    return found


def _out_with(state: State, needs: Needs, resource: ResourceId) -> set[ResourceId]:
    """Whoever is out of service with a resource, even if everybody else is in service."""
    made = grouping(state)
    if resource not in made.group_of:
        return set()
    out = set(made.members[made.group_of[resource]])
    grows = True
    while grows:
        fallen = {
            mate
            for one, kinds in needs.items()
            if one not in out and any(out.issuperset(those) for those in kinds.values())
            for mate in made.members[made.group_of[one]]
        }
        grows = bool(fallen)
        out |= fallen
    return out
