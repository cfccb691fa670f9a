"""Messages to a scheduler, and what its replies must look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final, TypeGuard

from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.workload_json import WorkProfiles
from equipoise.errors import WorldError
from equipoise.sim.jobs.engine import Progress
from equipoise.sim.jobs.hosts import HostStates, JobHostState
from equipoise.sim.jobs.platform import JobHost, Platform

_STATE_NAMES: Final = {
    JobHostState.IDLE: "idle",
    JobHostState.COMPUTING: "computing",
    JobHostState.SLEEPING: "sleeping",
    JobHostState.SWITCHING_ON: "switching_on",
    JobHostState.SWITCHING_OFF: "switching_off",
    JobHostState.UNAVAILABLE: "unavailable",
}
_TIME_S_MAX: Final = 1e300
"""A larger number is no time; JSON can hold integers that no floating-point number can."""
_VERSION_5: Final = 5
DECIMALS: Final = 6
"""Batsim prints numbers so; a scheduler must not see more, because it sends times back."""


class SchedulerError(WorldError):
    """The scheduler broke the protocol."""

    def __init__(self, event: str, what: str, cure: str) -> None:
        super().__init__(f"{event}: {what} ({cure})", code="scheduler-protocol")
        self.event = event


def rounded(value: float) -> float:
    """Return a number as messages print it."""
    return round(value, DECIMALS)


def begin_data(
    platform: Platform,
    hosts: HostStates,
    profiles: Mapping[str, WorkProfiles],
    options: ProtocolOptions,
) -> dict[str, Any]:
    """Return the data of ``SIMULATION_BEGINS``."""
    count = len(platform.hosts)
    facts = _host_facts if options.version >= _VERSION_5 else _no_facts
    return {
        "nb_resources": count + len(platform.storages),
        "nb_compute_resources": count,
        "nb_storage_resources": len(platform.storages),
        "allow_compute_sharing": options.compute_sharing,
        "allow_storage_sharing": options.storage_sharing,
        "config": {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": options.forward_profiles,
            "dynamic-jobs-enabled": options.dynamic_jobs,
            "dynamic-jobs-acknowledged": options.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": options.profile_reuse,
            "sched-config": options.scheduler_config,
            "forward-unknown-events": options.forward_unknown_events,
        },
        "compute_resources": [
            _resource(number, host, _STATE_NAMES[hosts.state[number]]) | facts(host)
            for number, host in enumerate(platform.hosts)
        ],
        "storage_resources": [
            _resource(number, host, "idle") | facts(host)
            for number, host in enumerate(platform.storages, start=count)
        ],
        "workloads": dict(options.workload_files),
        "profiles": {name: known.raw for name, known in profiles.items()},
    }


def _resource(number: int, host: JobHost, state: str) -> dict[str, Any]:
    return {
        "id": number,
        "name": host.name,
        "state": state,
        "properties": dict(host.properties),
        "zone_properties": dict(host.zone_properties),
    }


def _host_facts(host: JobHost) -> dict[str, Any]:
    """Return what version 5 says of a host besides."""
    return {
        "pstate": host.initial_state,
        "pstate_count": len(host.power_states),
        "core_count": host.cores,
        "computation_speed": [state.speed_flops for state in host.power_states],
    }


def _no_facts(host: JobHost) -> dict[str, Any]:
    return {}


def progress_data(progress: Progress) -> dict[str, Any]:
    """Return how far a killed job has come."""
    if progress.part is None:
        return {"profile_name": progress.work, "progress": rounded(progress.fraction)}
    return {
        "profile_name": progress.work,
        "current_task_index": progress.part_index,
        "current_task": progress_data(progress.part),
    }


def is_time(value: object) -> TypeGuard[float]:
    """True for a number that can be a time in seconds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _TIME_S_MAX  # type: ignore[arg-type]


def check_reply(reply: object) -> tuple[float, Sequence[Mapping[str, Any]]]:
    """Return the time and the events of a reply; ``SchedulerError`` names what is wrong."""
    if not isinstance(reply, dict):
        raise SchedulerError("reply", "is no JSON object", "send now and events")
    now, events = reply.get("now"), reply.get("events")
    if not is_time(now):
        raise SchedulerError("reply", f"now is {str(now)[:80]}", "send a number of seconds")
    if not isinstance(events, list):
        raise SchedulerError("reply", "events is no array", "send an array, empty if nothing")
    last_s = -inf
    for event in events:
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise SchedulerError("reply", f"{event!r} is no event", "send timestamp, type, data")
        kind, at_s = event["type"], event.get("timestamp")
        if type(at_s) is not float and not is_time(at_s):  # a float above now is refused below
            raise SchedulerError(kind, f"timestamp is {str(at_s)[:80]}", "send a number of seconds")
        if not isinstance(event.get("data"), dict):
            raise SchedulerError(kind, "has no data", "send data, an object")
        if at_s > now or at_s < last_s:
            raise SchedulerError(
                kind, f"timestamp {at_s} is out of order", "sort events, none after now"
            )
        last_s = at_s
    return float(now), events
