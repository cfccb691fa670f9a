"""Whatever a scheduler replies, the simulation goes on or refuses the reply by name."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batsim_scheduler import write_inputs
from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup

KINDS = (
    "EXECUTE_JOB", "REJECT_JOB", "KILL_JOB", "CALL_ME_LATER", "REGISTER_PROFILE", "REGISTER_JOB",
    "SET_RESOURCE_STATE", "SET_JOB_METADATA", "CHANGE_JOB_STATE", "QUERY", "ANSWER", "NOTIFY",
    "TO_JOB_MSG", "UNKNOWN",
)  # fmt: skip
KEYS = (
    "job_id", "alloc", "mapping", "storage_mapping", "job_ids", "timestamp", "workload_name",
    "profile_name", "profile", "job", "resources", "state", "metadata", "job_state", "requests",
    "type", "additional_io_job",
)  # fmt: skip
KNOWN = st.sampled_from(
    [
        "w0!0", "w0!1", "w0!9", "w1!0", "w0", "w1", "five", "0", "1", "0-1", "5", "1-0", "-1", "",
        "registration_finished", "continue_registration", "REJECTED", "COMPLETED_KILLED",
        ["w0!0"], ["w0!0", "w0!0"], [["w0!0"]], {"0": "0"}, {"0": "7"}, {"consumed_energy": {}},
        {"id": "w0!9", "subtime": 0, "res": 1, "profile": "five"},
        {"id": "w0!9", "subtime": 0, "res": 1, "profile": "new", "walltime": 3},
        {"type": "delay", "delay": 1}, {"type": "delay", "delay": "long"}, {"type": "composed"},
        {"type": "parallel", "cpu": [1, 2], "com": [0, 0, 0, 0]}, {"type": "data_staging"},
        {"type": "composed", "seq": ["new"]}, {"type": "composed", "seq": ["five", "five"]},
        {"type": "parallel_homogeneous", "cpu": -5, "com": -1},
        {"type": "parallel_homogeneous_pfs", "bytes_to_read": 5, "storage": "none"},
        {"type": "data_staging", "nb_bytes": 5, "from": "a", "to": "b"},
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = KNOWN | st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)
    ),
    max_leaves=4,
)
NATURAL: dict[str, tuple[str, ...]] = {
    "EXECUTE_JOB": ("job_id", "alloc"),
    "REJECT_JOB": ("job_id",),
    "KILL_JOB": ("job_ids",),
    "CALL_ME_LATER": ("timestamp",),
    "REGISTER_PROFILE": ("workload_name", "profile_name", "profile"),
    "REGISTER_JOB": ("job_id", "job"),
    "SET_RESOURCE_STATE": ("resources", "state"),
    "SET_JOB_METADATA": ("job_id", "metadata"),
    "CHANGE_JOB_STATE": ("job_id", "job_state"),
    "QUERY": ("requests",),
    "NOTIFY": ("type",),
}


@st.composite
def replies(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the events of a reply, often with the data that their kind needs."""
    events = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(KINDS))
        data: dict[str, Any] = {}
        if draw(st.booleans()):
            data = {key: draw(KNOWN) for key in NATURAL.get(kind, ())}
        data |= draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=2))
        events.append({"type": kind, "data": data})
    return events


@cache
def setup() -> BatsimSetup:
    folder = Path(tempfile.mkdtemp())
    write_inputs(folder)
    return BatsimSetup(platform=folder / "platform.xml", workloads=[folder / "jobs.json"])


def exchange(answers: list[bytes], options: ProtocolOptions) -> bool:
    """Run a simulation with these answers; return whether a refusal names its event."""
    simulation = setup().read().build(options)
    codec = JsonCodec()
    message = simulation.begin()
    try:
        for answer in answers:
            if message is None:
                break
            message = simulation.receive(codec.decode(answer))  # type: ignore[arg-type]
    except SchedulerError as error:
        return bool(error.event)
    finally:
        simulation.finish()
    return True


@given(st.lists(replies(), max_size=6), st.booleans(), st.booleans(), st.floats(0, 30, width=32))
def test_any_events_are_executed_or_refused(
    drawn: list[list[dict[str, Any]]], energy: bool, dynamic: bool, now_s: float
) -> None:
    options = ProtocolOptions(energy=energy, dynamic_jobs=dynamic, acknowledge_dynamic_jobs=dynamic)
    answers = [
        json.dumps(
            {"now": now_s, "events": [event | {"timestamp": now_s} for event in events]}
        ).encode()
        for events in drawn
    ]
    assert exchange(answers, options)


@given(st.lists(VALUES, max_size=3) | st.lists(st.binary(max_size=20), max_size=3))
def test_any_reply_is_accepted_or_refused(drawn: list[Any]) -> None:
    answers = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in drawn]
    assert exchange(answers, ProtocolOptions())


VALID: dict[str, dict[str, Any]] = {
    "EXECUTE_JOB": {
        "job_id": "w0!1",
        "alloc": "0",
        "mapping": {"0": "0"},
        "storage_mapping": {"pfs": "0"},
    },
    "REJECT_JOB": {"job_id": "w0!1"},
    "KILL_JOB": {"job_ids": ["w0!0"]},
    "CALL_ME_LATER": {"timestamp": 50},
    "REGISTER_PROFILE": {
        "workload_name": "w0",
        "profile_name": "new",
        "profile": {"type": "delay", "delay": 1},
    },
    "REGISTER_JOB": {
        "job_id": "w0!9",
        "job": {"id": "w0!9", "subtime": 0, "res": 1, "profile": "five"},
    },
    "SET_RESOURCE_STATE": {"resources": "0", "state": "0"},
    "SET_JOB_METADATA": {"job_id": "w0!1", "metadata": "text"},
    "CHANGE_JOB_STATE": {"job_id": "w0!1", "job_state": "REJECTED"},
    "QUERY": {"requests": {"consumed_energy": {}}},
    "NOTIFY": {"type": "registration_finished"},
    "TO_JOB_MSG": {"job_id": "w0!1", "msg": "text"},
}
NEAR: list[Any] = [
    "", " ", "x", "0", "0 0", "0-1", "1-0", "-1", "5", "w0!1", "w0!9", "w0", [], [0], [["a"]], {},
    {"0": "0"}, {"0": 0}, {"0": "7"}, {"0": "-1"}, {"0": "x"}, {"0": None}, {"1": "0"},
    {"pfs": "9"}, {"pfs": -1}, {"pfs": [0]}, 0, 1, -1, 5, 1.5, True, None, 10**30, -5.0, 1e300,
]  # fmt: skip
"""Values beside the right ones: of another type, of another form, and unknown or out of range."""
PYTHON_WORDS = (
    "object has no", "unhashable", "literal", "indices must", "argument must", "NoneType",
)  # fmt: skip


def refusal_of(kind: str, data: dict[str, Any]) -> SchedulerError | None:
    """Send one event while the first job runs and the second one waits."""
    simulation = setup().read().build(ProtocolOptions(energy=True, dynamic_jobs=True))
    run_first = {"job_id": "w0!0", "alloc": "1"}
    start = {"timestamp": 10.5, "type": "EXECUTE_JOB", "data": run_first}
    simulation.begin()
    try:
        simulation.receive({"now": 0.0, "events": []})
        simulation.receive({"now": 11.0, "events": [start]})
        event = {"timestamp": 11.0, "type": kind, "data": data}
        simulation.receive({"now": 11.0, "events": [event]})
    except SchedulerError as error:
        return error
    finally:
        simulation.finish()
    return None


def test_a_valid_event_with_one_other_value_is_executed_or_refused_in_words() -> None:
    refused = 0
    for kind, valid in VALID.items():
        assert refusal_of(kind, valid) is None
        for changed in (valid | {key: value} for key in valid for value in NEAR):
            refusal = refusal_of(kind, changed)
            if refusal is not None:
                refused += 1
                assert refusal.event == kind
                assert not any(word in str(refusal) for word in PYTHON_WORDS), refusal
    assert refused > 0
