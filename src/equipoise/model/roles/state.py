"""The state of roles at one moment: slots, running roles, processors; and a layout index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from equipoise.model.quantity import ProcessorId, RoleGroupId, RoleId, SlotId
from equipoise.model.roles.layout import (
    Role,
    RoleGroup,
    RoleLayout,
    expand_redundancy,
    roles_in_layout,
)
from equipoise.model.value import FrozenMap, ShardedMap


class GroupRole(NamedTuple):
    """A role of a group."""

    group: RoleGroupId
    role: RoleId


class RoleInstance(NamedTuple):
    """A role of a group on a processor."""

    group: RoleGroupId
    role: RoleId
    processor: ProcessorId

    @property
    def group_role(self) -> GroupRole:
        """The role of the group, without the processor."""
        return GroupRole(self.group, self.role)


class ProcessorStatus(NamedTuple):
    """The status of a processor."""

    since_ms: int
    """When the processor last came up or went down."""
    suspected_ms: int | None = None
    """Since when the processor is suspected to have failed."""
    locked: str | None = None
    """The reason of the operator's lock; ``None`` if the processor is not locked."""


INITIAL_STATUS = ProcessorStatus(since_ms=-(10**15))
"""The status of a processor without recorded changes: up or down since long before the run."""


class RoleFailures(NamedTuple):
    """The failures of a role on a processor since its last success."""

    times: int
    """Number of failed starts and stops."""
    at_ms: int
    """The time of the last failure."""


@dataclass(frozen=True, slots=True)
class RoleState:
    """The state of all roles. The maps have no entries for processors in their initial state."""

    epoch: int = 0
    """The epoch of the present leader, higher than all before."""
    held: ShardedMap[ProcessorId, tuple[GroupRole, ...]] = field(default_factory=ShardedMap)
    """The running roles of each processor, in the order of their start."""
    slots: FrozenMap[RoleGroupId, FrozenMap[SlotId, ProcessorId]] = field(default_factory=FrozenMap)
    """The processor of each slot. The slot of a processor that is down may be kept for it."""
    statuses: ShardedMap[ProcessorId, ProcessorStatus] = field(default_factory=ShardedMap)
    failures: FrozenMap[RoleInstance, RoleFailures] = field(default_factory=FrozenMap)
    pins: FrozenMap[GroupRole, SlotId] = field(default_factory=FrozenMap)
    """The slot to which the operator has pinned a role."""

    def status(self, processor: ProcessorId) -> ProcessorStatus:
        """Return the status of a processor."""
        status: ProcessorStatus = self.statuses.get(processor, INITIAL_STATUS)
        return status


class LayoutIndex:
    """A layout with indexes of its groups, roles and processors."""

    def __init__(self, layout: RoleLayout) -> None:
        self.layout = layout
        self.roles: Mapping[RoleId, Role] = {role.id: role for role in layout.roles}
        self.groups: Mapping[RoleGroupId, RoleGroup] = {
            group.id: expand_redundancy(group) for group in layout.groups
        }
        """The groups by their id, with their redundancy models expanded."""
        self.processors = {group.id: group.processors for group in layout.groups}
        """The processors that may fill a slot of each group."""
        self.named: Mapping[RoleGroupId, tuple[RoleId, ...]] = {
            group.id: tuple(dict.fromkeys(roles_in_layout(group.layout))) for group in layout.groups
        }
        """The roles that the layout of each group names."""
        self.place = {group.id: place for place, group in enumerate(layout.groups)}
        """The position of each group in the file."""
        self.groups_of: dict[ProcessorId, list[RoleGroupId]] = {}
        """The groups of each processor."""
        for group in layout.groups:
            for processor in group.processors:
                self.groups_of.setdefault(processor, []).append(group.id)

    @cached_property
    def single_roles(self) -> Mapping[RoleGroupId, frozenset[RoleId]]:
        """The roles that each group never runs twice."""
        roles_of: dict[RoleGroupId, set[RoleId]] = {group: set() for group in self.groups}
        for group_role in self.single:
            roles_of[group_role.group].add(group_role.role)
        return {group: frozenset(roles) for group, roles in roles_of.items()}

    @cached_property
    def single(self) -> frozenset[GroupRole]:
        """All roles that their group never runs twice."""
        roles: list[GroupRole] = []
        for group in self.groups.values():
            once = {preference.role for preference in group.preferences if preference.count == 1}
            roles += (
                GroupRole(group.id, role.id)
                for role in self.layout.roles
                if (role.id in once if role.single is None else role.single)
            )
        return frozenset(roles)


class _LayoutIdentity:
    """A cache key that compares layouts by identity: comparing large layouts would be slow."""

    __slots__ = ("layout",)

    def __init__(self, layout: RoleLayout) -> None:
        self.layout = layout

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LayoutIdentity) and other.layout is self.layout

    def __hash__(self) -> int:
        # The key holds the layout, so the id is not given to another one while the entry exists.
        return id(self.layout)


def layout_index(layout: RoleLayout) -> LayoutIndex:
    """Return the index of a layout, which is cached."""
    return _cached_index(_LayoutIdentity(layout))


# A run has one layout; a few more entries serve what-ifs and layout changes.
@lru_cache(maxsize=8)
def _cached_index(key: _LayoutIdentity) -> LayoutIndex:
    return LayoutIndex(key.layout)
