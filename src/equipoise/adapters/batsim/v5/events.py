"""Events to the scheduler: from version 4 to version 5, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.v5.profiles import (
    full_name,
    profile_from_wire,
    profile_to_wire,
    short_name,
)
from equipoise.adapters.batsim.v5.session import Session

Data = Mapping[str, Any]
Translation = Callable[[Data, Session], tuple[str, dict[str, Any]]]

BATPROTOCOL_VERSION: Final = "1.0.0"
BATSIM_VERSION: Final = "v5.0.0-rc2"
"""The version of Batsim whose messages and files these are."""
ANONYMOUS_CALL: Final = "call"
"""The name of a call that a request of version 4 asked for."""
_HOST_FACTS: Final = ("pstate", "pstate_count", "core_count", "computation_speed")
_JOB_KEYS: Final = frozenset({"id", "subtime", "res", "walltime", "profile"})
_GENERIC: Final = "GenericExternalEvent"
_AVAILABILITY: Final = frozenset({"machine_available", "machine_unavailable"})
_NOTICES: Final = {
    "no_more_static_job_to_submit": "AllStaticJobsHaveBeenSubmittedEvent",
    "no_more_external_event_to_occur": "AllStaticExternalEventsHaveBeenInjectedEvent",
}


def encode_event(event: Data, session: Session) -> dict[str, Any]:
    """Return an event of version 5; ``ValueError`` if it has none for this event."""
    translation = _ENCODERS.get(event["type"])
    if translation is None:
        raise ValueError(f"{event['type']} has no counterpart in version 5")
    kind, data = translation(event["data"], session)
    session.note_event(event)
    return {"timestamp": event["timestamp"], "event_type": kind, "event": data}


def decode_event(event: Data, session: Session) -> dict[str, Any]:
    """Return the event of version 4 for one of version 5."""
    translation = _DECODERS.get(event["event_type"])
    if translation is None:
        raise ValueError(f"{event['event_type']} is no event to a scheduler")
    kind, data = translation({**event["event"], "timestamp": event["timestamp"]}, session)
    decoded = {"timestamp": event["timestamp"], "type": kind, "data": data}
    session.note_event(decoded)
    return decoded


# Begin and end.


def _encode_begin(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    context = {key: data[key] for key in ("allow_compute_sharing", "allow_storage_sharing")}
    begin: dict[str, Any] = {
        "batprotocol_version": BATPROTOCOL_VERSION,
        "batsim_version": BATSIM_VERSION,
        "batsim_commit": "",
        "host_number": data["nb_resources"],
        "computation_host_number": data["nb_compute_resources"],
        "computation_hosts": [_encode_host(host) for host in data["compute_resources"]],
        "storage_host_number": data["nb_storage_resources"],
        "storage_hosts": [_encode_host(host) for host in data["storage_resources"]],
        "batsim_arguments": [],
        "batsim_execution_context_json": _json({**context, "config": data["config"]}),
        "workloads": [
            {"name": name, "filename": path} for name, path in sorted(data["workloads"].items())
        ],
        "external_event_lists": [],
    }
    if session.features.forward_profiles_on_simulation_begins:
        begin["profiles"] = [
            profile_to_wire(workload, name, known[name])
            for workload, known in sorted(data["profiles"].items())
            for name in sorted(known)
        ]
    return "SimulationBeginsEvent", begin


def _decode_begin(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    context = msgspec.json.decode(data.get("batsim_execution_context_json") or "{}")
    profiles: dict[str, dict[str, Any]] = {workload["name"]: {} for workload in data["workloads"]}
    for wire in data.get("profiles") or ():
        workload, name, raw = profile_from_wire(wire)
        profiles.setdefault(workload, {})[name] = raw
    return "SIMULATION_BEGINS", {
        "nb_resources": data["host_number"],
        "nb_compute_resources": data["computation_host_number"],
        "nb_storage_resources": data["storage_host_number"],
        "allow_compute_sharing": context.get("allow_compute_sharing", True),
        "allow_storage_sharing": context.get("allow_storage_sharing", True),
        "config": context.get("config", {}),
        "compute_resources": [_decode_host(host) for host in data["computation_hosts"]],
        "storage_resources": [_decode_host(host) for host in data["storage_hosts"]],
        "workloads": {workload["name"]: workload["filename"] for workload in data["workloads"]},
        "profiles": profiles,
    }


def _encode_host(host: Data) -> dict[str, Any]:
    encoded = {"id": host["id"], "name": host["name"], "state": host["state"].upper()}
    encoded |= {key: host[key] for key in _HOST_FACTS if key in host}
    for key in ("properties", "zone_properties"):
        pairs = sorted((host.get(key) or {}).items())
        encoded[key] = [{"key": name, "value": value} for name, value in pairs]
    return encoded


def _decode_host(host: Data) -> dict[str, Any]:
    decoded = {"id": host["id"], "name": host["name"], "state": host["state"].lower()}
    decoded |= {key: host[key] for key in _HOST_FACTS if key in host}
    for key in ("properties", "zone_properties"):
        decoded[key] = {entry["key"]: entry["value"] for entry in host.get(key) or ()}
    return decoded


def _encode_end(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "SimulationEndsEvent", {}


def _decode_end(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "SIMULATION_ENDS", {}


# Jobs.


def encode_job(workload: str, job: Data) -> dict[str, Any]:
    """Return a job of version 5; keys that it has no field for go to ``extra_data``."""
    encoded = {
        "profile_id": full_name(workload, str(job["profile"])),
        "resource_request": int(job["res"]),
    }
    if float(job.get("walltime", -1)) > 0:
        encoded["walltime"] = job["walltime"]
    rest = {key: value for key, value in job.items() if key not in _JOB_KEYS}
    if rest:
        only = rest["extra_data"] if rest.keys() == {"extra_data"} else rest
        encoded["extra_data"] = only if isinstance(only, str) else _json(only)
    return encoded


def decode_job(name: str, job: Data, submit_s: float) -> dict[str, Any]:
    """Return a job of version 4 under its full name."""
    workload = name.partition("!")[0]
    decoded = {
        "id": name,
        "subtime": submit_s,
        "res": job["resource_request"],
        "profile": short_name(workload, job["profile_id"]),
    }
    if job.get("walltime") is not None:
        decoded["walltime"] = job["walltime"]
    text = job.get("extra_data")
    if text:
        try:
            rest = msgspec.json.decode(text)
        except msgspec.DecodeError:
            rest = None
        packed = isinstance(rest, dict) and not rest.keys() & decoded.keys()
        decoded |= rest if packed else {"extra_data": text}
    return decoded


def _encode_submitted(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    name, job = data["job_id"], data["job"]
    workload = name.partition("!")[0]
    encoded: dict[str, Any] = {
        "job_id": name,
        "job": encode_job(workload, job),
        "submission_time": job["subtime"],
    }
    if "profile" in data:
        owner, _, inner = encoded["job"]["profile_id"].partition("!")
        encoded["profile"] = profile_to_wire(owner, inner, data["profile"])
    return "JobSubmittedEvent", encoded


def _decode_submitted(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    name = data["job_id"]
    job = decode_job(name, data["job"], data["submission_time"])
    decoded: dict[str, Any] = {"job_id": name, "job": job}
    if data.get("profile") is not None:
        decoded["profile"] = profile_from_wire(data["profile"])[2]
    return "JOB_SUBMITTED", decoded


def _encode_completed(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "JobCompletedEvent", {
        "job_id": data["job_id"],
        "state": data["job_state"],
        "return_code": data["return_code"],
    }


def _decode_completed(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    job = session.jobs.get(data["job_id"])
    return "JOB_COMPLETED", {
        "job_id": data["job_id"],
        "job_state": data["state"],
        "return_code": data["return_code"],
        "alloc": job.alloc if job is not None else "",
    }


def _encode_killed(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    progresses = [
        {"job_id": name, "wrapper": _encode_progress(name.partition("!")[0], tree, session)}
        for name, tree in data["job_progress"].items()
    ]
    encoded: dict[str, Any] = {"job_ids": data["job_ids"], "progresses": progresses}
    if session.features.forward_profiles_on_jobs_killed:
        trees = ((name.partition("!")[0], tree) for name, tree in data["job_progress"].items())
        names = {(workload, tree["profile_name"]) for workload, tree in trees}
        encoded["profiles"] = [
            profile_to_wire(workload, name, session.profiles[workload][name])
            for workload, name in sorted(names)
            if name in session.profiles.get(workload, {})
        ]
    return "JobsKilledEvent", encoded


def _decode_killed(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    progress = {
        progress["job_id"]: _decode_progress(
            progress["job_id"].partition("!")[0], progress["wrapper"], session
        )
        for progress in data["progresses"]
    }
    return "JOB_KILLED", {"job_ids": data["job_ids"], "job_progress": progress}


def _parts(workload: str, name: str, session: Session) -> int:
    """Return how many parts a repetition of a sequence has; 0 if the profile is unknown."""
    owner, _, inner = full_name(workload, name).partition("!")
    return len(session.profiles.get(owner, {}).get(inner, {}).get("seq", ()))


def _encode_progress(workload: str, tree: Data, session: Session) -> dict[str, Any]:
    name = tree["profile_name"]
    progress: dict[str, Any] = {"profile_id": full_name(workload, name)}
    if "current_task" not in tree:
        progress["progress"] = tree["progress"]
        return {"kill_progress_type": "KillProgressAtomicProfile", "kill_progress": progress}
    # Version 4 counts parts over all repetitions.
    index, parts = tree["current_task_index"], _parts(workload, name, session)
    repetition, index = divmod(index, parts) if parts else (0, index)
    progress |= {
        "current_repetition": repetition,
        "current_task_index": index,
        "current_task_progress": _encode_progress(workload, tree["current_task"], session),
    }
    return {"kill_progress_type": "KillProgressSequentialProfile", "kill_progress": progress}


def _decode_progress(workload: str, wrapper: Data, session: Session) -> dict[str, Any]:
    progress = wrapper["kill_progress"]
    name = short_name(workload, progress["profile_id"])
    if wrapper["kill_progress_type"] == "KillProgressAtomicProfile":
        return {"profile_name": name, "progress": progress["progress"]}
    before = progress["current_repetition"] * _parts(workload, name, session)
    return {
        "profile_name": name,
        "current_task_index": before + progress["current_task_index"],
        "current_task": _decode_progress(workload, progress["current_task_progress"], session),
    }


# Calls, hosts, external events and probes.


def _encode_call(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "RequestedCallEvent", {
        "call_me_later_id": data.get("id", ANONYMOUS_CALL),
        "last_periodic_call": data.get("last", False),
    }


def _decode_call(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    if data["call_me_later_id"] == ANONYMOUS_CALL:
        return "REQUESTED_CALL", {}
    last = data["last_periodic_call"]
    return "REQUESTED_CALL", {"id": data["call_me_later_id"], "last": last}


def _encode_switched(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    hosts, state = data["resources"], int(data["state"])
    if session.was_turned(hosts, state):
        return "HostsTurnedOnOffEvent", {"host_ids": hosts, "state": state}
    return "HostsPStateChangedEvent", {"host_ids": hosts, "pstate": state}


def _decode_switched(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    state = data["state"] if "state" in data else data["pstate"]
    return "RESOURCE_STATE_CHANGED", {"resources": data["host_ids"], "state": str(state)}


def _encode_notice(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    kind = data["type"]
    if kind in _NOTICES:
        return _NOTICES[kind], {}
    if kind == "generic" and isinstance(data.get("data"), str):
        text = data["data"]
    elif kind.removeprefix("event_") in _AVAILABILITY:
        text = _json({"type": kind.removeprefix("event_"), "resources": data["resources"]})
    else:
        text = _json(data)
    number = session.external_events
    session.external_events += 1
    return "ExternalEventOccurredEvent", {
        "id": f"external!{number}",
        "external_event_type": _GENERIC,
        "external_event": {"data": text},
    }


def _decode_notice(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    text = data["external_event"]["data"]
    try:
        event = msgspec.json.decode(text)
    except msgspec.DecodeError:
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return "NOTIFY", {"type": "generic", "timestamp": data["timestamp"], "data": text}
    if event["type"] in _AVAILABILITY and "resources" in event:
        return "NOTIFY", {"type": f"event_{event['type']}", "resources": event["resources"]}
    return "NOTIFY", event


def _encode_probe(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    kind = "AggregatedProbeData" if isinstance(data["value"], float) else "VectorialProbeData"
    return "ProbeDataEmittedEvent", {
        "probe_id": data["id"],
        "metrics": "Power",
        "resources_type": "HostResources",
        "resources": {"host_ids": data["resources"]},
        "data_type": kind,
        "data": {"data": data["value"]},
        "manually_triggered": False,
        "nb_emitted": data["count"],
        "nb_triggered": data["count"],
    }


def _decode_probe(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "PROBE_DATA", {
        "id": data["probe_id"],
        "resources": data["resources"]["host_ids"],
        "value": data["data"]["data"],
        "count": data["nb_emitted"],
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _notice(kind: str) -> Translation:
    return lambda data, session: ("NOTIFY", {"type": kind})


_ENCODERS: Final[Mapping[str, Translation]] = {
    "SIMULATION_BEGINS": _encode_begin,
    "SIMULATION_ENDS": _encode_end,
    "JOB_SUBMITTED": _encode_submitted,
    "JOB_COMPLETED": _encode_completed,
    "JOB_KILLED": _encode_killed,
    "REQUESTED_CALL": _encode_call,
    "RESOURCE_STATE_CHANGED": _encode_switched,
    "NOTIFY": _encode_notice,
    "PROBE_DATA": _encode_probe,
}
_DECODERS: Final[Mapping[str, Translation]] = {
    "SimulationBeginsEvent": _decode_begin,
    "SimulationEndsEvent": _decode_end,
    "JobSubmittedEvent": _decode_submitted,
    "JobCompletedEvent": _decode_completed,
    "JobsKilledEvent": _decode_killed,
    "RequestedCallEvent": _decode_call,
    "HostsPStateChangedEvent": _decode_switched,
    "HostsTurnedOnOffEvent": _decode_switched,
    "ExternalEventOccurredEvent": _decode_notice,
    "ProbeDataEmittedEvent": _decode_probe,
    **{wire: _notice(kind) for kind, wire in _NOTICES.items()},
}
