"""Compatibility: the future components of resources, and whether versions work together."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentDescription, ComponentId, ComponentRequirement
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    Resource,
)
from equipoise.model.upgrade.request import ChangeKind, RequestedChange
from equipoise.upgrade.graph.dependencies import presence
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import ResourceState, components_after, main_component


class Projection:
    """The future components of every resource, and the future dependencies between them."""

    def __init__(self, state: UpgradeState) -> None:
        self._catalog = state.catalog
        self.resources: dict[ResourceId, Resource] = {}
        self.components: dict[ResourceId, dict[ComponentId, str]] = {}
        for id_, resource_state in state.resources.states.items():
            if resource_state.present or resource_state.levels:
                self.resources[id_] = resource_state.resource
                self.components[id_] = projected_components(resource_state)
        self.edges: dict[ResourceId, list[tuple[DependencyKind, ResourceId]]] = {}
        for tracked in state.resources.dependencies:
            if presence(state, tracked) in (
                DependencyPresence.FUTURE,
                DependencyPresence.CURRENT_FUTURE,
            ):
                self.join(tracked.dependency)

    def join(self, dependency: Dependency) -> None:
        """Add a dependency to the edges of both ends."""
        dependent, sponsor = dependency.dependent, dependency.sponsor
        self.edges.setdefault(dependent, []).append((dependency.kind, sponsor))
        self.edges.setdefault(sponsor, []).append((dependency.kind, dependent))

    def apply(self, change: RequestedChange) -> None:
        """Apply the effect of a requested change."""
        for new in change.new:
            self.resources[new.id] = new
            installed = {ComponentId(name): version for name, version in new.components.items()}
            self.components[new.id] = {main_component(new): new.version} | installed
        if change.does is not ChangeKind.REMOVE:
            for dependency in change.dependencies:
                self.join(dependency)
        for id_ in change.resources:
            component = change.component or main_component(self.resources[id_])
            if change.does is ChangeKind.REMOVE:
                self.components[id_].pop(component, None)
            elif change.version is not None:
                self.components[id_][component] = change.version

    def describe(self, component: ComponentId, version: str) -> ComponentDescription | None:
        """Return the description of a component version in the catalog."""
        return self._catalog.get((component, version))

    def latest_version(self, component: ComponentId, allowed: tuple[str, ...]) -> str | None:
        """Return the last suitable version of a component in the catalog, or None."""
        suitable = [
            version
            for _, version in self.versions_of(component)
            if not allowed or version in allowed
        ]
        # The catalog lists versions from old to new; version strings cannot be compared.
        return suitable[-1] if suitable else None

    def versions_of(self, component: ComponentId) -> list[tuple[ComponentId, str]]:
        """Return the versions of a component in the order of the catalog."""
        return [(name, version) for name, version in self._catalog if name == component]

    def need_targets(self, id_: ResourceId, need: ComponentRequirement) -> list[ResourceId]:
        """Return the resources to which a need of a resource applies."""
        if need.along is None:
            return [id_]
        return [
            other
            for kind, other in self.edges.get(id_, ())
            if kind is need.along and self.components.get(other)
        ]

    def unmet_needs(
        self, id_: ResourceId
    ) -> Iterator[tuple[ComponentRequirement, ResourceId, ComponentId]]:
        """Yield each unmet need, the resource that misses it and the component that needs it."""
        for component, version in self.components.get(id_, {}).items():
            description = self.describe(component, version)
            for need in description.needs if description else ():
                for other in self.need_targets(id_, need):
                    installed = self.components[other].get(need.component)
                    # Along a dependency a missing component is only a problem if the catalog says
                    # to install it: the other end may be of another kind.
                    missing = installed is None and (need.install or need.along is None)
                    wrong = (
                        installed is not None
                        and bool(need.versions)
                        and installed not in need.versions
                    )
                    if missing or wrong:
                        yield need, other, component


def projected_components(
    resource_state: ResourceState, request: int | None = None
) -> dict[ComponentId, str]:
    """Return the components of a resource after its pending work, or after that of a request.

    Undo work and the work of older requests come before the work of a request.
    """
    pending = (
        work
        for level in resource_state.levels
        if request is None or level.order <= request
        for work in level.works
    )
    return components_after(resource_state.components, pending)


def are_compatible(
    state: UpgradeState,
    along: Dependency,
    left: dict[ComponentId, str],
    right: dict[ComponentId, str],
) -> bool:
    """Return whether the components at the two ends of a dependency work together."""
    return _needs_met(state, along, left, right) and _needs_met(state, along, right, left)


def _needs_met(
    state: UpgradeState,
    along: Dependency,
    needing: dict[ComponentId, str],
    offering: dict[ComponentId, str],
) -> bool:
    """Return whether the needs of one end along a dependency are met at the other end."""
    for component, version in needing.items():
        description = state.catalog.get((component, version))
        for need in description.needs if description else ():
            installed = offering.get(need.component)
            applies = need.along is along.kind and bool(need.versions) and not need.tolerant
            applies = applies and installed is not None
            if applies and installed not in need.versions:
                return False
    return True
