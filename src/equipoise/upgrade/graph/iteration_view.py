"""The view of an iteration: the state, its two graphs and the host partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.graph import ChangeGroup, ControlGraph, ResourceGraph
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import ExecutionLevel, UnitId, UpgradeUnit, VertexId
from equipoise.model.value import pause_gc
from equipoise.upgrade.graph.build import control_graph, grouping, resource_graph
from equipoise.upgrade.graph.host_partitions import HostPartitions, divide_hosts
from equipoise.upgrade.graph.in_service import (
    Outages,
    outages,
    outages_after_return,
    outages_with,
    service_needs,
)
from equipoise.upgrade.requests.set_conflicts import Conflicts, service_conflicts, version_conflicts
from equipoise.upgrade.state import UpgradeState


def next_partition(state: UpgradeState, unit: UpgradeUnit) -> int | None:
    """Return the index of the next partition of a unit, or None if none is left."""
    for index, partition in enumerate(unit.partitions):
        if any(has_unit_work(state, resource, unit.id) for resource in partition):
            return index
    return None


def has_unit_work(state: UpgradeState, resource: ResourceId, unit: UnitId) -> bool:
    """Return whether a resource has pending work of a unit that can be done."""
    resource_state = state.resources.states.get(resource)
    return (
        resource_state is not None
        and resource_state.can_be_changed
        and any(level.unit == unit for level in resource_state.levels)
    )


@dataclass(frozen=True, slots=True)
class ReturningGroups:
    """Groups of a unit that are changed and stay deactivated until others leave service."""

    groups: tuple[VertexId, ...]
    returns_after: tuple[VertexId, ...]
    """They return as soon as these groups of the batch are out of service; empty: now."""
    due: bool
    """Whether the last partition is current, or no partition is left."""


@dataclass(frozen=True)
class IterationView:
    """The state, its two graphs and the host partitions."""

    state: UpgradeState
    host_partitions: HostPartitions
    graph: ResourceGraph
    control: ControlGraph

    @cached_property
    def position(self) -> dict[VertexId, int]:
        """The position of each group in the order of the cluster."""
        return {vertex: position for position, vertex in enumerate(self.control.groups)}

    def level(self, vertex: VertexId) -> dict[str, ExecutionLevel]:
        """Return the next level of each member of a group: of its oldest request."""
        resource_states = (
            self.state.resources.states[member] for member in self.control.groups[vertex].members
        )
        first = {
            resource_state.resource.id: resource_state.levels[0]
            for resource_state in resource_states
            if resource_state.levels
        }
        # Level 0 is an undo, so it comes before all requests.
        oldest = min((level.order for level in first.values()), default=0)
        return {id_: level for id_, level in first.items() if level.order == oldest}

    def sets(self, vertex: VertexId) -> tuple[SetId, ...]:
        """Return the sets for which the next iteration would change a group."""
        levels = self.level(vertex).values()
        return tuple(dict.fromkeys(work.set for level in levels for work in level.works))

    def priority(self, vertex: VertexId) -> int:
        """Return the highest priority of the sets of a group."""
        set_status = self.state.requests.set_status
        return max((set_status[set_].priority for set_ in self.sets(vertex)), default=0)

    def unit(self, vertex: VertexId) -> UpgradeUnit | None:
        """Return the unit of several resources to which a group belongs, or None."""
        for level in self.level(vertex).values():
            unit = self.state.resources.units.get(level.unit)
            if unit is not None:
                return unit
        return None

    def is_undoing(self, vertex: VertexId) -> bool:
        """Return whether the next work on a group is an undo."""
        return any(level.order == 0 for level in self.level(vertex).values())

    @cached_property
    def returning(self) -> tuple[ReturningGroups, ...]:
        """The groups that wait to return into service, unit by unit."""
        returning_groups = []
        for unit in self.state.resources.units.values():
            members = [id_ for partition in unit.partitions for id_ in partition]
            present = [id_ for id_ in members if id_ in self.graph.vertices]
            vertices = dict.fromkeys(self.control.group_of[id_] for id_ in present)
            groups = tuple(id_ for id_ in vertices if self._is_kept_deactivated(id_, unit.id))
            # Groups of a single partition never wait for others.
            if groups and len(unit.partitions) > 1:
                current = next_partition(self.state, unit)
                current_members = () if current is None else unit.partitions[current]
                pending = [
                    id_ for id_ in current_members if has_unit_work(self.state, id_, unit.id)
                ]
                leaving = dict.fromkeys(self.control.group_of[id_] for id_ in pending)
                due = current is None or current == len(unit.partitions) - 1
                compatible = self.compatible_groups(groups, leaving) if due else groups
                returning_groups += (
                    [ReturningGroups(compatible, tuple(leaving), due)] if compatible else []
                )
        return tuple(returning_groups)

    @cached_property
    def service_conflicts(self) -> Conflicts:
        """The incompatible resources that each resource would meet in service."""
        return service_conflicts(self.state)

    @cached_property
    def _conflicts(self) -> Conflicts:
        return version_conflicts(self.state)

    def compatible_groups(
        self, groups: Iterable[VertexId], leaving: Collection[VertexId] = ()
    ) -> tuple[VertexId, ...]:
        """Return the groups that can return without meeting an incompatible version in service.

        Groups that a cancelled set left half way come last, so that they do not block others.
        """
        compatible: list[VertexId] = []
        # Greedy in this order: each group that returns can exclude a later one.
        for vertex in sorted(groups, key=self._is_cancelled):
            members = self.control.groups[vertex].members
            in_service = {
                conflict
                for member in members
                for conflict in self.service_conflicts.get(member, ())
            }
            now = {conflict for member in members for conflict in self._conflicts.get(member, ())}
            group_of = self.control.group_of
            if {group_of[member] for member in in_service} <= set(leaving) and not {
                group_of[member] for member in now
            } & set(compatible):
                compatible.append(vertex)
        return tuple(vertex for vertex in groups if vertex in compatible)

    def _is_cancelled(self, vertex: VertexId) -> bool:
        works = (
            work
            for member in self.control.groups[vertex].members
            for work in self.state.resources.states[member].applied
        )
        return any(
            self.state.requests.set_status[work.set].outcome is SetOutcome.CANCELLED
            for work in works
        )

    def _is_kept_deactivated(self, vertex: VertexId, unit: UnitId) -> bool:
        """Return whether a group has left service with its unit and has no work of it left.

        Work of a later request starts after the unit, so it does not keep the group out.
        """
        group = self.control.groups[vertex]
        lost = group.isolated or group.failed
        waits = any(self._precedes(member, unit) for member in group.members)
        return not (group.active or lost or waits) and self.present(group)

    def _precedes(self, resource: ResourceId, unit: UnitId) -> bool:
        """Return whether a resource has work that comes before the end of its unit."""
        resource_state = self.state.resources.states[resource]
        order = {level.unit: level.order for level in resource_state.levels}
        if unit in order or 0 in order.values():
            return True
        # The order of a unit is that of its request, the first part of its id.
        own = unit.rsplit("/", maxsplit=1)[0]
        return bool(order) and not own.isdigit()

    def returning_when_out(self, vertex: VertexId) -> set[VertexId]:
        """Return the groups that return into service when a group leaves it."""
        return {
            group
            for returning in self.returning
            if returning.due and vertex in returning.returns_after
            for group in returning.groups
        }

    def operational(self, group: ChangeGroup) -> bool:
        """Return whether a group works now, and what it needs."""
        return (
            not (group.isolated or group.failed)
            and group.active
            and self.present(group)
            and self.outages.keys().isdisjoint(group.members)
        )

    @cached_property
    def outages(self) -> Outages:
        """The resources out of service now."""
        return outages(self.state)

    def outages_with(self, vertex: VertexId) -> Outages:
        """Return what leaves service with a group, itself included.

        What returns at that moment counts as in service.
        """
        members = self.control.groups[vertex].members
        if not self.outages and not any(member in self._needed for member in members):
            return dict(zip(members, members, strict=True))  # the usual case needs no search
        returning = self.returning_members(vertex)
        before = outages_after_return(self.state, returning) if returning else self.outages
        return outages_with(self.state, members, before)

    def returning_members(self, vertex: VertexId) -> set[ResourceId]:
        """Return the resources that return into service when a group leaves it."""
        return {
            member
            for group in self.returning_when_out(vertex)
            for member in self.control.groups[group].members
        }

    @cached_property
    def _needed(self) -> Collection[ResourceId]:
        return service_needs(self.state).dependents

    def hosts_of(self, resources: Iterable[ResourceId]) -> set[HostId]:
        """Return the compute hosts of the groups of some resources."""
        control = self.control
        return {host for id_ in resources for host in control.groups[control.group_of[id_]].hosts}

    def present(self, group: ChangeGroup) -> bool:
        """Return whether a group is present now."""
        return any(self.state.resources.states[member].present for member in group.members)


def build_view(state: UpgradeState, *, with_vms: bool = True) -> IterationView:
    """Compute the view of the current state."""
    with pause_gc():  # a collection would visit 100,000 new vertices and free none
        host_partitions = partition_hosts(state)
        graph = resource_graph(state, host_partitions, with_vms=with_vms)
        return IterationView(state, host_partitions, graph, control_graph(state, graph))


def partition_hosts(state: UpgradeState) -> HostPartitions:
    """Return the partitions of the compute hosts."""
    return divide_hosts(state, grouping(state).by_host)


def affected_hosts(view: IterationView, vertex: VertexId) -> set[HostId]:
    """Return the compute hosts in service that the change of a group takes out of service."""
    host_partitions = view.host_partitions
    return {
        host
        for host in _hosts_cut_off(view, vertex)
        if host in host_partitions.old or host in host_partitions.new
    }


def _hosts_cut_off(view: IterationView, vertex: VertexId) -> set[HostId]:
    """Return the hosts of a group, and those that cannot work without it."""
    hosts = set(view.control.groups[vertex].hosts)
    out = view.outages_with(vertex)
    return hosts.union(view.hosts_of(out))
