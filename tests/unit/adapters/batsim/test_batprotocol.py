"""Version 5 of the protocol: translation of every event, the greeting, and its own requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from batsim_files import plain_setup, run_in_process, write_platform, write_workload
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.v5.codec import BatprotocolCodec, DecisionCodec
from equipoise.adapters.batsim.v5.decisions import decode_decision, encode_decision
from equipoise.adapters.batsim.v5.events import decode_event, encode_event
from equipoise.adapters.batsim.v5.session import Session, WantedFeatures

SLEEP = {"role": "", "sleep_pstates": "1:2:3"}
ALL = WantedFeatures(*[True] * 6)
PROFILES = {
    "d": {"type": "delay", "delay": 3, "ret": 1},
    "p": {"type": "parallel", "cpu": [1.5, 2], "com": [0, 1, 2, 0]},
    "h": {"type": "parallel_homogeneous", "cpu": 5, "com": 1},
    "t": {"type": "parallel_homogeneous_total", "cpu": 5, "com": 1, "note": "x"},
    "s": {"type": "composed", "repeat": 4, "seq": ["d", "p"]},
    "f": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1, "bytes_to_write": 2,
          "storage": "nfs"},
    "g": {"type": "data_staging", "nb_bytes": 9, "from": "a", "to": "b"},
    "m": {"type": "smpi", "trace": "x/y.txt"},
    "v": {"type": "DelayProfile", "delay": 2, "extra_data": "kept"},
    "w": {"type": "ParallelTaskMergeCompositionProfile", "profile_ids": ["p", "h"]},
}  # fmt: skip
BEGIN = {
    "nb_resources": 3,
    "nb_compute_resources": 2,
    "nb_storage_resources": 1,
    "allow_compute_sharing": False,
    "allow_storage_sharing": True,
    "config": {"dynamic-jobs-enabled": True, "sched-config": "x"},
    "compute_resources": [
        {"id": n, "name": f"h{n}", "state": "idle", "properties": SLEEP, "zone_properties": {}}
        for n in range(2)
    ],
    "storage_resources": [
        {"id": 2, "name": "s", "state": "idle", "properties": {}, "zone_properties": {"a": "b"}}
    ],
    "workloads": {"w0": "/jobs.json"},
    "profiles": {"w0": PROFILES},
}
JOB = {"id": "w0!1", "subtime": 3.5, "res": 2, "profile": "s", "walltime": 20, "user": "ann"}
TREE = {
    "profile_name": "s",
    "current_task_index": 5,
    "current_task": {"profile_name": "p", "progress": 0.25},
}
TO_SCHEDULER: list[tuple[str, dict[str, Any]]] = [
    ("JOB_SUBMITTED", {"job_id": "w0!1", "job": JOB, "profile": PROFILES["s"]}),
    ("JOB_SUBMITTED", {"job_id": "w0!2", "job": {**JOB, "id": "w0!2"}}),
    ("REQUESTED_CALL", {}),
    ("REQUESTED_CALL", {"id": "mine", "last": True}),
    ("NOTIFY", {"type": "no_more_static_job_to_submit"}),
    ("NOTIFY", {"type": "no_more_external_event_to_occur"}),
    ("NOTIFY", {"type": "event_machine_unavailable", "resources": "0-1"}),
    ("NOTIFY", {"type": "event_machine_available", "resources": "1"}),
    ("NOTIFY", {"type": "generic", "timestamp": 7.0, "data": "some text"}),
    ("NOTIFY", {"type": "own", "timestamp": 7.0, "value": [1]}),
    ("JOB_KILLED", {"job_ids": ["w0!1"], "job_progress": {"w0!1": TREE}}),
    ("JOB_KILLED", {"job_ids": ["w0!1"], "job_progress": {}}),
    ("PROBE_DATA", {"id": "p", "resources": "0-1", "value": [1.0, 2.0], "count": 1}),
    ("PROBE_DATA", {"id": "p", "resources": "0-1", "value": 3.0, "count": 2}),
    ("SIMULATION_ENDS", {}),
]
OF_SCHEDULER: list[tuple[str, dict[str, Any]]] = [
    ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0-1"}),
    ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0", "mapping": {"0": "0", "1": "0"}}),
    ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0-1", "storage_mapping": {"nfs": 2}}),
    ("REJECT_JOB", {"job_id": "w0!1"}),
    ("KILL_JOB", {"job_ids": ["w0!1", "w0!2"]}),
    ("CALL_ME_LATER", {"timestamp": 12.345}),
    ("CALL_ME_LATER", {"timestamp": 9.0, "id": "mine"}),
    ("CALL_ME_LATER", {"id": "mine", "period_ms": 500, "offset_ms": 27, "count": None}),
    ("CALL_ME_LATER", {"id": "mine", "period_ms": 500, "offset_ms": 0, "count": 3}),
    ("STOP_CALL_ME_LATER", {"id": "mine"}),
    ("REGISTER_JOB", {"job_id": "dyn!7", "job": {"id": "dyn!7", "subtime": 8.0, "res": 1,
                                                 "profile": "w0!d", "walltime": 5}}),
    ("NOTIFY", {"type": "registration_finished"}),
    ("SET_RESOURCE_STATE", {"resources": "0-1", "state": "1"}),
    ("SET_RESOURCE_STATE", {"resources": "0", "state": "4"}),
    ("CREATE_PROBE", {"id": "p", "resources": "0-1", "aggregate": "sum", "period_ms": 1000,
                      "offset_ms": 0, "count": 4}),
    ("STOP_PROBE", {"id": "p"}),
    ("FORCE_SIMULATION_STOP", {}),
]  # fmt: skip
OF_SCHEDULER += [
    ("REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": name, "profile": raw})
    for name, raw in PROFILES.items()
]


def event(kind: str, data: Any, at_s: float = 7.0) -> dict[str, Any]:
    """Return an event of version 4."""
    return {"timestamp": at_s, "type": kind, "data": data}


def sessions() -> tuple[Session, Session]:
    """Return the memories of both ends after the first messages."""
    ends = Session(ALL, now_s=8.0), Session(ALL, now_s=8.0)
    for session in ends:
        session.note_event(event("SIMULATION_BEGINS", BEGIN))
        session.note_event(event("JOB_SUBMITTED", {"job_id": "w0!1", "job": JOB}))
    return ends


@pytest.mark.parametrize(("kind", "data"), [("SIMULATION_BEGINS", BEGIN), *TO_SCHEDULER])
def test_an_event_to_the_scheduler_comes_back_as_it_was(kind: str, data: dict[str, Any]) -> None:
    here, there = sessions()
    wire = json.loads(json.dumps(encode_event(event(kind, data), here)))
    assert decode_event(wire, there) == event(kind, data)


@pytest.mark.parametrize(("kind", "data"), OF_SCHEDULER)
def test_a_request_comes_back_as_it_was(kind: str, data: dict[str, Any]) -> None:
    here, there = sessions()
    wire = json.loads(json.dumps(encode_decision(event(kind, data, 8.0), there)))
    assert decode_decision(wire, here) == event(kind, data, 8.0)


def test_the_hosts_of_an_ended_job_and_the_kind_of_a_switch_come_from_memory() -> None:
    here, there = sessions()

    def pass_request(kind: str, data: dict[str, Any]) -> str:
        wire = encode_decision(event(kind, data), there)
        decode_decision(wire, here)
        return str(wire["event_type"])

    def pass_event(kind: str, data: dict[str, Any]) -> str:
        wire = encode_event(event(kind, data), here)
        assert decode_event(wire, there) == event(kind, data)
        return str(wire["event_type"])

    pass_request("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0-1"})
    done = {"job_id": "w0!1", "job_state": "COMPLETED_FAILED", "return_code": 1, "alloc": "0-1"}
    assert pass_event("JOB_COMPLETED", done) == "JobCompletedEvent"
    assert not here.jobs
    assert not there.jobs
    for state, request, answer in [
        ("1", "TurnOnOffHostsEvent", "HostsTurnedOnOffEvent"),
        ("0", "TurnOnOffHostsEvent", "HostsTurnedOnOffEvent"),
        ("4", "ChangeHostsPStateEvent", "HostsPStateChangedEvent"),
    ]:
        data = {"resources": "0-1", "state": state}
        assert pass_request("SET_RESOURCE_STATE", data) == request
        assert pass_event("RESOURCE_STATE_CHANGED", data) == answer


def hello(flags: int = 2, **features: bool) -> bytes:
    """Return the first answer of a scheduler."""
    data = {
        "batprotocol_version": "1.0.0",
        "decision_component_name": "s",
        "decision_component_version": "1",
        "requested_simulation_features": features,
    }
    events = [{"timestamp": 0, "event_type": "EDCHelloEvent", "event": data}]
    return pack("=I", flags) + json.dumps({"now": 0, "events": events}).encode()


def test_the_greeting_sends_the_initial_text_and_takes_what_the_scheduler_wants() -> None:
    sent: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        sent.append(frame)
        return hello(dynamic_registration=True, forward_profiles_on_job_submission=True)

    codec = BatprotocolCodec(b"abc")
    options = codec.greet(answer, ProtocolOptions())
    assert sent == [pack("=I", 3) + b"abc"]
    assert (options.version, options.dynamic_jobs, options.forward_profiles) == (5, True, True)
    assert codec.scheduler == "s 1"
    assert codec.encode({"now": 1.0, "events": []}).endswith(b"}\0")


@pytest.mark.parametrize(
    "frame", [hello(flags=1), hello(flags=0), b"", pack("=I", 2) + b"{}", pack("=I", 2) + b"no"]
)
def test_binary_messages_and_other_first_messages_are_refused(frame: bytes) -> None:
    with pytest.raises(SchedulerError) as error:
        BatprotocolCodec().greet(lambda sent: frame, ProtocolOptions())
    assert (error.value.code, error.value.event) == ("scheduler-protocol", "EDCHelloEvent")


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("TriggerProbeEvent", {"probe_id": "p"}),
        ("ResetProbeEvent", {"probe_id": "p"}),
        ("CreateProbeEvent", {"probe_id": "p", "metrics": "Load"}),
        ("ExecuteJobEvent", {"job_id": "w0!1"}),
        ("ExecuteJobEvent", {"job_id": "w0!1", "allocation": {"host_allocation": "0"},
                             "profile_allocation_override": [{}]}),
        ("ChangeHostsPStateEvent", {"host_ids": "0", "pstate": 1}),
        ("TurnOnOffHostsEvent", {"host_ids": "0", "state": 4}),
        ("CallMeLaterEvent", {"call_me_later_id": "c", "when_type": "Never", "when": {}}),
        ("Nonsense", {}),
    ],
)  # fmt: skip
def test_what_is_not_offered_is_refused_by_name(kind: str, data: dict[str, Any]) -> None:
    codec = BatprotocolCodec()
    codec.greet(lambda sent: hello(), ProtocolOptions())
    codec.encode({"now": 0.0, "events": [event("SIMULATION_BEGINS", BEGIN)]})
    reply = {"now": 0, "events": [{"timestamp": 0, "event_type": kind, "event": data}]}
    with pytest.raises(SchedulerError) as error:
        codec.decode(json.dumps(reply).encode())
    assert (error.value.code, error.value.event) == ("scheduler-protocol", kind)


Decide = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def scheduler(decide: Decide, wanted: WantedFeatures | None = None) -> Callable[[bytes], bytes]:
    """Return a scheduler of version 5 from a function of events of version 4."""
    codec = DecisionCodec(wanted or WantedFeatures())
    greeted: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        if not greeted:
            greeted.append(frame)
            return codec.hello("test", "1")
        message = codec.decode(frame)
        now = message["now"]
        events = [{"timestamp": now, **each} for each in decide(message["events"])]
        return codec.encode({"now": now, "events": events})

    return answer


def test_periodic_calls_come_at_multiples_until_they_stop(tmp_path: Path) -> None:
    write_platform(tmp_path, 1)
    write_workload(tmp_path, 1, [])
    calls: list[tuple[float, str, bool]] = []

    def decide(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        requests = []
        for each in events:
            if each["type"] == "SIMULATION_BEGINS":
                period = {"id": "three", "period_ms": 500, "offset_ms": 0, "count": 3}
                endless = {"id": "endless", "period_ms": 2000, "offset_ms": 100, "count": None}
                requests += [
                    {"type": "CALL_ME_LATER", "data": period},
                    {"type": "CALL_ME_LATER", "data": endless},
                    {"type": "CALL_ME_LATER", "data": {"timestamp": 1.25, "id": "once"}},
                ]
            elif each["type"] == "REQUESTED_CALL":
                calls.append((each["timestamp"], each["data"]["id"], each["data"]["last"]))
                if each["timestamp"] > 4:
                    requests.append({"type": "STOP_CALL_ME_LATER", "data": {"id": "endless"}})
        return requests

    run_in_process(plain_setup(tmp_path), BatprotocolCodec(), scheduler(decide))
    assert calls == [
        (0.1, "endless", False), (0.5, "three", False), (1.0, "three", False),
        (1.25, "once", False), (1.5, "three", True), (2.1, "endless", False),
        (4.1, "endless", False),
    ]  # fmt: skip


def test_a_forced_stop_ends_the_run_and_drops_what_follows(tmp_path: Path) -> None:
    write_platform(tmp_path, 2)
    jobs = [{"id": n, "subtime": 5 * n, "res": 1, "profile": "d"} for n in range(3)]
    write_workload(tmp_path, 2, jobs, d={"type": "DelayProfile", "delay": 3})
    seen: list[str] = []

    def decide(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        requests = []
        for each in events:
            seen.append(each["type"])
            if each["type"] == "JOB_SUBMITTED":
                name = each["data"]["job_id"]
                if name == "w0!1":
                    requests.append({"type": "FORCE_SIMULATION_STOP", "data": {}})
                requests.append({"type": "EXECUTE_JOB", "data": {"job_id": name, "alloc": "0"}})
        return requests

    ended = run_in_process(plain_setup(tmp_path), BatprotocolCodec(), scheduler(decide))
    assert [job.name for job in ended] == ["0"]
    assert seen[-2:] == ["JOB_SUBMITTED", "SIMULATION_ENDS"]


def test_probes_report_the_energy_of_hosts_in_regular_periods(tmp_path: Path) -> None:
    watts = '<prop id="wattage_per_state" value="10:20:20, 1:1:1, 1:1:1, 1:1:1, 1:1:1"/>'
    write_platform(tmp_path, 2, watts)
    write_workload(tmp_path, 2, [])
    values: list[tuple[float, Any]] = []

    def decide(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if events[0]["type"] == "SIMULATION_BEGINS":
            probe = {"resources": "0-1", "period_ms": 1000, "offset_ms": 0, "count": 2}
            return [
                {"type": "CREATE_PROBE", "data": {**probe, "id": kind, "aggregate": kind}}
                for kind in ("none", "sum", "mean")
            ]
        data = [(each["timestamp"], each["data"]) for each in events if "value" in each["data"]]
        values.extend((at_s, each["value"]) for at_s, each in data)
        return []

    setup = plain_setup(tmp_path, energy=True)
    run_in_process(setup, BatprotocolCodec(), scheduler(decide))
    assert values == [
        (2.0, [20.0, 20.0]), (2.0, 40.0), (2.0, 20.0),
        (3.0, [30.0, 30.0]), (3.0, 60.0), (3.0, 30.0),
    ]  # fmt: skip


def test_registered_jobs_run_with_profiles_of_their_own_and_of_other_workloads(
    tmp_path: Path,
) -> None:
    write_platform(tmp_path, 2)
    write_workload(tmp_path, 2, [], d={"type": "DelayProfile", "delay": 3})
    profile = {"type": "ParallelTaskHomogeneousProfile", "cpu": 40, "com": 0,
               "generation_strategy": "DefinedAmountsSpreadUniformly"}  # fmt: skip

    def decide(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        requests = []
        for each in events:
            if each["type"] == "SIMULATION_BEGINS":
                new = {"workload_name": "dyn", "profile_name": "c", "profile": profile}
                jobs = {"dyn!1": ("c", 2), "dyn!2": ("w0!d", 1)}
                requests.append({"type": "REGISTER_PROFILE", "data": new})
                requests += [
                    {"type": "REGISTER_JOB", "data": {"job_id": name, "job": {
                        "id": name, "subtime": 0, "res": size, "profile": used}}}
                    for name, (used, size) in jobs.items()
                ]  # fmt: skip
                requests.append({"type": "NOTIFY", "data": {"type": "registration_finished"}})
            elif each["type"] == "JOB_SUBMITTED":
                data = {"job_id": each["data"]["job_id"], "alloc": "0-1"}
                data["mapping"] = {str(n): str(n) for n in range(each["data"]["job"]["res"])}
                requests.append({"type": "EXECUTE_JOB", "data": data})
        return requests

    wanted = WantedFeatures(
        dynamic_registration=True,
        acknowledge_dynamic_jobs=True,
        forward_profiles_on_job_submission=True,
    )
    answer = scheduler(decide, wanted)
    ended = run_in_process(plain_setup(tmp_path), BatprotocolCodec(), answer)
    # 20 operations per host at 10 per second; version 5 lets jobs share hosts.
    assert {job.name: job.end_s for job in ended} == {"1": 2.0, "2": 3.0}


@pytest.mark.parametrize(
    ("strategy", "alloc", "seconds"),
    [
        ("SpreadOverHostsFirst", "0-3", 4.0),
        ("SpreadOverHostsFirst", "0-1", 4.0),  # two executors on the two cores of each host
        ("FillOneHostCoresFirst", "0-3", 4.0),
        ("SpreadOverHostsFirst", "0", 8.0),  # four executors on two cores
    ],
)
def test_executors_are_placed_by_the_strategy(
    tmp_path: Path, strategy: str, alloc: str, seconds: float
) -> None:
    write_platform(tmp_path, 4, cores=2)
    jobs = [{"id": 0, "subtime": 0, "res": 4, "profile": "c"}]
    task = {"type": "ParallelTaskHomogeneousProfile", "cpu": 40, "com": 0}
    write_workload(tmp_path, 4, jobs, c=task)

    def answer(frame: bytes) -> bytes:
        if frame == pack("=I", 0):
            return hello()
        message = json.loads(frame[:-1])
        placement = {
            "host_allocation": alloc,
            "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
            "executor_placement": {"strategy": strategy},
        }
        starts = [
            {"timestamp": message["now"], "event_type": "ExecuteJobEvent",
             "event": {"job_id": each["event"]["job_id"], "allocation": placement}}
            for each in message["events"] if each["event_type"] == "JobSubmittedEvent"
        ]  # fmt: skip
        return json.dumps({"now": message["now"], "events": starts}).encode()

    (job,) = run_in_process(plain_setup(tmp_path), BatprotocolCodec(), answer)
    assert job.end_s == seconds
