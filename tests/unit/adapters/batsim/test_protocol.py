"""The Batsim protocol in process: messages, requests and their checks on a small platform."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation

PLATFORM = """<platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="master_host" coordinates="0 0 0" speed="1f"/>
<host id="a" coordinates="0 0 0" speed="10f"/>
<host id="b" coordinates="0 0 0" speed="10f"/>
</zone></platform>"""
WORKLOAD = {
    "nb_res": 2,
    "jobs": [
        {"id": 0, "subtime": 0, "res": 1, "profile": "wait"},
        {"id": 1, "subtime": 4, "res": 1, "profile": "compute"},
    ],
    "profiles": {
        "wait": {"type": "delay", "delay": 10},
        "compute": {"type": "parallel_homogeneous", "cpu": 50, "com": 0},
    },
}


def build(folder: Path, export: str | None = None, **options: Any) -> BatsimSimulation:
    """Return a simulation of two jobs on two hosts."""
    (folder / "platform.xml").write_text(PLATFORM)
    (folder / "jobs.json").write_text(json.dumps(WORKLOAD))
    return BatsimSetup(
        platform=folder / "platform.xml",
        workloads=[folder / "jobs.json"],
        export=export,
        options=ProtocolOptions(**options),
    ).build()


def reply(now: float, *events: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a reply with events at its time."""
    entries = [{"timestamp": now, "type": kind, "data": data} for kind, data in events]
    return {"now": now, "events": entries}


def start(job: int, alloc: str) -> tuple[str, dict[str, Any]]:
    """Return the request that starts a job."""
    return "EXECUTE_JOB", {"job_id": f"w0!{job}", "alloc": alloc}


def summary(message: dict[str, Any] | None) -> list[tuple[float, str]]:
    """Return time and type of each event."""
    assert message is not None
    return [(event["timestamp"], event["type"]) for event in message["events"]]


def test_a_whole_run_sends_these_messages_and_writes_the_jobs(tmp_path: Path) -> None:
    simulation = build(tmp_path, str(tmp_path / "out"))
    assert summary(simulation.begin()) == [(0.0, "SIMULATION_BEGINS")]
    assert summary(simulation.receive(reply(0))) == [(0.0, "JOB_SUBMITTED")]
    assert summary(simulation.receive(reply(0, start(0, "0")))) == [(4.0, "JOB_SUBMITTED")]
    assert summary(simulation.receive(reply(4, start(1, "1")))) == [(4.0, "NOTIFY")]
    assert summary(simulation.receive(reply(4))) == [(9.0, "JOB_COMPLETED")]
    assert summary(simulation.receive(reply(9))) == [(10.0, "JOB_COMPLETED")]
    assert summary(simulation.receive(reply(10))) == [(10.0, "SIMULATION_ENDS")]
    assert simulation.receive(reply(10)) is None
    assert simulation.finished
    simulation.finish()
    rows = (tmp_path / "out_jobs.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["1", "0"]
    assert (tmp_path / "out_schedule.csv").read_text().splitlines()[1].split(",")[2] == "10.000000"


@pytest.mark.parametrize(
    ("events", "named"),
    [
        ([start(0, "0"), start(0, "1")], "EXECUTE_JOB"),
        ([start(7, "0")], "EXECUTE_JOB"),
        ([start(0, "5")], "EXECUTE_JOB"),
        ([start(0, "0-1")], "EXECUTE_JOB"),
        ([("CALL_ME_LATER", {"timestamp": 0})], "CALL_ME_LATER"),
        ([("KILL_JOB", {"job_ids": ["w0!0"]})], "KILL_JOB"),
        ([("SET_RESOURCE_STATE", {"resources": "0", "state": "0"})], "SET_RESOURCE_STATE"),
        ([("REGISTER_JOB", {"job_id": "w0!9", "job": {}})], "REGISTER_JOB"),
        ([("NONSENSE", {})], "NONSENSE"),
    ],
)
def test_a_request_that_is_not_allowed_is_refused_by_name(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]], named: str
) -> None:
    simulation = build(tmp_path)
    simulation.begin()
    simulation.receive(reply(0))
    with pytest.raises(SchedulerError) as error:
        simulation.receive(reply(0, *events))
    assert (error.value.code, error.value.event) == ("scheduler-protocol", named)


def test_a_busy_host_is_refused_unless_jobs_may_share_it(tmp_path: Path) -> None:
    simulation = build(tmp_path)
    simulation.begin()
    simulation.receive(reply(0))
    simulation.receive(reply(0, start(0, "0")))
    with pytest.raises(SchedulerError):
        simulation.receive(reply(4, start(1, "0")))
    sharing = build(tmp_path, compute_sharing=True)
    sharing.begin()
    sharing.receive(reply(0))
    sharing.receive(reply(0, start(0, "0")))
    sharing.receive(reply(4, start(1, "0")))
    assert summary(sharing.receive(reply(4))) == [(9.0, "JOB_COMPLETED")]


@pytest.mark.parametrize(
    "answer", [[], {"now": "0", "events": []}, {"now": 0}, {"now": 0, "events": [{"type": 1}]}]
)
def test_a_reply_that_is_no_message_is_refused(tmp_path: Path, answer: Any) -> None:
    simulation = build(tmp_path)
    simulation.begin()
    with pytest.raises(SchedulerError) as error:
        simulation.receive(answer)
    assert error.value.event == "reply"
