"""What both ends of an exchange in version 5 remember, because version 4 repeats it in messages.

A message of version 5 that reports the end of a job does not name its hosts, and the one that
reports a switch has a type of its own for each request. The memory is updated by events and
requests in their form of version 4 only, so that both ends come to the same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.adapters.batsim.v5.profiles import full_name
from equipoise.sim.jobs.host_set import format_host_set, parse_host_set

Event = Mapping[str, Any]
"""An event or a request in its form of version 4."""


@dataclass(frozen=True, slots=True)
class WantedFeatures:
    """What the scheduler asks for in its first message."""

    dynamic_registration: bool = False
    profile_reuse: bool = False
    acknowledge_dynamic_jobs: bool = False
    forward_profiles_on_job_submission: bool = False
    forward_profiles_on_jobs_killed: bool = False
    forward_profiles_on_simulation_begins: bool = False


@dataclass(slots=True)
class KnownJob:
    """A job that has not ended."""

    hosts_requested: int
    profile: str
    """Its full name."""
    alloc: str = ""


@dataclass(slots=True)
class Session:
    """The state of one exchange."""

    features: WantedFeatures = field(default_factory=WantedFeatures)
    now_s: float = 0.0
    """The time of the last message to the scheduler."""
    jobs: dict[str, KnownJob] = field(default_factory=dict)
    profiles: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The profiles of each workload, as its file has them."""
    cores: list[int] = field(default_factory=list)
    power_states: list[int] = field(default_factory=list)
    sleep_states: list[frozenset[int]] = field(default_factory=list)
    """The power states in which each host sleeps."""
    switches: list[tuple[str, int, bool]] = field(default_factory=list)
    """Hosts and state of each switch under way; true if it turns hosts on or off."""
    external_events: int = 0

    def note_event(self, event: Event) -> None:
        """Remember an event to the scheduler, after its translation."""
        data = event["data"]
        match event["type"]:
            case "SIMULATION_BEGINS":
                self._note_begin(data)
            case "JOB_SUBMITTED":
                job = data["job"]
                self._note_job(data["job_id"], int(job["res"]), str(job["profile"]))
            case "JOB_COMPLETED":
                self.jobs.pop(data["job_id"], None)
            case "RESOURCE_STATE_CHANGED":
                key = (canonical(data["resources"]), int(data["state"]))
                found = next((switch for switch in self.switches if switch[:2] == key), None)
                if found is not None:
                    self.switches.remove(found)
                for number in parse_host_set(key[0]):
                    self.power_states[number] = key[1]

    def note_request(self, request: Event) -> None:
        """Remember a request of the scheduler, after its translation."""
        data = request["data"]
        match request["type"]:
            case "EXECUTE_JOB":
                if data["job_id"] in self.jobs:
                    self.jobs[data["job_id"]].alloc = str(data["alloc"])
            case "REJECT_JOB":
                self.jobs.pop(data["job_id"], None)
            case "REGISTER_PROFILE":
                known = self.profiles.setdefault(data["workload_name"], {})
                known[data["profile_name"]] = data["profile"]
            case "REGISTER_JOB":
                job = data["job"]
                self._note_job(data["job_id"], int(job["res"]), str(job["profile"]))
            case "SET_RESOURCE_STATE":
                hosts, state = canonical(data["resources"]), int(data["state"])
                self.switches.append((hosts, state, self.turns_on_or_off(data)))

    def turns_on_or_off(self, data: Mapping[str, Any]) -> bool:
        """True if a request switches hosts to or from a state in which they sleep."""
        return any(
            {int(data["state"]), self.power_states[number]} & self.sleep_states[number]
            for number in parse_host_set(data["resources"])
            if number < len(self.power_states)
        )

    def was_turned(self, hosts: str, state: int) -> bool:
        """True if the oldest switch of these hosts to this state turned them on or off."""
        key = (canonical(hosts), state)
        return next((turned for *switch, turned in self.switches if tuple(switch) == key), False)

    def _note_begin(self, data: Mapping[str, Any]) -> None:
        self.profiles = {name: dict(known) for name, known in data["profiles"].items()}
        hosts = data["compute_resources"]
        self.cores = [int(host.get("core_count", 1)) for host in hosts]
        self.power_states = [int(host.get("pstate", 0)) for host in hosts]
        self.sleep_states = [_sleep_states(host["properties"]) for host in hosts]

    def _note_job(self, name: str, hosts_requested: int, profile: str) -> None:
        workload = name.partition("!")[0]
        self.jobs[name] = KnownJob(hosts_requested, full_name(workload, profile))


def _sleep_states(properties: Mapping[str, str]) -> frozenset[int]:
    triples = properties.get("sleep_pstates", "").split(",")
    return frozenset(int(triple.partition(":")[0]) for triple in triples if triple.strip())


def canonical(hosts: str) -> str:
    """Return a set of hosts in its only form."""
    return format_host_set(parse_host_set(hosts))
