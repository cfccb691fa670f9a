"""Requests of the scheduler: from version 5 to version 4, and back.

Requests that version 4 lacks (periodic calls, probes, an early stop) keep its form: a type in
capitals and data. The simulation accepts them from a scheduler of version 5 only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from equipoise.adapters.batsim.v5.events import ANONYMOUS_CALL, decode_job, encode_job
from equipoise.adapters.batsim.v5.profiles import profile_from_wire, profile_to_wire
from equipoise.adapters.batsim.v5.session import Session
from equipoise.sim.jobs.host_set import parse_host_set

Data = Mapping[str, Any]
Translation = Callable[[Data, Session], tuple[str, dict[str, Any]]]

_PREDEFINED: Final = "PredefinedExecutorPlacementStrategyWrapper"
_CUSTOM: Final = "CustomExecutorToHostMapping"
_SPREAD: Final = "SpreadOverHostsFirst"
_FILL: Final = "FillOneHostCoresFirst"
_AGGREGATIONS: Final = {
    "NoResourcesAggregation": "none",
    "Sum": "sum",
    "ArithmeticMean": "mean",
}


def decode_decision(event: Data, session: Session) -> dict[str, Any]:
    """Return a request of version 4; ``ValueError`` if it is not offered or wrong."""
    kind = event["event_type"]
    translation = _DECODERS.get(kind)
    if translation is None:
        raise ValueError("is no event of the protocol, or is not offered")
    at_s = event["timestamp"]
    name, data = translation({**event["event"], "timestamp": at_s}, session)
    request = {"timestamp": at_s, "type": name, "data": data}
    session.note_request(request)
    return request


def encode_decision(request: Data, session: Session) -> dict[str, Any]:
    """Return the event of version 5 for a request; ``ValueError`` if there is none."""
    translation = _ENCODERS.get(request["type"])
    if translation is None:
        raise ValueError(f"{request['type']} has no counterpart in version 5")
    kind, data = translation(request["data"], session)
    session.note_request(request)
    return {"timestamp": request["timestamp"], "event_type": kind, "event": data}


# Jobs.


def _decode_execute(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    if data.get("profile_allocation_override"):
        raise ValueError("profile_allocation_override is not offered; place the whole job")
    name, allocation = data["job_id"], data["allocation"]
    request: dict[str, Any] = {"job_id": name, "alloc": allocation["host_allocation"]}
    executors = _place(name, allocation, session)
    if executors is not None:
        request["mapping"] = {str(n): str(index) for n, index in enumerate(executors)}
    storages = data.get("storage_placement") or ()
    if storages:
        request["storage_mapping"] = {
            storage["storage_name"]: int(storage["host_id"]) for storage in storages
        }
    return "EXECUTE_JOB", request


def _place(name: str, allocation: Data, session: Session) -> Sequence[int] | None:
    """Return the place of each executor in the allocation; ``None`` if each has a host."""
    placement = allocation.get("executor_placement") or {}
    kind = allocation.get("executor_placement_type", _PREDEFINED)
    if kind == _CUSTOM:
        return [int(index) for index in placement["mapping"]]
    if kind != _PREDEFINED:
        raise ValueError(f"executor_placement_type {kind!r} is unknown")
    strategy = placement.get("strategy", _SPREAD)
    hosts = parse_host_set(allocation["host_allocation"])
    job = session.jobs.get(name)
    count = job.hosts_requested if job is not None else len(hosts)
    if not hosts:
        return None
    if strategy == _SPREAD:
        return None if count == len(hosts) else [n % len(hosts) for n in range(count)]
    if strategy == _FILL:
        cores = [
            index
            for index, number in enumerate(hosts)
            for _ in range(session.cores[number] if number < len(session.cores) else 1)
        ]
        filled = [cores[n % len(cores)] for n in range(count)]
        return None if filled == list(range(len(hosts))) else filled
    raise ValueError(f"strategy {strategy!r} is unknown; use {_SPREAD} or {_FILL}")


def _encode_execute(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    if "additional_io_job" in data:
        raise ValueError("EXECUTE_JOB with additional_io_job has no counterpart in version 5")
    mapping = data.get("mapping")
    allocation: dict[str, Any] = {"host_allocation": data["alloc"]}
    if mapping is None:
        allocation["executor_placement_type"] = _PREDEFINED
        allocation["executor_placement"] = {"strategy": _SPREAD}
    else:
        indices = [int(mapping[str(n)]) for n in range(len(mapping))]
        allocation["executor_placement_type"] = _CUSTOM
        allocation["executor_placement"] = {"mapping": indices}
    encoded: dict[str, Any] = {"job_id": data["job_id"], "allocation": allocation}
    if data.get("storage_mapping"):
        encoded["storage_placement"] = [
            {"storage_name": label, "host_id": int(number)}
            for label, number in data["storage_mapping"].items()
        ]
    return "ExecuteJobEvent", encoded


def _decode_reject(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "REJECT_JOB", {"job_id": data["job_id"]}


def _encode_reject(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "RejectJobEvent", {"job_id": data["job_id"]}


def _decode_kill(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "KILL_JOB", {"job_ids": data["job_ids"]}


def _encode_kill(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "KillJobsEvent", {"job_ids": data["job_ids"]}


def _decode_register_profile(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    workload, name, raw = profile_from_wire(data["profile"])
    return "REGISTER_PROFILE", {"workload_name": workload, "profile_name": name, "profile": raw}


def _encode_register_profile(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    wire = profile_to_wire(data["workload_name"], data["profile_name"], data["profile"])
    return "RegisterProfileEvent", {"profile": wire}


def _decode_register_job(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    name = data["job_id"]
    # The job arrives when the request takes effect.
    job = decode_job(name, data["job"], max(data["timestamp"], session.now_s))
    return "REGISTER_JOB", {"job_id": name, "job": job}


def _encode_register_job(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    name = data["job_id"]
    job = encode_job(name.partition("!")[0], data["job"])
    return "RegisterJobEvent", {"job_id": name, "job": job}


def _decode_finish(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "NOTIFY", {"type": "registration_finished"}


def _encode_notice(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    if data["type"] != "registration_finished":
        raise ValueError(f"NOTIFY {data['type']} has no counterpart in version 5")
    return "FinishRegistrationEvent", {}


# Calls and probes.


def _in_ms(value: Any, unit: str) -> int:
    if unit not in {"Second", "Millisecond"}:
        raise ValueError(f"time_unit {unit!r} is unknown")
    return int(value) * (1000 if unit == "Second" else 1)


def _decode_period(when: Data) -> dict[str, Any]:
    unit = when.get("time_unit", "Second")
    period_ms, offset_ms = _in_ms(when["period"], unit), _in_ms(when.get("offset", 0), unit)
    mode = when.get("mode_type", "Infinite")
    if mode not in {"Infinite", "FinitePeriodNumber"}:
        raise ValueError(f"mode_type {mode!r} is unknown")
    count = int(when["mode"]["nb_periods"]) if mode == "FinitePeriodNumber" else None
    if period_ms < 1 or (count is not None and count < 1):
        raise ValueError("period and nb_periods must be positive")
    return {"period_ms": period_ms, "offset_ms": offset_ms, "count": count}


def _encode_period(data: Data) -> dict[str, Any]:
    when = {"period": data["period_ms"], "offset": data["offset_ms"], "time_unit": "Millisecond"}
    if data["count"] is None:
        return when | {"mode_type": "Infinite", "mode": {}}
    return when | {"mode_type": "FinitePeriodNumber", "mode": {"nb_periods": data["count"]}}


def _decode_call(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    name, kind, when = data["call_me_later_id"], data["when_type"], data["when"]
    if kind == "Periodic":
        return "CALL_ME_LATER", {"id": name, **_decode_period(when)}
    if kind != "OneShot":
        raise ValueError(f"when_type {kind!r} is unknown; use OneShot or Periodic")
    at_s = _in_ms(when["time"], when.get("time_unit", "Second")) / 1000
    call = {} if name == ANONYMOUS_CALL else {"id": name}
    return "CALL_ME_LATER", {"timestamp": at_s, **call}


def _encode_call(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    call = {"call_me_later_id": data.get("id", ANONYMOUS_CALL)}
    if "period_ms" in data:
        return "CallMeLaterEvent", {**call, "when_type": "Periodic", "when": _encode_period(data)}
    # Version 5 counts whole milliseconds; a call is never too early.
    at_ms = round(data["timestamp"] * 1000)
    at_ms += at_ms / 1000 < data["timestamp"]
    when = {"time": at_ms, "time_unit": "Millisecond"}
    return "CallMeLaterEvent", {**call, "when_type": "OneShot", "when": when}


def _decode_stop_call(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "STOP_CALL_ME_LATER", {"id": data["call_me_later_id"]}


def _encode_stop_call(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "StopCallMeLaterEvent", {"call_me_later_id": data["id"]}


def _decode_probe(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    """Offer what Batsim has: the energy of hosts up to now, in regular periods."""
    wanted = {
        "metrics": "Power",
        "resources_type": "HostResources",
        "data_accumulation_strategy_type": "ProbeDataAccumulation",
        "measurement_triggering_policy_type": "TemporalTriggerWrapper",
    }
    for key, value in wanted.items():
        if data.get(key) != value:
            raise ValueError(f"a probe with {key} {data.get(key)!r} is not offered; use {value}")
    if (data["data_accumulation_strategy"] or {}).get("reset_mode_type") != "NoReset":
        raise ValueError("a probe with a reset is not offered; use NoReset")
    trigger = data["measurement_triggering_policy"]
    if trigger["temporal_trigger_type"] != "Periodic":
        raise ValueError("a probe without a period is not offered; use Periodic")
    aggregation = data.get("resources_aggregation_function_type", "NoResourcesAggregation")
    if aggregation not in _AGGREGATIONS:
        choices = ", ".join(_AGGREGATIONS)
        raise ValueError(f"a probe with {aggregation!r} is not offered; use one of {choices}")
    return "CREATE_PROBE", {
        "id": data["probe_id"],
        "resources": data["resources"]["host_ids"],
        "aggregate": _AGGREGATIONS[aggregation],
        **_decode_period(trigger["temporal_trigger"]),
    }


def _encode_probe(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    names = {ours: theirs for theirs, ours in _AGGREGATIONS.items()}
    return "CreateProbeEvent", {
        "probe_id": data["id"],
        "metrics": "Power",
        "resources_type": "HostResources",
        "resources": {"host_ids": data["resources"]},
        "data_accumulation_strategy_type": "ProbeDataAccumulation",
        "data_accumulation_strategy": {"reset_mode_type": "NoReset", "reset_mode": {}},
        "measurement_triggering_policy_type": "TemporalTriggerWrapper",
        "measurement_triggering_policy": {
            "temporal_trigger_type": "Periodic",
            "temporal_trigger": _encode_period(data),
        },
        "resources_aggregation_function_type": names[data["aggregate"]],
        "resources_aggregation_function": {},
    }


def _decode_stop_probe(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "STOP_PROBE", {"id": data["probe_id"]}


def _encode_stop_probe(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "StopProbeEvent", {"probe_id": data["id"]}


# Hosts, and the end.


def _decode_pstate(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    request = {"resources": data["host_ids"], "state": str(int(data["pstate"]))}
    if session.turns_on_or_off(request):
        raise ValueError("a host that sleeps or is to sleep changes by TurnOnOffHostsEvent")
    return "SET_RESOURCE_STATE", request


def _decode_turn(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    request = {"resources": data["host_ids"], "state": str(int(data["state"]))}
    if not session.turns_on_or_off(request):
        raise ValueError("a host that computes changes its speed by ChangeHostsPStateEvent")
    return "SET_RESOURCE_STATE", request


def _encode_state(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    hosts, state = data["resources"], int(data["state"])
    if session.turns_on_or_off(data):
        return "TurnOnOffHostsEvent", {"host_ids": hosts, "state": state}
    return "ChangeHostsPStateEvent", {"host_ids": hosts, "pstate": state}


def _decode_stop(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "FORCE_SIMULATION_STOP", {}


def _encode_stop(data: Data, session: Session) -> tuple[str, dict[str, Any]]:
    return "ForceSimulationStopEvent", {}


_DECODERS: Final[Mapping[str, Translation]] = {
    "ExecuteJobEvent": _decode_execute,
    "RejectJobEvent": _decode_reject,
    "KillJobsEvent": _decode_kill,
    "RegisterProfileEvent": _decode_register_profile,
    "RegisterJobEvent": _decode_register_job,
    "FinishRegistrationEvent": _decode_finish,
    "CallMeLaterEvent": _decode_call,
    "StopCallMeLaterEvent": _decode_stop_call,
    "CreateProbeEvent": _decode_probe,
    "StopProbeEvent": _decode_stop_probe,
    "ChangeHostsPStateEvent": _decode_pstate,
    "TurnOnOffHostsEvent": _decode_turn,
    "ForceSimulationStopEvent": _decode_stop,
}
_ENCODERS: Final[Mapping[str, Translation]] = {
    "EXECUTE_JOB": _encode_execute,
    "REJECT_JOB": _encode_reject,
    "KILL_JOB": _encode_kill,
    "REGISTER_PROFILE": _encode_register_profile,
    "REGISTER_JOB": _encode_register_job,
    "NOTIFY": _encode_notice,
    "CALL_ME_LATER": _encode_call,
    "STOP_CALL_ME_LATER": _encode_stop_call,
    "CREATE_PROBE": _encode_probe,
    "STOP_PROBE": _encode_stop_probe,
    "SET_RESOURCE_STATE": _encode_state,
    "FORCE_SIMULATION_STOP": _encode_stop,
}
