"""The ports: what the control loop needs of a world, a journal and a decider, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from equipoise.model.change.draft import Touched
from equipoise.model.event import Event
from equipoise.model.plan import Proposal, Step
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot
from equipoise.model.upgrade.work import Batch, VmBatch


@dataclass(frozen=True, slots=True)
class Start:
    """Carry out a step."""

    step: Step
    attempt: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop carrying out a step, if that is still possible."""

    step: StepId
    attempt: int


Instruction = Start | Cancel


class World(Protocol):
    """Hosts and VMs, simulated or real. Nothing in it raises for what a world does by nature:
    a refusal or a failure is an event.
    """

    def observe(self) -> Snapshot:
        """Say how things are now."""
        ...

    def perform(self, instruction: Instruction) -> None:
        """Begin to carry out an instruction, and return at once.

        Each attempt of a step is answered by ``ActionFinished`` or ``ActionFailed``, also when it
        was cancelled. The same instruction may come twice (after a crash of the loop) and must
        then be carried out once and answered again.
        """
        ...

    def next_event(self, until_ms: int) -> Event | None:
        """Wait for the next event; ``None`` if there is none up to and including ``until_ms``."""
        ...


class Journal(Protocol):
    """Remembers events in order, for ever."""

    def append(self, events: Sequence[Event]) -> int:
        """Write events down, all or none; once it returns they are safe. Gives the new length."""
        ...

    def events(self, start: int = 0) -> Iterator[Event]:
        """Read the events back, from the given position on."""
        ...

    def __len__(self) -> int:
        """How many events there are."""
        ...


@runtime_checkable
class Reconsidering(Protocol):
    """A decider that looks again at plans that are under way."""

    def reconsider(self, snapshot: Snapshot, left: Sequence[Step]) -> str:
        """Say why what is left of a plan should not be done any more; nothing if it should."""
        ...


class Decider(Protocol):
    """Somebody with an opinion about what should be done."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Say what should be done, and why, or why nothing."""
        ...


class Engine(Protocol):
    """Who carries out the schedules of an upgrade, simulated or real. It raises for nothing that
    a machine does by nature: a task that could not be done, or of which nobody knows whether it was
    done, is answered by ``TaskFailed``.
    """

    def perform(self, schedule: Batch | VmBatch) -> None:
        """Begin to carry out a schedule, and return at once.

        Each task is answered by ``TaskFinished`` or ``TaskFailed``, each move by ``VmMoved`` or
        ``VmMoveFailed``, and the schedule as a whole by ``BatchEnded``. Tasks of a vertex come one
        after the other, vertices side by side, stages one after the other; when a task fails the
        later ones of its vertex are neither done nor answered. The same schedule may come twice
        (after a crash): what is done already is then not done again, and answered again.
        """
        ...

    def next_event(self, until_ms: int | None) -> Event | None:
        """Wait for the next event; ``None`` if there is none up to and including ``until_ms``, or,
        where that is not given, if there will never be one.
        """
        ...

    def witness(self, event: Event) -> None:
        """Hear of an event that was written down, be it a decision or its own answer."""
        ...


@runtime_checkable
class Live(Protocol):
    """An engine in whose time people live: while it works, somebody may give orders to the run.

    It is asked for events in short turns, so that orders are heard soon. One that does not say so
    is asked for the next event however long that takes.
    """

    def now_ms(self) -> int:
        """What time it is."""
        ...

    def look_ms(self) -> int:
        """How long to wait at the most before orders are looked for."""
        ...

    def is_idle(self) -> bool:
        """Whether nothing will ever happen unless it is given something to do."""
        ...


@runtime_checkable
class Heeding(Protocol):
    """A decider that is asked as soon as something happens that matters to it.

    Its plans are carried out beside those of the others, which are asked every few minutes.
    """

    def heed(self, event: Event, touched: Touched) -> None:
        """Take note of an event that was written down, and of what it touched."""
        ...

    def due_ms(self) -> int | None:
        """When it wants to be asked next; in the past, if at once."""
        ...

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Say what should be done now, and why."""
        ...
