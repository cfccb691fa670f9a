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
from functools import partial
from typing import Any

from equipoise.sim.jobs.fluid import Task
from equipoise.sim.jobs.virtual_time import SteppedTime

Script = Generator["Request", Any, None]
"""What an actor does: it yields requests and receives their results."""


class Request(ABC):
    """What an actor asks of the kernel.

    Requests are not frozen: several are made for each message, and frozen ones take twice the time.
    """

    @abstractmethod
    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Grant the request now, or later by waking the actor."""


class Actor:
    """What runs on a host: a script, or a function that returns one request after the other."""

    __slots__ = ("ends", "host", "resume")

    def __init__(self, host: str, script: Script | Callable[[Any], Request]) -> None:
        self.host = host
        self.resume: Callable[[Any], Request] = script if callable(script) else script.send
        """Runs the script up to its next request, with the result of the last one."""
        self.ends = False
        """True if the script has made its last request."""


@dataclass(slots=True, eq=False)
class Sleep(Request):
    """Wait for a time."""

    seconds: float

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Wake the actor after the time."""
        kernel.time.after(self.seconds, lambda: kernel.wake(actor))


@dataclass(slots=True, eq=False)
class Yield(Request):
    """Let the other actors of this instant act first."""

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Run the actor in the next round."""
        kernel.wake(actor)


@dataclass(slots=True, eq=False)
class Spawn(Request):
    """Start another actor, which runs before this one goes on."""

    actor: Actor

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Run both actors in the next round."""
        kernel.wake(self.actor)
        kernel.wake(actor)


@dataclass(slots=True, eq=False)
class Await(Request):
    """Wait until ``begin`` calls back."""

    begin: Callable[[Callable[[], None]], None]

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin; the actor wakes at the call back."""
        self.begin(lambda: kernel.wake(actor))


@dataclass(slots=True, eq=False)
class Send(Request):
    """Send to a mailbox and wait until the receiver has the message."""

    mailbox: Mailbox
    content: Any

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin the transfer if the receiver waits; otherwise queue the message."""
        self.mailbox.send(kernel, actor, self.content)


@dataclass(slots=True, eq=False)
class SendLast(Request):
    """Send to a mailbox and end."""

    mailbox: Mailbox
    content: Any

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """As ``Send``, but the actor has nothing to do any more."""
        actor.ends = True
        self.mailbox.send(kernel, actor, self.content)


@dataclass(slots=True, eq=False)
class Receive(Request):
    """Wait for the next message of a mailbox."""

    mailbox: Mailbox

    def grant(self, kernel: ActorKernel, actor: Actor) -> None:
        """Begin the transfer if a message waits."""
        self.mailbox.receive(kernel, actor)


@dataclass(slots=True, eq=False)
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

    def send(self, kernel: ActorKernel, sender: Actor, content: Any) -> None:
        """Begin the transfer if the receiver waits; otherwise queue the message."""
        receiver = self.receiver
        if receiver is None:
            self.queue.append((sender, content))
        else:
            self.receiver = None
            kernel.transfer(sender, receiver, content)

    def receive(self, kernel: ActorKernel, receiver: Actor) -> None:
        """Begin the transfer of the first message, or wait for one."""
        if self.queue:
            sender, content = self.queue.popleft()
            kernel.transfer(sender, receiver, content)
        else:
            self.receiver = receiver


class ActorKernel:
    """Runs actors until they wait, then lets time pass."""

    def __init__(
        self,
        time: SteppedTime,
        build_message: Callable[[str, str], Task],
        message_arrived: Callable[[str], None] | None = None,
    ) -> None:
        self.time = time
        self._build_message = build_message
        self._free_routes: dict[tuple[str, str], bool] = {}
        """Between which hosts a message takes no time and uses no link."""
        self.message_arrived = message_arrived
        """Called with the host of the sender."""
        self.stopped = False
        """True if no actor may go on."""
        self._ready: list[tuple[Actor, Any]] = []
        self._batch: list[tuple[Actor, Any]] = []
        self._requests: list[tuple[Actor, Request]] = []
        """The actors of the present round, and what those have asked for that have run."""
        self._is_alone = False
        """True while the only request of a round is granted."""

    def others_sleep(self, host: str, seconds: float) -> bool:
        """Return whether no actor but the present one, on this host, acts within a time.

        The requests of the others in this round are granted if all of them are sleeps. The result
        is False if a message within the host takes time.
        """
        if self._ready or not self._free_routes.get((host, host), False):
            return False
        requests = self._requests
        if len(requests) != len(self._batch) - 1:
            return False  # others of this round follow
        for _, request in requests:
            if type(request) is not Sleep:
                return False
        for actor, request in requests:
            request.grant(self, actor)
        requests.clear()
        return self.time.is_still_for(seconds)

    def begin(self, actor: Actor) -> None:
        """Run an actor up to its first request, and grant it."""
        request = actor.resume(None)
        request.grant(self, actor)

    def transfer(self, sender: Actor, receiver: Actor, content: Any) -> None:
        """Send one byte; both actors go on when it has arrived."""
        route = sender.host, receiver.host
        if self._free_routes.get(route):
            if self._is_alone and not self._ready and self.time.is_still_for(0.0):
                self._arrive(sender, receiver, content)  # the next step would do only this
            else:
                self.time.call_next(partial(self._arrive, sender, receiver, content))
            return
        message = self._build_message(*route)
        self._free_routes[route] = not message.demands and message.latency_s <= 0
        self.time.run_task(message, partial(self._arrive, sender, receiver, content))

    def _arrive(self, sender: Actor, receiver: Actor, content: Any) -> None:
        if self.message_arrived is not None:
            self.message_arrived(sender.host)
        if not sender.ends:
            self._ready.append((sender, None))
        self._ready.append((receiver, content))

    def wake(self, actor: Actor, result: Any = None) -> None:
        """Run an actor in the next round; ``result`` is what its request returns."""
        self._ready.append((actor, result))

    def run(self) -> Generator[dict[str, Any], dict[str, Any], None]:
        """Yield each message to the scheduler, and receive its reply, until no actor can go on."""
        while True:
            while self._ready:
                self._batch, self._ready = self._ready, []
                requests = self._requests = []
                for actor, result in self._batch:
                    try:
                        request = actor.resume(result)
                        while type(request) is Exchange:  # isinstance of an abstract class is slow
                            reply = yield request.message
                            request = actor.resume(reply)
                    except StopIteration:
                        continue
                    requests.append((actor, request))
                self._is_alone = len(requests) == 1
                for actor, request in requests:
                    request.grant(self, actor)
                self._is_alone = False
            if self.stopped or not self.time.step():
                return
