"""The attempts of an iteration: what was applied, what must be reverted, checked or isolated.

This module is the only writer of ``UpgradeAttempts``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.work import ExecutionLevel, WorkItem
from equipoise.upgrade.reason import Reason


@dataclass
class UpgradeAttempts:
    """Applied work of this iteration and its failures."""

    applied_levels: dict[ResourceId, ExecutionLevel] = field(default_factory=dict)
    """The levels that this iteration has applied."""
    to_revert: dict[ResourceId, tuple[WorkItem, ...]] = field(default_factory=dict)
    """Resources with works of a failed attempt that must be reverted."""
    to_check: tuple[ResourceId, ...] = ()
    """Resources that were changed and wait for their health check."""
    health_checked: bool = False
    """Whether the health check of this iteration is done. It runs once."""
    to_isolate: dict[ResourceId, Reason] = field(default_factory=dict)
    """Resources in an unknown state. The next review isolates them."""

    def start_iteration(self) -> None:
        """Forget the attempts of the last iteration. Resources to isolate stay."""
        self.applied_levels, self.to_revert, self.to_check = {}, {}, ()
        self.health_checked = False

    def apply(self, resource: ResourceId, level: ExecutionLevel) -> None:
        """Record an applied level, which waits for its health check."""
        self.applied_levels[resource] = level
        self.to_check = (*self.to_check, resource)

    def reverted(self, resource: ResourceId) -> ExecutionLevel | None:
        """Forget and return the level that was applied on a reverted resource, if any."""
        return self.applied_levels.pop(resource, None)

    def must_revert(self, resource: ResourceId, works: tuple[WorkItem, ...]) -> None:
        """Record the works to revert; the resource becomes the last one to be reverted."""
        self.to_revert.pop(resource, None)
        self.to_revert[resource] = works

    def start_revert(self, resource: ResourceId) -> None:
        """Record that the engine reverts a resource."""
        self.to_revert.pop(resource, None)

    def must_isolate(self, resource: ResourceId, code: str, text: str) -> None:
        """Record that the state of a resource is unknown."""
        self.to_isolate[resource] = Reason(code, text)

    def isolated(self, resource: ResourceId) -> None:
        """Record that a resource is isolated."""
        self.to_isolate.pop(resource, None)

    def checked(self) -> None:
        """Record that the health check of the iteration is done."""
        self.health_checked = True
