"""How things will be when everything asked for so far is done."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind, Presence, Resource
from equipoise.model.upgrade.catalog import ComponentId, Description, Need
from equipoise.model.upgrade.request import Change, ChangeKind
from equipoise.upgrade.graph.bonds import presence
from equipoise.upgrade.state import Part, State, main_component


class Projection:
    """The components of every resource and the dependencies between them, in future."""

    def __init__(self, state: State) -> None:
        self._catalog = state.catalog
        self.resources: dict[ResourceId, Resource] = {}
        self.components: dict[ResourceId, dict[ComponentId, str]] = {}
        for id_, part in state.parts.items():
            if part.present or part.levels:
                self.resources[id_] = part.resource
                self.components[id_] = projected(part)
        self.edges: dict[ResourceId, list[tuple[DependencyKind, ResourceId]]] = {}
        for bond in state.bonds:
            if presence(state, bond) in (Presence.FUTURE, Presence.CURRENT_FUTURE):
                self.join(bond.dependency)

    def join(self, dependency: Dependency) -> None:
        """Add a dependency, seen from both ends."""
        one, other = dependency.dependent, dependency.sponsor
        self.edges.setdefault(one, []).append((dependency.kind, other))
        self.edges.setdefault(other, []).append((dependency.kind, one))

    def apply(self, change: Change) -> None:
        """Let a change have its effect."""
        for new in change.new:
            self.resources[new.id] = new
            installed = {ComponentId(name): one for name, one in new.components.items()}
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

    def describe(self, component: ComponentId, version: str) -> Description | None:
        """What a vendor says about a version."""
        return self._catalog.get((component, version))

    def latest(self, component: ComponentId, among: tuple[str, ...]) -> str | None:
        """The last version in the catalog, of those that will do."""
        fit = [one for _, one in self.described(component) if not among or one in among]
        return fit[-1] if fit else None

    def described(self, component: ComponentId) -> list[tuple[ComponentId, str]]:
        """The versions of a component that the catalog knows, in its order."""
        return [(name, version) for name, version in self._catalog if name == component]

    def ends(self, id_: ResourceId, need: Need) -> list[ResourceId]:
        """Whom a need of a resource is about."""
        if need.along is None:
            return [id_]
        return [
            other
            for kind, other in self.edges.get(id_, ())
            if kind is need.along and self.components.get(other)
        ]

    def unmet(self, id_: ResourceId) -> Iterator[tuple[Need, ResourceId, ComponentId]]:
        """What is missing for the components of a resource to work, where, and for which one."""
        for component, version in self.components.get(id_, {}).items():
            said = self.describe(component, version)
            for need in said.needs if said else ():
                for other in self.ends(id_, need):
                    has = self.components[other].get(need.component)
                    missing = has is None and (need.install or need.along is None)
                    wrong = has is not None and bool(need.versions) and has not in need.versions
                    if missing or wrong:
                        yield need, other, component


def projected(part: Part) -> dict[ComponentId, str]:
    """What will be on a resource after everything that is left to do with it."""
    components = dict(part.components)
    for level in part.levels:
        for work in level.works:
            if work.after is None:
                components.pop(work.component, None)
            else:
                components[work.component] = work.after
    return components
