"""A simulation that a scheduler controls: it takes a reply and returns the next message."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from equipoise.adapters.batsim.outputs import BatsimOutputs
from equipoise.adapters.batsim.protocol.actors import (
    Actor,
    ActorKernel,
    Await,
    Mailbox,
    Script,
    Send,
    Sleep,
    Yield,
)
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
from equipoise.sim.jobs.engine import JobEngine, Progress
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.runner import JobSummary
from equipoise.sim.jobs.virtual_time import SteppedTime
from equipoise.sim.jobs.work import Job

_MASTER = "master_host"


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
        self.profiles = {name: each.profiles for name, each in workloads.items()}
        self.summary = JobSummary()
        self.engine = JobEngine(platform, self, energy=options.energy, stepped=True)
        assert isinstance(self.engine.time, SteppedTime)
        self.master = platform.master.name if platform.master else _MASTER
        self.kernel = ActorKernel(self.engine.time, self.engine.build_message)
        self.mailbox = Mailbox()
        self.energy_j = 0.0
        self.switches = 0
        self.switched_hosts = 0
        self._waiting: dict[Job, Callable[[], None]] = {}
        self._outputs = (
            BatsimOutputs(prefix, host_states=host_states) if prefix is not None else None
        )
        self._traces = (
            PowerTraces(prefix, self.engine.hosts)
            if prefix is not None and options.energy
            else None
        )
        self._server = Server(self)
        self._run: Generator[dict[str, Any], dict[str, Any], None] | None = None
        self._start_actors(workloads)

    @property
    def now_s(self) -> float:
        """The present time."""
        return self.engine.now_s

    @property
    def finished(self) -> bool:
        """True if the scheduler has answered ``SIMULATION_ENDS``."""
        return self._server.finished

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

        def begin(done: Callable[[], None]) -> None:
            self._waiting[job] = done
            self.engine.start(job, hosts, executors=executors, storages=storages)

        def script() -> Script:
            yield Await(begin)
            if self.options.energy:
                # Batsim's executor reads the energy first, so others of this instant go ahead.
                yield Yield()
            yield Send(self.mailbox, Note(NoteKind.JOB_ENDED, job))

        return Actor(self.engine.platform.host(hosts[0]).name, script())

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

    def waker(self, at_s: float) -> Actor:
        """Return the actor of ``CALL_ME_LATER``."""

        def script() -> Script:
            yield Sleep(at_s - self.now_s)
            yield Send(self.mailbox, Note(NoteKind.CALL_DUE))

        return Actor(self.master, script())

    def switcher(self, number: int, state: int, seconds: float, group: object) -> Actor:
        """Return the actor that switches one host."""

        def script() -> Script:
            yield Sleep(seconds)
            self.engine.finish_switch(number, state)
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
        if self._traces is not None and any(seconds > 0 for _, seconds in durations):
            sleeps = state in self.engine.platform.hosts[hosts[0]].sleep_states
            self._traces.write_state(self.now_s, hosts, SWITCHING_OFF if sleeps else SWITCHING_ON)
        self.write_hosts()
        return durations

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
        self.write_hosts()
        if self._traces is not None:
            self._traces.write_energy(self.now_s, "s")

    def job_ended(self, job: Job) -> None:
        """Write the end, and wake the executor."""
        self.write_hosts()
        if self.engine.hosts.measures_energy:
            self.energy_j = self.engine.hosts.total_energy_j(self.now_s)
        if self._traces is not None:
            self._traces.write_energy(self.now_s, "e")
        done = self._waiting.pop(job, None)
        if done is not None:
            done()

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None:
        """The switching actors write their own rows."""

    def write_hosts(self) -> None:
        """Write how many hosts are in each state."""
        if self._outputs is not None:
            self._outputs.write_hosts(self.now_s, self.engine.hosts.counts)

    def record(self, job: Job) -> None:
        """Write a job in its final state."""
        self.summary.add(job)
        if self._outputs is not None:
            self._outputs.write_job(job)

    def profiles_of(self, workload: str) -> WorkProfiles:
        """Return the profiles of a workload; a new workload has none yet."""
        return self.profiles.setdefault(workload, WorkProfiles({}))
