"""The current iteration of an upgrade: its phase, its batch, its VM batches and its attempts.

This module is the only writer of ``UpgradeIteration`` and ``UpgradeAttempts``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade.work import (
    BatchId,
    ExecutionLevel,
    TaskBatch,
    UpgradeTask,
    VertexId,
    VmBatch,
    VmMove,
    WorkItem,
)
from equipoise.upgrade.reason import Reason


class IterationPhase(StrEnum):
    """The phase of an iteration."""

    IDLE = "idle"
    TAKING_UP = "taking_up"
    CHANGING = "changing"
    REVERTING = "reverting"
    BAKING = "baking"
    MOVING = "moving"
    RETRYING = "retrying"
    """A connection was refused: its task starts again after a wait."""


@dataclass
class OpenBatch:
    """A schedule that the engine has received and not finished."""

    schedule: TaskBatch | VmBatch
    answered_tasks: set[str] = field(default_factory=set)
    failed: set[VertexId] = field(default_factory=set)
    """Vertices with a failed task. The engine skips their later tasks."""
    refused: set[str] = field(default_factory=set)
    """Tasks whose connection was refused: nothing has happened yet."""


@dataclass
class UpgradeIteration:
    """The progress of the current iteration, and the pause after it."""

    number: int = 0
    phase: IterationPhase = IterationPhase.IDLE
    ready_ms: int = 0
    """The next decision waits until this time: for a calculation or the bake time."""
    open_batch: OpenBatch | None = None
    batch: tuple[VertexId, ...] = ()
    """The groups in the batch of this iteration."""
    hosts_out: dict[HostId, None] = field(default_factory=dict)
    """The compute hosts that the batch takes out of service."""
    wait_reasons: tuple[Reason, ...] = ()
    """Why groups were left out of the batch of this iteration."""
    made_progress: bool = False
    """Whether this iteration has changed anything."""
    unmovable: dict[VmId, str] = field(default_factory=dict)
    """VMs whose move failed in this iteration."""
    consolidated_from: dict[VmId, HostId] = field(default_factory=dict)
    """VMs that consolidation has moved in this iteration, with their former host. A VM moves once.
    """
    evacuated_from: dict[VmId, HostId] = field(default_factory=dict)
    """VMs that an evacuation has moved in this iteration, with their former host."""
    wrapped_up: dict[VmId, None] = field(default_factory=dict)
    """VMs that the end of the campaign has moved. Each moves once for it."""
    vm_limit: int | None = None
    """V of this iteration, once it is known."""
    vms_moved: int = 0
    vm_batch_due: bool = False
    """A VM batch is decided and not started."""
    vm_batches_done: bool = False
    """No further VM batch follows in this iteration."""
    sub_iteration: int = 0
    changed_since_pause: bool = True
    """Whether an event since the last pause may make progress possible."""
    paused_ms: int = 0
    pause_reason: str = ""
    """Why the last iteration made no progress; empty if it did."""
    ended: bool = False

    def batch_id(self, suffix: str) -> BatchId:
        """Return the id of a schedule of this iteration."""
        return BatchId(f"{self.number}{suffix}")

    def open_schedule(self, batch: str) -> TaskBatch | VmBatch | None:
        """Return the open schedule if it has this id, or None."""
        if self.open_batch is None or self.open_batch.schedule.id != batch:
            return None
        return self.open_batch.schedule

    def start(self, number: int, ready_ms: int) -> None:
        """Start an iteration. Only the counters that outlive an iteration stay."""
        self.number, self.ready_ms = number, ready_ms
        self.phase = IterationPhase.TAKING_UP
        self.changed_since_pause = self.made_progress = False
        self.batch, self.wait_reasons = (), ()
        self.unmovable, self.consolidated_from, self.evacuated_from = {}, {}, {}
        self.wrapped_up = {}
        self.vm_limit, self.vms_moved, self.sub_iteration = None, 0, 0
        self.vm_batch_due = self.vm_batches_done = False

    def end(self, at_ms: int, pause_reason: str) -> None:
        """End the iteration, with the reason of the pause if it made no progress."""
        self.phase = IterationPhase.IDLE
        self.paused_ms, self.pause_reason = at_ms, pause_reason

    def end_campaign(self, *, ended: bool) -> None:
        """Record that the campaign has ended, or that it continues."""
        self.ended = ended

    def enter(self, phase: IterationPhase, ready_ms: int | None = None) -> None:
        """Enter a phase, whose decision may have to wait."""
        self.phase = phase
        self.ready_ms = self.ready_ms if ready_ms is None else ready_ms

    def note_change(self) -> None:
        """Record that an event may make progress possible again."""
        self.changed_since_pause = True

    def note_progress(self) -> None:
        """Record that this iteration has changed something."""
        self.made_progress = True

    def select(
        self, batch: tuple[VertexId, ...], hosts_out: dict[HostId, None], waits: Iterable[Reason]
    ) -> None:
        """Record the batch of the iteration and why other groups wait."""
        self.batch, self.hosts_out, self.wait_reasons = batch, hosts_out, tuple(waits)
        self.phase = IterationPhase.CHANGING if batch else IterationPhase.MOVING

    def open(self, schedule: TaskBatch | VmBatch) -> None:
        """Record that the engine has received a schedule."""
        self.open_batch = OpenBatch(schedule)
        self.made_progress = True

    def close(self) -> OpenBatch | None:
        """Remove and return the open schedule."""
        closed, self.open_batch = self.open_batch, None
        return closed

    def answer(self, task: str) -> bool:
        """Record the answer to a task of the open schedule. Return whether it is the first."""
        assert self.open_batch is not None
        is_first = task not in self.open_batch.answered_tasks
        self.open_batch.answered_tasks.add(task)
        return is_first

    def fail_vertex(self, vertex: VertexId) -> None:
        """Record that a task of a vertex failed."""
        assert self.open_batch is not None
        self.open_batch.failed.add(vertex)

    def refuse_task(self, task: str) -> None:
        """Record that the connection of a task was refused before it started."""
        assert self.open_batch is not None
        self.open_batch.refused.add(task)

    # VM batches (step 4)

    def decide_vm_batch(self, v: int, size: int) -> None:
        """Record the size of the next VM batch."""
        # V is fixed for the iteration by its first VM batch; VMs that moved meanwhile would change
        # it.
        self.vm_limit = v if self.vm_limit is None else self.vm_limit
        self.phase = IterationPhase.MOVING
        # An empty VM batch ends step 4 of the iteration.
        self.vm_batches_done, self.vm_batch_due = size == 0, size > 0

    def start_vm_batch(self, batch: VmBatch, consolidated: Iterable[VmMove]) -> None:
        """Record that a VM batch starts."""
        self.open(batch)
        self.sub_iteration += 1
        self.vm_batch_due = False
        moved = {move.vm: move.source for move in consolidated}
        if "/evacuation-" in batch.id:
            self.evacuated_from |= moved
        else:
            self.consolidated_from |= moved
        if self.phase is IterationPhase.IDLE:
            self.wrapped_up |= {move.vm: None for move in batch.moves}

    def count_vm_move(self) -> None:
        """Count a move of step 4 towards the limit V. A move of a consolidation does not count."""
        # Consolidation runs in the phase before the batch is selected.
        self.vms_moved += self.phase is IterationPhase.MOVING

    def fail_vm_move(self, vm: VmId, reason: str) -> None:
        """Record that the move of a VM failed."""
        self.unmovable[vm] = reason


@dataclass
class UpgradeAttempts:
    """Applied work of this iteration and its failures: what to revert, to check or to isolate."""

    applied_levels: dict[ResourceId, ExecutionLevel] = field(default_factory=dict)
    """The levels that this iteration has applied."""
    to_revert: dict[ResourceId, tuple[WorkItem, ...]] = field(default_factory=dict)
    """Resources with works of a failed attempt that must be reverted."""
    to_check: tuple[ResourceId, ...] = ()
    """Resources that were changed and wait for their health check."""
    health_checked: bool = False
    """Whether the health check of this iteration is done. It runs once."""
    to_retry: tuple[tuple[UpgradeTask, ...], ...] = ()
    """Stages of tasks that a refused connection has kept from starting."""
    retries: int = 0
    """How often the present schedule was started again."""
    retry_batches: int = 0
    """How many schedules of this iteration were started again: a part of their ids."""
    to_isolate: dict[ResourceId, Reason] = field(default_factory=dict)
    """Resources in an unknown state. The next review isolates them."""

    def start_iteration(self) -> None:
        """Forget the attempts of the last iteration. Resources to isolate stay."""
        self.applied_levels, self.to_revert, self.to_check = {}, {}, ()
        self.health_checked = False
        self.to_retry, self.retries, self.retry_batches = (), 0, 0

    def must_retry(self, stages: tuple[tuple[UpgradeTask, ...], ...]) -> None:
        """Record the tasks that start again."""
        self.to_retry = stages

    def count_retry(self, *, is_retry: bool) -> None:
        """Record that a schedule starts: again, or for the first time."""
        self.retries = self.retries + 1 if is_retry else 0
        self.retry_batches += is_retry
        self.to_retry = ()

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
