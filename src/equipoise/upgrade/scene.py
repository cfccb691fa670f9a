"""The scene: everything an iteration is decided from, looked at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from equipoise.model.files.collector import undisturbed
from equipoise.model.quantity import HostId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.graph import ControlGraph, Group, GroupEdge, ResourceGraph
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Level, UpgradeUnit, VertexId
from equipoise.upgrade.graph.build import control_graph, grouping, is_present, resource_graph
from equipoise.upgrade.requests.bound import Odds, at_odds, in_the_way
from equipoise.upgrade.sides import Sides, sides_of
from equipoise.upgrade.state import State
from equipoise.upgrade.turns import is_next, turn_of


@dataclass(frozen=True, slots=True)
class Returning:
    """Groups of a unit that are changed and kept out of service until others leave it."""

    groups: tuple[VertexId, ...]
    behind: tuple[VertexId, ...]
    """With these in the batch they return, as soon as these are out of service; none: now."""
    due: bool
    """Whether it is the turn of the last partition, or no partition is left."""


@dataclass(frozen=True)
class Scene:
    """The state, its two graphs and the sides of its hosts."""

    state: State
    sides: Sides
    graph: ResourceGraph
    control: ControlGraph

    @cached_property
    def place(self) -> dict[VertexId, int]:
        """The place of each group in the order of the cluster."""
        return {vertex: place for place, vertex in enumerate(self.control.groups)}

    def level(self, vertex: VertexId) -> dict[str, Level]:
        """What the next iteration would do with each member of a group: its oldest request."""
        parts = (self.state.parts[one] for one in self.control.groups[vertex].members)
        first = {part.resource.id: part.levels[0] for part in parts if part.levels}
        least = min((level.order for level in first.values()), default=0)
        return {id_: level for id_, level in first.items() if level.order == least}

    def sets(self, vertex: VertexId) -> tuple[SetId, ...]:
        """The sets on whose behalf the next iteration would change a group."""
        levels = self.level(vertex).values()
        return tuple(dict.fromkeys(work.set for level in levels for work in level.works))

    def unit(self, vertex: VertexId) -> UpgradeUnit | None:
        """The unit of several resources that a group goes with, if it goes with one."""
        for level in self.level(vertex).values():
            unit = self.state.units.get(level.unit)
            if unit is not None:
                return unit
        return None

    def is_undoing(self, vertex: VertexId) -> bool:
        """Whether the next thing to do with a group is to take something back."""
        return any(level.order == 0 for level in self.level(vertex).values())

    @cached_property
    def returning(self) -> tuple[Returning, ...]:
        """Who waits to return into service, unit by unit."""
        found = []
        for unit in self.state.units.values():
            members = [one for those in unit.partitions for one in those]
            there = [one for one in members if one in self.graph.vertices]
            vertices = dict.fromkeys(self.control.group_of[one] for one in there)
            groups = tuple(one for one in vertices if self._is_kept_off(one))
            if groups and len(unit.partitions) > 1:
                turn = turn_of(self.state, unit)
                last = () if turn is None else unit.partitions[turn]
                next_ = [one for one in last if is_next(self.state, one, unit.id)]
                behind = dict.fromkeys(self.control.group_of[one] for one in next_)
                due = turn is None or turn == len(unit.partitions) - 1
                able = self.understood(groups, behind) if due else groups
                found += [Returning(able, tuple(behind), due)] if able else []
        return tuple(found)

    @cached_property
    def in_the_way(self) -> Odds:
        """Whom each resource would meet in service and not understand."""
        return in_the_way(self.state)

    @cached_property
    def _odds(self) -> Odds:
        return at_odds(self.state)

    def understood(
        self, groups: Iterable[VertexId], leaving: Collection[VertexId] = ()
    ) -> tuple[VertexId, ...]:
        """Those who understand everybody whom they would meet if they returned into service.

        Who was left half way by a cancelled set comes last: others do not stay off because of it.
        """
        found: list[VertexId] = []
        for vertex in sorted(groups, key=self._is_given_up):
            members = self.control.groups[vertex].members
            met = {other for one in members for other in self.in_the_way.get(one, ())}
            with_it = {other for one in members for other in self._odds.get(one, ())}
            of = self.control.group_of
            if {of[one] for one in met} <= set(leaving) and not {of[one] for one in with_it} & set(
                found
            ):
                found.append(vertex)
        return tuple(one for one in groups if one in found)

    def _is_given_up(self, vertex: VertexId) -> bool:
        works = (
            work
            for one in self.control.groups[vertex].members
            for work in self.state.parts[one].applied
        )
        return any(self.state.standings[work.set].outcome is SetOutcome.CANCELLED for work in works)

    def _is_kept_off(self, vertex: VertexId) -> bool:
        group = self.control.groups[vertex]
        lost = group.isolated or group.failed
        return not (group.active or group.changes or lost) and self.present(group)

    def replaced_by(self, vertex: VertexId) -> set[VertexId]:
        """Who returns into service in the moment in which a group leaves it."""
        return {
            other
            for one in self.returning
            if one.due and vertex in one.behind
            for other in one.groups
        }

    def operational(self, group: Group) -> bool:
        """Whether a group does its work now."""
        return not (group.isolated or group.failed) and group.active and self.present(group)

    def present(self, group: Group) -> bool:
        """Whether a group is there now."""
        return any(self.state.parts[one].present for one in group.members)


def scene_of(state: State, *, with_vms: bool = True) -> Scene:
    """Look at everything."""
    with undisturbed():  # the collector would look through hundred thousands of vertices in vain
        sides = look_at_sides(state)
        graph = resource_graph(state, sides, with_vms=with_vms)
        return Scene(state, sides, graph, control_graph(state, graph))


def look_at_sides(state: State) -> Sides:
    """Which compute hosts are on which side."""
    return sides_of(state, grouping(state).by_host)


def affected_hosts(scene: Scene, vertex: VertexId) -> set[HostId]:
    """The compute hosts in service that would not be while a group is changed."""
    sides = scene.sides
    return {one for one in _cut_off(scene, vertex) if one in sides.old or one in sides.new}


def _cut_off(scene: Scene, vertex: VertexId) -> set[HostId]:
    control = scene.control
    hosts = set(control.groups[vertex].hosts)
    if hosts:
        return hosts
    out = {vertex}
    back = scene.replaced_by(vertex)
    queue = [vertex, *_behind_links(scene, vertex)]
    out |= set(queue)
    for one in queue:
        hosts |= set(control.groups[one].hosts)
        for edge in control.dependants.get(one, ()):
            if edge.dependent in out or not is_present(edge):
                continue
            if edge.kind is not DependencyKind.AGGREGATION and not _has_other(
                scene, edge, out, back
            ):
                out.add(edge.dependent)
                queue.append(edge.dependent)
    return hosts


def _has_other(scene: Scene, edge: GroupEdge, out: set[VertexId], back: set[VertexId]) -> bool:
    """Whether somebody else does for a dependent what its sponsor does, or will as of then."""
    return any(
        other.kind is edge.kind
        and other.sponsor not in out
        and is_present(other)
        and (other.sponsor in back or scene.operational(scene.control.groups[other.sponsor]))
        for other in scene.control.sponsorships.get(edge.dependent, ())
    )


def _behind_links(scene: Scene, vertex: VertexId) -> list[VertexId]:
    """Who would be cut off if a link were out of service."""
    members = set(scene.control.groups[vertex].members)
    cut = [edge for edge in scene.control.edges if edge.link is not None and edge.link in members]
    return [
        edge.dependent
        for edge in cut
        if not any(
            other.kind is edge.kind and other.link not in members and is_present(other)
            for other in scene.control.sponsorships.get(edge.dependent, ())
        )
    ]
