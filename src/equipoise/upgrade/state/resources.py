"""The resources of an upgrade: their versions, pending work, dependencies and upgrade units.

This module is the only writer of ``UpgradeResources``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId, ComponentOperation
from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.infrastructure import Dependency, Resource
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import ExecutionLevel, UnitId, UpgradeUnit, WorkItem
from equipoise.model.value import FrozenMap


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource in its current state, with its pending work."""

    resource: Resource
    components: FrozenMap[ComponentId, str]
    """The installed components. The own component is among them while the resource is present."""
    present: bool = True
    active: bool = True
    levels: tuple[ExecutionLevel, ...] = ()
    """Pending work in execution levels, the next one first."""
    applied: tuple[WorkItem, ...] = ()
    """Work done for sets that are not complete, oldest first."""
    sets: tuple[SetId, ...] = ()
    """The sets that change the resource or have changed it."""
    attempts: FrozenMap[SetId, int] = field(default_factory=FrozenMap)
    """Failed attempts by set, since its last change that passed its health check."""
    given_up: tuple[SetId, ...] = ()
    """Sets that have stopped to change the resource, which is in service without their change."""
    set_aside: tuple[ExecutionLevel, ...] = ()
    """The work that was pending when the resource failed: a repair takes it up again."""
    related: ResourceId | None = None
    """The resource that replaces this one, or that this one replaces."""
    isolated: bool = False
    failed: bool = False

    @property
    def own_component(self) -> ComponentId:
        """Return the component that the resource is an installation of."""
        return main_component(self.resource)

    @property
    def operational(self) -> bool:
        """Return whether the resource can do its work."""
        return not (self.isolated or self.failed)

    @property
    def can_be_changed(self) -> bool:
        """Return whether tasks may run on it. An isolated resource accepts only undo work."""
        return not self.failed and (
            not self.isolated or (bool(self.levels) and self.levels[0].order == 0)
        )

    @property
    def pending_works(self) -> tuple[WorkItem, ...]:
        """The works of all levels, in their order."""
        return tuple(work for level in self.levels for work in level.works)

    def serves(self, set_: SetId) -> bool:
        """Return whether the resource counts towards the undo threshold of a set."""
        return self.operational and set_ not in self.given_up

    def has_work_for(self, set_: SetId) -> bool:
        """Return whether pending work belongs to a set."""
        return any(work.set == set_ for level in self.levels for work in level.works)

    @property
    def forward_works(self) -> tuple[WorkItem, ...]:
        """The pending and the applied works that are no undo."""
        works = (*self.pending_works, *self.applied)
        return tuple(work for work in works if not work.undoing)

    @property
    def modification(self) -> Modification:
        """Return what the next level does to the resource itself."""
        if not self.levels:
            return Modification.NO_CHANGE
        for work in self.levels[0].works:
            if work.component == self.own_component and work.before is None:
                return Modification.ADD
            if work.component == self.own_component and work.after is None:
                return Modification.REMOVE
        return Modification.UPGRADE

    def but(self, **changes: Any) -> ResourceState:
        """Return a copy with some fields changed."""
        return replace(self, **changes)


def components_after(
    components: Mapping[ComponentId, str], works: Iterable[WorkItem]
) -> dict[ComponentId, str]:
    """Return the components after works are done in order."""
    after = dict(components)
    for work in works:
        if work.after is None:
            after.pop(work.component, None)
        else:
            after[work.component] = work.after
    return after


def operation_between(before: str | None, after: str | None) -> ComponentOperation:
    """Return the operation that leads from one version to another; None means not installed."""
    if before is None:
        return ComponentOperation.INSTALL
    return ComponentOperation.REMOVE if after is None else ComponentOperation.UPGRADE


def main_component(resource: Resource) -> ComponentId:
    """Return the component that a resource is an installation of."""
    return ComponentId(resource.component or resource.kind.value)


def initial_resource_state(resource: Resource, *, present: bool = True) -> ResourceState:
    """Return a resource with its installed components."""
    installed = {ComponentId(name): version for name, version in resource.components.items()}
    own_component = {main_component(resource): resource.version} if present else {}
    return ResourceState(
        resource, FrozenMap(own_component | installed), present=present, active=present
    )


@dataclass(frozen=True, slots=True)
class TrackedDependency:
    """A dependency, and the set with which it appears or disappears.

    The change happens when the set changes the owner.
    """

    dependency: Dependency
    set: SetId | None = None
    owner: ResourceId | None = None
    appears: bool = True
    incompatible: bool = False
    """Whether mixed versions were incompatible in the last request on both ends."""
    incompatible_requests: tuple[int, ...] = ()
    """The numbers of the requests in which they were."""


@dataclass
class UpgradeResources:
    """All resources with the dependencies and units between them."""

    states: dict[ResourceId, ResourceState]
    dependencies: list[TrackedDependency] = field(default_factory=list)
    declared_constituents_min: dict[ResourceId, int] = field(default_factory=dict)
    """The minimum of constituents that dependencies declare, by aggregate."""
    units: dict[UnitId, UpgradeUnit] = field(default_factory=dict)
    links_off: dict[tuple[ResourceId, ResourceId], None] = field(default_factory=dict)
    """Links that are switched off: pairs of ends, sorted."""
    grouping: Any = field(default=None, compare=False)
    """A cache of ``graph.build.grouping``: which resources change together. None if outdated."""
    not_working: dict[ResourceId, None] = field(default_factory=dict, compare=False)
    """Present resources that are off, isolated or failed: an index of ``states``."""
    needs: Any = field(default=None, compare=False)
    """A cache of ``graph.in_service.service_needs``."""
    outages: Any = field(default=None, compare=False)
    """A cache of ``graph.in_service.outages``."""

    def put(self, resource_state: ResourceState) -> None:
        """Add a resource or replace its state."""
        id_ = resource_state.resource.id
        before = self.states.get(id_)
        self.states[id_] = resource_state
        self.outages = None
        if resource_state.present and not (resource_state.active and resource_state.operational):
            self.not_working[id_] = None
        else:
            self.not_working.pop(id_, None)
        # Units group the resources that have work left, so a change of levels changes the groups.
        # Without units the groups stay: a new grouping of 100,000 resources takes a second.
        if (
            before is None
            or before.present != resource_state.present
            or (before.levels is not resource_state.levels and self._has_units())
        ):
            self.grouping = None

    def _has_units(self) -> bool:
        return any(len(unit.resources) > 1 for unit in self.units.values())

    def drop_uninstalled(self, id_: ResourceId) -> None:
        """Remove a resource that will never be installed."""
        del self.states[id_]
        self.not_working.pop(id_, None)
        self.grouping = self.outages = None

    def count_attempt(self, id_: ResourceId, set_: SetId) -> None:
        """Count a failed attempt of a set on a resource."""
        attempts = self.states[id_].attempts
        self.put(self.states[id_].but(attempts=attempts.but({set_: attempts.get(set_, 0) + 1})))

    def confirm_attempts(self, id_: ResourceId, sets: Iterable[SetId]) -> None:
        """Forget the failed attempts of sets whose change has passed its health check."""
        resource_state = self.states[id_]
        if resource_state.attempts:
            passed = set(sets)
            kept = {set_: n for set_, n in resource_state.attempts.items() if set_ not in passed}
            self.put(resource_state.but(attempts=FrozenMap(kept)))

    def add_dependency(self, tracked: TrackedDependency) -> None:
        """Add a dependency and update the declared minimum of its aggregate."""
        self.dependencies.append(tracked)
        self.grouping = self.needs = self.outages = None
        declared = tracked.dependency.constituents_min
        if declared is not None:
            aggregate = tracked.dependency.dependent
            self.declared_constituents_min[aggregate] = max(
                declared, self.declared_constituents_min.get(aggregate, 0)
            )

    def change_dependency(self, index: int, **changes: Any) -> None:
        """Change what is tracked about a dependency; its ends and kind stay."""
        self.dependencies[index] = replace(self.dependencies[index], **changes)
        self.needs = self.outages = None

    def replace_dependencies(self, kept: Iterable[TrackedDependency]) -> None:
        """Replace all dependencies."""
        # Declared minimums are collected again, because a dropped dependency may have carried the
        # largest.
        self.dependencies, self.declared_constituents_min = [], {}
        self.needs = self.outages = None
        for tracked in kept:
            self.add_dependency(tracked)

    def replace_unit(self, old: UnitId | None, new: Iterable[UpgradeUnit]) -> None:
        """Add units, in place of an old one if it is named."""
        if old is not None:
            del self.units[old]
        self.units |= {unit.id: unit for unit in new}
        self.grouping = None

    def switch_link(self, end: ResourceId, other: ResourceId, *, on: bool) -> None:
        """Record that a link is switched."""
        # A link has no direction: both ends may report the switching.
        ends = (min(end, other), max(end, other))
        self.outages = None
        if on:
            self.links_off.pop(ends, None)
        else:
            self.links_off[ends] = None

    def cache_grouping(self, grouping: Any) -> None:
        """Keep the groups until resources, dependencies, units or hosts change; None drops them."""
        self.grouping = grouping

    def cache_needs(self, needs: Any) -> None:
        """Keep the needs of resources until dependencies change."""
        self.needs = needs

    def cache_outages(self, outages: Any) -> None:
        """Keep what is out of service until a resource changes; None drops it."""
        self.outages = outages

    def pending_for(self, set_: SetId) -> Iterator[ResourceId]:
        """Yield the resources with pending work for a set."""
        for id_, resource_state in self.states.items():
            if resource_state.can_be_changed and resource_state.has_work_for(set_):
                yield id_
