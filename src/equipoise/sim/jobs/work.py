"""What a job does: waits, computes and communicates, moves files, or a sequence of such parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import inf
from types import MappingProxyType
from typing import Any, Final


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
    per_pair: bool = False
    """True if a total transfer is divided by the number of pairs, not of executors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTaskWork(Work):
    """Parallel tasks that run as one: their amounts are added, so they progress at one rate."""

    parts: tuple[TaskWork | UniformTaskWork, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWork(Work):
    """Each executor reads from a storage host and writes to it."""

    read_bytes: float
    write_bytes: float
    storage: str
    total: bool = False
    """True if the amounts belong to all executors together."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWork(Work):
    """Sends a message to the scheduler, then waits."""

    message: Any
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveWork(Work):
    """Takes the next message of the scheduler, and goes on with a part that depends on it.

    Without a message, it goes on with ``without_message`` at once; if that is None, it looks again
    every ``poll_s``. A part that is None takes no time.
    """

    pattern: str
    """A regular expression that the whole message must match."""
    matching: Work | None = None
    other: Work | None = None
    without_message: Work | None = None
    poll_s: float

    @property
    def parts(self) -> tuple[Work, ...]:
        """All that may follow."""
        return tuple(
            part for part in (self.matching, self.other, self.without_message) if part is not None
        )


def task_amounts(
    work: TaskWork | UniformTaskWork | MergedTaskWork, count: int
) -> tuple[Sequence[float], Sequence[float]]:
    """Return what each executor computes, and what it sends to each."""
    if isinstance(work, TaskWork):
        return work.flops, work.transfers
    if isinstance(work, MergedTaskWork):
        flops, sent = [0.0] * count, [0.0] * (count * count)
        for part in work.parts:
            part_flops, part_sent = task_amounts(part, count)
            flops = [mine + other for mine, other in zip(flops, part_flops, strict=True)]
            if part_sent:
                sent = [mine + other for mine, other in zip(sent, part_sent, strict=True)]
        return flops, sent
    share = count if work.total else 1
    pairs = count * (count - 1) if work.total and work.per_pair else share
    transfer = work.transfer / pairs if pairs else 0.0
    sent = [
        0.0 if source == target else transfer for source in range(count) for target in range(count)
    ]
    return [work.flops / share] * count, sent


def parts_of(work: Work) -> Iterator[Work]:
    """Yield the work and, if it is a composition, all its parts at any depth."""
    yield work
    if isinstance(work, SequenceWork | MergedTaskWork | ReceiveWork):
        for part in work.parts:
            yield from parts_of(part)


def exchanges_messages(work: Work) -> bool:
    """True if the work exchanges messages with a scheduler."""
    return any(isinstance(part, SendWork | ReceiveWork) for part in parts_of(work))


@dataclass(frozen=True, slots=True)
class JobConstraint:
    """A constraint of the specification language on the hosts of a job.

    Arguments about VMs mean executors: ``this`` job, the ``others`` that run, or ``job:NAME``.
    Without such an argument, the constraint is about the executors of the job itself.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    specification: str = ""
    """The text that declares the constraint, if it is not in the library."""


class JobState(IntEnum):
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
        return self >= JobState.SUCCEEDED


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
    constraints: tuple[JobConstraint, ...] = ()
    """What must hold for its executors at its start and at every later start while it runs."""
    rejection: str = ""
    """The code of the reason why the job was rejected, if its constraints are the reason."""

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
