"""Protection groups: who stands in for whom, and how many of them have to be in service (3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.quantity import GroupId, ResourceId
from equipoise.model.resource import ResourceGroup, ResourceGroupKind
from equipoise.model.upgrade.graph import Protection
from equipoise.upgrade.state import Part, State


def protections(state: State) -> tuple[Protection, ...]:
    """The groups that protect something, as they stand now.

    Whoever could take over an assignment counts as much as whoever holds it: so the members of a
    protection group are those of the potential one that it was chosen from.
    """
    groups = {one.id: one for one in state.campaign.cluster.groups if one.kind.protects}
    return tuple(_protection(state, groups, one) for one in groups.values())


def _protection(
    state: State, groups: dict[GroupId, ResourceGroup], group: ResourceGroup
) -> Protection:
    outer = groups.get(group.within) if group.within is not None else None
    holders = tuple(dict.fromkeys(_present(state, _holders(groups, group))))
    eligible = (group if outer is None else outer).resources
    members = tuple(dict.fromkeys(_present(state, eligible)))
    return Protection(
        id=group.id,
        kind=group.kind,
        within=group.within,
        holders=holders,
        members=members,
        in_service=tuple(one for one in members if is_in_service(state, state.parts[one])),
        in_service_min=_least(group, len(holders), len(members)),
    )


def _holders(groups: dict[GroupId, ResourceGroup], group: ResourceGroup) -> list[ResourceId]:
    """Who holds the assignment: of a potential group, those that were chosen from it."""
    if group.kind is ResourceGroupKind.PROTECTION:
        return list(group.resources)
    chosen = (one for one in groups.values() if one.within == group.id)
    return list(dict.fromkeys(member for one in chosen for member in one.resources))


def _present(state: State, members: Iterable[ResourceId]) -> Iterator[ResourceId]:
    """Those that are there, and whatever takes over from one of them as it is replaced."""
    for one in members:
        part = state.parts.get(one)
        heir = None if part is None else part.related
        for each in (one, heir):
            if each is not None and each in state.parts and state.parts[each].present:
                yield each


def _least(group: ResourceGroup, holders: int, members: int) -> int:
    """How many must be in service. Who only could hold an assignment protects nothing yet."""
    said = group.in_service_min
    if said is None and group.out_max is None:
        return max(0, holders - 1) if group.kind is ResourceGroupKind.PROTECTION else 0
    by_out = 0 if group.out_max is None else members - group.out_max
    return max(0, said or 0, by_out)


def is_in_service(state: State, part: Part) -> bool:
    """Whether a resource does its work now."""
    return part.present and part.active and part.operational and not is_down(state, part)


def is_down(state: State, part: Part) -> bool:
    """Whether the host of a resource is down."""
    place = None if part.resource.host is None else state.places.get(part.resource.host)
    return place is not None and not place.up
