"""Who does the work of a campaign: this process, some others, or a cluster of machines.

Whoever does it, the same trials are drawn and the same verdicts come out, in the same order.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_context
from typing import Any, Final, Protocol, TypeVar

from equipoise.errors import InvalidInput, MissingExtra, Problem
from equipoise.fuzz.campaign.stop import HEEDED, Stop

Task = TypeVar("Task")
Done = TypeVar("Done")
AHEAD: Final = 2
"""How many tasks there are for each hand: the one that it does, and the next."""


class Crew(Protocol):
    """Does tasks, several at a time if it can, and gives what comes of them in their order."""

    @property
    def hands(self) -> int:
        """How many tasks it does at a time."""
        ...

    def do(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Do the same work for each task; tasks are asked for when their time has come."""
        ...


class Alone:
    """Does everything here, one after the other."""

    hands = 1

    def do(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Do the same work for each task."""
        yield from map(work, tasks)


class Processes:
    """Has some processes of this machine do it."""

    def __init__(self, pool: ProcessPoolExecutor, hands: int) -> None:
        self._pool, self.hands = pool, hands

    def do(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Do the same work for each task."""
        return _ahead(self._pool.submit, work, tasks, self.hands)


class Cluster:
    """Has the workers of a Dask cluster do it; they must have the same version of this."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.hands = max(1, sum(client.nthreads().values()))

    def do(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Do the same work for each task."""
        return _ahead(partial(self._client.submit, pure=False), work, tasks, self.hands)


def _ahead(
    submit: Callable[..., Any],
    work: Callable[[Task], Done],
    tasks: Iterable[Task],
    hands: int,
) -> Generator[Done, None, None]:
    """Always have a task at hand for whoever is done with one, but no more than that.

    At first only as many as there are hands: who makes tasks may learn from what comes of them.
    """
    waiting: deque[Any] = deque()
    most = hands
    try:
        for task in tasks:
            waiting.append(submit(work, task))
            if len(waiting) >= most:
                yield waiting.popleft().result()
                most = AHEAD * hands
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in waiting:  # somebody has seen enough
            one.cancel()


PROCESSES_MAX: Final = 1_000
"""How many processes one machine may be asked for."""


def processes_in(workers: str) -> int:
    """How many processes are meant; none if it is an address, and else it is refused."""
    if "://" in workers:
        return 0
    short = workers.isdecimal() and len(workers) <= len(str(PROCESSES_MAX))
    count = int(workers) if short else 0
    if not 1 <= count <= PROCESSES_MAX:
        what = (
            f"{workers!r} is neither a number of processes nor an address such as tcp://host:8786"
        )
        cure = f"1 to {PROCESSES_MAX:,} processes"
        raise InvalidInput("--workers", [Problem(key="", what=what, cure=cure)])
    return count


@contextmanager
def crew_of(workers: str) -> Iterator[Crew]:
    """The crew that was asked for: a number of processes, or the address of a Dask scheduler."""
    if "://" in workers:
        with _cluster(workers) as crew:
            yield crew
        return
    count = processes_in(workers)
    if count == 1:
        yield Alone()
        return
    # Fresh processes: a copy of this one would share the pipes of its targets.
    fresh, others = get_context("forkserver"), set(active_children())
    with ProcessPoolExecutor(
        count, mp_context=fresh, initializer=_leave_interrupts, initargs=(HEEDED.get(),)
    ) as pool:
        try:
            yield Processes(pool, count)
        except KeyboardInterrupt:  # nobody waits for what they are doing
            for one in set(active_children()) - others:
                one.kill()
            raise


def _leave_interrupts(stop: Stop | None) -> None:
    """Leave them to the process that asks: Ctrl-C on a terminal is sent to all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    HEEDED.set(stop)


@contextmanager
def _cluster(address: str) -> Iterator[Crew]:
    try:
        from distributed import Client  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError as error:
        raise MissingExtra("dask", "a campaign on a Dask cluster") from error
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except OSError as error:
        what = f"nobody answers at {address}: {error}"
        cure = "start one by 'dask scheduler' and 'dask worker ADDRESS'"
        raise InvalidInput("--workers", [Problem(key="", what=what, cure=cure)]) from error
    with client:
        yield Cluster(client)
