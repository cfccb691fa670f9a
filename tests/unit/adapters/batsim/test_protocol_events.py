"""Every event of the protocol, in both directions, as JSON text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.sim.jobs.hosts import JobHostState
from equipoise.sim.jobs.record.replay import JobReplay
from equipoise.store import MemoryJournal

PLATFORM = """<platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="master_host" coordinates="0 0 0" speed="1f"/>
<host id="a" coordinates="0 0 0" speed="10f, 1f, 0.5f, 0.25f">
 <prop id="wattage_per_state" value="10:20:20, 2:2:2, 30:30:30, 40:40:40"/>
 <prop id="sleep_pstates" value="1:2:3"/></host>
<host id="b" coordinates="0 0 0" speed="10f, 1f, 0.5f, 0.25f">
 <prop id="wattage_per_state" value="10:20:20, 2:2:2, 30:30:30, 40:40:40"/>
 <prop id="sleep_pstates" value="1:2:3"/></host>
</zone></platform>"""
WORKLOAD = {
    "nb_res": 2,
    "jobs": [
        {"id": "x", "subtime": 1, "res": 1, "profile": "wait", "walltime": 100, "colour": "red"},
        {"id": "y", "subtime": 1, "res": 1, "profile": "work"},
        {"id": "z", "subtime": 1, "res": 2, "profile": "steps"},
    ],
    "profiles": {
        "wait": {"type": "delay", "delay": 10},
        "work": {"type": "parallel_homogeneous", "cpu": 400, "com": 0, "ret": 3},
        "steps": {"type": "composed", "repeat": 2, "seq": ["wait", "work"]},
    },
}
EVENTS = """{"type": "machine_unavailable", "resources": "1", "timestamp": 100}
{"type": "machine_available", "resources": "1", "timestamp": 101}
{"type": "weather", "timestamp": 102, "rain": true}
"""


class Exchange:
    """A simulation to which a test sends JSON text, and which answers in JSON text."""

    def __init__(self, folder: Path, export: str | None = None, **options: Any) -> None:
        (folder / "platform.xml").write_text(PLATFORM)
        (folder / "jobs.json").write_text(json.dumps(WORKLOAD))
        (folder / "events.txt").write_text(EVENTS)
        self._codec = JsonCodec()
        self._simulation = BatsimSetup(
            platform=folder / "platform.xml",
            workloads=[folder / "jobs.json"],
            events=[folder / "events.txt"] if options.get("forward_unknown_events") else [],
            export=export,
            options=ProtocolOptions(**options),
        ).build()
        self._message = self._simulation.begin()

    def next(self, *events: str) -> list[dict[str, Any]]:
        """Send a reply with these events at the present time; return the next events."""
        now = 0 if self._message is None else self._message["now"]
        entries = ", ".join(f'{{"timestamp": {now}, {event}}}' for event in events)
        reply = f'{{"now": {now}, "events": [{entries}]}}'
        self._message = self._simulation.receive(self._codec.decode(reply.encode()))  # type: ignore[arg-type]
        return self.now()

    def now(self) -> list[dict[str, Any]]:
        """Return the events of the present message."""
        if self._message is None:
            self._simulation.finish()
            return []
        found: list[dict[str, Any]] = json.loads(self._codec.encode(self._message))["events"]
        return found


def start(job: str, alloc: str) -> str:
    return f'"type": "EXECUTE_JOB", "data": {{"job_id": "w0!{job}", "alloc": "{alloc}"}}'


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["data"].get("type", event["type"]) for event in events]


def test_the_first_message_describes_the_simulation(tmp_path: Path) -> None:
    (event,) = Exchange(tmp_path, scheduler_config="fast").now()
    data = event["data"]
    assert (event["type"], event["timestamp"]) == ("SIMULATION_BEGINS", 0)
    assert (data["nb_resources"], data["nb_compute_resources"]) == (2, 2)
    assert data["config"]["sched-config"] == "fast"
    assert data["config"]["dynamic-jobs-enabled"] is False
    assert [host["name"] for host in data["compute_resources"]] == ["a", "b"]
    assert data["profiles"]["w0"] == WORKLOAD["profiles"]
    assert list(data["workloads"]) == ["w0"]


def test_jobs_arrive_with_all_their_keys_and_end_with_a_state(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, str(tmp_path / "out"), forward_profiles=True)
    events = exchange.next()
    assert kinds(events) == ["JOB_SUBMITTED"] * 3
    first = events[0]["data"]
    assert first["job"]["id"] == first["job_id"] == "w0!x"
    assert first["job"]["colour"] == "red"
    assert first["profile"] == WORKLOAD["profiles"]["wait"]  # type: ignore[index]
    events = exchange.next(
        start("x", "0"),
        start("y", "1"),
        '"type": "SET_JOB_METADATA", "data": {"job_id": "w0!x", "metadata": "good"}',
        '"type": "REJECT_JOB", "data": {"job_id": "w0!z"}',
    )
    assert kinds(events) == ["no_more_static_job_to_submit"]
    (completed,) = exchange.next()
    assert completed["timestamp"] == 11
    assert completed["data"] == {
        "job_id": "w0!x", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0",
    }  # fmt: skip
    (failed,) = exchange.next()
    assert (failed["data"]["job_state"], failed["data"]["return_code"]) == ("COMPLETED_FAILED", 3)
    assert kinds(exchange.next()) == ["SIMULATION_ENDS"]
    assert exchange.next() == []
    rows = (tmp_path / "out_jobs.csv").read_text()
    assert '"good"' in rows
    assert "REJECTED" in rows


def test_a_kill_reports_how_far_a_sequence_has_come(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    exchange.next()
    exchange.next(
        start("z", "0-1"), '"type": "CALL_ME_LATER", "data": {"timestamp": 6}',
        '"type": "REJECT_JOB", "data": {"job_id": "w0!x"}',
        '"type": "CHANGE_JOB_STATE", "data": {"job_id": "w0!y", "job_state": "REJECTED"}',
    )  # fmt: skip
    assert kinds(exchange.next()) == ["REQUESTED_CALL"]
    events = exchange.next('"type": "KILL_JOB", "data": {"job_ids": ["w0!z"]}')
    assert kinds(events) == ["JOB_COMPLETED", "JOB_KILLED"]
    assert events[0]["data"]["job_state"] == "COMPLETED_KILLED"
    progress = events[1]["data"]["job_progress"]["w0!z"]
    assert progress["current_task_index"] == 0
    assert progress["current_task"] == {"profile_name": "wait", "progress": 0.5}


@pytest.mark.parametrize("numeric", [False, True])
def test_hosts_switch_and_the_scheduler_asks_for_energy(tmp_path: Path, numeric: bool) -> None:
    exchange = Exchange(tmp_path, energy=True, numeric_state=numeric)
    exchange.next()
    exchange.next(
        '"type": "SET_RESOURCE_STATE", "data": {"resources": "0-1", "state": "1"}',
        *(f'"type": "REJECT_JOB", "data": {{"job_id": "w0!{job}"}}' for job in "xyz"),
    )
    (changed,) = exchange.next()
    # One operation at 0.5 per second.
    assert (changed["type"], changed["timestamp"]) == ("RESOURCE_STATE_CHANGED", 3)
    assert changed["data"] == {"resources": "0-1", "state": 1 if numeric else "1"}
    (energy,) = exchange.next('"type": "QUERY", "data": {"requests": {"consumed_energy": {}}}')
    assert energy["type"] == "ANSWER"
    assert energy["data"]["consumed_energy"] == pytest.approx(2 * (10 + 2 * 30))


def test_external_events_are_passed_on(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, forward_unknown_events=True)
    exchange.next()
    reject = (f'"type": "REJECT_JOB", "data": {{"job_id": "w0!{job}"}}' for job in "xyz")
    seen = exchange.next(*reject)
    while not any(event["type"] == "SIMULATION_ENDS" for event in seen):
        seen = seen + exchange.next()
    assert [kind for kind in kinds(seen) if kind != "no_more_static_job_to_submit"] == [
        "event_machine_unavailable", "event_machine_available", "weather",
        "no_more_external_event_to_occur", "SIMULATION_ENDS",
    ]  # fmt: skip
    assert next(e for e in seen if e["data"].get("type") == "weather")["data"]["rain"] is True


@pytest.mark.parametrize("acknowledged", [False, True])
def test_the_scheduler_registers_jobs_and_profiles(tmp_path: Path, acknowledged: bool) -> None:
    exchange = Exchange(tmp_path, dynamic_jobs=True, acknowledge_dynamic_jobs=acknowledged)
    exchange.next()
    delay = {"type": "delay", "delay": 2}
    profile = {"workload_name": "dyn", "profile_name": "p", "profile": delay}
    job = {"id": "dyn!1", "subtime": 1, "res": 1, "profile": "p"}
    register = (
        f'"type": "REGISTER_PROFILE", "data": {json.dumps(profile)}',
        f'"type": "REGISTER_JOB", "data": {{"job_id": "dyn!1", "job": {json.dumps(job)}}}',
        '"type": "NOTIFY", "data": {"type": "continue_registration"}',
        '"type": "NOTIFY", "data": {"type": "registration_finished"}',
        *(f'"type": "REJECT_JOB", "data": {{"job_id": "w0!{job}"}}' for job in "xyz"),
        '"type": "EXECUTE_JOB", "data": {"job_id": "dyn!1", "alloc": "1"}',
    )
    events = exchange.next(*register)
    while "JOB_COMPLETED" not in kinds(events):
        events = events + exchange.next()
    assert ("JOB_SUBMITTED" in kinds(events)) == acknowledged
    assert events[-1]["data"]["job_id"] == "dyn!1"
    assert events[-1]["timestamp"] == 3


def test_a_mapping_puts_executors_on_one_host(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    exchange.next()
    mapped = (
        '"type": "EXECUTE_JOB", "data": '
        '{"job_id": "w0!z", "alloc": "1", "mapping": {"0": "0", "1": "0"}}'
    )
    exchange.next(mapped, *(f'"type": "REJECT_JOB", "data": {{"job_id": "w0!{j}"}}' for j in "xy"))
    (completed,) = exchange.next()
    # Its second part has the return code 3, which ends the sequence: 10 s, then 2 * 400 at 10.
    assert (completed["timestamp"], completed["data"]["alloc"]) == (91, "1")
    assert completed["data"]["return_code"] == 3


def test_answers_and_messages_to_jobs_are_accepted(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    exchange.next()
    events = exchange.next(
        '"type": "ANSWER", "data": {"estimate_waiting_time": {"job_id": "w0!x"}}',
        '"type": "TO_JOB_MSG", "data": {"job_id": "w0!x", "msg": "hello"}',
    )
    assert kinds(events) == ["no_more_static_job_to_submit"]


def test_the_journal_has_the_state_of_each_host_of_a_mixed_switch(tmp_path: Path) -> None:
    power = '<prop id="wattage_per_state" value="9:9:9,9:9:9,9:9:9,9:9:9"/>'
    sleeps = f'{power}<prop id="sleep_pstates" value="{{}}"/>'
    hosts = [
        f'<host id="h{n}" coordinates="0 0 0" speed="10f,1f,2f,4f">{sleeps.format(states)}</host>'
        for n, states in enumerate(["1:2:3", "0:2:3"])
    ]
    master = '<host id="master_host" coordinates="0 0 0" speed="1f"/>'
    text = f'<zone id="z" routing="Vivaldi">{master}{"".join(hosts)}</zone>'
    (tmp_path / "mixed.xml").write_text(f'<platform version="4.1">{text}</platform>')
    (tmp_path / "none.json").write_text('{"jobs": [], "profiles": {}}')
    journal = MemoryJournal()
    simulation = BatsimSetup(
        platform=tmp_path / "mixed.xml",
        workloads=[tmp_path / "none.json"],
        journal=journal,
        options=ProtocolOptions(energy=True),
    ).build()
    simulation.begin()
    data = {"resources": "0-1", "state": "1"}
    request = {"timestamp": 0.0, "type": "SET_RESOURCE_STATE", "data": data}
    message = simulation.receive({"now": 0.0, "events": [request]})
    while message is not None:
        message = simulation.receive({"now": message["now"], "events": []})
    simulation.finish()
    # State 1 is a sleep state of the first host, and the second one wakes from state 0 for it.
    replayed = JobReplay().replay(journal.events()).engine.hosts
    assert replayed.state == simulation.engine.hosts.state
    assert replayed.total_s == simulation.engine.hosts.total_s
    assert replayed.total_s[JobHostState.SWITCHING_OFF] == 0.5
    assert replayed.total_s[JobHostState.SWITCHING_ON] == 0.25
