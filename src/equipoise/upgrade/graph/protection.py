"""Protection groups: resources that cover for each other (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.quantity import GroupId, ResourceId
from equipoise.model.upgrade.graph import ProtectionGroup
from equipoise.model.upgrade.infrastructure import ResourceGroup, ResourceGroupKind
from equipoise.upgrade.graph.in_service import is_in_service
from equipoise.upgrade.state import UpgradeState


def protection_groups(state: UpgradeState) -> tuple[ProtectionGroup, ...]:
    """Return the current state of the groups that protect something.

    A resource that could take over an assignment counts like its holder. So the members of a
    protection group are those of the potential group from which it was chosen.
    """
    groups = {group.id: group for group in state.campaign.cluster.groups if group.kind.protects}
    return tuple(_protection_group(state, groups, group) for group in groups.values())


def _protection_group(
    state: UpgradeState, groups: dict[GroupId, ResourceGroup], group: ResourceGroup
) -> ProtectionGroup:
    outer = groups.get(group.within) if group.within is not None else None
    holders = tuple(dict.fromkeys(_present_members(state, _holders(groups, group))))
    eligible = (group if outer is None else outer).resources
    members = tuple(dict.fromkeys(_present_members(state, eligible)))
    return ProtectionGroup(
        id=group.id,
        kind=group.kind,
        within=group.within,
        holders=holders,
        members=members,
        in_service=tuple(member for member in members if is_in_service(state, member)),
        in_service_min=_members_needed(group, len(holders), len(members)),
    )


def _holders(groups: dict[GroupId, ResourceGroup], group: ResourceGroup) -> list[ResourceId]:
    """Return the holders of the assignment; of a potential group, the chosen members."""
    if group.kind is ResourceGroupKind.PROTECTION:
        return list(group.resources)
    chosen = (other for other in groups.values() if other.within == group.id)
    return list(dict.fromkeys(member for other in chosen for member in other.resources))


def _present_members(state: UpgradeState, members: Iterable[ResourceId]) -> Iterator[ResourceId]:
    """Yield present members, and present replacements of members."""
    for member in members:
        resource_state = state.resources.states.get(member)
        replacement = None if resource_state is None else resource_state.related
        for id_ in (member, replacement):
            if (
                id_ is not None
                and id_ in state.resources.states
                and state.resources.states[id_].present
            ):
                yield id_


def _members_needed(group: ResourceGroup, holders: int, members: int) -> int:
    """Return how many members must be in service. A potential group protects nothing yet."""
    declared = group.in_service_min
    if declared is None and group.out_max is None:
        # Without a declared minimum the group tolerates one holder out of service.
        return max(0, holders - 1) if group.kind is ResourceGroupKind.PROTECTION else 0
    by_out = 0 if group.out_max is None else members - group.out_max
    return max(0, declared or 0, by_out)
