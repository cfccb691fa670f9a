"""Runs jobs on a platform: executions with walltime and kill, and switches of hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from equipoise.sim.jobs.fluid import Task, TaskFactory
from equipoise.sim.jobs.hosts import HostStates, JobHostState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.virtual_time import Activity, QueuedTime, SteppedTime
from equipoise.sim.jobs.work import (
    UNLIMITED,
    DelayWork,
    Job,
    JobState,
    SequenceWork,
    StagingWork,
    StorageWork,
    TaskWork,
    UniformTaskWork,
    Work,
)

_SHORTEST_RUN_S: Final = 1e-5
"""The run time of a job that takes no time; slowdowns divide by it."""
TIMED_OUT: Final = -1
CANCELLED: Final = -2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a killed job has come; a sequence names its present part."""

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
        """Hosts begin to switch, or have reached their power state."""
        ...


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
        self._activity = self._engine.time.after(seconds, lambda: self._work_ended(code))

    def _begin_task(self, work: Work) -> None:
        task = self._engine.build_task(work, self._executors, self._storages)
        time = self._engine.time
        self._activity = time.run_task(task, lambda: self._task_ended(work.return_code))
        if self._left_s != UNLIMITED:
            self._timer = time.after(self._left_s, self._task_timed_out)

    def _task_ended(self, code: int) -> None:
        if self._timer is not None:
            self._engine.time.cancel(self._timer)
            self._timer = None
            self._left_s -= self._engine.now_s - self._begun_s
        self._work_ended(code)

    def _task_timed_out(self) -> None:
        assert self._activity is not None, "the timer belongs to a task"
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
        engine.observer.job_ended(job)

    def kill(self) -> Progress:
        """End the job now; return how far it has come."""
        progress = self._progress()
        time = self._engine.time
        for activity in (self._activity, self._timer):
            if activity is not None:
                time.cancel(activity)
        if not isinstance(self._work, DelayWork):
            self.job.return_code = CANCELLED
        self._finish(JobState.KILLED)
        return progress

    def _progress(self) -> Progress:
        elapsed_s = self._engine.now_s - self._begun_s
        if isinstance(self._work, DelayWork):
            seconds = self._work.seconds
            fraction = elapsed_s / seconds if seconds > 0 else 1.0
        else:
            assert self._activity is not None
            assert self._activity.task is not None
            fraction = 1.0 - self._activity.task.remaining
        progress = Progress(self._work.name, fraction)
        for running in reversed(self._sequences):
            progress = Progress(running.work.name, 0.0, running.index, progress)
        return progress


class JobEngine:
    """The running jobs and the hosts of one simulation."""

    def __init__(
        self,
        platform: Platform,
        observer: JobObserver,
        *,
        energy: bool = False,
        stepped: bool = False,
    ) -> None:
        self.platform = platform
        self.observer = observer
        self.time: QueuedTime | SteppedTime = (
            SteppedTime(self.time_changed) if stepped else QueuedTime(self.time_changed)
        )
        self._tasks = TaskFactory(platform)
        self.hosts = HostStates(platform, self._tasks, energy=energy)
        self.executions: dict[Job, Execution] = {}

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
        execution = Execution(self, job, executors or job.hosts, storages or {})
        self.executions[job] = execution
        execution.begin()

    def kill(self, job: Job) -> Progress:
        """End a running job."""
        return self.executions[job].kill()

    def build_message(self, source: str, target: str) -> Task:
        """Return the transfer of one byte between two hosts by name."""
        return self._tasks.build_message(source, target)

    def build_task(self, work: Work, executors: Sequence[int], storages: dict[str, int]) -> Task:
        """Return the parallel task of a kind of work."""
        count = len(executors)
        match work:
            case TaskWork():
                return self._tasks.build(executors, work.flops, work.transfers)
            case UniformTaskWork():
                share = count if work.total else 1
                pairs = count if work.total else 1
                sent = [
                    0.0 if source == target else work.transfer / pairs
                    for source in range(count)
                    for target in range(count)
                ]
                return self._tasks.build(executors, [work.flops / share] * count, sent)
            case StorageWork():
                return self._storage_task(work, executors, self._storage(work.storage, storages))
            case StagingWork():
                source = self._storage(work.source, storages)
                target = self._storage(work.target, storages)
                return self._tasks.build(
                    (source, target), (0.0, 0.0), (0.0, work.transfer, 0.0, 0.0)
                )
        raise AssertionError(f"{work} is no task")

    def _storage_task(self, work: StorageWork, executors: Sequence[int], storage: int) -> Task:
        hosts = [*executors, storage]
        size = len(hosts)
        sent = [0.0] * (size * size)
        for index in range(len(executors)):
            sent[index * size + size - 1] = work.write_bytes
            sent[(size - 1) * size + index] = work.read_bytes
        return self._tasks.build(hosts, [0.0] * size, sent)

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
        waiting = set(hosts)

        def arrived(number: int) -> None:
            self.finish_switch(number, state)
            waiting.discard(number)
            if not waiting:
                self.observer.hosts_switched(hosts, state, begins=False)
                done()

        longest = [self.begin_switch(number, state) for number in hosts]
        self.time.speeds_changed()
        if any(seconds > 0 for seconds in longest):
            self.observer.hosts_switched(hosts, state, begins=True)
        for number, seconds in zip(hosts, longest, strict=True):
            if seconds > 0:
                self.time.after(seconds, lambda number=number: arrived(number))  # type: ignore[misc]
            else:
                arrived(number)

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
