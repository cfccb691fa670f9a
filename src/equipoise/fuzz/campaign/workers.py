"""The workers of a campaign (this process, others, or a Dask cluster), and how Ctrl-C stops them.

The trials, the verdicts and their order are the same with all workers. The first Ctrl-C asks for
the results so far, the second one ends the campaign. The processes of this machine check it.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from ctypes import c_double
from functools import partial
from multiprocessing import active_children, get_context
from time import perf_counter
from types import FrameType
from typing import Any, Final, Protocol, TypeVar

from equipoise.errors import InvalidInput, MissingExtra

SHRINK_GRACE_S: Final = 10.0
"""How long cases are still shrunk after a stop request."""
REPEATED_SIGNAL_S: Final = 0.5
"""Two signals within this time count as one: some senders signal the process and its group."""
_NEVER: Final = 0.0


class StopRequest:
    """The time of the stop request, shared with the processes that receive it at their start."""

    def __init__(self) -> None:
        # Shared memory without a lock: a signal handler must not wait for the code it interrupts.
        self._requested_at = get_context("forkserver").RawValue(c_double, _NEVER)

    @property
    def is_requested(self) -> bool:
        """Whether the user has requested to stop."""
        return self._requested_at.value != _NEVER

    def is_requested_since(self, seconds: float) -> bool:
        """Whether the request is older than some seconds."""
        return self.is_requested and perf_counter() - self._requested_at.value > seconds

    def ask(self) -> None:
        """Record the request."""
        self._requested_at.value = perf_counter()


ACTIVE_STOP: Final[ContextVar[StopRequest | None]] = ContextVar("stop", default=None)
"""The request that this process checks; ``None`` if it cannot be interrupted."""


def is_stop_requested() -> bool:
    """Whether no further work should start."""
    stop = ACTIVE_STOP.get()
    return stop is not None and stop.is_requested


def is_grace_over() -> bool:
    """Whether running work should end as well."""
    stop = ACTIVE_STOP.get()
    return stop is not None and stop.is_requested_since(SHRINK_GRACE_S)


@contextmanager
def interruptible(notify: Callable[[], None]) -> Iterator[None]:
    """Turn the first Ctrl-C into a stop request and call ``notify``; the second one interrupts."""
    stop = StopRequest()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_requested_since(REPEATED_SIGNAL_S):
            raise KeyboardInterrupt
        if not stop.is_requested:
            stop.ask()
            notify()

    token, before = ACTIVE_STOP.set(stop), signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        ACTIVE_STOP.reset(token)


Task = TypeVar("Task")
Done = TypeVar("Done")
QUEUED_PER_WORKER: Final = 2
"""The tasks of each worker: the running one and the next one."""


class WorkerPool(Protocol):
    """Runs tasks, perhaps in parallel, and yields their results in the order of the tasks."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time."""
        ...

    def run_all(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Call ``work`` for each task; tasks are taken from the iterator when a worker is free."""
        ...


class InProcess:
    """Runs all tasks in this process, one after the other."""

    parallelism = 1

    def run_all(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Call ``work`` for each task."""
        yield from map(work, tasks)


class ProcessPool:
    """Runs tasks in processes of this machine."""

    def __init__(self, pool: ProcessPoolExecutor, parallelism: int) -> None:
        self._pool, self.parallelism = pool, parallelism

    def run_all(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Call ``work`` for each task."""
        return _run_ahead(self._pool.submit, work, tasks, self.parallelism)


class DaskPool:
    """Runs tasks on the workers of a Dask cluster, which must have the same version installed."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.parallelism = max(1, sum(client.nthreads().values()))

    def run_all(
        self, work: Callable[[Task], Done], tasks: Iterable[Task]
    ) -> Generator[Done, None, None]:
        """Call ``work`` for each task."""
        return _run_ahead(partial(self._client.submit, pure=False), work, tasks, self.parallelism)


def _run_ahead(
    submit: Callable[..., Any],
    work: Callable[[Task], Done],
    tasks: Iterable[Task],
    parallelism: int,
) -> Generator[Done, None, None]:
    """Keep one task queued for each worker, and yield the results in order.

    Initially there is only one task per worker: the size of later tasks depends on the results.
    """
    waiting: deque[Any] = deque()
    limit = parallelism
    try:
        for task in tasks:
            waiting.append(submit(work, task))
            if len(waiting) >= limit:
                yield waiting.popleft().result()
                limit = QUEUED_PER_WORKER * parallelism
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:  # the caller has stopped the iteration
            future.cancel()


PROCESSES_MAX: Final = 1_000
"""The maximum number of processes on one machine."""


def process_count(workers: str) -> int:
    """The number of processes; 0 for an address; ``InvalidInput`` for anything else."""
    if "://" in workers:
        return 0
    # Python refuses to convert very long digit strings, so the length is checked first.
    short = workers.isdecimal() and len(workers) <= len(str(PROCESSES_MAX))
    count = int(workers) if short else 0
    if not 1 <= count <= PROCESSES_MAX:
        what = (
            f"{workers!r} is neither a number of processes nor an address such as tcp://host:8786"
        )
        cure = f"use 1 to {PROCESSES_MAX:,} processes"
        raise InvalidInput.of("--workers", what, cure=cure, code="invalid-value")
    return count


@contextmanager
def open_pool(workers: str) -> Iterator[WorkerPool]:
    """Open a pool with a number of processes, or on the Dask scheduler at an address."""
    if "://" in workers:
        with _dask_pool(workers) as pool:
            yield pool
        return
    count = process_count(workers)
    if count == 1:
        yield InProcess()
        return
    # New processes: a fork of this one would share the pipes of its targets.
    context, others = get_context("forkserver"), set(active_children())
    with ProcessPoolExecutor(
        count, mp_context=context, initializer=_ignore_interrupts, initargs=(ACTIVE_STOP.get(),)
    ) as executor:
        try:
            yield ProcessPool(executor, count)
        except KeyboardInterrupt:  # the results of running tasks are not needed
            for process in set(active_children()) - others:
                process.kill()
            raise


def _ignore_interrupts(stop: StopRequest | None) -> None:
    """Leave Ctrl-C to the main process: a terminal sends it to all processes of the group."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ACTIVE_STOP.set(stop)


@contextmanager
def _dask_pool(address: str) -> Iterator[WorkerPool]:
    try:
        from distributed import Client  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError as error:
        raise MissingExtra("dask", "a campaign on a Dask cluster") from error
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except OSError as error:
        what = f"no Dask scheduler answers at {address}: {error}"
        cure = "start one with 'dask scheduler' and 'dask worker ADDRESS'"
        raise InvalidInput.of("--workers", what, cure=cure, code="invalid-value") from error
    with client:
        yield DaskPool(client)
