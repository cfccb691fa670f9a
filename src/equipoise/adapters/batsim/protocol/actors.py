"""Actors in virtual time: they sleep, send messages to a mailbox, and receive from it.

The grouping of events into messages depends on who acts first at one instant. Actors therefore
run in rounds, as SimGrid's do: all actors that can run do so up to their next request, then the
requests are granted in the same order, and actors that were granted one run in the next round.
A message is a transfer of one byte, so that it takes the latency of its route.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from equipoise.sim.jobs.fluid import Task
from equipoise.sim.jobs.virtual_time import SteppedTime

Script = Generator["Request", Any, None]
"""What an actor does: it yields requests and receives their results."""


class Request(ABC):
    """What an actor asks of the kernel."""

    @abstractmethod
    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Grant the request now, or later by waking the actor."""


class Actor:
    """A script that runs on a host."""

    __slots__ = ("host", "script")

    def __init__(self, host: str, script: Script) -> None:
        self.host = host
        self.script = script


@dataclass(frozen=True, slots=True)
class Sleep(Request):
    """Wait for a time."""

    seconds: float

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Wake the actor after the time."""
        kernel.time.after(self.seconds, lambda: kernel.wake(actor))


@dataclass(frozen=True, slots=True)
class Yield(Request):
    """Let the other actors of this instant act first."""

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Run the actor in the next round."""
        kernel.wake(actor)


@dataclass(frozen=True, slots=True)
class Spawn(Request):
    """Start another actor, which runs before this one goes on."""

    actor: Actor

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Run both actors in the next round."""
        kernel.wake(self.actor)
        kernel.wake(actor)


@dataclass(frozen=True, slots=True)
class Await(Request):
    """Wait until ``begin`` calls back."""

    begin: Callable[[Callable[[], None]], None]

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin; the actor wakes at the call back."""
        self.begin(lambda: kernel.wake(actor))


@dataclass(frozen=True, slots=True)
class Send(Request):
    """Send to a mailbox and wait until the receiver has the message."""

    mailbox: Mailbox
    content: Any

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin the transfer if the receiver waits; otherwise queue the message."""
        self.mailbox.queue.append((actor, self.content))
        self.mailbox.match(kernel)


@dataclass(frozen=True, slots=True)
class Receive(Request):
    """Wait for the next message of a mailbox."""

    mailbox: Mailbox

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin the transfer if a message waits."""
        self.mailbox.receiver = actor
        self.mailbox.match(kernel)


@dataclass(frozen=True, slots=True)
class Exchange(Request):
    """Hand a message to the scheduler; its reply comes at once in virtual time."""

    message: dict[str, Any]

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """The kernel answers before any other request."""
        raise AssertionError("an exchange is answered while the actor runs")


@dataclass(slots=True, eq=False)
class Mailbox:
    """Messages for one receiver, which takes one at a time."""

    queue: deque[tuple[Actor, Any]] = field(default_factory=deque)
    receiver: Actor | None = None

    def match(self, kernel: ActorKernel) -> None:
        """Begin the transfer of the first message to the waiting receiver."""
        if self.receiver is None or not self.queue:
            return
        receiver, self.receiver = self.receiver, None
        sender, content = self.queue.popleft()

        def arrived() -> None:
            kernel.wake(sender)
            kernel.wake(receiver, content)

        kernel.time.run_task(kernel.build_message(sender.host, receiver.host), arrived)


class ActorKernel:
    """Runs actors until they wait, then lets time pass."""

    def __init__(self, time: SteppedTime, build_message: Callable[[str, str], Task]) -> None:
        self.time = time
        self.build_message = build_message
        self._ready: list[tuple[Actor, Any]] = []

    def wake(self, actor: Actor, result: Any = None) -> None:
        """Run an actor in the next round; ``result`` is what its request returns."""
        self._ready.append((actor, result))

    def run(self) -> Generator[dict[str, Any], dict[str, Any], None]:
        """Yield each message to the scheduler, and receive its reply, until no actor can go on."""
        while True:
            while self._ready:
                batch, self._ready = self._ready, []
                requests: list[tuple[Actor, Request]] = []
                for actor, result in batch:
                    try:
                        request = actor.script.send(result)
                        while isinstance(request, Exchange):
                            reply = yield request.message
                            request = actor.script.send(reply)
                    except StopIteration:
                        continue
                    requests.append((actor, request))
                for actor, request in requests:
                    request.grant(self, actor)
            if not self.time.step():
                return
