"""The requests and commands of administrators during an upgrade, and the status of change sets.

This module is the only writer of ``UpgradeRequests``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import (
    ChangeSet,
    CommandKind,
    SetId,
    UpgradeCommand,
    UpgradeRequest,
)
from equipoise.model.upgrade.work import WorkItem
from equipoise.upgrade.reason import NO_REASON, Reason


class SetProgress(StrEnum):
    """The progress of a change set."""

    SCHEDULED = "scheduled"
    UNDOING = "undoing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ChangeSetStatus:
    """A change set with its complementary changes, and its progress."""

    set: ChangeSet
    order: int
    """The number of the request, counted from 1."""
    requested_ms: int
    targets: tuple[tuple[ResourceId, ...], ...]
    """The resources of each change."""
    progress: SetProgress = SetProgress.SCHEDULED
    outcome: SetOutcome | None = None
    reason: Reason = NO_REASON
    """Why the set is undone or has ended."""
    paused: bool = False
    priority: int = 0
    checkpoints_approved: int = 0
    """The number of approved checkpoints."""
    failures: int = 0
    """How many attempts on its resources have failed."""
    failures_excused: int = 0
    """How many of them an administrator has accepted by ``resume``."""
    partitions_hosts: bool = False
    """Whether hosts before and after the change cannot run each other's VMs."""

    @property
    def id(self) -> SetId:
        """The id of the set."""
        return self.set.id

    @property
    def resources(self) -> tuple[ResourceId, ...]:
        """All resources of the set, each once."""
        return tuple(dict.fromkeys(id_ for target in self.targets for id_ in target))


@dataclass(frozen=True, slots=True)
class RejectedCommand:
    """A command or request that is not valid, with the reason."""

    order: str
    reason: Reason
    number: int


@dataclass
class UpgradeRequests:
    """What administrators have requested, and how far each change set is."""

    set_status: dict[SetId, ChangeSetStatus] = field(default_factory=dict)
    pending: list[tuple[int, UpgradeRequest]] = field(default_factory=list)
    """Requests that are not scheduled yet, each with its time."""
    scheduled: int = 0
    """The number of scheduled requests, and so the number of the last one."""
    refused_sets: dict[SetId, Reason] = field(default_factory=dict)
    """Scheduled sets that can never succeed."""
    degraded_hosts: dict[int, int] = field(default_factory=dict)
    """The most hosts that a unit of each request deactivates, refused units included."""
    deferred_commands: list[tuple[UpgradeCommand, int]] = field(default_factory=list)
    """Commands about sets that are not scheduled yet, each with its number."""
    rejected_commands: list[RejectedCommand] = field(default_factory=list)
    """Rejected commands that are not reported yet."""
    pending_orders: dict[SetId, CommandKind] = field(default_factory=dict)
    """Sets that an administrator wants to undo or cancel."""
    paused_by_command: bool = False

    def post(self, at_ms: int, request: UpgradeRequest) -> None:
        """Keep a request for the next iteration."""
        self.pending.append((at_ms, request))

    def drop_pending(self) -> None:
        """Forget the pending requests, which are scheduled now."""
        self.pending = []

    def count_request(self) -> None:
        """Count a request that is scheduled."""
        self.scheduled += 1

    def note_degraded_hosts(self, number: int) -> None:
        """Record how many hosts a unit of the request that is scheduled now deactivates."""
        most = self.degraded_hosts.get(self.scheduled, 0)
        self.degraded_hosts[self.scheduled] = max(number, most)

    def register(self, status: ChangeSetStatus) -> None:
        """Add a change set."""
        self.set_status[status.id] = status

    def is_scheduled(self, set_: SetId) -> bool:
        """Return whether the changes of a set are neither undone nor ended."""
        return self.set_status[set_].progress is SetProgress.SCHEDULED

    def first_scheduled(self, works: Iterable[WorkItem]) -> SetId | None:
        """Return the scheduled set of the first work that has one."""
        return next((work.set for work in works if self.is_scheduled(work.set)), None)

    def change_set(self, set_: SetId, **changes: Any) -> None:
        """Change the status of a set."""
        self.set_status[set_] = replace(self.set_status[set_], **changes)

    def count_failure(self, set_: SetId) -> None:
        """Count a failed attempt of a set."""
        self.change_set(set_, failures=self.set_status[set_].failures + 1)

    def refuse(self, refused: Mapping[SetId, Reason]) -> None:
        """Record sets that can never succeed."""
        self.refused_sets |= refused

    def end_set(self, set_: SetId, outcome: SetOutcome, reason: Reason) -> None:
        """End a change set. Its orders end with it."""
        self.pending_orders.pop(set_, None)
        self.refused_sets.pop(set_, None)
        self.change_set(set_, progress=SetProgress.ENDED, outcome=outcome, reason=reason)

    def start_undo(self, set_: SetId, reason: Reason) -> None:
        """Record why a set is undone. The order of an administrator is obeyed with it."""
        self.pending_orders.pop(set_, None)
        self.change_set(set_, reason=reason)

    def defer(self, command: UpgradeCommand, number: int) -> None:
        """Keep a command until its set is scheduled."""
        self.deferred_commands.append((command, number))

    def take_deferred(self) -> list[tuple[UpgradeCommand, int]]:
        """Return the deferred commands, whose sets are scheduled now."""
        deferred, self.deferred_commands = self.deferred_commands, []
        return deferred

    def order(self, set_: SetId, kind: CommandKind, reason: Reason) -> None:
        """Record that an administrator wants to undo or cancel a set."""
        self.change_set(set_, reason=reason)
        self.pending_orders[set_] = kind

    def pause_all(self, *, paused: bool) -> None:
        """Pause or resume the whole campaign."""
        self.paused_by_command = paused

    def reject(self, text: str, reason: Reason, number: int) -> None:
        """Keep a rejected command or request until it is reported."""
        self.rejected_commands.append(RejectedCommand(text, reason, number))

    def report_rejected(self, number: int | None = 1) -> list[RejectedCommand]:
        """Remove and return the oldest rejected commands, or all of them for ``None``."""
        reported = self.rejected_commands[:number]
        self.rejected_commands = self.rejected_commands[len(reported) :]
        return reported
