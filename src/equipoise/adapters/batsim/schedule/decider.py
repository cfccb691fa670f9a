"""A built-in policy as the decision process of a Batsim: it reads messages and returns replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.workload_json import WorkProfiles
from equipoise.sim.jobs.host_set import FreeHosts, bits_of, format_bits, parse_host_set
from equipoise.sim.jobs.policies import HostAwarePolicy
from equipoise.sim.jobs.work import UNLIMITED, Job, JobState, Work

_USABLE: Final = frozenset({"idle", "computing"})


class PolicyDecider:
    """Answers messages of version 4 with the decisions of a policy.

    The policy assumes the same run times as in ``equipoise jobs``: the walltime of a job, or the
    seconds of its delay.
    """

    def __init__(self, make_policy: Callable[[int], HostAwarePolicy]) -> None:
        self._make_policy = make_policy
        self._policy: HostAwarePolicy = make_policy(0)
        self._free = FreeHosts(0)
        self._hosts = 0
        self._jobs: dict[str, Job] = {}
        """Jobs that wait or run, by their full name."""
        self._profiles: dict[str, WorkProfiles] = {}
        self._requests: list[dict[str, Any]] = []
        self._now_s = 0.0
        self.finished = False
        """True once ``SIMULATION_ENDS`` has arrived."""
        self.started = 0
        self.rejected = 0
        self._handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "SIMULATION_BEGINS": self._begin,
            "SIMULATION_ENDS": self._end,
            "JOB_SUBMITTED": self._submit,
            "JOB_COMPLETED": self._complete,
            "NOTIFY": self._notice,
        }

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return sum(job.state is JobState.SUBMITTED for job in self._jobs.values())

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a message; ``SchedulerError`` names an event that is wrong."""
        self._requests = []
        self._now_s = float(message["now"])
        for event in message["events"]:
            handler = self._handlers.get(event["type"])
            if handler is None:
                continue  # calls, switches and answers concern no policy
            try:
                handler(event["data"])
            except (KeyError, TypeError, ValueError) as error:
                what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
                raise SchedulerError(event["type"], what, "send it as Batsim does") from None
        if not self.finished:
            self._policy.schedule(self._now_s, self._free, self._start)
        return {"now": message["now"], "events": self._requests}

    def _request(self, kind: str, data: dict[str, Any]) -> None:
        self._requests.append({"timestamp": self._now_s, "type": kind, "data": data})

    def _begin(self, data: Mapping[str, Any]) -> None:
        hosts = data["compute_resources"]
        self._hosts = len(hosts)
        self._policy = self._make_policy(self._hosts)
        self._free = FreeHosts(self._hosts)
        self._profiles = {name: WorkProfiles(raw) for name, raw in data["profiles"].items()}
        self._set_available(
            bits_of(number for number, host in enumerate(hosts) if host["state"] in _USABLE)
        )
        if data.get("config", {}).get("dynamic-jobs-enabled"):
            # The simulation ends only after this notice; no policy registers jobs.
            self._request("NOTIFY", {"type": "registration_finished"})

    def _end(self, data: Mapping[str, Any]) -> None:
        self.finished = True

    def _submit(self, data: Mapping[str, Any]) -> None:
        name, raw = str(data["job_id"]), data["job"]
        if int(raw["res"]) > self._hosts:
            self.rejected += 1
            self._request("REJECT_JOB", {"job_id": name})
            return
        workload, _, number = name.partition("!")
        walltime_s = float(raw.get("walltime", -1))
        job = Job(
            workload=workload,
            name=number,
            submit_s=float(raw["subtime"]),
            hosts_requested=int(raw["res"]),
            work=self._find_work(workload, str(raw["profile"]), data.get("profile")),
            walltime_s=walltime_s if walltime_s > 0 else UNLIMITED,
            state=JobState.SUBMITTED,
        )
        self._jobs[name] = job
        if self._fits(job):
            self._policy.submit(job)

    def _find_work(self, workload: str, name: str, forwarded: Mapping[str, Any] | None) -> Work:
        owner, mark, inner = name.partition("!")
        profiles = self._profiles.setdefault(owner if mark else workload, WorkProfiles({}))
        name = inner if mark else name
        if forwarded is not None and name not in profiles.raw:
            profiles.add(name, forwarded)
        try:
            return profiles.find(name)
        except (KeyError, TypeError, ValueError):
            # A profile of another program: its time is unknown.
            return Work(name=name)

    def _fits(self, job: Job) -> bool:
        """True if the hosts in service are enough; other jobs wait outside the policy."""
        return job.hosts_requested <= self._free.available.bit_count()

    def _start(self, job: Job, hosts: int) -> float:
        self._free.remove(hosts)
        job.host_bits = hosts
        job.start_s = self._now_s
        job.state = JobState.RUNNING
        self.started += 1
        name = f"{job.workload}!{job.name}"
        self._request("EXECUTE_JOB", {"job_id": name, "alloc": format_bits(hosts)})
        return self._now_s

    def _complete(self, data: Mapping[str, Any]) -> None:
        job = self._jobs.pop(str(data["job_id"]), None)
        if job is None or job.state is not JobState.RUNNING:
            return
        self._free.add(job.host_bits)
        self._policy.ended(job)

    def _notice(self, data: Mapping[str, Any]) -> None:
        if data["type"] == "event_machine_unavailable":
            self._set_available(self._free.available & ~self._host_bits(data))
        elif data["type"] == "event_machine_available":
            self._set_available(self._free.available | self._host_bits(data))

    def _host_bits(self, data: Mapping[str, Any]) -> int:
        return bits_of(n for n in parse_host_set(data["resources"]) if n < self._hosts)

    def _set_available(self, hosts: int) -> None:
        """Let jobs go on that run; no job starts on other hosts than these."""
        free = self._free
        if hosts == free.available:
            return
        free.available = hosts
        free.remove(free.bits)
        free.add(hosts)
        for job in self._jobs.values():
            if job.state is JobState.RUNNING:
                free.remove(job.host_bits)
        waiting = (job for job in self._jobs.values() if job.state is JobState.SUBMITTED)
        self._policy.renew([job for job in waiting if self._fits(job)], free)
