"""What a job does: waits, computes and communicates, moves files, or a sequence of such parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A kind of work under a name. A ``return_code`` other than 0 is a failure."""

    name: str
    return_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayWork(Work):
    """Takes a fixed time on any platform; its hosts count as idle for their power."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWork(Work):
    """A parallel task: every executor computes and sends, and all progress at one rate.

    Executor i computes ``flops[i]`` operations and sends ``transfers[i * n + j]`` bytes to j.
    """

    flops: tuple[float, ...]
    transfers: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformTaskWork(Work):
    """A parallel task with equal executors, and equal transfers between each pair of them."""

    flops: float
    transfer: float
    total: bool = False
    """True if the amounts belong to all executors together; they fit any number of executors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWork(Work):
    """Each executor reads from a storage host and writes to it."""

    read_bytes: float
    write_bytes: float
    storage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingWork(Work):
    """Bytes move from one storage host to another."""

    transfer: float
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceWork(Work):
    """Parts one after another, repeated. It ends early at the first part that fails."""

    parts: tuple[Work, ...]
    repeat: int = 1


def parts_of(work: Work) -> Iterator[Work]:
    """Yield the work and, if it is a sequence, all its parts at any depth."""
    yield work
    if isinstance(work, SequenceWork):
        for part in work.parts:
            yield from parts_of(part)


class JobState(Enum):
    """Where a job is in its life."""

    NOT_SUBMITTED = 0
    SUBMITTED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    TIMED_OUT = 5
    KILLED = 6
    REJECTED = 7

    @property
    def is_final(self) -> bool:
        """True if the job has ended or will never run."""
        return self.value >= JobState.SUCCEEDED.value


_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
UNLIMITED = inf
"""The walltime of a job without a limit."""


@dataclass(slots=True, eq=False)
class Job:
    """A job and what has happened to it so far."""

    workload: str
    name: str
    submit_s: float
    hosts_requested: int
    work: Work
    walltime_s: float = UNLIMITED
    state: JobState = JobState.NOT_SUBMITTED
    hosts: tuple[int, ...] = ()
    host_bits: int = 0
    """The same hosts as a set of bits, while a built-in policy runs the job."""
    start_s: float = -1.0
    run_s: float = -1.0
    return_code: int = -1
    energy_j: float = -1.0
    """Energy of its hosts while it ran; -1 if the platform measures none."""
    label: str = ""
    extra: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    """The job as the workload file has it, for schedulers that read more than the model has."""

    @property
    def end_s(self) -> float:
        """The time of its end."""
        return self.start_s + self.run_s

    @property
    def expected_s(self) -> float:
        """The run time that a scheduler may assume: the walltime, or the true time without one."""
        if self.walltime_s != UNLIMITED:
            return self.walltime_s
        return self.work.seconds if isinstance(self.work, DelayWork) else UNLIMITED
