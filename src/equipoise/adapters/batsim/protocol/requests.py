"""The requests of a scheduler, each with the checks of Batsim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from equipoise.adapters.batsim.protocol.messages import SchedulerError, is_time, rounded
from equipoise.adapters.batsim.protocol.periodic import PeriodicRequests
from equipoise.adapters.batsim.workload_json import make_job
from equipoise.sim.jobs.host_set import parse_host_set
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.work import Job, JobState, TaskWork, UniformTaskWork, Work, parts_of

if TYPE_CHECKING:
    from equipoise.adapters.batsim.protocol.server import Server

_VERSION_5: Final = 5
_SHOWN_MAX: Final = 60
"""A reply can hold a text of any length; so many characters of it are in a message."""
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
            "TO_JOB_MSG": self._message_job,
        }
        self._version = self._simulation.options.version
        if self._version >= _VERSION_5:
            self._handlers |= PeriodicRequests(server, self._call_later).handlers

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

    def _job(self, kind: str, name: object, *states: JobState) -> Job:
        if not isinstance(name, str):
            what = f"the id of a job is {_shown(name)}"
            raise SchedulerError(kind, what, "send a text: workload!job")
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
        if "additional_io_job" in data:
            raise SchedulerError(kind, "additional_io_job is not offered", "leave it out")
        hosts = _hosts(kind, data, "alloc")
        self._check_hosts(kind, job, hosts)
        executors: Sequence[int] = hosts
        if data.get("mapping") is not None:
            mapping = _object(kind, data, "mapping")
            if len(mapping) != job.hosts_requested and (
                self._version < _VERSION_5 or _is_rigid(job.work)
            ):
                what = f"the mapping has {len(mapping)} executors, job needs {job.hosts_requested}"
                raise SchedulerError(kind, what, "map each executor")
            executors = [hosts[place] for place in _places(kind, mapping, len(hosts))]
        elif len(hosts) != job.hosts_requested and not _fits_any(job.work):
            what = f"job {data['job_id']} needs {job.hosts_requested} hosts, alloc has {len(hosts)}"
            raise SchedulerError(kind, what, "allocate as many, or send a mapping")
        self._simulation.check_constraints(kind, job, executors)
        storages = self._storages(kind, data) if "storage_mapping" in data else {}
        # The job counts as running from here: a second start at this instant is refused.
        job.state = JobState.RUNNING
        self._simulation.engine.hosts.reserve(hosts)
        actor = self._simulation.executor(job, hosts, executors, storages)
        self._server.actors.append(actor)

    def _storages(self, kind: str, data: Mapping[str, Any]) -> dict[str, int]:
        """Return the number of the storage host of each label."""
        platform = self._simulation.engine.platform
        known = len(platform.hosts) + len(platform.storages)
        storages = {}
        for label, text in _object(kind, data, "storage_mapping").items():
            number = _whole(kind, f"storage_mapping of {label}", text)
            if not 0 <= number < known:
                raise SchedulerError(kind, f"no host has the number {number}", "name known hosts")
            storages[label] = number
        return storages

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
        if not isinstance(names, list):
            raise SchedulerError("KILL_JOB", f"job_ids is {_shown(names)}", "send an array")
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
        at_s = data["timestamp"]
        if not is_time(at_s):
            what = f"timestamp is {str(at_s)[:80]}"
            raise SchedulerError("CALL_ME_LATER", what, "send a number of seconds")
        if at_s <= self._server.now_s:
            what = f"timestamp {at_s} is not after now ({self._server.now_s})"
            raise SchedulerError("CALL_ME_LATER", what, "name a later time")
        self._server.calls += 1
        self._server.actors.append(self._simulation.waker(at_s, data.get("id")))

    def _check_dynamic(self, kind: str) -> None:
        if not self._simulation.options.dynamic_jobs:
            raise SchedulerError(kind, "dynamic jobs are off", "use --enable-dynamic-jobs")
        if not self._server.registration_open:
            raise SchedulerError(kind, "the registration is finished", "register before its end")

    def _register_profile(self, data: Mapping[str, Any]) -> None:
        self._check_dynamic("REGISTER_PROFILE")
        kind = "REGISTER_PROFILE"
        workload, name = _text(kind, data, "workload_name"), _text(kind, data, "profile_name")
        self._simulation.profiles_of(workload).add(name, _object(kind, data, "profile"))

    def _register_job(self, data: Mapping[str, Any]) -> None:
        kind = "REGISTER_JOB"
        self._check_dynamic(kind)
        name, described = _text(kind, data, "job_id"), _object(kind, data, "job")
        workload, mark, number = name.partition("!")
        if not mark or (self._version < _VERSION_5 and workload not in self._simulation.profiles):
            raise SchedulerError(kind, f"{name!r} names no workload", "send workload!job")
        if name in self._server.used_names:
            raise SchedulerError(kind, f"job {name} exists already", "use a new id")
        profiles = self._simulation.profiles_of(workload)
        owner, mark, inner = str(described["profile"]).partition("!")
        if mark and owner in self._simulation.profiles:
            profiles.adopt(f"{owner}!{inner}", self._simulation.profiles[owner], inner)
        job = make_job(described | {"id": number}, workload, profiles)
        job.extra = dict(described)
        self._simulation.register(job)
        self._server.submit(job, report=self._simulation.options.acknowledge_dynamic_jobs)

    def _set_state(self, data: Mapping[str, Any]) -> None:
        kind = "SET_RESOURCE_STATE"
        if self._version < _VERSION_5 and not self._simulation.options.energy:
            raise SchedulerError(kind, "the energy mode is off", "use --energy")
        hosts, state = _hosts(kind, data, "resources"), _whole(kind, "state", data["state"])
        if not hosts:
            raise SchedulerError(kind, "resources is empty", "name hosts")
        engine = self._simulation.engine
        if hosts[-1] >= len(engine.platform.hosts):
            raise SchedulerError(kind, f"no host has the number {hosts[-1]}", "name known hosts")
        # All hosts are checked before the first one switches: a refused event changes nothing.
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
        if job.state.is_final:
            self._simulation.write_rows()  # its row has what was known at its end, as in Batsim
        job.label = text

    def _message_job(self, data: Mapping[str, Any]) -> None:
        job, message = self._job("TO_JOB_MSG", data["job_id"]), data["msg"]
        text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
        self._simulation.engine.deliver(job, text)

    def _change_job_state(self, data: Mapping[str, Any]) -> None:
        kind = "CHANGE_JOB_STATE"
        job = self._job(kind, data["job_id"])
        if job.state is JobState.SUBMITTED and data["job_state"] == "REJECTED":
            self._reject_job(data)
            return
        what = f"job {data['job_id']} cannot become {data['job_state']}"
        raise SchedulerError(kind, what, "start, reject or kill it")

    def _query(self, data: Mapping[str, Any]) -> None:
        for name in _object("QUERY", data, "requests"):
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


def _shown(value: object) -> str:
    """Return a value of a scheduler for a message, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _text(kind: str, data: Mapping[str, Any], key: str) -> str:
    value = data[key]
    if not isinstance(value, str):
        raise SchedulerError(kind, f"{key} is {_shown(value)}", "send a text")
    return value


def _object(kind: str, data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data[key]
    if not isinstance(value, dict):
        raise SchedulerError(kind, f"{key} is {_shown(value)}", "send an object")
    return value


def _whole(kind: str, key: str, value: object) -> int:
    """Return a number that is sent as a text or as a number."""
    try:
        if isinstance(value, str | int) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise SchedulerError(kind, f"{key} is {_shown(value)}", "send a whole number")


def _hosts(kind: str, data: Mapping[str, Any], key: str) -> tuple[int, ...]:
    text = _text(kind, data, key)
    try:
        return parse_host_set(text)
    except ValueError as error:
        raise SchedulerError(kind, f"{key}: {error}", "send intervals, such as 0-3 7") from None


def _places(kind: str, mapping: Mapping[str, Any], hosts: int) -> list[int]:
    """Return the place of each executor among the hosts of its job."""
    places = []
    for number in range(len(mapping)):
        if str(number) not in mapping:
            raise SchedulerError(kind, f"the mapping lacks executor {number}", "map each executor")
        place = _whole(kind, f"mapping of executor {number}", mapping[str(number)])
        if not 0 <= place < hosts:
            what = f"executor {number} is on place {place} of {hosts} hosts"
            raise SchedulerError(kind, what, "count places in alloc from 0")
        places.append(place)
    return places


def _is_rigid(work: Work) -> bool:
    """True if the work states the number of its executors."""
    return any(isinstance(part, TaskWork) for part in parts_of(work))


def _fits_any(work: Work) -> bool:
    """True if the work runs on any number of hosts."""
    tasks = [part for part in parts_of(work) if isinstance(part, TaskWork | UniformTaskWork)]
    return bool(tasks) and all(isinstance(part, UniformTaskWork) and part.total for part in tasks)
