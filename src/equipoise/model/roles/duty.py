"""Duties: what is known about slots, roles and processors at one moment, and tables to look up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from equipoise.model.quantity import ProcessorId, RoleId, SlotId, TeamId
from equipoise.model.roles.layout import Role, RoleLayout, Team, named_roles
from equipoise.model.roles.redundancy import expanded
from equipoise.model.roles.shards import Shards
from equipoise.model.value import FrozenMap


class Duty(NamedTuple):
    """A role of a group."""

    group: TeamId
    role: RoleId


class Post(NamedTuple):
    """A role of a group on a processor."""

    group: TeamId
    role: RoleId
    processor: ProcessorId

    @property
    def duty(self) -> Duty:
        """The role, wherever it is."""
        return Duty(self.group, self.role)


class Mark(NamedTuple):
    """What is remembered of a processor."""

    since_ms: int
    """When it last came up or went down."""
    suspected_ms: int | None = None
    """Since when it is suspected to be dead."""
    locked: str | None = None
    """Why somebody wants it to carry no roles; nothing if nobody does."""


FRESH = Mark(since_ms=-(10**15))
"""Of a processor that has been as it is for as long as anybody knows."""


class Failure(NamedTuple):
    """How often a role failed to start or stop on a processor."""

    times: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Duties:
    """All facts about roles. Maps only have those of whom there is something to say."""

    epoch: int = 0
    """Who reigns: higher than any before."""
    held: Shards[ProcessorId, tuple[Duty, ...]] = field(default_factory=Shards)
    """What each processor runs, in the order it was started."""
    slots: FrozenMap[TeamId, FrozenMap[SlotId, ProcessorId]] = field(default_factory=FrozenMap)
    """Who has which slot; while a processor is down its slot may be kept for it."""
    marks: Shards[ProcessorId, Mark] = field(default_factory=Shards)
    failures: FrozenMap[Post, Failure] = field(default_factory=FrozenMap)
    pins: FrozenMap[Duty, SlotId] = field(default_factory=FrozenMap)
    """Where somebody wants a role to be."""

    def mark(self, processor: ProcessorId) -> Mark:
        """What is remembered of a processor."""
        mark: Mark = self.marks.get(processor, FRESH)
        return mark


class LayoutTable:
    """A layout, with everything that is looked up in it."""

    def __init__(self, layout: RoleLayout) -> None:
        self.layout = layout
        self.roles: Mapping[RoleId, Role] = {role.id: role for role in layout.roles}
        self.teams: Mapping[TeamId, Team] = {team.id: expanded(team) for team in layout.groups}
        """The groups, with their ready layouts written out."""
        self.processors = {team.id: team.processors for team in layout.groups}
        """Who may fill a slot of each group."""
        self.named: Mapping[TeamId, tuple[RoleId, ...]] = {
            team.id: tuple(dict.fromkeys(named_roles(team.layout))) for team in layout.groups
        }
        """The roles that the layout of each group names."""
        self.place = {team.id: place for place, team in enumerate(layout.groups)}
        """Which group comes first in the file."""
        self.teams_of: dict[ProcessorId, list[TeamId]] = {}
        for team in layout.groups:
            for processor in team.processors:
                self.teams_of.setdefault(processor, []).append(team.id)

    @cached_property
    def single_roles(self) -> Mapping[TeamId, frozenset[RoleId]]:
        """The same, by group."""
        found: dict[TeamId, set[RoleId]] = {group: set() for group in self.teams}
        for duty in self.single:
            found[duty.group].add(duty.role)
        return {group: frozenset(roles) for group, roles in found.items()}

    @cached_property
    def single(self) -> frozenset[Duty]:
        """The roles that a group never has twice."""
        found: list[Duty] = []
        for team in self.teams.values():
            once = {one.role for one in team.preferences if one.count == 1}
            found += (
                Duty(team.id, role.id)
                for role in self.layout.roles
                if (role.id in once if role.single is None else role.single)
            )
        return frozenset(found)


class _Same:
    """A layout by its identity: comparing two large ones would take longer than looking up."""

    __slots__ = ("layout",)

    def __init__(self, layout: RoleLayout) -> None:
        self.layout = layout

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.layout is self.layout

    def __hash__(self) -> int:
        return id(self.layout)


def table_of(layout: RoleLayout) -> LayoutTable:
    """The table of a layout, made once."""
    return _table(_Same(layout))


@lru_cache(maxsize=8)
def _table(same: _Same) -> LayoutTable:
    return LayoutTable(same.layout)
