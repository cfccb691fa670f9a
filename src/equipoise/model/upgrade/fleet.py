"""Fleets of a campaign file: many equal hosts, resources, VMs and dependencies, each written once.

Only files have fleets. A campaign that was read lists every member (``files.campaign_fleets``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.host import Host
from equipoise.model.upgrade.infrastructure import Dependency, DependencyKind, Resource
from equipoise.model.value import Value
from equipoise.model.vm import Vm

MemberCount = Annotated[int, Meta(ge=1, le=100_000)]
Names = Annotated[tuple[str, ...], Meta(min_length=1)]


class EqualHosts(Value):
    """Hosts that differ only in their number: ``compute`` gives ``compute-01``, ``compute-02``."""

    count: MemberCount
    like: Host
    resources: tuple[Resource, ...] = ()
    """The resources of each host. ``kernel`` gives ``compute-01-kernel``; all of them together are
    ``compute-kernel``."""


class EqualResources(Value):
    """Resources that differ only in their number."""

    count: MemberCount
    like: Resource
    peers: DependencyKind | None = None
    """The kind of peer dependency between all of them."""


class EqualVms(Value):
    """VMs that differ only in their number."""

    count: MemberCount
    like: Vm
    hosts: Names
    """The hosts or fleets of hosts on which they run, one after the other."""


class DependencySpread(StrEnum):
    """Which members of two fleets depend on each other."""

    ALL = "all"
    """Each dependent on each sponsor."""
    EVENLY = "evenly"
    """Each dependent on one sponsor, in turn."""
    PAIRS = "pairs"
    """The first dependent on the first sponsor, the second on the second."""


class FleetDependency(Value):
    """Dependencies between members of fleets."""

    like: Dependency
    """``dependent`` and ``sponsor`` name fleets or single resources."""
    spread: DependencySpread = DependencySpread.ALL


class CampaignFleets(Value):
    """The fleets of a campaign, added to its cluster.

    In the lists ``resources``, ``vms`` and ``hosts`` of the file, the name of a fleet stands for
    all its members.
    """

    hosts: tuple[EqualHosts, ...] = ()
    resources: tuple[EqualResources, ...] = ()
    vms: tuple[EqualVms, ...] = ()
    dependencies: tuple[FleetDependency, ...] = ()
