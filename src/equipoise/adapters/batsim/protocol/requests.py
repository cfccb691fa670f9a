"""The requests of a scheduler, each with the checks of Batsim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from equipoise.adapters.batsim.protocol.messages import SchedulerError, rounded
from equipoise.adapters.batsim.workload_json import make_job
from equipoise.sim.jobs.host_set import parse_host_set
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.work import Job, JobState, TaskWork, UniformTaskWork, Work, parts_of

if TYPE_CHECKING:
    from equipoise.adapters.batsim.protocol.server import Server

_CAN_COMPUTE: Final = frozenset({JobHostState.IDLE, JobHostState.COMPUTING})


class RequestHandlers:
    """Executes the events of a reply."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._simulation = server.simulation
        self._handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "EXECUTE_JOB": self._execute_job,
            "REJECT_JOB": self._reject_job,
            "KILL_JOB": self._kill_job,
            "CALL_ME_LATER": self._call_later,
            "REGISTER_PROFILE": self._register_profile,
            "REGISTER_JOB": self._register_job,
            "SET_RESOURCE_STATE": self._set_state,
            "SET_JOB_METADATA": self._set_metadata,
            "CHANGE_JOB_STATE": self._change_job_state,
            "QUERY": self._query,
            "ANSWER": self._ignore,
            "NOTIFY": self._notify,
            "TO_JOB_MSG": self._ignore,
        }

    def handle(self, event: Mapping[str, Any]) -> None:
        """Execute one event; ``SchedulerError`` names it if it is not allowed."""
        kind = event["type"]
        handler = self._handlers.get(kind)
        if handler is None:
            raise SchedulerError(kind, "is no event of the protocol", "send a known event")
        try:
            handler(event["data"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise SchedulerError(kind, what, "correct its data") from None

    def _job(self, kind: str, name: str, *states: JobState) -> Job:
        job = self._server.jobs.get(name)
        if job is None:
            ended = name in self._server.used_names
            what = f"job {name} has been reported as ended" if ended else f"no job is named {name}"
            raise SchedulerError(kind, what, "name a job that waits or runs")
        if states and job.state not in states:
            what = f"job {name} is {job.state.name.lower()}"
            raise SchedulerError(kind, what, "start or reject a job once, when it waits")
        return job

    def _execute_job(self, data: Mapping[str, Any]) -> None:
        kind = "EXECUTE_JOB"
        job = self._job(kind, data["job_id"], JobState.SUBMITTED)
        hosts = parse_host_set(data["alloc"])
        self._check_hosts(kind, job, hosts)
        executors: Sequence[int] = hosts
        mapping = data.get("mapping")
        if mapping is not None:
            if len(mapping) != job.hosts_requested:
                what = f"the mapping has {len(mapping)} executors, job needs {job.hosts_requested}"
                raise SchedulerError(kind, what, "map each executor")
            executors = [hosts[int(mapping[str(n)])] for n in range(job.hosts_requested)]
        elif len(hosts) != job.hosts_requested and not _fits_any(job.work):
            what = f"job {data['job_id']} needs {job.hosts_requested} hosts, alloc has {len(hosts)}"
            raise SchedulerError(kind, what, "allocate as many, or send a mapping")
        storages = {label: int(number) for label, number in data.get("storage_mapping", {}).items()}
        # The job counts as running from here: a second start at this instant is refused.
        job.state = JobState.RUNNING
        self._simulation.engine.hosts.reserve(hosts)
        actor = self._simulation.executor(job, hosts, executors, storages)
        self._server.actors.append(actor)

    def _check_hosts(self, kind: str, job: Job, hosts: Sequence[int]) -> None:
        states = self._simulation.engine.hosts
        platform = self._simulation.engine.platform
        if not hosts:
            raise SchedulerError(kind, "alloc is empty", "name hosts")
        for number in hosts:
            if number >= len(platform.hosts):
                raise SchedulerError(kind, f"no host has the number {number}", "name known hosts")
            if states.state[number] not in _CAN_COMPUTE:
                what = f"host {number} is {states.state[number].name.lower()}"
                raise SchedulerError(kind, what, "use hosts that are idle")
            if not platform.hosts[number].is_computing_state(states.power_state[number]):
                what = f"host {number} is in power state {states.power_state[number]}"
                raise SchedulerError(kind, what, "switch the host on first")
            if states.is_busy(number) and not self._simulation.options.compute_sharing:
                what = f"host {number} of job {job.workload}!{job.name} runs another job"
                raise SchedulerError(kind, what, "use a free host, or --enable-compute-sharing")

    def _reject_job(self, data: Mapping[str, Any]) -> None:
        job = self._job("REJECT_JOB", data["job_id"], JobState.SUBMITTED)
        job.state = JobState.REJECTED
        del self._server.jobs[data["job_id"]]
        self._server.completed += 1
        self._simulation.record(job)

    def _kill_job(self, data: Mapping[str, Any]) -> None:
        names = data["job_ids"]
        if not names:
            raise SchedulerError("KILL_JOB", "names no job", "name at least one")
        jobs = []
        for name in names:
            job = self._job("KILL_JOB", name)
            if job.state is JobState.SUBMITTED:
                raise SchedulerError("KILL_JOB", f"job {name} does not run", "reject it instead")
            if job not in self._server.killed:
                self._server.killed.add(job)
                jobs.append(job)
        if jobs:
            self._server.kills += 1
            self._server.actors.append(self._simulation.killer(jobs))

    def _call_later(self, data: Mapping[str, Any]) -> None:
        at_s = float(data["timestamp"])
        if at_s <= self._server.now_s:
            what = f"timestamp {at_s} is not after now ({self._server.now_s})"
            raise SchedulerError("CALL_ME_LATER", what, "name a later time")
        self._server.calls += 1
        self._server.actors.append(self._simulation.waker(at_s))

    def _check_dynamic(self, kind: str) -> None:
        if not self._simulation.options.dynamic_jobs:
            raise SchedulerError(kind, "dynamic jobs are off", "use --enable-dynamic-jobs")
        if not self._server.registration_open:
            raise SchedulerError(kind, "the registration is finished", "register before its end")

    def _register_profile(self, data: Mapping[str, Any]) -> None:
        self._check_dynamic("REGISTER_PROFILE")
        profiles = self._simulation.profiles_of(data["workload_name"])
        profiles.add(data["profile_name"], data["profile"])

    def _register_job(self, data: Mapping[str, Any]) -> None:
        self._check_dynamic("REGISTER_JOB")
        name = data["job_id"]
        workload, mark, number = name.partition("!")
        if not mark or workload not in self._simulation.profiles:
            raise SchedulerError("REGISTER_JOB", f"{name!r} names no workload", "send workload!job")
        if name in self._server.used_names:
            raise SchedulerError("REGISTER_JOB", f"job {name} exists already", "use a new id")
        job = make_job(data["job"] | {"id": number}, workload, self._simulation.profiles[workload])
        job.extra = dict(data["job"])
        self._server.submit(job, report=self._simulation.options.acknowledge_dynamic_jobs)

    def _set_state(self, data: Mapping[str, Any]) -> None:
        kind = "SET_RESOURCE_STATE"
        if not self._simulation.options.energy:
            raise SchedulerError(kind, "the energy mode is off", "use --energy")
        hosts, state = parse_host_set(data["resources"]), int(data["state"])
        engine = self._simulation.engine
        for number in hosts:
            host = engine.platform.hosts[number]
            now = engine.hosts.power_state[number]
            if not 0 <= state < len(host.power_states):
                raise SchedulerError(kind, f"host {number} has no state {state}", "name a state")
            if state in host.sleep_states and now in host.sleep_states:
                raise SchedulerError(kind, f"host {number} sleeps already", "wake it first")
            if engine.hosts.state[number] not in (*_CAN_COMPUTE, JobHostState.SLEEPING):
                raise SchedulerError(kind, f"host {number} switches already", "wait for its end")
            if state in host.sleep_states and engine.hosts.is_busy(number):
                raise SchedulerError(kind, f"host {number} runs a job", "wait for its end")
        first = engine.platform.hosts[hosts[0]]
        if first.is_computing_state(state) or state in first.sleep_states:
            self._server.begin_switch(hosts, state)
        else:
            self._simulation.ignore_switch(hosts)

    def _set_metadata(self, data: Mapping[str, Any]) -> None:
        job, text = self._job("SET_JOB_METADATA", data["job_id"]), str(data["metadata"])
        if '"' in text:
            raise SchedulerError("SET_JOB_METADATA", "has a double quote", "remove it")
        job.label = text

    def _change_job_state(self, data: Mapping[str, Any]) -> None:
        kind = "CHANGE_JOB_STATE"
        job = self._job(kind, data["job_id"])
        if job.state is JobState.SUBMITTED and data["job_state"] == "REJECTED":
            self._reject_job(data)
            return
        what = f"job {data['job_id']} cannot become {data['job_state']}"
        raise SchedulerError(kind, what, "start, reject or kill it")

    def _query(self, data: Mapping[str, Any]) -> None:
        for name in data["requests"]:
            if name != "consumed_energy":
                raise SchedulerError("QUERY", f"{name!r} is unknown", "ask for consumed_energy")
            if not self._simulation.options.energy:
                raise SchedulerError("QUERY", "the energy mode is off", "use --energy")
            engine = self._simulation.engine
            energy_j = engine.hosts.total_energy_j(engine.now_s)
            self._server.add_event("ANSWER", {"consumed_energy": rounded(energy_j)})

    def _notify(self, data: Mapping[str, Any]) -> None:
        if data["type"] == "registration_finished":
            self._server.registration_open = False
        elif data["type"] == "continue_registration":
            self._server.registration_open = True
        else:
            raise SchedulerError("NOTIFY", f"type {data['type']!r} is unknown", "send a known type")

    def _ignore(self, data: Mapping[str, Any]) -> None:
        """Batsim logs this event and does nothing."""


def _fits_any(work: Work) -> bool:
    """True if the work runs on any number of hosts."""
    tasks = [part for part in parts_of(work) if isinstance(part, TaskWork | UniformTaskWork)]
    return bool(tasks) and all(isinstance(part, UniformTaskWork) and part.total for part in tasks)
