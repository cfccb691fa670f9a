"""Runs jobs on a platform: executions with walltime and kill, and switches of hosts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from equipoise.sim.jobs.fluid import Task, TaskFactory
from equipoise.sim.jobs.hosts import HostStates, JobHostState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.traces.run import TraceRun, TraceWork
from equipoise.sim.jobs.virtual_time import Activity, QueuedTime, SteppedTime, VirtualTime
from equipoise.sim.jobs.work import (
    UNLIMITED,
    DelayWork,
    Job,
    JobState,
    MergedTaskWork,
    ReceiveWork,
    SendWork,
    SequenceWork,
    StagingWork,
    StorageWork,
    TaskWork,
    UniformTaskWork,
    Work,
    task_amounts,
)

_SHORTEST_RUN_S: Final = 1e-5
"""The run time of a job that takes no time; slowdowns divide by it."""
TIMED_OUT: Final = -1
CANCELLED: Final = -2
_SAME_POLL: Final = 1e-9
"""A message that comes so close to a poll, in polls, comes after it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a killed job has come; a sequence names its present part.

    ``part_index`` counts over repetitions: the second part of three in the second round is 4.
    """

    work: str
    fraction: float = 0.0
    part_index: int = 0
    part: Progress | None = None


class JobObserver(Protocol):
    """Receives what happens, in order; writes outputs or feeds a scheduler."""

    def job_started(self, job: Job) -> None:
        """The job runs on its hosts."""
        ...

    def job_ended(self, job: Job) -> None:
        """The job is in a final state."""
        ...

    def hosts_switched(self, hosts: Sequence[int], power_state: int, *, begins: bool) -> None:
        """Hosts begin to switch together, or the last of them has reached its power state."""
        ...

    def hosts_arrived(self, hosts: Sequence[int], power_state: int, *, changed: bool) -> None:
        """Some of these hosts are in their power state; ``changed`` if they switched for it."""
        ...


def _go_on_at_once(job: Job, message: Any, go_on: Callable[[], None]) -> None:
    go_on()


class _Sequence:
    """A sequence that is under way."""

    __slots__ = ("index", "repetition", "work")

    def __init__(self, work: SequenceWork) -> None:
        self.work = work
        self.index = 0
        self.repetition = 0


class Execution:
    """A running job."""

    __slots__ = (
        "_activity",
        "_begun_s",
        "_energy_before_j",
        "_engine",
        "_executors",
        "_left_s",
        "_parts",
        "_sequences",
        "_storages",
        "_timer",
        "_work",
        "job",
    )

    def __init__(
        self, engine: JobEngine, job: Job, executors: Sequence[int], storages: dict[str, int]
    ) -> None:
        self.job = job
        self._engine = engine
        self._executors = executors
        self._storages = storages
        self._left_s = job.walltime_s
        self._sequences: list[_Sequence] = []
        self._activity: Activity | None = None
        self._timer: Activity | None = None
        self._parts: dict[Activity, None] = {}
        """The tasks of a trace that are under way."""
        self._work: Work = job.work
        self._begun_s = 0.0
        self._energy_before_j = 0.0

    def begin(self) -> None:
        """Start the job."""
        engine, job = self._engine, self.job
        job.state = JobState.RUNNING
        job.start_s = engine.now_s
        if engine.hosts.measures_energy:
            self._energy_before_j = engine.hosts.energy_j(job.hosts, engine.now_s)
        engine.hosts.add_job(job.hosts, engine.now_s)
        engine.observer.job_started(job)
        self._begin_work(job.work)

    def _begin_work(self, work: Work) -> None:
        self._work = work
        self._begun_s = self._engine.now_s
        if isinstance(work, SequenceWork):
            self._sequences.append(_Sequence(work))
            if not work.parts or work.repeat < 1:
                self._work_ended(work.return_code)
            else:
                self._begin_work(work.parts[0])
        elif isinstance(work, DelayWork):
            self._begin_delay(work)
        elif isinstance(work, TraceWork):
            self._begin_trace(work)
        elif isinstance(work, SendWork):
            self._begin_send(work)
        elif isinstance(work, ReceiveWork):
            self._begin_receive(work)
        else:
            self._begin_task(work)

    def _begin_delay(self, work: DelayWork) -> None:
        # A delay as long as the walltime has reached it.
        if work.seconds < self._left_s:
            seconds, code = work.seconds, work.return_code
            self._left_s -= seconds
        else:
            seconds, code = self._left_s, TIMED_OUT
            self._left_s = 0.0
        self._activity = self._engine.time.after(seconds, lambda: self._delay_ended(code))

    def _delay_ended(self, code: int) -> None:
        # The job waits on its first host.
        self._engine.hosts.end_period(self.job.hosts[:1], self._engine.now_s)
        self._work_ended(code)

    def _begin_send(self, work: SendWork) -> None:
        wait = DelayWork(name=work.name, return_code=work.return_code, seconds=work.seconds)
        self._engine.send(self.job, work.message, lambda: self._begin_work(wait))

    def _begin_receive(self, work: ReceiveWork) -> None:
        if self._engine.inboxes.get(self.job):
            self._take_message(work)
        elif work.without_message is not None:
            self._follow(work, work.without_message)
        elif self._left_s != UNLIMITED:
            self._timer = self._engine.time.after(self._left_s, self._receive_timed_out)

    def message_arrived(self) -> None:
        """A message is there. A job that waits for one sees it at its next poll.

        Polls without a message change nothing, so none of them is an event of its own.
        """
        work = self._work
        if not isinstance(work, ReceiveWork) or self._activity is not None:
            return
        elapsed_s = self._engine.now_s - self._begun_s
        polls = int(elapsed_s / work.poll_s + _SAME_POLL) + 1
        wait_s = max(self._begun_s + polls * work.poll_s - self._engine.now_s, 0.0)
        self._activity = self._engine.time.after(wait_s, lambda: self._poll_ended(work))

    def _poll_ended(self, work: ReceiveWork) -> None:
        self._engine.hosts.end_period(self.job.hosts[:1], self._engine.now_s)
        self._stop_timer()
        self._take_message(work)

    def _receive_timed_out(self) -> None:
        if self._activity is not None:
            self._engine.time.cancel(self._activity)
        self._timer = None
        self._left_s = 0.0
        self._delay_ended(TIMED_OUT)

    def _take_message(self, work: ReceiveWork) -> None:
        message = self._engine.inboxes[self.job].popleft()
        matches = re.fullmatch(work.pattern, message) is not None
        self._follow(work, work.matching if matches else work.other)

    def _follow(self, work: ReceiveWork, part: Work | None) -> None:
        if part is None:
            self._work_ended(work.return_code)
        else:
            name, code = work.name, work.return_code
            self._begin_work(SequenceWork(name=name, return_code=code, parts=(part,)))

    def _begin_trace(self, work: TraceWork) -> None:
        if self._left_s != UNLIMITED:
            self._timer = self._engine.time.after(self._left_s, self._trace_timed_out)
        ended = partial(self._trace_ended, work.return_code)
        TraceRun(work.ranks, self._executors, self._run_part, ended).begin()

    def _run_part(
        self,
        hosts: Sequence[int],
        flops: Sequence[float],
        sent: Sequence[float],
        done: Callable[[], None],
    ) -> None:
        def ended() -> None:
            del self._parts[activity]
            self._engine.hosts.end_period(hosts, self._engine.now_s)
            done()

        activity = self._engine.time.run_task(self._engine.tasks.build(hosts, flops, sent), ended)
        self._parts[activity] = None

    def _trace_ended(self, code: int) -> None:
        self._stop_timer()
        self._work_ended(code)

    def _trace_timed_out(self) -> None:
        self._cancel_parts()
        self._timer = None
        self._left_s = 0.0
        self._work_ended(TIMED_OUT)

    def _cancel_parts(self) -> None:
        for activity in self._parts:
            assert activity.task is not None, "a part of a trace is a task"
            self._engine.hosts.end_period(activity.task.hosts, self._engine.now_s)
            self._engine.time.cancel(activity)
        self._parts = {}

    def _stop_timer(self) -> None:
        """End the timer of the walltime, and count the time of the present work."""
        if self._timer is not None:
            self._engine.time.cancel(self._timer)
            self._timer = None
            self._left_s -= self._engine.now_s - self._begun_s

    def _begin_task(self, work: Work) -> None:
        task = self._engine.build_task(work, self._executors, self._storages)
        time = self._engine.time
        self._activity = time.run_task(task, lambda: self._task_ended(work.return_code))
        if self._left_s != UNLIMITED:
            self._timer = time.after(self._left_s, self._task_timed_out)

    def _end_period(self) -> None:
        assert self._activity is not None, "a task ends"
        assert self._activity.task is not None
        self._engine.hosts.end_period(self._activity.task.hosts, self._engine.now_s)

    def _task_ended(self, code: int) -> None:
        self._end_period()
        self._stop_timer()
        self._work_ended(code)

    def _task_timed_out(self) -> None:
        assert self._activity is not None, "the timer belongs to a task"
        self._end_period()
        self._engine.time.cancel(self._activity)
        self._timer = None
        self._left_s = 0.0
        self._work_ended(TIMED_OUT)

    def _work_ended(self, code: int) -> None:
        self._activity = None
        while self._sequences:
            running = self._sequences[-1]
            if code == 0:
                running.index += 1
                if running.index == len(running.work.parts):
                    running.index = 0
                    running.repetition += 1
                if running.repetition < running.work.repeat and running.work.parts:
                    self._begin_work(running.work.parts[running.index])
                    return
                code = running.work.return_code
            self._sequences.pop()
        self._end(code)

    def _end(self, code: int) -> None:
        self.job.return_code = code
        if code == 0:
            state = JobState.SUCCEEDED
        elif code > 0:
            state = JobState.FAILED
        else:
            state = JobState.TIMED_OUT if code == TIMED_OUT else JobState.KILLED
        self._finish(state)

    def _finish(self, state: JobState) -> None:
        engine, job = self._engine, self.job
        job.state = state
        job.run_s = (engine.now_s - job.start_s) or _SHORTEST_RUN_S
        if engine.hosts.measures_energy:
            engine.time_changed()
            energy_j = engine.hosts.energy_j(job.hosts, engine.now_s)
            job.energy_j = energy_j - self._energy_before_j
        engine.hosts.remove_job(job.hosts, engine.now_s)
        engine.executions.pop(job, None)
        engine.inboxes.pop(job, None)
        engine.observer.job_ended(job)

    def kill(self) -> Progress:
        """End the job now; return how far it has come."""
        progress = self._progress()
        time = self._engine.time
        for activity in (self._activity, self._timer):
            if activity is not None:
                time.cancel(activity)
        if self._parts or (self._activity is not None and self._activity.task is not None):
            self.job.return_code = CANCELLED
        self._cancel_parts()
        self._finish(JobState.KILLED)
        return progress

    def _progress(self) -> Progress:
        elapsed_s = self._engine.now_s - self._begun_s
        if isinstance(self._work, DelayWork):
            seconds = self._work.seconds
            fraction = elapsed_s / seconds if seconds > 0 else 1.0
        elif self._activity is None or self._activity.task is None:
            fraction = 0.0  # it sends, or waits for a message
        else:
            fraction = 1.0 - self._activity.task.remaining
        progress = Progress(self._work.name, fraction)
        for running in reversed(self._sequences):
            index = running.repetition * len(running.work.parts) + running.index
            progress = Progress(running.work.name, 0.0, index, progress)
        return progress


class _DelayExecution:
    """A running job that only waits, on hosts whose energy is not measured.

    A million such jobs are a common study, so each needs one object and one entry of the queue.
    """

    __slots__ = ("_engine", "_entry", "code", "job")

    def __init__(self, engine: JobEngine, job: Job, work: DelayWork) -> None:
        self._engine = engine
        self.job = job
        # A delay as long as the walltime has reached it.
        fits = work.seconds < job.walltime_s
        self.code = work.return_code if fits else TIMED_OUT
        self._entry = engine.time.after(work.seconds if fits else job.walltime_s, self._end)

    def _end(self) -> None:
        code = self.code
        self.job.return_code = code
        if code == 0:
            self._finish(JobState.SUCCEEDED)
        elif code > 0:
            self._finish(JobState.FAILED)
        else:
            self._finish(JobState.TIMED_OUT if code == TIMED_OUT else JobState.KILLED)

    def _finish(self, state: JobState) -> None:
        engine, job = self._engine, self.job
        now_s = engine.time.now_s
        job.state = state
        job.run_s = (now_s - job.start_s) or _SHORTEST_RUN_S
        engine.hosts.remove_job(job.hosts, now_s)
        del engine.executions[job]
        engine.observer.job_ended(job)

    def kill(self) -> Progress:
        """End the job now; return how far it has come."""
        engine, work = self._engine, self.job.work
        assert isinstance(work, DelayWork)
        fraction = (engine.now_s - self.job.start_s) / work.seconds if work.seconds > 0 else 1.0
        engine.time.cancel(self._entry)
        self._finish(JobState.KILLED)
        return Progress(work.name, fraction)


class JobEngine:
    """The running jobs and the hosts of one simulation."""

    def __init__(
        self,
        platform: Platform,
        observer: JobObserver,
        *,
        energy: bool = False,
        stepped: bool = False,
        sampled_energy: bool = False,
        make_time: Callable[[JobEngine], VirtualTime] | None = None,
    ) -> None:
        self.platform = platform
        self.observer = observer
        self.time: VirtualTime
        if make_time is not None:
            self.time = make_time(self)
        else:
            self.time = (SteppedTime if stepped else QueuedTime)(self.time_changed)
        self.tasks = TaskFactory(platform)
        self.hosts = HostStates(platform, self.tasks, energy=energy, sampled=sampled_energy)
        self.executions: dict[Job, Execution | _DelayExecution] = {}
        self.inboxes: dict[Job, deque[str]] = {}
        """The messages of the scheduler that a job has not taken yet."""
        self.send: Callable[[Job, Any, Callable[[], None]], None] = _go_on_at_once
        """Takes a message of a job, and calls back when the job goes on."""
        self._numbers = {host.name: number for number, host in enumerate(platform.hosts)}
        self._quick_delays = not energy

    @property
    def now_s(self) -> float:
        """The present time."""
        return self.time.now_s

    def time_changed(self) -> None:
        """Take the loads of hosts from the rates of tasks, for their power."""
        self.hosts.set_loads(self.time.running_tasks(), self.now_s)

    def start(
        self,
        job: Job,
        hosts: Sequence[int],
        *,
        executors: Sequence[int] | None = None,
        storages: dict[str, int] | None = None,
    ) -> None:
        """Start a job; its executors run one on each host, or as given."""
        job.hosts = tuple(hosts)
        work = job.work
        if self._quick_delays and type(work) is DelayWork:
            now_s = self.time.now_s
            job.state = JobState.RUNNING
            job.start_s = now_s
            self.hosts.add_job(job.hosts, now_s)
            self.observer.job_started(job)
            self.executions[job] = _DelayExecution(self, job, work)
            return
        execution = Execution(self, job, executors or job.hosts, storages or {})
        self.executions[job] = execution
        execution.begin()

    def deliver(self, job: Job, message: str) -> None:
        """Put a message into the inbox of a job that waits or runs."""
        self.inboxes.setdefault(job, deque()).append(message)
        execution = self.executions.get(job)
        if isinstance(execution, Execution):
            execution.message_arrived()

    def kill(self, job: Job) -> Progress:
        """End a running job."""
        return self.executions[job].kill()

    def build_message(self, source: str, target: str) -> Task:
        """Return the transfer of one byte between two hosts by name."""
        return self.tasks.build_message(source, target)

    def message_sent(self, source: str) -> None:
        """A message from a host has arrived, which ends a period of its energy."""
        number = self._numbers.get(source)
        if number is not None:
            self.hosts.end_period((number,), self.now_s)

    def build_task(self, work: Work, executors: Sequence[int], storages: dict[str, int]) -> Task:
        """Return the parallel task of a kind of work."""
        match work:
            case TaskWork() | UniformTaskWork() | MergedTaskWork():
                return self.tasks.build(executors, *task_amounts(work, len(executors)))
            case StorageWork():
                return self._storage_task(work, executors, self._storage(work.storage, storages))
            case StagingWork():
                source = self._storage(work.source, storages)
                target = self._storage(work.target, storages)
                return self.tasks.build(
                    (source, target), (0.0, 0.0), (0.0, work.transfer, 0.0, 0.0)
                )
        raise AssertionError(f"{work} is no task")

    def _storage_task(self, work: StorageWork, executors: Sequence[int], storage: int) -> Task:
        hosts = [*executors, storage]
        size = len(hosts)
        sent = [0.0] * (size * size)
        share = len(executors) if work.total else 1
        for index in range(len(executors)):
            sent[index * size + size - 1] = work.write_bytes / share
            sent[(size - 1) * size + index] = work.read_bytes / share
        return self.tasks.build(hosts, [0.0] * size, sent)

    def _storage(self, label: str, storages: dict[str, int]) -> int:
        if label in storages:
            return storages[label]
        first = len(self.platform.hosts)
        for number, host in enumerate(self.platform.storages, first):
            if host.name == label:
                return number
        assert self.platform.storages, "the adapter checks that a storage host exists"
        return first

    def set_power_state(self, hosts: Sequence[int], state: int, done: Callable[[], None]) -> None:
        """Switch hosts to a power state; ``done`` is called when all have reached it."""
        by_time: dict[float, list[int]] = {}
        for number in hosts:
            by_time.setdefault(self.begin_switch(number, state), []).append(number)
        self.time.speeds_changed()
        if any(seconds > 0 for seconds in by_time):
            self.observer.hosts_switched(hosts, state, begins=True)
        waiting = len(by_time)

        def arrived(numbers: Sequence[int], *, changed: bool) -> None:
            nonlocal waiting
            for number in numbers:
                self.finish_switch(number, state)
            self.observer.hosts_arrived(numbers, state, changed=changed)
            waiting -= 1
            if not waiting:
                self.observer.hosts_switched(hosts, state, begins=False)
                done()

        for seconds, numbers in by_time.items():
            if seconds > 0:
                self.time.after(seconds, partial(arrived, numbers, changed=True))
            else:
                arrived(numbers, changed=False)

    def begin_switch(self, number: int, state: int) -> float:
        """Begin the transition of a host; return its duration, 0 between computing states."""
        host = self.platform.hosts[number]
        before = self.hosts.power_state[number]
        if state in host.sleep_states:
            passing, while_passing = (
                host.sleep_states[state].falling_asleep,
                JobHostState.SWITCHING_OFF,
            )
        elif before in host.sleep_states:
            passing, while_passing = host.sleep_states[before].waking, JobHostState.SWITCHING_ON
        else:
            return 0.0
        self.hosts.change([number], while_passing, self.now_s)
        self.hosts.set_power_state(number, passing, self.now_s)
        self.hosts.set_switching_load(number, self.now_s)
        # A transition computes one operation at the speed of its state.
        return 1.0 / host.power_states[passing].speed_flops

    def run_transition(self, number: int, done: Callable[[], None]) -> None:
        """Compute the one operation of a transition as a task, with the rounding of tasks."""

        def ended() -> None:
            self.hosts.end_period((number,), self.now_s)
            done()

        self.time.run_task(self.tasks.build((number,), (1.0,), ()), ended)

    def finish_switch(self, number: int, state: int) -> None:
        """Put a host in its new power state."""
        sleeps = state in self.platform.hosts[number].sleep_states
        switching = self.hosts.state[number] in {
            JobHostState.SWITCHING_ON,
            JobHostState.SWITCHING_OFF,
        }
        self.hosts.set_power_state(number, state, self.now_s)
        if switching:
            after = JobHostState.SLEEPING if sleeps else JobHostState.IDLE
            self.hosts.change([number], after, self.now_s)
        self.time.speeds_changed()
