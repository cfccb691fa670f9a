"""The server: receives notes of the other actors, checks requests of the scheduler, sends messages.

A message goes out when the scheduler is ready and no note waits, so that all events of one
instant are in one message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, Final

from equipoise.adapters.batsim.outputs import STATE_NAMES
from equipoise.adapters.batsim.protocol.actors import (
    Actor,
    Exchange,
    Receive,
    Script,
    Send,
    SendLast,
    Sleep,
    Spawn,
)
from equipoise.adapters.batsim.protocol.messages import (
    DECIMALS,
    begin_data,
    check_reply,
    progress_data,
    rounded,
)
from equipoise.adapters.batsim.protocol.requests import RequestHandlers
from equipoise.sim.jobs.engine import Progress
from equipoise.sim.jobs.host_set import format_host_set, parse_host_set
from equipoise.sim.jobs.virtual_time import TIME_PRECISION
from equipoise.sim.jobs.work import DelayWork, Job, JobState

if TYPE_CHECKING:
    from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation

_AVAILABILITY: Final = frozenset({"machine_available", "machine_unavailable"})


class NoteKind(IntEnum):
    """What happened inside the simulation."""

    SOURCE_BEGINS = auto()
    JOBS_SUBMITTED = auto()
    SOURCE_ENDS = auto()
    EVENT_SOURCE_BEGINS = auto()
    EVENTS_OCCURRED = auto()
    EVENT_SOURCE_ENDS = auto()
    REQUEST = auto()
    SCHEDULER_READY = auto()
    JOB_ENDED = auto()
    JOB_MESSAGE = auto()
    JOBS_KILLED = auto()
    CALL_DUE = auto()
    REPETITION_DUE = auto()
    HOST_SWITCHED = auto()


@dataclass(slots=True, eq=False)
class Note:
    """A message between actors."""

    kind: NoteKind
    content: Any = None


@dataclass(slots=True, eq=False)
class SwitchGroup:
    """The hosts of one request that switch together."""

    hosts: Sequence[int]
    state: int
    waiting: int


class Server:
    """The actor that has all jobs and exchanges messages with the scheduler."""

    def __init__(self, simulation: BatsimSimulation) -> None:
        self.simulation = simulation
        self._time = simulation.time
        self.sources = 0
        self.event_sources = 0
        self.finished = False
        self.jobs: dict[str, Job] = {}
        """Jobs that the scheduler may name: submitted, and not yet reported as ended."""
        self.used_names: set[str] = set()
        self.killed: set[Job] = set()
        self.submitted = 0
        self.completed = 0
        self.calls = 0
        self.kills = 0
        self.switching = 0
        self.registration_open = simulation.options.dynamic_jobs
        self.actors: list[Actor] = []
        """Actors that a handler starts; they run when the handler has returned."""
        self._ready = False
        self._ended = False
        self._stopped = False
        self._events: list[dict[str, Any]] = []
        self._requests = RequestHandlers(self)
        self._handlers: dict[NoteKind, Callable[[Any], None]] = {
            NoteKind.JOBS_SUBMITTED: self._submit_all,
            NoteKind.SOURCE_ENDS: self._end_source,
            NoteKind.EVENTS_OCCURRED: self._occur_all,
            NoteKind.EVENT_SOURCE_ENDS: self._end_event_source,
            NoteKind.REQUEST: self._requests.handle,
            NoteKind.SCHEDULER_READY: self._set_ready,
            NoteKind.JOB_ENDED: self._complete,
            NoteKind.JOB_MESSAGE: self._pass_message,
            NoteKind.JOBS_KILLED: self._report_kill,
            NoteKind.CALL_DUE: self._report_call,
            NoteKind.REPETITION_DUE: lambda report: report(),
            NoteKind.HOST_SWITCHED: self._host_switched,
        }

    @property
    def now_s(self) -> float:
        """The present time."""
        return self._time.now_s

    def add_event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add an event to the next message."""
        self._events.append(
            {"timestamp": round(self._time.now_s, DECIMALS), "type": kind, "data": data}
        )

    def serve(self) -> Script:
        """Exchange messages with the scheduler until the simulation ends."""
        simulation = self.simulation
        platform, hosts = simulation.engine.platform, simulation.engine.hosts
        data = begin_data(platform, hosts, simulation.profiles, simulation.options)
        self.add_event("SIMULATION_BEGINS", data)
        receive, queue = Receive(simulation.mailbox), simulation.mailbox.queue
        self._ready = True
        while not (self._ended and self._ready):
            while self.actors:
                yield Spawn(self.actors.pop(0))
            # The next message waits for the end of the last reply and for all notes of this
            # instant, so that one message has all their events, as with Batsim.
            if self._ready and not queue and self._has_message():
                reply_s, events = check_reply((yield Exchange(self._take_message())))
                if self._execute_here(reply_s, events):
                    continue
                self._ready = False
                yield Spawn(Actor(simulation.master, self._execute(reply_s, events)))
            self._handle((yield receive))
        self.finished = True
        simulation.kernel.stopped = True

    def _has_message(self) -> bool:
        if self._stopped:
            self._events = []
        if not self._events and self._is_over():
            self._ended = True
            self.add_event("SIMULATION_ENDS", {})
        return bool(self._events)

    def _take_message(self) -> dict[str, Any]:
        """Return the events that have gathered, as a message."""
        message = {"now": rounded(self.now_s), "events": self._events}
        for event in self._events:
            if event["type"] == "JOB_COMPLETED":
                self.jobs.pop(event["data"]["job_id"], None)
        self._events = []
        return message

    def _execute(self, reply_s: float, events: Sequence[Mapping[str, Any]]) -> Script:
        """Execute a reply at its times, as an actor of its own."""
        mailbox = self.simulation.mailbox
        for event in events:
            if event["timestamp"] > self.now_s:
                yield Sleep(event["timestamp"] - self.now_s)
            yield Send(mailbox, Note(NoteKind.REQUEST, event))
        if reply_s > self.now_s:
            yield Sleep(reply_s - self.now_s)
        yield SendLast(mailbox, Note(NoteKind.SCHEDULER_READY))

    def _execute_here(self, reply_s: float, events: Sequence[Mapping[str, Any]]) -> bool:
        """Execute a reply without an actor if the result is the same; return whether it was.

        It is the same if the reply only starts delays, and no other actor does anything before
        its end. This is the usual case, and takes half the time.
        """
        simulation = self.simulation
        kernel = simulation.kernel
        busy_s = max(reply_s - self._time.now_s, 0.0)
        if self._ended or simulation.options.energy:
            return False
        for event in events:
            if event["type"] != "EXECUTE_JOB":
                return False
            if self._delay_s(event["data"].get("job_id")) < busy_s + 2 * TIME_PRECISION:
                return False
        if not kernel.others_sleep(simulation.master, busy_s):
            return False
        for event in events:
            self._pass_to(event["timestamp"])
            self._requests.handle(event)
            while self.actors:
                kernel.begin(self.actors.pop(0))
        self._pass_to(reply_s)
        return True

    def _pass_to(self, at_s: float) -> None:
        if at_s > self._time.now_s:
            self._time.pass_still(at_s - self._time.now_s)

    def _delay_s(self, name: object) -> float:
        """Return how long a job runs if it only waits; 0 for any other job."""
        job = self.jobs.get(name) if isinstance(name, str) else None
        if job is None or not isinstance(job.work, DelayWork):
            return 0.0
        return min(job.work.seconds, job.walltime_s)

    def _is_over(self) -> bool:
        return self._stopped or (
            self.sources == 0
            and self.event_sources == 0
            and not self.registration_open
            and self.completed == self.submitted
            and not self.calls
            and not self.kills
            and not self.switching
        )

    def stop(self) -> None:
        """End the run: drop what follows, and send ``SIMULATION_ENDS`` next."""
        self._stopped = True

    def due_note(self, report: Callable[[], None]) -> Note:
        """Return the note of a repetition that reports now."""
        return Note(NoteKind.REPETITION_DUE, report)

    def _handle(self, note: Note) -> None:
        if self._stopped and note.kind is not NoteKind.SCHEDULER_READY:
            return
        handler = self._handlers.get(note.kind)
        if handler is not None:
            handler(note.content)

    def _submit_all(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.submit(job)

    def _end_source(self, content: None) -> None:
        self.sources -= 1
        if self.sources == 0:
            self.add_event("NOTIFY", {"type": "no_more_static_job_to_submit"})

    def _occur_all(self, events: Sequence[dict[str, Any]]) -> None:
        for event in events:
            self._occur(event)

    def _end_event_source(self, content: None) -> None:
        self.event_sources -= 1
        if self.event_sources == 0:
            self.add_event("NOTIFY", {"type": "no_more_external_event_to_occur"})

    def _set_ready(self, content: None) -> None:
        self._ready = True

    def _report_call(self, data: Mapping[str, Any]) -> None:
        self.calls -= 1
        self.add_event("REQUESTED_CALL", data)

    def submit(self, job: Job, *, report: bool = True) -> None:
        """A job arrives."""
        job.state = JobState.SUBMITTED
        name = job_id(job)
        self.jobs[name] = job
        self.used_names.add(name)
        self.submitted += 1
        if self.simulation.journal is not None:
            self.simulation.journal.submitted(job, self.now_s)
        if not report:
            return
        data: dict[str, Any] = {"job_id": name, "job": {**job.extra, "id": name}}
        if self.simulation.options.forward_profiles:
            data["profile"] = self.simulation.profiles[job.workload].raw[job.work.name]
        self.add_event("JOB_SUBMITTED", data)

    def _occur(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind not in _AVAILABILITY:
            if self.simulation.options.forward_unknown_events:
                self.add_event("NOTIFY", event)
            return
        numbers = parse_host_set(event["resources"])
        hosts = self.simulation.engine.hosts
        change = hosts.set_available if kind == "machine_available" else hosts.set_unavailable
        change(numbers, self.now_s)
        journal = self.simulation.journal
        if journal is not None:
            record = journal.returned if kind == "machine_available" else journal.failed
            record(numbers, self.now_s)
        data = {"type": f"event_{kind}", "resources": format_host_set(numbers)}
        self.add_event("NOTIFY", data)

    def _complete(self, job: Job) -> None:
        self.completed += 1
        self.simulation.record(job)
        data = {
            "job_id": job_id(job),
            "job_state": STATE_NAMES[job.state],
            "return_code": job.return_code,
            "alloc": format_host_set(job.hosts),
        }
        self.add_event("JOB_COMPLETED", data)

    def _pass_message(self, content: tuple[Job, Any]) -> None:
        job, message = content
        self.add_event("FROM_JOB_MSG", {"job_id": job_id(job), "msg": message})

    def _report_kill(self, content: tuple[Sequence[Job], Mapping[Job, Progress]]) -> None:
        jobs, progress = content
        self.kills -= 1
        for job in jobs:
            if job in progress:
                self._complete(job)
        data = {
            "job_ids": [job_id(job) for job in jobs],
            "job_progress": {
                job_id(job): progress_data(progress_of_job)
                for job, progress_of_job in progress.items()
            },
        }
        self.add_event("JOB_KILLED", data)

    def begin_switch(self, hosts: Sequence[int], state: int) -> None:
        """Switch hosts; the scheduler learns when all have arrived."""
        durations = self.simulation.begin_switch(hosts, state)
        group = SwitchGroup(hosts, state, sum(seconds > 0 for _, seconds in durations))
        for number, seconds in durations:
            if seconds > 0:
                self.actors.append(self.simulation.switcher(number, state, group))
            else:
                self.simulation.finish_switch(number, state)
        self.switching += 1
        if group.waiting == 0:
            self._end_switch(group)

    def _host_switched(self, group: SwitchGroup) -> None:
        group.waiting -= 1
        if group.waiting == 0:
            self._end_switch(group)

    def _end_switch(self, group: SwitchGroup) -> None:
        self.switching -= 1
        self.simulation.end_switch(group.hosts, group.state)
        state = group.state if self.simulation.options.numeric_state else str(group.state)
        data = {"resources": format_host_set(group.hosts), "state": state}
        self.add_event("RESOURCE_STATE_CHANGED", data)


def job_id(job: Job) -> str:
    """Return the id that messages use."""
    return f"{job.workload}!{job.name}"
