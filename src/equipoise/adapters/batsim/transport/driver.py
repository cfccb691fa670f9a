"""Runs a simulation against what answers its messages: a process, a record, or no scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol

from equipoise.adapters.batsim.protocol.codec import Codec
from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation
from equipoise.adapters.batsim.transport.connection import SchedulerConnection
from equipoise.errors import WorldError
from equipoise.sim.jobs.work import JobState

_EVENTS_NAMED_MAX: Final = 3

Listener = Callable[[str, object], None]
"""Receives each message with its sender: ``batsim`` or ``sched``."""


class ReplySource(Protocol):
    """Answers the messages of a simulation."""

    @property
    def waited_s(self) -> float:
        """The time that answers took."""
        ...

    def answer(self, message: dict[str, Any]) -> object:
        """Return the reply; ``WorldError`` if there is none."""
        ...


class ConnectedScheduler:
    """A scheduler at the other end of a connection."""

    def __init__(
        self, connection: SchedulerConnection, codec: Codec, meanwhile: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._codec = codec
        self._meanwhile = meanwhile
        """Called while the scheduler decides."""

    @property
    def waited_s(self) -> float:
        """The time from sending to receiving, without our own encoding."""
        return self._connection.waited_s

    def answer(self, message: dict[str, Any]) -> object:
        """Send the message and return the decoded reply."""
        frame = self._codec.encode(message)
        return self._codec.decode(self._connection.request(frame, self._meanwhile))


class SequentialExecution:
    """``--no-sched``: each job runs alone, on the first hosts, in the order of submission.

    A job that needs more hosts than there are is rejected, as by the built-in policies.
    """

    def __init__(self) -> None:
        self.waited_s = 0.0
        self._queue: deque[tuple[str, int]] = deque()
        self._running = ""
        self._hosts = 0

    def answer(self, message: dict[str, Any]) -> object:
        """Start the next job if none runs."""
        now: float = message["now"]
        events: list[dict[str, Any]] = []
        for event in message["events"]:
            kind, data = event["type"], event["data"]
            if kind == "SIMULATION_BEGINS":
                self._hosts = data["nb_compute_resources"]
            elif kind == "JOB_SUBMITTED":
                name, size = data["job_id"], int(data["job"]["res"])
                if size <= self._hosts:
                    self._queue.append((name, size))
                else:
                    refused = {"job_id": name}
                    events.append({"timestamp": now, "type": "REJECT_JOB", "data": refused})
            elif kind == "JOB_COMPLETED":
                self._running = ""
        if self._queue and not self._running:
            self._running, size = self._queue.popleft()
            data = {"job_id": self._running, "alloc": f"0-{size - 1}"}
            events.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})
        return {"now": now, "events": events}


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """What a run has done up to its end, or up to the moment at which it was stopped."""

    simulation: BatsimSimulation
    messages: int
    """The messages to the scheduler; each but the last one of a failed run has a reply."""
    scheduling_s: float
    wall_s: float

    @property
    def figures(self) -> dict[str, Any]:
        """The columns of ``schedule.csv`` by name."""
        return self.simulation.summary_values()


class RunFailed(WorldError):
    """The scheduler made the run fail. The outputs are complete up to that moment."""

    def __init__(self, text: str, code: str, run: ScheduledRun) -> None:
        super().__init__(text, code=code)
        self.run = run


class RunInterrupted(KeyboardInterrupt):
    """The user stopped the run. The outputs are complete up to that moment."""

    def __init__(self, run: ScheduledRun) -> None:
        super().__init__()
        self.run = run


def drive(
    simulation: BatsimSimulation, source: ReplySource, listener: Listener | None = None
) -> ScheduledRun:
    """Run a simulation to its end; ``RunFailed`` names the event that ended it early.

    The output files are closed and complete in every case, also if the user interrupts the run
    (``RunInterrupted``).
    """
    # The greeting of version 5 has been waited for already, and belongs to the run.
    began_s = perf_counter() - source.waited_s
    count = 0
    message: dict[str, Any] | None = None
    failure: WorldError | KeyboardInterrupt | None = None
    try:
        following = simulation.begin()
        while following is not None:
            message, count = following, count + 1
            if listener is not None:
                listener("batsim", message)
            reply = source.answer(message)
            if listener is not None:
                listener("sched", reply)
            following = simulation.receive(reply)  # type: ignore[arg-type]
        if not simulation.finished:
            failure = _deadlock(simulation)
    except (WorldError, KeyboardInterrupt) as error:
        failure = error
    finally:
        wall_s = perf_counter() - began_s
        simulation.finish(source.waited_s, wall_s)
    run = ScheduledRun(simulation, count, source.waited_s, wall_s)
    if isinstance(failure, KeyboardInterrupt):
        raise RunInterrupted(run) from failure
    if failure is not None:
        raise RunFailed(f"{_place(message, count)}: {failure}", failure.code, run) from failure
    return run


def _place(message: Mapping[str, Any] | None, count: int) -> str:
    """Return which message had no good answer."""
    if message is None:
        return "before the first message"
    kinds = list(dict.fromkeys(event["type"] for event in message["events"]))
    named = ", ".join(kinds[:_EVENTS_NAMED_MAX])
    more = ", ..." if len(kinds) > _EVENTS_NAMED_MAX else ""
    return f"message {count} at {message['now']:g} s ({named}{more})"


def _deadlock(simulation: BatsimSimulation) -> WorldError:
    jobs = simulation.open_jobs
    waiting = [job for job in jobs if job.state is JobState.SUBMITTED]
    if waiting:
        first = f"{waiting[0].workload}!{waiting[0].name}"
        what = f"jobs wait: {len(waiting)}, the first is {first}"
        cure = "start or reject each job, or request a call"
    elif jobs:
        first = f"{jobs[0].workload}!{jobs[0].name}"
        what = f"jobs wait for a message: {len(jobs)}, the first is {first}"
        cure = "send TO_JOB_MSG, or give the jobs a walltime"
    else:
        what, cure = "the registration of jobs is open", "send NOTIFY registration_finished"
    text = f"nothing can happen any more at {simulation.now_s:g} s and {what} ({cure})"
    return WorldError(text, code="scheduler-deadlock")
