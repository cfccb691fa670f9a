"""Runs the ranks of an MPI trace: each does its steps one after another, and messages match.

A message below 64 KiB leaves its sender at once; a longer one lets it wait for the receiver. The
transfer begins when both sides are there, and carries 16 bytes more than the message. A rank that
has ended sends 4 bytes to the first host, which takes one of them at a time. These are the rules
of SimGrid's replay of traces, found with random traces, and of Batsim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from equipoise.sim.jobs.work import Work

_DETACHED_BYTES: Final = 65536.0
"""A shorter message does not let its sender wait."""
_HEADER_BYTES: Final = 16.0
_END_BYTES: Final = 4.0

Done = Callable[[], None]
RunPart = Callable[[Sequence[int], Sequence[float], Sequence[float], Done], None]
"""Starts a task: hosts, what each computes, what each sends to each, and what follows its end."""


@dataclass(frozen=True, slots=True)
class ComputeStep:
    """A rank computes."""

    flops: float


@dataclass(frozen=True, slots=True)
class SendStep:
    """A rank sends to another one."""

    target: int
    tag: int
    size_bytes: float


@dataclass(frozen=True, slots=True)
class ReceiveStep:
    """A rank takes the next message of another one with the same tag."""

    source: int
    tag: int


Step = ComputeStep | SendStep | ReceiveStep


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWork(Work):
    """The steps of each rank; rank i runs on executor i."""

    ranks: tuple[tuple[Step, ...], ...]


@dataclass(slots=True)
class _Channel:
    """Messages and receivers of one pair of ranks and one tag, in order."""

    sent: deque[tuple[float, Done | None]] = field(default_factory=deque)
    """The size of a message, and what its sender does after it if it waits."""
    receivers: deque[Done] = field(default_factory=deque)


class TraceRun:
    """The ranks of one trace while they run."""

    def __init__(
        self,
        ranks: Sequence[Sequence[Step]],
        hosts: Sequence[int],
        run_part: RunPart,
        ended: Done,
    ) -> None:
        self._ranks = ranks
        self._hosts = hosts
        self._run_part = run_part
        self._ended = ended
        self._next = [0] * len(ranks)
        self._channels: dict[tuple[int, int, int], _Channel] = {}
        self._reports: deque[int] = deque()
        self._reporting = False
        self._left = len(ranks)

    def begin(self) -> None:
        """Start all ranks."""
        for rank in range(len(self._ranks)):
            self._go_on(rank)

    def unfinished(self) -> list[int]:
        """Return the ranks that have steps left."""
        return [rank for rank, steps in enumerate(self._ranks) if self._next[rank] <= len(steps)]

    def _go_on(self, rank: int) -> None:
        """Do the next step of a rank; steps that take no time follow at once."""
        steps = self._ranks[rank]
        while True:
            index = self._next[rank]
            self._next[rank] += 1
            if index == len(steps):
                self._reports.append(rank)
                self._report()
                return
            if not self._passes(rank, steps[index]):
                return

    def _passes(self, rank: int, step: Step) -> bool:
        """Begin a step; True if the rank need not wait for it."""

        def go_on() -> None:
            self._go_on(rank)

        match step:
            case ComputeStep(flops):
                if flops <= 0:
                    return True
                self._run_part((self._hosts[rank],), (flops,), (), go_on)
                return False
            case SendStep(target, tag, size_bytes):
                detached = size_bytes < _DETACHED_BYTES
                channel = self._channel(rank, target, tag)
                channel.sent.append((size_bytes, None if detached else go_on))
                self._match(rank, target, channel)
                return detached
            case ReceiveStep(source, tag):
                channel = self._channel(source, rank, tag)
                channel.receivers.append(go_on)
                self._match(source, rank, channel)
                return False

    def _channel(self, source: int, target: int, tag: int) -> _Channel:
        return self._channels.setdefault((source, target, tag), _Channel())

    def _match(self, source: int, target: int, channel: _Channel) -> None:
        if not channel.sent or not channel.receivers:
            return
        size_bytes, sender = channel.sent.popleft()
        receiver = channel.receivers.popleft()

        def arrived() -> None:
            if sender is not None:
                sender()
            receiver()

        self._transfer(source, target, size_bytes + _HEADER_BYTES, arrived)

    def _transfer(self, source: int, target: int, size_bytes: float, done: Done) -> None:
        hosts = (self._hosts[source], self._hosts[target])
        self._run_part(hosts, (0.0, 0.0), (0.0, size_bytes, 0.0, 0.0), done)

    def _report(self) -> None:
        """Let the next rank that has ended say so."""
        if self._reporting or not self._reports:
            return
        self._reporting = True
        self._transfer(self._reports.popleft(), 0, _END_BYTES, self._reported)

    def _reported(self) -> None:
        self._reporting = False
        self._left -= 1
        if self._left == 0:
            self._ended()
        else:
            self._report()


def stuck_ranks(ranks: Sequence[Sequence[Step]]) -> list[int]:
    """Return the ranks that never end, because a message is never sent or never taken."""
    waiting: deque[Done] = deque()

    def run_part(
        hosts: Sequence[int], flops: Sequence[float], sent: Sequence[float], done: Done
    ) -> None:
        waiting.append(done)

    run = TraceRun(ranks, range(len(ranks)), run_part, lambda: None)
    run.begin()
    while waiting:
        waiting.popleft()()
    return run.unfinished()
