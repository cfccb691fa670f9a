"""The clocks of a run: how schedulers see the time, and when they have nothing more to do.

``StockClock`` serves any program: its timers run on wall-clock time, and virtual time stands while
it works. ``VirtualClock`` serves programs built with our clock: their timers follow the run.
``TimeoutClock`` advances as Batkube did, by a fixed wait for decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final, Protocol

from equipoise.adapters.kubernetes.api.server import ApiServer
from equipoise.adapters.kubernetes.clock.page import START_NS, VirtualClockPage
from equipoise.adapters.kubernetes.clock.quiescence import (
    ProcessActivity,
    wait_until_idle,
    wait_until_quiet,
)
from equipoise.adapters.kubernetes.clock.sockets import SocketQueues
from equipoise.adapters.kubernetes.run.moment import NS_PER_MS, NS_PER_S, Moment
from equipoise.adapters.kubernetes.run.scheduler import SchedulerSettings, StartedScheduler
from equipoise.errors import WorldError

LEAD_NS: Final = 60 * NS_PER_S
"""Schedulers start so long before the workload, on their own clock."""
_POLL_S: Final = 0.0005
FIXED_CHOICES: Final = {"GODEBUG": "randautoseed=0"}
"""Programs in Go then draw the same random numbers in every run."""
_SETTLE_S_MAX: Final = 60.0
"""An error limit: a scheduler that works longer at one instant is reported."""


class RunClock(Protocol):
    """Decides when the time of a run may pass."""

    name: str
    notes: Sequence[str]
    """Why results are approximate; empty if they are exact."""
    acts_alone: bool
    """Whether something may be decided while no pod waits, as by a record."""
    settings: SchedulerSettings

    def environment(self, number: int) -> dict[str, str]:
        """Return what the scheduler with this number needs in its environment."""
        ...

    def attach(self, scheduler: StartedScheduler) -> None:
        """A scheduler was started."""
        ...

    async def settle(self) -> None:
        """Wait until the schedulers have nothing to do at the present instant."""
        ...

    def next_timer_ns(self) -> int | None:
        """Return when a scheduler acts by itself; None if only events make it act."""
        ...

    def advance(self, to_ns: int) -> None:
        """Let the time of the run and of the schedulers pass."""
        ...

    def close(self) -> None:
        """Release what the clock holds."""
        ...


class StockClock:
    """Time stands while a scheduler works: threads that run, CPU time used, unread sockets."""

    name = "stock"
    acts_alone = False
    notes: Sequence[str] = (
        "back-off runs on wall-clock time, so pods that had to wait may start in another order",
        "the choice between equal scores is random, unless the scheduler is built otherwise",
    )
    settings = SchedulerSettings(short_backoff=True)

    def __init__(self, moment: Moment, server: ApiServer) -> None:
        self._moment = moment
        self._server = server
        self._activities: list[ProcessActivity] = []
        self._queues = SocketQueues()
        self._schedulers: list[StartedScheduler] = []

    def environment(self, number: int) -> dict[str, str]:
        """Return nothing: the program runs as it is."""
        del number
        return dict(FIXED_CHOICES)

    def attach(self, scheduler: StartedScheduler) -> None:
        """Watch the threads of the scheduler."""
        self._schedulers.append(scheduler)
        self._activities.append(ProcessActivity(scheduler.pid))

    async def settle(self) -> None:
        """Wait until all processes are quiet."""
        if not await wait_until_quiet(
            self._activities, self._server, limit_s=_SETTLE_S_MAX, queues=self._queues
        ):
            raise _not_settled(self._schedulers, "is not quiet")

    def next_timer_ns(self) -> int | None:
        """Return None: the timers of the program follow the wall clock."""
        return None

    def advance(self, to_ns: int) -> None:
        """Let the time of the run pass."""
        self._moment.advance(to_ns)

    def close(self) -> None:
        """Release the files of the processes."""
        for activity in self._activities:
            activity.close()
        self._queues.close()


class _Pages:
    """The clocks of schedulers that were built with ours; other programs ignore them."""

    def __init__(self, moment: Moment, server: ApiServer, folder: Path, epoch_ns: int) -> None:
        self._moment = moment
        self._server = server
        self._folder = folder
        self._epoch_ns = epoch_ns
        self._queues = SocketQueues()
        self.pages: list[VirtualClockPage] = []
        self.schedulers: list[StartedScheduler] = []

    def environment(self, number: int) -> dict[str, str]:
        """Make the page of a scheduler and name it."""
        start_ns = _page_ns(self._moment.now_ns)
        page = VirtualClockPage(
            self._folder / f"clock-{number}",
            wall_ns=self._epoch_ns + self._moment.now_ns,
            start_ns=start_ns,
        )
        self.pages.append(page)
        # Goroutines that become ready at one instant race unless they run one after another.
        return {**page.environment, "GOMAXPROCS": "1"}

    def attach(self, scheduler: StartedScheduler) -> None:
        """Remember the scheduler for messages."""
        self.schedulers.append(scheduler)

    def advance(self, to_ns: int) -> None:
        """Set all clocks, which wakes the schedulers."""
        self._moment.advance(to_ns)
        for page in self.pages:
            page.advance(_page_ns(to_ns))

    def close(self) -> None:
        """Release the pages."""
        for page in self.pages:
            page.close()
        self._queues.close()


class VirtualClock(_Pages):
    """Timers of the schedulers follow the time of the run, so their instants are exact.

    Of several schedulers, one works at a time: it gets the time and its events, and comes to rest
    before the next one. Each is repeatable alone, and so are all of them in this order.
    """

    name = "virtual"
    acts_alone = False
    notes: Sequence[str] = ()
    settings = SchedulerSettings(one_thread=True)

    def advance(self, to_ns: int) -> None:
        """Let the time of the run pass; a scheduler sees it when its turn comes."""
        if len(self.pages) == 1:
            super().advance(to_ns)
        else:
            self._moment.advance(to_ns)

    async def settle(self) -> None:
        """Wait until every goroutine of every scheduler waits."""
        await self._settle_all()
        if len(self.pages) == 1:
            return
        clients = [scheduler.client for scheduler in self.schedulers]
        to_ns = _page_ns(self._moment.now_ns)
        worked = True
        while worked:
            worked = False
            for client, page in zip(clients, self.pages, strict=True):
                if page.now_ns < to_ns or self._server.has_events(client):
                    worked = True
                    self._server.hold(frozenset(clients) - {client})
                    if page.now_ns < to_ns:
                        page.advance(to_ns)
                    await self._settle_all()
        self._server.hold(frozenset(clients))

    async def _settle_all(self) -> None:
        if not await wait_until_idle(
            self.pages, self._server, limit_s=_SETTLE_S_MAX, queues=self._queues
        ):
            raise _not_settled(self.schedulers, "is not idle")

    def next_timer_ns(self) -> int | None:
        """Return the next timer of any scheduler."""
        timers = [page.next_timer_ns for page in self.pages if page.next_timer_ns]
        return max(min(timers) - _page_ns(0), self._moment.now_ns) if timers else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutOptions:
    """The parameters of Batkube, with its defaults."""

    timeout_s: float = 0.02
    """The longest wait for a decision in a cycle."""
    min_delay_s: float = 0.0
    """The shortest time of a cycle."""
    first_step_s: float = 0.1
    max_step_s: float = 20.0
    backoff: float = 2.0
    """Without a decision, the next step is so many times as long."""
    crash_timeout_s: float = 5.0
    """Stop if pods wait, none runs and nothing is decided for so long on this machine."""


class TimeoutClock(_Pages):
    """Time passes as in Batkube: a cycle ends at a decision or a timeout, then a step follows.

    The time that a cycle takes on this machine passes in the simulation, too, at most to the next
    thing that happens there.
    """

    name = "timeout"
    acts_alone = False
    notes: Sequence[str] = (
        "a decision that comes after the timeout counts at a later instant of the run",
    )
    settings = SchedulerSettings()

    def __init__(
        self,
        parts: tuple[Moment, ApiServer, Path, int],
        options: TimeoutOptions,
        decisions: Callable[[], int],
    ) -> None:
        super().__init__(*parts)
        self._options = options
        self._decisions = decisions
        self._first_step_s = min(options.first_step_s, options.max_step_s)
        self._step_s = self._first_step_s
        self.pass_time = _pass_nothing
        """Lets time pass in the run; set before the workload begins."""

    async def settle(self) -> None:
        """Wait for a decision as long as the options say."""
        began_s, began_ns, before = perf_counter(), self._moment.now_ns, self._decisions()
        while True:
            await asyncio.sleep(0)
            elapsed_s = perf_counter() - began_s
            if began_ns >= 0:  # the start of the schedulers takes no time of the run
                self.pass_time(began_ns + round(elapsed_s * 1000) * NS_PER_MS)
            decided = self._decisions() != before
            if elapsed_s >= self._options.min_delay_s and (
                decided or elapsed_s > self._options.timeout_s
            ):
                break
            await asyncio.sleep(_POLL_S)
        self.advance(self._moment.now_ns)
        if decided or began_ns < 0:
            self._step_s = self._first_step_s
        else:
            self._step_s = min(self._step_s * self._options.backoff, self._options.max_step_s)

    def next_timer_ns(self) -> int | None:
        """Return when the next cycle begins."""
        return self._moment.now_ns + round(self._step_s * NS_PER_S)


def _pass_nothing(to_ns: int) -> None:
    """Ignore the time: no workload has begun."""


def _page_ns(now_ns: int) -> int:
    """Return an instant on the clock of the schedulers, which begins with their start."""
    return now_ns + LEAD_NS + START_NS


def _not_settled(schedulers: Sequence[StartedScheduler], what: str) -> WorldError:
    names = ", ".join(scheduler.name for scheduler in schedulers)
    text = f"{names} {what} after {_SETTLE_S_MAX:g} s at one instant"
    return WorldError(text, code="scheduler-timeout")
