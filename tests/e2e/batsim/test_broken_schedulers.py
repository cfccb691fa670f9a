"""Schedulers that break the protocol, over a real socket: each failure names the event."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batsim_scheduler import Answer, ThreadScheduler, event, is_at, write_inputs
from command import answer, call_here
from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.transport.connection import AnswerLimits
from equipoise.adapters.batsim.transport.driver import RunFailed
from equipoise.adapters.batsim.transport.launch import SchedulerOptions, run_scheduler

Fault = Callable[[dict[str, Any], bytes], Answer]


def instead(reply: Any, at: str = "JOB_SUBMITTED") -> Fault:
    """Answer so when the second job arrives; the first one has ended then."""
    frames = reply if isinstance(reply, bytes | list | None) else json.dumps(reply).encode()
    return lambda message, good: frames if is_at(message, at) else good


def sending(*events: dict[str, Any], now: float = 10) -> Fault:
    return instead({"now": now, "events": list(events)})


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def failure(
    tmp_path: Path, fault: Fault, limits: AnswerLimits | None = None, **options: Any
) -> RunFailed:
    """Run a scheduler with a fault; return the failure after a check of the files."""
    write_inputs(tmp_path)
    setup = BatsimSetup(
        platform=tmp_path / "platform.xml",
        workloads=[tmp_path / "jobs.json"],
        export=str(tmp_path / "out"),
        options=ProtocolOptions(**options),
    )
    with ThreadScheduler(fault) as scheduler, pytest.raises(RunFailed) as failed:
        run_scheduler(
            setup.read(),
            JsonCodec(),
            SchedulerOptions(
                endpoint=scheduler.endpoint, limits=limits or AnswerLimits(first_s=10, each_s=10)
            ),
        )
    jobs = rows(tmp_path / "out_jobs.csv")
    assert jobs[0]["job_id"] == "0"
    assert jobs[0]["finish_time"] == "5.000000"
    (schedule,) = rows(tmp_path / "out_schedule.csv")
    assert int(schedule["nb_jobs"]) == len(jobs) == failed.value.run.figures["nb_jobs"]
    assert float(rows(tmp_path / "out_machine_states.csv")[-1]["time"]) >= 5
    return failed.value


NONSENSE = {
    "no JSON": instead(b"hello"),
    "nothing": instead(b""),
    "binary": instead(b"\xff\xfe\x00\x01"),
    "text that is no UTF-8": instead(b'{"now": 10, "events": ["\xff"]}'),
    "deep": instead(b"[" * 200_000),
    "two texts": instead(b'{"now": 10, "events": []}{}'),
    "not a number": instead(b'{"now": NaN, "events": []}'),
    "too large": instead(b'{"now": 1e999, "events": []}'),
    "far too large": instead(b'{"now": 1' + b"0" * 400 + b', "events": []}'),
    "a list": instead(b"[]"),
    "two frames": instead([b'{"now": 10, "events": []}', b"more"]),
    "no events": instead({"now": 10}),
    "events of another type": instead({"now": 10, "events": {"type": "NOTIFY"}}),
    "no time": instead({"events": []}),
    "event without type": instead({"now": 10, "events": [{"timestamp": 10, "data": {}}]}),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(tmp_path: Path, name: str) -> None:
    error = failure(tmp_path, NONSENSE[name])
    assert error.code == "scheduler-protocol"
    assert "JOB_SUBMITTED" in str(error)
    assert "reply" in str(error)


EXECUTE = {"job_id": "w0!1", "alloc": "0"}
REFUSED: dict[str, tuple[Fault, str]] = {
    "no data": (
        instead({"now": 10, "events": [{"timestamp": 10, "type": "NOTIFY"}]}),
        "NOTIFY",
    ),
    "unknown event": (sending(event(10, "DANCE")), "DANCE"),
    "after now": (sending(event(11, "EXECUTE_JOB", **EXECUTE)), "EXECUTE_JOB"),
    "out of order": (
        sending(event(10, "EXECUTE_JOB", **EXECUTE), event(9, "NOTIFY", type="x")),
        "NOTIFY",
    ),
    "started twice": (
        sending(event(10, "EXECUTE_JOB", **EXECUTE), event(10, "EXECUTE_JOB", **EXECUTE)),
        "EXECUTE_JOB",
    ),
    "ended job": (sending(event(10, "EXECUTE_JOB", job_id="w0!0", alloc="0")), "EXECUTE_JOB"),
    "unknown job": (sending(event(10, "EXECUTE_JOB", job_id="w0!7", alloc="0")), "EXECUTE_JOB"),
    "job that has not arrived": (
        sending(event(10, "EXECUTE_JOB", job_id="w0!2", alloc="0")),
        "EXECUTE_JOB",
    ),
    "too many hosts": (
        sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc="0-1")),
        "EXECUTE_JOB",
    ),
    "unknown host": (sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc="2")), "EXECUTE_JOB"),
    "all hosts there are": (
        sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc="0-99999999999999")),
        "EXECUTE_JOB",
    ),
    "hosts as a number": (
        sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc=1)),
        "EXECUTE_JOB",
    ),
    "no host": (sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc="")), "EXECUTE_JOB"),
    "words for hosts": (
        sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc="all")),
        "EXECUTE_JOB",
    ),
    "incomplete start": (sending(event(10, "EXECUTE_JOB", job_id="w0!1")), "EXECUTE_JOB"),
    "job as a list": (
        sending(event(10, "EXECUTE_JOB", job_id=["w0!1"], alloc="0")),
        "EXECUTE_JOB",
    ),
    "second job for files": (
        sending(event(10, "EXECUTE_JOB", job_id="w0!1", alloc="0", additional_io_job={})),
        "EXECUTE_JOB",
    ),
    "call in the past": (sending(event(10, "CALL_ME_LATER", timestamp=3)), "CALL_ME_LATER"),
    "call now": (sending(event(10, "CALL_ME_LATER", timestamp=10)), "CALL_ME_LATER"),
    "call at no time": (sending(event(10, "CALL_ME_LATER", timestamp="soon")), "CALL_ME_LATER"),
    "kill of an unknown job": (sending(event(10, "KILL_JOB", job_ids=["w0!9"])), "KILL_JOB"),
    "kill of a reported job": (sending(event(10, "KILL_JOB", job_ids=["w0!0"])), "KILL_JOB"),
    "kill of a waiting job": (sending(event(10, "KILL_JOB", job_ids=["w0!1"])), "KILL_JOB"),
    "kill of no job": (sending(event(10, "KILL_JOB", job_ids=[])), "KILL_JOB"),
    "rejected twice": (
        sending(event(10, "REJECT_JOB", job_id="w0!1"), event(10, "REJECT_JOB", job_id="w0!1")),
        "REJECT_JOB",
    ),
    "dynamic job": (
        sending(event(10, "REGISTER_JOB", job_id="w0!9", job={"res": 1, "profile": "five"})),
        "REGISTER_JOB",
    ),
    "dynamic profile": (
        sending(event(10, "REGISTER_PROFILE", workload_name="w0", profile_name="x", profile={})),
        "REGISTER_PROFILE",
    ),
    "power state without energy": (
        sending(event(10, "SET_RESOURCE_STATE", resources="0", state="0")),
        "SET_RESOURCE_STATE",
    ),
    "energy without energy": (
        sending(event(10, "QUERY", requests={"consumed_energy": {}})),
        "QUERY",
    ),
    "unknown query": (sending(event(10, "QUERY", requests={"weather": {}})), "QUERY"),
    "quotes in metadata": (
        sending(event(10, "SET_JOB_METADATA", job_id="w0!1", metadata='"')),
        "SET_JOB_METADATA",
    ),
    "completed by the scheduler": (
        sending(event(10, "CHANGE_JOB_STATE", job_id="w0!1", job_state="COMPLETED_FAILED")),
        "CHANGE_JOB_STATE",
    ),
    "unknown notification": (sending(event(10, "NOTIFY", type="lunch")), "NOTIFY"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_request_is_named(tmp_path: Path, name: str) -> None:
    fault, named = REFUSED[name]
    error = failure(tmp_path, fault)
    assert error.code == "scheduler-protocol"
    assert f": {named}: " in str(error)


def test_a_busy_host_is_refused(tmp_path: Path) -> None:
    def fault(message: dict[str, Any], good: bytes) -> Answer:
        # The second job runs from 10 to 15; at 12 its host gets a job that the scheduler registers.
        if is_at(message, "JOB_SUBMITTED", "w0!1"):
            job = {"id": "w0!9", "subtime": 10, "res": 1, "profile": "five"}
            events = [
                event(10, "EXECUTE_JOB", **EXECUTE),
                event(10, "REGISTER_JOB", job_id="w0!9", job=job),
                event(10, "CALL_ME_LATER", timestamp=12),
            ]
            return json.dumps({"now": 10, "events": events}).encode()
        if is_at(message, "REQUESTED_CALL"):
            events = [event(12, "EXECUTE_JOB", job_id="w0!9", alloc="0")]
            return json.dumps({"now": 12, "events": events}).encode()
        return good

    error = failure(tmp_path, fault, dynamic_jobs=True)
    assert error.code == "scheduler-protocol"
    assert re.search(r"\(REQUESTED_CALL\): EXECUTE_JOB: .*\b0\b", str(error))
    assert error.run.simulation.now_s == 12


def test_a_scheduler_that_starts_nothing_leaves_a_deadlock(tmp_path: Path) -> None:
    def fault(message: dict[str, Any], good: bytes) -> Answer:
        late = message["now"] >= 10
        return json.dumps({"now": message["now"], "events": []}).encode() if late else good

    error = failure(tmp_path, fault)
    assert error.code == "scheduler-deadlock"
    assert "w0!1" in str(error)


def test_an_open_registration_leaves_a_deadlock(tmp_path: Path) -> None:
    error = failure(tmp_path, lambda message, good: good, dynamic_jobs=True)
    assert error.code == "scheduler-deadlock"
    assert "registration_finished" in str(error)
    assert error.run.figures["nb_jobs"] == 3


@pytest.mark.parametrize("at", ["JOB_SUBMITTED", "SIMULATION_ENDS"])
def test_a_scheduler_that_closes_its_socket_is_noticed(tmp_path: Path, at: str) -> None:
    error = failure(tmp_path, instead(None, at))
    assert error.code == "scheduler-ended"
    assert at in str(error)
    assert error.run.figures["nb_jobs"] == (3 if at == "SIMULATION_ENDS" else 1)


@pytest.mark.parametrize("at", ["JOB_SUBMITTED", "SIMULATION_ENDS"])
def test_a_scheduler_that_hangs_is_noticed(tmp_path: Path, at: str) -> None:
    limits = AnswerLimits(first_s=10, each_s=0.3)
    error = failure(tmp_path, instead(b"hang", at), limits)
    assert error.code == "scheduler-timeout"
    assert at in str(error)


def test_the_command_reports_a_broken_scheduler(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    with ThreadScheduler(sending(event(10, "DANCE"))) as scheduler:
        document = answer(
            "batsim", *inputs, "-s", scheduler.endpoint, "-e", str(tmp_path / "out"), code=3
        )
    assert document["code"] == "scheduler-protocol"
    assert "DANCE" in document["message"]
    assert len(rows(tmp_path / "out_jobs.csv")) == 1


def test_a_scheduler_that_is_not_there_is_awaited_for_a_while(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    with ThreadScheduler() as scheduler:
        absent = scheduler.endpoint
    done = call_here(
        "batsim", *inputs, "-s", absent, "--start-timeout", "0.3", "-e", str(tmp_path / "out")
    )
    assert done.returncode == 3
    assert absent in done.stderr
    assert "SIMULATION_BEGINS" in done.stderr
    assert rows(tmp_path / "out_jobs.csv") == []
