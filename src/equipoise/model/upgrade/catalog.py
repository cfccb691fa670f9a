"""The catalog: what vendors say about their components, so that a change can be worked out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NewType

from msgspec import Meta

from equipoise.model.quantity import ID_PATTERN, CountPresent, Seconds
from equipoise.model.resource import DependencyKind
from equipoise.model.value import Value

ComponentId = NewType("ComponentId", str)
"""What a vendor delivers: ``esxi``, ``ceph-client``. Several can be installed on one resource."""
ComponentKey = Annotated[ComponentId, Meta(pattern=ID_PATTERN)]
VersionName = Annotated[str, Meta(min_length=1, max_length=128)]


class Doing(StrEnum):
    """What an action does with a component on a resource."""

    INSTALL = "install"
    REMOVE = "remove"
    UPGRADE = "upgrade"


class Recipe(Value):
    """How one action is carried out, how long that takes, and how it is taken back."""

    duration_s: Seconds = 0
    undo_duration_s: Seconds | None = None
    """How long taking it back lasts; as long as doing it, if nobody says."""
    script: str = ""
    """What an engine runs for it: the name of a playbook."""
    undo_script: str = ""
    check_script: str = ""
    """What an engine runs to see whether the resource is well afterwards."""
    by_hand: bool = False
    """A person has to do it (put in a board): the engine only says when."""

    @property
    def taking_back_s(self) -> int:
        """How long undoing it lasts."""
        return self.duration_s if self.undo_duration_s is None else self.undo_duration_s


class Need(Value):
    """What must be at the other end of a dependency, or on the resource itself, for it to work."""

    component: ComponentKey
    versions: tuple[VersionName, ...] = ()
    """Which of its versions will do; none named: any."""
    along: DependencyKind | None = None
    """Along which dependency, in either direction; nothing: on the resource itself."""
    tolerant: bool = False
    """On the way any version will do, as with two protocols side by side: only the end counts."""
    install: bool = False
    """Whoever is at that end must have the component; else only those that have it are meant."""


class Description(Value):
    """What a vendor says about one version of a component."""

    component: ComponentKey
    version: VersionName
    install: Recipe | None = None
    remove: Recipe | None = None
    upgrade: Recipe | None = None
    """From any earlier version to this one, and back."""
    needs: tuple[Need, ...] = ()
    """Met in the end, or the change is incomplete; broken on the way, versions are incompatible."""
    constituents_min: CountPresent | None = None
    """Of an aggregate: how many constituents its configuration takes at least."""
    storing_min: CountPresent | None = None
    """Of a storage: how many constituents the data of the VMs takes at least."""


class Catalog(Value):
    """Everything vendors have said, about what is installed and about what is to come."""

    descriptions: tuple[Description, ...] = ()
