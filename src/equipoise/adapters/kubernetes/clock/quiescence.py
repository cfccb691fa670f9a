"""When a scheduler has nothing left to do at this instant, so that the clock may advance.

Only states decide: those of threads, sockets, clock pages and the server's own bookkeeping.
``limit_s`` bounds the wait for a scheduler that never comes to rest; it decides nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Final, Protocol

from equipoise.adapters.kubernetes.clock.page import VirtualClockPage
from equipoise.adapters.kubernetes.clock.sockets import Pair, SocketQueues
from equipoise.adapters.kubernetes.clock.threads import ThreadStates

PAUSE_S: Final = 0.0005
"""Between two looks at a stock process of which a thread runs."""
NOTICE_S: Final = 0.05
"""How long a wait for the notice of a page lasts before the page is read again."""


class QuietServer(Protocol):
    """What the API server says of itself."""

    @property
    def requests_open(self) -> int:
        """Requests that were read and are not yet answered whole; watches do not count."""

    @property
    def requests_total(self) -> int:
        """All requests that were read."""

    def connections(self) -> list[Pair]:
        """The connections that it has accepted."""

    def listening_socket(self) -> socket.socket:
        """The socket whose queue holds the connections to be accepted."""

    async def turn(self) -> None:
        """Accept, read and answer what is there now."""


class ProcessActivity:
    """Says whether a process of any kind did something since the last question."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._threads = ThreadStates(pid)
        self._used_ns: dict[str, int] | None = None

    def is_quiet(self) -> bool:
        """Whether all threads sleep and none has used CPU since the last call.

        The first call only takes the state. One look is not enough, because a thread that is looked
        at late may have woken one that was looked at early.
        """
        all_asleep, used_ns = self._threads.scan()
        is_same, self._used_ns = used_ns == self._used_ns, used_ns
        return all_asleep and is_same

    def close(self) -> None:
        """Close the files in /proc."""
        self._threads.close()


async def wait_until_quiet(
    activities: Sequence[ProcessActivity],
    server: QuietServer,
    *,
    limit_s: float,
    queues: SocketQueues | None = None,
) -> bool:
    """Wait until stock schedulers and the server have nothing to do; ``False`` at the limit.

    ``queues`` spares the making of new ones for each wait.
    """
    assert activities, "there is a process to wait for"

    def are_quiet() -> bool:
        # Each is called, because each compares with its own last state.
        answers = [activity.is_quiet() for activity in activities]
        return all(answers)

    with nullcontext(queues) if queues is not None else SocketQueues() as used:
        rest = _Rest(are_quiet, lambda: None, lambda: asyncio.sleep(PAUSE_S), server, used)
        return await rest.wait(limit_s)


async def wait_until_idle(
    pages: VirtualClockPage | Sequence[VirtualClockPage],
    server: QuietServer,
    *,
    limit_s: float,
    queues: SocketQueues | None = None,
) -> bool:
    """Wait until programs on a virtual clock and the server have nothing to do.

    ``False`` at the limit: such a program computes, or waits in a system call. A program that has
    not started yet is not idle.
    """
    clocks = [pages] if isinstance(pages, VirtualClockPage) else list(pages)
    assert clocks, "there is a process to wait for"

    def are_idle() -> bool:
        return all(clock.idle and clock.is_asleep() for clock in clocks)

    def changes() -> Hashable:
        return tuple(clock.sequence for clock in clocks)

    with nullcontext(queues) if queues is not None else SocketQueues() as used:
        rest = _Rest(are_idle, changes, lambda: _notice(clocks), server, used)
        return await rest.wait(limit_s)


class _Rest:
    """Waits until two looks in succession find everything at rest and nothing changed."""

    def __init__(
        self,
        at_rest: Callable[[], bool],
        changes: Callable[[], Hashable],
        pause: Callable[[], Awaitable[None]],
        server: QuietServer,
        queues: SocketQueues,
    ) -> None:
        self._at_rest = at_rest
        self._changes = changes
        self._pause = pause
        self._server = server
        self._queues = queues

    async def wait(self, limit_s: float) -> bool:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        before: Hashable = None
        while True:
            # The server's turn between two looks sends what a full socket had held back.
            await self._server.turn()
            at_rest = self._at_rest() and self._server.requests_open == 0
            is_final = at_rest and before == self._state() and self._are_queues_empty()
            # The queues count only if nothing was active while they were read.
            after = self._state()
            if is_final and before == after:
                return True
            before = after if at_rest else None
            if loop.time() > end_s:
                return False
            if not at_rest:
                await self._pause()

    def _state(self) -> Hashable:
        return self._changes(), self._server.requests_total

    def _are_queues_empty(self) -> bool:
        queues = self._queues
        return (
            queues.unread(self._server.connections()) == 0
            and queues.waiting_connections(self._server.listening_socket()) == 0
        )


async def _notice(clocks: Sequence[VirtualClockPage]) -> None:
    """Wait until one of the active programs says that it became idle."""
    loop = asyncio.get_running_loop()
    noticed = loop.create_future()

    def notice() -> None:
        if not noticed.done():
            noticed.set_result(None)

    active = [clock for clock in clocks if not clock.idle]
    if not active:
        await asyncio.sleep(0)  # the server or the kernel has still work
        return
    for clock in active:
        clock.take_idle()
        clock.ask_for_idle()
        loop.add_reader(clock.idle_fd, notice)
    try:
        # A program that became idle just before the request gives no notice.
        if all(not clock.idle for clock in active):
            await asyncio.wait_for(noticed, NOTICE_S)
    except TimeoutError:
        for clock in active:
            clock.check_alive()
    finally:
        for clock in active:
            loop.remove_reader(clock.idle_fd)
