"""The state of an upgrade: the result of the events so far, in five parts.

A private, writable value, like a draft of a snapshot. ``apply.py`` and the functions that it calls
change it by the methods of the parts. A part is written by its own module and by no other
(``tests/unit/upgrade/test_state_writers.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog, ComponentDescription, ComponentId
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence
from equipoise.model.upgrade.work import VmBatch
from equipoise.upgrade.state.cluster import UpgradeCluster
from equipoise.upgrade.state.iteration import UpgradeAttempts, UpgradeIteration
from equipoise.upgrade.state.requests import UpgradeRequests
from equipoise.upgrade.state.resources import (
    TrackedDependency,
    UpgradeResources,
    initial_resource_state,
)


@dataclass
class UpgradeState:
    """The whole state of the coordinator."""

    campaign: UpgradeCampaign
    settings: UpgradeSettings
    catalog: Mapping[tuple[ComponentId, str], ComponentDescription]
    resources: UpgradeResources
    cluster: UpgradeCluster
    requests: UpgradeRequests = field(default_factory=UpgradeRequests)
    iteration: UpgradeIteration = field(default_factory=UpgradeIteration)
    attempts: UpgradeAttempts = field(default_factory=UpgradeAttempts)
    at_ms: int = 0
    began_unix_ms: int | None = None
    """The date of time 0, in milliseconds since 1970; None if the run has no date."""
    check_removal: Any = field(default=None, compare=False)
    """The check of host roles (``RemovalChecker``); None if roles are not checked."""

    def advance(self, at_ms: int) -> None:
        """Set the time. It never goes back: the engine reports some events late."""
        self.at_ms = max(self.at_ms, at_ms)

    def describe(self, catalog: Catalog) -> None:
        """Add descriptions of versions that are not known yet."""
        new = {(described.component, described.version): described
               for described in catalog.descriptions}  # fmt: skip
        self.catalog = new | dict(self.catalog) if new else self.catalog

    def is_pinned(self, vm: VmId) -> bool:
        """Return whether a VM must stay: its move failed now, or too often before."""
        return vm in self.iteration.unmovable or self.is_stuck(vm)

    def is_stuck(self, vm: VmId) -> bool:
        """Return whether the moves of a VM from its host have failed too often."""
        return self.cluster.moves_failed(vm) >= self.settings.move_attempts_max

    def moving_vms(self) -> Iterator[tuple[VmId, HostId]]:
        """Yield VMs of the open VM batch that have not arrived, with their target."""
        open_batch = self.iteration.open_batch
        if open_batch is not None and isinstance(open_batch.schedule, VmBatch):
            for move in open_batch.schedule.moves:
                placement = self.cluster.placements.get(move.vm)
                if placement is not None and placement.host == move.source:
                    yield move.vm, move.target


def initial_state(
    campaign: UpgradeCampaign, check_removal: Any = None, began_unix_ms: int | None = None
) -> UpgradeState:
    """Return the state before the first event."""
    inventory = campaign.cluster
    resources = UpgradeResources(
        {resource.id: initial_resource_state(resource) for resource in inventory.resources}
    )
    for dependency in inventory.dependencies:
        if (
            # VMs and their hosts are tracked by placements, and future dependencies by requests.
            dependency.kind is not DependencyKind.MIGRATION
            and dependency.presence is not DependencyPresence.FUTURE
        ):
            resources.add_dependency(TrackedDependency(dependency))
    return UpgradeState(
        campaign=campaign,
        settings=_with_failure_reserve(campaign),
        catalog={
            (described.component, described.version): described
            for described in campaign.catalog.descriptions
        },
        resources=resources,
        cluster=UpgradeCluster.of(inventory),
        check_removal=check_removal,
        began_unix_ms=began_unix_ms,
    )


def _with_failure_reserve(campaign: UpgradeCampaign) -> UpgradeSettings:
    """Return the settings with the reserve that the failure rate of the hosts implies (F).

    The longest change or round of moves of the catalog counts, so F is the same in each iteration.
    """
    settings = campaign.settings
    if settings.host_failures is None:
        return settings
    recipes = (
        recipe
        for described in campaign.catalog.descriptions
        for recipe in (described.install, described.remove, described.upgrade)
        if recipe is not None
    )
    groups = (
        len(group.vms) for tenant in campaign.cluster.tenants for group in tenant.anti_affinity
    )
    moves_s = settings.vm_risk_s
    if moves_s is None:
        moves_s = 2 * settings.vm_move_s * max(groups, default=1)
    longest_s = max((recipe.duration_s + recipe.undo_s for recipe in recipes), default=0)
    failures = settings.host_failures.reserve(len(campaign.cluster.hosts), max(longest_s, moves_s))
    return settings.but(failover_hosts=max(settings.failover_hosts, failures))
