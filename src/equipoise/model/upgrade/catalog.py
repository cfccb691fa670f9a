"""The catalog: descriptions of components by their vendors. Work items are derived from it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NewType

from msgspec import Meta

from equipoise.model.quantity import ID_PATTERN, PositiveCount, Seconds
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.value import Value

ComponentId = NewType("ComponentId", str)
"""A product of a vendor: ``esxi``, ``ceph-client``. A resource can have several components."""
ComponentKey = Annotated[ComponentId, Meta(pattern=ID_PATTERN)]
VersionName = Annotated[str, Meta(min_length=1, max_length=128)]


class ComponentOperation(StrEnum):
    """An operation on a component of a resource."""

    INSTALL = "install"
    REMOVE = "remove"
    UPGRADE = "upgrade"


class Recipe(Value):
    """How an operation is executed and undone, and how long that takes."""

    duration_s: Seconds = 0
    undo_duration_s: Seconds | None = None
    """Duration of the undo; by default ``duration_s``."""
    script: str = ""
    """The playbook of the operation."""
    undo_script: str = ""
    """The playbook of the undo."""
    check_script: str = ""
    """The playbook of the health check after the operation."""
    by_hand: bool = False
    """Whether the operation is manual, as inserting a board: the engine only shows it."""

    @property
    def undo_s(self) -> int:
        """The duration of the undo."""
        return self.duration_s if self.undo_duration_s is None else self.undo_duration_s


class ComponentRequirement(Value):
    """A component that a version needs, on its own resource or along a dependency."""

    component: ComponentKey
    versions: tuple[VersionName, ...] = ()
    """The accepted versions; empty for any."""
    along: DependencyKind | None = None
    """The kind of dependency, in either direction; ``None`` for the resource itself."""
    tolerant: bool = False
    """Whether every version is accepted during the upgrade, and only the final one counts."""
    install: bool = False
    """Whether the other resource must have the component. Otherwise the requirement applies only to
    resources that have it."""


class ComponentDescription(Value):
    """The description of one version of a component."""

    component: ComponentKey
    version: VersionName
    install: Recipe | None = None
    remove: Recipe | None = None
    upgrade: Recipe | None = None
    """From any earlier version to this one, and back."""
    needs: tuple[ComponentRequirement, ...] = ()
    """Requirements. One that the final state violates makes the change incomplete. One that is
    violated during the upgrade makes the versions incompatible."""
    constituents_min: PositiveCount | None = None
    """For an aggregate: the fewest constituents that its configuration needs."""
    storing_min: PositiveCount | None = None
    """For a storage: the fewest constituents that hold the data of the VMs."""


class Catalog(Value):
    """Descriptions of all components, installed and future."""

    descriptions: tuple[ComponentDescription, ...] = ()
