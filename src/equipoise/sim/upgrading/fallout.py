"""Fallout: which hosts stand still because of what is out of service elsewhere.

From the dependencies of a cluster alone, as they are: a rolling upgrade asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import Dependency, DependencyKind, Presence
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import ComponentId

_WHOLE = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)
"""Who depends in this way goes down with any of its sponsors, else with the last of a kind."""


class Fallout:
    """The dependencies of a cluster, by who depends and how."""

    def __init__(self, campaign: Campaign) -> None:
        cluster = campaign.cluster
        self._host_of = {one.id: one.host for one in cluster.resources}
        self._sponsors: dict[ResourceId, dict[DependencyKind, list[ResourceId]]] = {}
        self._dependents: dict[ResourceId, list[ResourceId]] = {}
        self._least: dict[ResourceId, int] = {}
        self._instead: dict[ResourceId, ResourceId] = {}
        """By whom a resource is replaced that will be taken away."""
        for one in cluster.dependencies:
            if one.presence is not Presence.FUTURE and not one.kind.is_symmetrical:
                self._bind(one)
        said = {(one.component, one.version): one for one in campaign.catalog.descriptions}
        for resource in cluster.resources:
            component = ComponentId(resource.component or resource.kind.value)
            known = said.get((component, resource.version))
            if known is not None and known.constituents_min is not None:
                self._least[resource.id] = known.constituents_min

    def _bind(self, one: Dependency) -> None:
        kinds = self._sponsors.setdefault(one.dependent, {})
        kinds.setdefault(one.kind, []).append(one.sponsor)
        self._dependents.setdefault(one.sponsor, []).append(one.dependent)
        if one.constituents_min is not None:
            self._least[one.dependent] = max(
                one.constituents_min, self._least.get(one.dependent, 0)
            )

    def replace(self, old: ResourceId, new: ResourceId) -> None:
        """From now on somebody does what another did before."""
        self._instead[old] = new

    def hosts(self, out: Iterable[ResourceId]) -> set[HostId]:
        """The hosts on which VMs do not answer while resources are out of service."""
        down = dict.fromkeys(out)
        queue = list(down)
        for one in queue:
            for dependent in self._dependents.get(one, ()):
                if dependent not in down and self._falls(dependent, down):
                    down[dependent] = None
                    queue.append(dependent)
        return {host for one in down if (host := self._host_of.get(one)) is not None}

    def supported(self, sponsor: ResourceId) -> set[HostId]:
        """The hosts whose VMs a storage or a controller keeps going."""
        return {
            host
            for one, kinds in self._sponsors.items()
            if any(kind.is_vm_supporting and sponsor in those for kind, those in kinds.items())
            and (host := self._host_of.get(one)) is not None
        }

    def _falls(self, resource: ResourceId, down: dict[ResourceId, None]) -> bool:
        for kind, sponsors in self._sponsors[resource].items():
            up = [one for one in sponsors if self._instead.get(one, one) not in down]
            if kind in _WHOLE:
                enough = len(sponsors)
            elif kind is DependencyKind.AGGREGATION:
                enough = self._least.get(resource, 1)
            else:
                enough = 1
            if len(up) < min(enough, len(sponsors)):
                return True
        return False
