"""Jobs that exchange messages with their scheduler: profiles of the types send and recv."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation
from equipoise.adapters.batsim.transport.driver import RunFailed, drive
from equipoise.errors import InvalidInput

PLATFORM = """<platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="master_host" coordinates="0 0 0" speed="1f"/>
<host id="a" coordinates="0 0 0" speed="10f"/>
</zone></platform>"""
PROFILES: dict[str, dict[str, Any]] = {
    "one": {"type": "delay", "delay": 1},
    "three": {"type": "delay", "delay": 3},
    "seven": {"type": "delay", "delay": 7},
    "compute": {"type": "parallel_homogeneous", "cpu": 40, "com": 0},
    "tell": {"type": "send", "msg": {"hello": [1, "x"]}, "sleeptime": 0.5},
    "ask": {"type": "recv", "regex": "ok.*", "success": "one", "failure": "three", "polltime": 2},
    "ask or go": {"type": "recv", "regex": "ok", "success": "one", "timeout": "seven"},
    "ask only": {"type": "recv", "polltime": 2, "ret": 4},
    "ask and compute": {"type": "recv", "success": "compute", "polltime": 2},
    "dialogue": {"type": "composed", "seq": ["one", "tell", "ask", "tell", "ask or go"]},
    "wrong": {"type": "recv", "regex": "(", "polltime": 2},
    "no poll": {"type": "recv", "polltime": 0},
    "no sleep": {"type": "send", "msg": "", "sleeptime": 0},
    "no message": {"type": "send"},
    "circle": {"type": "recv", "success": "circle"},
}
START = ("EXECUTE_JOB", {"job_id": "w0!0", "alloc": "0"})
KILL = ("KILL_JOB", {"job_ids": ["w0!0"]})
Request = tuple[str, dict[str, Any]]


def message(text: Any) -> Request:
    """Return the request that sends a message to the job."""
    return "TO_JOB_MSG", {"job_id": "w0!0", "msg": text}


class Talker:
    """Answers with requests at given times; it starts the job at 0 unless the plan does."""

    waited_s = 0.0

    def __init__(self, plan: dict[float, list[Request]]) -> None:
        self._plan = plan
        self.events: list[dict[str, Any]] = []

    def answer(self, received: dict[str, Any]) -> object:
        """Call for the times of the plan first, then follow it."""
        self.events += received["events"]
        now = received["now"]
        requests: list[Request] = []
        if received["events"][0]["type"] == "SIMULATION_BEGINS":
            requests = [("CALL_ME_LATER", {"timestamp": at_s}) for at_s in self._plan if at_s > 0]
        for event in received["events"]:
            if event["type"] == "JOB_SUBMITTED":
                requests += self._plan.get(0.0, []) or [START]
            elif event["type"] == "REQUESTED_CALL":
                requests += self._plan[event["timestamp"]]
        entries = [{"timestamp": now, "type": kind, "data": data} for kind, data in requests]
        return {"now": now, "events": entries}

    def of(self, kind: str) -> list[tuple[float, dict[str, Any]]]:
        """Return the events of a type with their times."""
        return [(e["timestamp"], e["data"]) for e in self.events if e["type"] == kind]


def build(folder: Path, profile: str, walltime: float = -1) -> BatsimSimulation:
    """Return a simulation of one job."""
    job = {"id": 0, "subtime": 0, "res": 1, "profile": profile, "walltime": walltime}
    (folder / "platform.xml").write_text(PLATFORM)
    (folder / "jobs.json").write_text(json.dumps({"jobs": [job], "profiles": PROFILES}))
    return BatsimSetup(
        platform=folder / "platform.xml",
        workloads=[folder / "jobs.json"],
        options=ProtocolOptions(),
    ).build()


def run(
    folder: Path, profile: str, plan: dict[float, list[Request]], walltime: float = -1
) -> Talker:
    """Run one job with a plan of requests."""
    talker = Talker(plan)
    drive(build(folder, profile, walltime), talker)
    return talker


def ended(talker: Talker) -> tuple[float, str, int]:
    """Return time, state and return code of the end of the job."""
    ((at_s, data),) = talker.of("JOB_COMPLETED")
    return at_s, data["job_state"], data["return_code"]


@pytest.mark.parametrize(
    ("plan", "end_s"),
    [
        ({0.0: [message("ok"), START]}, 1.0),  # it is there before the job begins
        ({0.0: [START, message("ok")]}, 3.0),  # the job has looked before it comes
        ({1.5: [message("ok then")]}, 3.0),  # polls are at 2, 4, ...; then 1 s
        ({1.5: [message("not ok")]}, 5.0),  # a match of a part is none; then 3 s
        ({1.5: [message("ok\nthen")]}, 5.0),  # a dot is no end of line
        ({1.5: [message({"ok": 1})]}, 5.0),  # other values count as their JSON text
        ({4.0: [message("ok")]}, 7.0),  # a poll at this instant came too early
        ({4.0: [message("ok")], 5.0: [message("late")]}, 7.0),  # one message is one poll
    ],
)
def test_a_job_sees_a_message_at_its_next_poll(
    tmp_path: Path, plan: dict[float, list[Request]], end_s: float
) -> None:
    talker = run(tmp_path, "ask", plan)
    assert ended(talker) == (end_s, "COMPLETED_SUCCESSFULLY", 0)


def test_without_a_message_the_part_for_a_timeout_follows_at_once(tmp_path: Path) -> None:
    assert ended(run(tmp_path, "ask or go", {})) == (7.0, "COMPLETED_SUCCESSFULLY", 0)
    # The message comes too late, and changes nothing.
    late = run(tmp_path, "ask or go", {2.0: [message("ok")]})
    assert ended(late) == (7.0, "COMPLETED_SUCCESSFULLY", 0)
    # A part that the profile does not name takes no time.
    other = run(tmp_path, "ask or go", {0.0: [message("no"), START]})
    assert ended(other)[:2] == (0.0, "COMPLETED_SUCCESSFULLY")


def test_a_dialogue_sends_its_messages_at_their_times(tmp_path: Path) -> None:
    talker = run(tmp_path, "dialogue", {0.0: [START, message("ok")], 1.0: [message("ok")]})
    data = {"job_id": "w0!0", "msg": {"hello": [1, "x"]}}
    assert talker.of("FROM_JOB_MSG") == [(1.0, data), (2.5, data)]
    # 1, 0.5 after sending, 1 for the first message, 0.5, 1 for the second.
    assert ended(talker) == (4.0, "COMPLETED_SUCCESSFULLY", 0)


def test_the_return_code_of_a_receiver_fails_the_job(tmp_path: Path) -> None:
    talker = run(tmp_path, "ask only", {1.0: [message("")]})
    assert ended(talker) == (2.0, "COMPLETED_FAILED", 4)


@pytest.mark.parametrize(
    ("profile", "plan", "walltime", "end_s"),
    [
        ("ask", {}, 3.0, 3.0),  # while it waits
        ("ask", {2.5: [message("ok")]}, 3.0, 3.0),  # between a message and the poll
        ("ask", {0.5: [message("ok")]}, 2.5, 2.5),  # in the part that follows
        ("ask and compute", {0.5: [message("ok")]}, 4.0, 4.0),
        ("tell", {}, 0.25, 0.25),  # after it has sent
    ],
)
def test_the_walltime_counts_while_a_job_waits_for_messages(
    tmp_path: Path, profile: str, plan: dict[float, list[Request]], walltime: float, end_s: float
) -> None:
    talker = run(tmp_path, profile, plan, walltime)
    assert ended(talker) == (end_s, "COMPLETED_WALLTIME_REACHED", -1)


def test_a_walltime_that_is_long_enough_changes_nothing(tmp_path: Path) -> None:
    for walltime in (-1, 6.25):
        talker = run(tmp_path, "ask and compute", {0.5: [message("ok")]}, walltime)
        assert ended(talker) == (6.0, "COMPLETED_SUCCESSFULLY", 0)


@pytest.mark.parametrize(
    ("profile", "plan", "code", "progress"),
    [
        ("ask", {1.0: [KILL]}, -1, {"profile_name": "ask", "progress": 0.0}),
        ("ask", {1.0: [message("ok"), KILL]}, -1, {"profile_name": "ask", "progress": 0.0}),
        ("tell", {0.25: [KILL]}, -1, {"profile_name": "tell", "progress": 0.5}),
        (
            "ask and compute",
            {0.5: [message("")], 3.0: [KILL]},
            -2,
            {
                "profile_name": "ask and compute",
                "current_task_index": 0,
                "current_task": {"profile_name": "compute", "progress": 0.25},
            },
        ),
    ],
)
def test_a_job_is_killed_while_it_waits_for_messages(
    tmp_path: Path,
    profile: str,
    plan: dict[float, list[Request]],
    code: int,
    progress: dict[str, Any],
) -> None:
    talker = run(tmp_path, profile, plan)
    assert ended(talker) == (max(plan), "COMPLETED_KILLED", code)
    ((at_s, data),) = talker.of("JOB_KILLED")
    assert (at_s, data["job_progress"]) == (max(plan), {"w0!0": progress})


def test_a_job_without_an_answer_is_a_deadlock_and_no_endless_loop(tmp_path: Path) -> None:
    with pytest.raises(RunFailed) as error:
        run(tmp_path, "ask", {})
    assert error.value.code == "scheduler-deadlock"


@pytest.mark.parametrize("profile", ["wrong", "no poll", "no sleep", "no message", "circle"])
def test_a_wrong_profile_is_refused(tmp_path: Path, profile: str) -> None:
    with pytest.raises(InvalidInput) as error:
        build(tmp_path, profile)
    assert error.value.problems[0].key == "jobs[0]"


def test_a_policy_cannot_run_jobs_with_messages(tmp_path: Path) -> None:
    build(tmp_path, "dialogue")
    with pytest.raises(InvalidInput) as error:
        eq.simulate_jobs(tmp_path / "platform.xml", tmp_path / "jobs.json")
    assert error.value.problems[0].key == "job 0"
