"""A pod on a node: its stages, and what has happened to it so far."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from equipoise.sim.pods.pod_time import PodTimer
from equipoise.sim.pods.spec import PodSpec

if TYPE_CHECKING:
    from equipoise.sim.pods.node import PodNode


class PodStage(Enum):
    """Where a pod is in its life on a node."""

    BOUND = "bound"
    """The node has not looked at it yet, or cannot because it is down."""
    PULLING = "pulling"
    """Its images are on their way, or its sandbox starts."""
    INITIALIZING = "initializing"
    RUNNING = "running"
    WAITING = "waiting"
    """Its containers have ended; they start again after a back-off."""
    STOPPING = "stopping"
    """It is deleted, and its containers have received the signal to stop."""
    LOST = "lost"
    """Its node is down."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REMOVED = "removed"

    @property
    def is_final(self) -> bool:
        """Whether the pod has released its node."""
        return self in _FINAL


_FINAL: Final = frozenset({PodStage.SUCCEEDED, PodStage.FAILED, PodStage.REMOVED})

NEXT_STAGES: Final[Mapping[PodStage, frozenset[PodStage]]] = {
    PodStage.BOUND: frozenset({PodStage.PULLING, PodStage.FAILED, PodStage.REMOVED}),
    PodStage.PULLING: frozenset(
        {PodStage.INITIALIZING, PodStage.RUNNING, PodStage.LOST, PodStage.FAILED, PodStage.REMOVED}
    ),
    PodStage.INITIALIZING: frozenset(
        {PodStage.RUNNING, PodStage.STOPPING, PodStage.LOST, PodStage.FAILED, PodStage.REMOVED}
    ),
    PodStage.RUNNING: frozenset(
        {
            PodStage.WAITING, PodStage.STOPPING, PodStage.LOST, PodStage.SUCCEEDED,
            PodStage.FAILED, PodStage.REMOVED,
        }
    ),
    PodStage.WAITING: frozenset(
        {PodStage.RUNNING, PodStage.LOST, PodStage.FAILED, PodStage.REMOVED}
    ),
    PodStage.STOPPING: frozenset({PodStage.LOST, PodStage.REMOVED}),
    PodStage.LOST: frozenset({PodStage.PULLING, PodStage.FAILED, PodStage.REMOVED}),
    PodStage.SUCCEEDED: frozenset({PodStage.REMOVED}),
    PodStage.FAILED: frozenset({PodStage.REMOVED}),
    PodStage.REMOVED: frozenset(),
}  # fmt: skip
"""Every step of the life of a pod that can happen."""


class PodOutcome(Enum):
    """How the life of a pod ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    REJECTED = "rejected"
    """The node had no room for it."""
    DELETED = "deleted"
    LOST = "lost"
    """Its node failed while it ran, or left."""


OUT_OF_MEMORY_CODE: Final = 137
STOPPED_CODE: Final = 143
KILLED_CODE: Final = 137
LOST_CODE: Final = 255
"""The exit codes of containers that the node killed, stopped, or no longer knows."""


class Pod:
    """A pod that was bound to a node. Times are in milliseconds of the run; -1: not yet."""

    __slots__ = (
        "bound_ms",
        "cpu_milli",
        "created_ms",
        "deadline_at_ms",
        "delete_by_ms",
        "deleted_ms",
        "ended_ms",
        "exit_code",
        "init_index",
        "memory_bytes",
        "missing_resource",
        "node",
        "outcome",
        "restarts",
        "run_ended_ms",
        "run_started_ms",
        "runs_since_reset",
        "spec",
        "stage",
        "started_ms",
        "taken_ms",
        "timer",
        "usage_timer",
    )  # fmt: skip

    def __init__(self, spec: PodSpec, node: PodNode, created_ms: int, bound_ms: int) -> None:
        self.spec = spec
        self.node = node
        self.stage = PodStage.BOUND
        self.created_ms = created_ms
        self.bound_ms = bound_ms
        self.taken_ms = -1
        """When the node took it: the start time of its status."""
        self.started_ms = -1
        """When its containers ran for the first time."""
        self.run_started_ms = -1
        self.run_ended_ms = -1
        """Of its present or last run."""
        self.ended_ms = -1
        self.deleted_ms = -1
        """When its deletion was requested."""
        self.delete_by_ms = -1
        """When its containers are killed if they have not stopped."""
        self.outcome: PodOutcome | None = None
        self.exit_code = -1
        """Of its last run."""
        self.restarts = 0
        self.runs_since_reset = 0
        """Runs that count for the back-off."""
        self.init_index = 0
        self.missing_resource = ""
        """Why the node rejected it."""
        self.deadline_at_ms: int | None = None
        self.cpu_milli = 0
        self.memory_bytes = 0
        """What it uses now."""
        self.timer: PodTimer | None = None
        self.usage_timer: PodTimer | None = None

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.spec.name

    @property
    def is_deleted(self) -> bool:
        """Whether its deletion was requested."""
        return self.deleted_ms >= 0

    def __repr__(self) -> str:
        return f"<{self.name} {self.stage.value} on {self.node.name}>"
