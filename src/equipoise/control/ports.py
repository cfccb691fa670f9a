"""The ports of the control loop: a world, a journal, deciders, and an upgrade engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from equipoise.model.event import Event
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Proposal, Step
from equipoise.model.quantity import StepId
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.upgrade.work import TaskBatch, VmBatch

if TYPE_CHECKING:  # a type only: the ports work without balance
    from equipoise.balance.run_pass import PassResult


@dataclass(frozen=True, slots=True)
class StartAction:
    """Execute an attempt of a step."""

    step: Step
    attempt: int


@dataclass(frozen=True, slots=True)
class CancelAction:
    """Cancel an attempt of a step, if that is still possible."""

    step: StepId
    attempt: int


Instruction = StartAction | CancelAction


class World(Protocol):
    """Hosts and VMs, simulated or real.

    A refusal or a failure of an action is an event. Only a broken connection raises an exception.
    """

    def observe(self) -> Snapshot:
        """Return the present state."""
        ...

    def perform(self, instruction: Instruction) -> None:
        """Start to execute an instruction, and return at once.

        The world answers each attempt of a step with ``ActionFinished`` or ``ActionFailed``, also
        after a cancellation. After a crash of the loop the same instruction may come again. The
        world then executes it once and answers it again.
        """
        ...

    def next_event(self, until_ms: int) -> Event | None:
        """Wait for the next event; return ``None`` if none comes up to ``until_ms`` inclusive."""
        ...


class EventLog(Protocol):
    """The part of a journal that a loop uses: append and read events."""

    def append(self, events: Sequence[Event]) -> int:
        """Append all events or none, and return the new length. Then they are on disk."""
        ...

    def events(self, start: int = 0) -> Iterator[Event]:
        """Yield the events without the first ``start``."""
        ...

    def __len__(self) -> int:
        """Return the number of events."""
        ...


@runtime_checkable
class PlanReviewer(Protocol):
    """A decider that reviews the running plan at every pass."""

    def review(self, snapshot: Snapshot, remaining: Sequence[Step]) -> str:
        """Return why the remaining steps should be cancelled; empty to continue the plan."""
        ...


class Decider(Protocol):
    """A decider: a snapshot in, a proposal out."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Return the actions that should be executed, with reasons; or why none should."""
        ...


@runtime_checkable
class PassProvider(Protocol):
    """A decider that also returns its balance pass, for later deciders of the same turn."""

    def propose_with_pass(
        self, snapshot: Snapshot, *, even: bool = False
    ) -> tuple[Proposal, PassResult]:
        """Return the proposal and the pass behind it; ``even`` if power keeps all hosts on."""
        ...


@runtime_checkable
class PassConsumer(Protocol):
    """A decider that starts from the balance pass of an earlier decider of the same turn."""

    def propose_from_pass(self, snapshot: Snapshot, balance_pass: PassResult | None) -> Proposal:
        """Return the proposal; without a pass, the decider runs its own."""
        ...


class UpgradeEngine(Protocol):
    """Executes the schedules of an upgrade, simulated or real.

    A failed task is an event, not an exception. So is a task whose outcome is unknown: the engine
    answers both with ``TaskFailed``.
    """

    def perform(self, schedule: TaskBatch | VmBatch) -> None:
        """Start to execute a schedule, and return at once.

        The engine answers each task with ``TaskFinished`` or ``TaskFailed``, each move with
        ``VmMoved`` or ``VmMoveFailed``, and the schedule with ``BatchEnded``. The tasks of a vertex
        run one after the other, vertices run concurrently, and stages run one after the other.
        When a task fails, the engine neither executes nor answers the later tasks of its vertex.
        After a crash the same schedule may come again. The engine then answers the finished tasks
        again without executing them.
        """
        ...

    def next_event(self, until_ms: int | None) -> Event | None:
        """Wait for the next event; return ``None`` if none comes up to ``until_ms`` inclusive.

        Without ``until_ms``, ``None`` means that no event will ever come.
        """
        ...

    def on_event(self, event: Event) -> None:
        """Receive an event after it is recorded: a decision, or an answer of this engine."""
        ...


@runtime_checkable
class RealTimeEngine(Protocol):
    """An engine that works in real time: administrators may send commands meanwhile.

    The loop waits for its events in short intervals and looks for commands in between. For any
    other engine the loop waits for the next event without a limit.
    """

    def now_ms(self) -> int:
        """Return the present time of the run."""
        ...

    def poll_ms(self) -> int:
        """Return the longest time to wait before the loop looks for commands."""
        ...

    def is_idle(self) -> bool:
        """Whether no event will come before the engine receives another schedule."""
        ...


class InventorySource(Protocol):
    """The real cluster as another system reports it, while an upgrade runs."""

    def observe(self) -> Inventory:
        """Return the present hosts and VMs; raise ``WorldError`` if that is impossible now."""
        ...


@runtime_checkable
class PreflightEngine(Protocol):
    """An engine that can look for problems before the first action, without a change."""

    def preflight(self) -> Mapping[str, str]:
        """Return the hosts that do not answer, each with the reason.

        Raise ``InvalidInput`` for a file that the engine cannot use.
        """
        ...

    def resources_on(self, host: str, resources: Mapping[str, str | None]) -> list[str]:
        """Return the resources, given with their hosts, that are lost without a host."""
        ...


@runtime_checkable
class EventDriven(Protocol):
    """A decider that runs as soon as an event matters to it.

    Its plans run beside the plan of the other deciders, which run once per pass.
    """

    def on_event(self, event: Event, touched: TouchedEntities) -> None:
        """Receive an event after it is recorded, and the entities that it touched."""
        ...

    def due_ms(self) -> int | None:
        """Return the time of the next ``propose``; a past time means now, ``None`` means never."""
        ...

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Return the actions that should start now, with reasons."""
        ...
