"""A simulation that a scheduler controls: it takes a reply and returns the next message."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from equipoise.adapters.batsim.outputs import BatsimOutputs, file_stem
from equipoise.adapters.batsim.protocol.actors import (
    Actor,
    ActorKernel,
    Await,
    Mailbox,
    Request,
    Script,
    Send,
    SendLast,
    Sleep,
    Yield,
)
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.server import Note, NoteKind, Server
from equipoise.adapters.batsim.protocol.traces import (
    NO_CHANGE,
    SWITCHING_OFF,
    SWITCHING_ON,
    PowerTraces,
)
from equipoise.adapters.batsim.summary import schedule_row, summary_values
from equipoise.adapters.batsim.workload_json import Workload, WorkProfiles
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.engine import JobEngine, Progress
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.rules.gate import JobGate, StartRefused
from equipoise.sim.jobs.runner import JobSummary
from equipoise.sim.jobs.virtual_time import SteppedTime
from equipoise.sim.jobs.work import DelayWork, Job, JobState

_MASTER = "master_host"
_ROWS_MAX: Final = 1000
"""So many rows of one file wait at most."""


class _DelayScript:
    """What the executor of a job asks for that only waits: to start it, and to report its end.

    It is the script of ``executor`` without what such a job never does. Most jobs are such jobs.
    """

    __slots__ = ("_hosts", "_job", "_runs", "_simulation")

    def __init__(self, simulation: BatsimSimulation, job: Job, hosts: Sequence[int]) -> None:
        self._simulation = simulation
        self._job = job
        self._hosts = hosts
        self._runs = False

    def resume(self, result: Any) -> Request:
        """Return the next request."""
        del result
        if self._runs:
            return SendLast(self._simulation.mailbox, Note(NoteKind.JOB_ENDED, self._job))
        self._runs = True
        return Await(partial(self._simulation.start_when_granted, self._job, self._hosts))


class BatsimSimulation:
    """One run. ``begin`` returns the first message, ``receive`` the following ones."""

    def __init__(
        self,
        platform: Platform,
        workloads: Mapping[str, Workload],
        options: ProtocolOptions,
        prefix: str | None = None,
        *,
        host_states: bool = True,
    ) -> None:
        self.options = options
        self.profiles = {name: workload.profiles for name, workload in workloads.items()}
        self.summary = JobSummary()
        self.engine = JobEngine(
            platform,
            self,
            energy=options.energy,
            stepped=True,
            sampled_energy=options.batsim_energy,
        )
        assert isinstance(self.engine.time, SteppedTime)
        self.time = self.engine.time
        self.master = platform.master.name if platform.master else _MASTER
        self.kernel = ActorKernel(
            self.time,
            self.engine.build_message,
            self.engine.message_sent if options.batsim_energy and options.energy else None,
        )
        self.mailbox = Mailbox()
        self.energy_j = 0.0
        """The energy of all hosts from the first submission to the end of the last job."""
        self._energy_before_j: float | None = None
        self.switches = 0
        self.switched_hosts = 0
        self.journal: JobJournal | None = None
        """Set before the run to record its events."""
        self._waiting: dict[Job, Callable[[], None]] = {}
        self._outgoing: dict[Job, tuple[Any, Callable[[], None]]] = {}
        """The message of a job that its executor sends next, and how the job goes on."""
        self.engine.send = self._send
        self._outputs = (
            BatsimOutputs(prefix, host_states=host_states, layout=options.output_layout)
            if prefix is not None
            else None
        )
        self._traces = (
            PowerTraces(file_stem(prefix, options.output_layout), self.engine.hosts)
            if prefix is not None and options.energy
            else None
        )
        self._host_rows: list[tuple[float, list[int]]] = []
        self._job_rows: list[Job] = []
        """Rows of files that are written, and jobs that are counted, while the scheduler decides
        or at the end."""
        self._gate: JobGate | None = None
        self._open_gate([job for workload in workloads.values() for job in workload.jobs])
        self._server = Server(self)
        self._run: Generator[dict[str, Any], dict[str, Any], None] | None = None
        self._start_actors(workloads)

    @property
    def now_s(self) -> float:
        """The present time."""
        return self.engine.time.now_s

    @property
    def finished(self) -> bool:
        """True if the scheduler has answered ``SIMULATION_ENDS``."""
        return self._server.finished

    @property
    def open_jobs(self) -> list[Job]:
        """The jobs that wait or run, in the order of submission."""
        return list(self._server.jobs.values())

    def _start_actors(self, workloads: Mapping[str, Workload]) -> None:
        sources: list[Script] = [
            self._submit_jobs(workload.jobs) for workload in workloads.values()
        ]
        sources += [self._submit_events(events) for events in self.options.external_events]
        self._server.sources = len(workloads)
        self._server.event_sources = len(sources) - len(workloads)
        for script in sources:
            self.kernel.wake(Actor(self.master, script))
        self.kernel.wake(Actor(self.master, self._server.serve()))

    def _open_gate(self, jobs: Sequence[Job]) -> None:
        """Open the gate if a job carries constraints; dynamic jobs may come with some later."""
        if self.options.dynamic_jobs or any(job.constraints for job in jobs):
            self._gate = JobGate(self.engine.platform)
            self._gate.check_jobs(jobs, "workload")

    def register(self, job: Job) -> None:
        """Check the constraints of a job that the scheduler adds."""
        assert self._gate is not None, "dynamic jobs are on"
        try:
            self._gate.check_jobs([job], "job")
        except InvalidInput as error:
            raise SchedulerError("REGISTER_JOB", str(error), "correct its constraints") from None

    def check_constraints(self, kind: str, job: Job, executors: Sequence[int]) -> None:
        """Raise ``SchedulerError`` if a constraint forbids the start; else count it as running."""
        if self._gate is None:
            return
        try:
            self._gate.check_start(job, executors)
        except StartRefused as refused:
            raise SchedulerError(
                kind, str(refused), "use hosts that its constraints allow"
            ) from None
        self._gate.started(job, executors)

    def begin(self) -> dict[str, Any] | None:
        """Return the first message."""
        self._run = self.kernel.run()
        return next(self._run, None)

    def receive(self, reply: dict[str, Any]) -> dict[str, Any] | None:
        """Take a reply; return the next message, or None if the run is over."""
        assert self._run is not None, "begin comes first"
        if self.finished:
            return None
        try:
            return self._run.send(reply)
        except StopIteration:
            return None

    def finish(self, scheduling_s: float = 0.0, wall_s: float = 0.0) -> None:
        """Write the summary and close all files; they are complete up to the present time."""
        self.write_rows()
        if self.journal is not None:
            self.journal.end(
                self.now_s,
                self.energy_j,
                switches=self.switches,
                switched_hosts=self.switched_hosts,
            )
        if self._outputs is not None:
            row = schedule_row(self.summary_values(), wall_s)
            row["scheduling_time"] = f"{scheduling_s:.6f}"
            self._outputs.write_schedule(row)
        if self._outputs is not None:
            self._outputs.__exit__(None, None, None)
        if self._traces is not None:
            self._traces.close()

    def summary_values(self) -> dict[str, Any]:
        """Return the summary by column of ``schedule.csv``."""
        self.write_rows()
        values = summary_values(self)
        values["nb_grouped_switches"] = self.switches
        values["nb_machine_switches"] = self.switched_hosts
        return values

    # Sources of jobs and events: a source sends what it has, then sleeps up to the next date.
    # The date of the last sleep counts, not that of the transfer, so times drift as in Batsim.

    def _submit_jobs(self, jobs: Sequence[Job]) -> Script:
        yield Send(self.mailbox, Note(NoteKind.SOURCE_BEGINS))
        if self.options.start_epsilon_s > 0:
            yield Sleep(self.options.start_epsilon_s)
        current_s = self.now_s
        batch: list[Job] = []
        for job in jobs:
            if job.submit_s > current_s:
                if batch:
                    yield Send(self.mailbox, Note(NoteKind.JOBS_SUBMITTED, batch))
                    batch = []
                yield Sleep(job.submit_s - current_s)
                current_s = self.now_s
            if self._energy_before_j is None and self.options.energy:
                self._energy_before_j = self.engine.hosts.total_energy_j(self.now_s)
            batch.append(job)
        if batch:
            yield Send(self.mailbox, Note(NoteKind.JOBS_SUBMITTED, batch))
        yield Send(self.mailbox, Note(NoteKind.SOURCE_ENDS))

    def _submit_events(self, events: Sequence[dict[str, Any]]) -> Script:
        yield Send(self.mailbox, Note(NoteKind.EVENT_SOURCE_BEGINS))
        current_s = self.now_s
        batch: list[dict[str, Any]] = []
        for event in events:
            if event["timestamp"] > current_s:
                if batch:
                    yield Send(self.mailbox, Note(NoteKind.EVENTS_OCCURRED, batch))
                    batch = []
                yield Sleep(event["timestamp"] - current_s)
                current_s = self.now_s
            batch.append(event)
        if batch:
            yield Send(self.mailbox, Note(NoteKind.EVENTS_OCCURRED, batch))
        yield Send(self.mailbox, Note(NoteKind.EVENT_SOURCE_ENDS))

    # Actors that the server starts.

    def executor(
        self, job: Job, hosts: Sequence[int], executors: Sequence[int], storages: dict[str, int]
    ) -> Actor:
        """Return the actor that runs a job from its first host."""
        host = self.engine.platform.host(hosts[0]).name
        if type(job.work) is DelayWork and not self.options.energy:
            return Actor(host, _DelayScript(self, job, hosts).resume)

        def begin(done: Callable[[], None]) -> None:
            self._waiting[job] = done
            self.engine.start(job, hosts, executors=executors, storages=storages)

        def script() -> Script:
            yield Await(begin)
            while job in self._outgoing:
                message, go_on = self._outgoing.pop(job)
                yield Send(self.mailbox, Note(NoteKind.JOB_MESSAGE, (job, message)))
                if job not in self.engine.executions:
                    return  # it was killed meanwhile, and the killer reports it
                yield Await(partial(self._resume, job, go_on))
            if self.options.energy:
                # Batsim's executor reads the energy first, so others of this instant go ahead.
                yield Yield()
            yield SendLast(self.mailbox, Note(NoteKind.JOB_ENDED, job))

        return Actor(host, script())

    def start_when_granted(self, job: Job, hosts: Sequence[int], done: Callable[[], None]) -> None:
        """Start a job that only waits; ``done`` is called at its end, unless it is killed."""
        self._waiting[job] = done
        self.engine.start(job, hosts)

    def _send(self, job: Job, message: Any, go_on: Callable[[], None]) -> None:
        """Let the executor of a job send a message, which takes the latency of its route."""
        self._outgoing[job] = message, go_on
        self._waiting.pop(job)()

    def _resume(self, job: Job, go_on: Callable[[], None], done: Callable[[], None]) -> None:
        self._waiting[job] = done
        go_on()

    def killer(self, jobs: Sequence[Job]) -> Actor:
        """Return the actor that kills jobs and reports their progress."""

        def script() -> Script:
            progress: dict[Job, Progress] = {}
            for job in jobs:
                if job in self.engine.executions:
                    self._waiting.pop(job, None)
                    progress[job] = self.engine.kill(job)
            yield Send(self.mailbox, Note(NoteKind.JOBS_KILLED, (jobs, progress)))

        return Actor(self.master, script())

    def waker(self, at_s: float, name: str | None = None) -> Actor:
        """Return the actor of ``CALL_ME_LATER``; calls of version 5 have a name."""
        data = {} if name is None else {"id": name, "last": False}

        def script() -> Script:
            yield Sleep(at_s - self.now_s)
            yield Send(self.mailbox, Note(NoteKind.CALL_DUE, data))

        return Actor(self.master, script())

    def switcher(self, number: int, state: int, group: object) -> Actor:
        """Return the actor that switches one host."""

        def script() -> Script:
            # Each change of a power state lets the other actors of this instant go ahead.
            yield Yield()
            yield Await(lambda done: self.engine.run_transition(number, done))
            self.finish_switch(number, state)
            yield Yield()
            yield Send(self.mailbox, Note(NoteKind.HOST_SWITCHED, group))

        return Actor(self.engine.platform.host(number).name, script())

    def begin_switch(self, hosts: Sequence[int], state: int) -> list[tuple[int, float]]:
        """Begin to switch hosts; return the duration of each."""
        self.switches += 1
        self.switched_hosts += len(hosts)
        if self._traces is not None:
            self._traces.write_energy(self.now_s, "p")
        durations = [(number, self.engine.begin_switch(number, state)) for number in hosts]
        self.engine.time.speeds_changed()
        switching = [number for number, seconds in durations if seconds > 0]
        if self.journal is not None and switching:
            self.journal.switched(switching, state, self.engine.hosts.state, self.now_s)
        if self._traces is not None and any(seconds > 0 for _, seconds in durations):
            sleeps = state in self.engine.platform.hosts[hosts[0]].sleep_states
            self._traces.write_state(self.now_s, hosts, SWITCHING_OFF if sleeps else SWITCHING_ON)
        self.write_hosts()
        return durations

    def finish_switch(self, number: int, state: int) -> None:
        """Put one host in its new power state."""
        before = self.engine.hosts.state[number]
        self.engine.finish_switch(number, state)
        if self.journal is not None:
            states = self.engine.hosts.state
            changed = states if states[number] is not before else None
            self.journal.switched([number], state, changed, self.now_s)

    def ignore_switch(self, hosts: Sequence[int]) -> None:
        """Record a request for a state of transition: Batsim counts it and does nothing else."""
        self.switches += 1
        self.switched_hosts += len(hosts)
        if self._traces is not None:
            self._traces.write_state(self.now_s, hosts, NO_CHANGE)
            self._traces.write_energy(self.now_s, "p")
        self.write_hosts()

    def end_switch(self, hosts: Sequence[int], state: int) -> None:
        """All hosts of a request are in their new state."""
        if self._traces is not None:
            self._traces.write_state(self.now_s, hosts, state)
            self._traces.write_energy(self.now_s, "p")
        self.write_hosts()

    # What the engine reports.

    def job_started(self, job: Job) -> None:
        """Write the start."""
        if self.journal is not None:
            self.journal.started(job, self.now_s)
        self.write_hosts()
        if self._traces is not None:
            self._traces.write_energy(self.now_s, "s")

    def job_ended(self, job: Job) -> None:
        """Write the end, and wake the executor."""
        if self.journal is not None:
            self.journal.ended(job, self.now_s)
        if self._gate is not None:
            self._gate.ended(job)
        self.write_hosts()
        if self.engine.hosts.measures_energy:
            before_j = self._energy_before_j or 0.0
            self.energy_j = self.engine.hosts.total_energy_j(self.now_s) - before_j
        if self._traces is not None:
            self._traces.write_energy(self.now_s, "e")
        done = self._waiting.pop(job, None)
        if done is not None:
            done()

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None:
        """The switching actors write their own rows."""

    def hosts_arrived(self, hosts: Sequence[int], power_state: int, *, changed: bool) -> None:
        """The switching actors write their own rows."""

    def write_hosts(self) -> None:
        """Write how many hosts are in each state."""
        if self._outputs is not None:
            self._host_rows.append((self.time.now_s, self.engine.hosts.counts.copy()))
            if len(self._host_rows) > _ROWS_MAX:
                self.write_rows()

    def record(self, job: Job) -> None:
        """Write a job in its final state."""
        if self.journal is not None and job.state is JobState.REJECTED:
            self.journal.rejected(job, self.now_s)
        self._job_rows.append(job)
        if len(self._job_rows) > _ROWS_MAX:
            self.write_rows()

    def write_rows(self) -> None:
        """Write and count what waits. A scheduler that decides leaves time for it."""
        for job in self._job_rows:
            self.summary.add(job)
        if self._outputs is not None:
            for at_s, counts in self._host_rows:
                self._outputs.write_hosts(at_s, counts)
            for job in self._job_rows:
                self._outputs.write_job(job)
        self._host_rows.clear()
        self._job_rows.clear()

    def profiles_of(self, workload: str) -> WorkProfiles:
        """Return the profiles of a workload; a new workload has none yet."""
        return self.profiles.setdefault(workload, WorkProfiles({}))
