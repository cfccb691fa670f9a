"""An exchange is recorded, and replayed without the scheduler."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from batsim_scheduler import ThreadScheduler, event, is_at, write_inputs
from command import answer, call_here

FILES = ("out_jobs.csv", "out_machine_states.csv")


def record(folder: Path, *options: str, code: int = 0, **fault: Any) -> list[dict[str, Any]]:
    """Run a scheduler and return the recorded exchange."""
    folder.mkdir(exist_ok=True)
    path = folder / "messages.jsonl"
    with ThreadScheduler(**fault) as scheduler:
        done = call_here(
            "batsim", *write_inputs(folder), "-s", scheduler.endpoint, "-e", str(folder / "out"),
            "--record", str(path), *options,
        )  # fmt: skip
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in path.read_text().splitlines()]


def replay(folder: Path, name: str, *options: str, code: int = 0) -> Any:
    inputs = ("-p", str(folder / "platform.xml"), "-w", str(folder / "jobs.json"))
    return answer(
        "batsim", *inputs, "-e", str(folder / name), "--replay", str(folder / "messages.jsonl"),
        *options, code=code,
    )  # fmt: skip


def test_a_replay_gives_the_same_messages_and_files(tmp_path: Path) -> None:
    entries = record(tmp_path)
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert [entry["from"] for entry in entries] == ["batsim", "sched"] * (len(entries) // 2)
    assert entries[-2]["msg"]["events"][0]["type"] == "SIMULATION_ENDS"
    document = replay(tmp_path, "again")
    assert document["differences"] == []
    assert 2 * document["messages"] == len(entries)
    for name in FILES:
        again = tmp_path / name.replace("out", "again")
        assert (tmp_path / name).read_text() == again.read_text()


def test_another_workload_differs_and_the_message_is_named(tmp_path: Path) -> None:
    record(tmp_path)
    workload = json.loads((tmp_path / "jobs.json").read_text())
    workload["jobs"][1]["subtime"] = 11
    (tmp_path / "jobs.json").write_text(json.dumps(workload))
    document = replay(tmp_path, "again", code=1)
    (difference,) = document["differences"]
    assert difference.startswith("message 4.")
    assert "11" in difference


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_record_that_ends_early_is_replayed_up_to_there(tmp_path: Path, cut: int) -> None:
    record(tmp_path)
    path = tmp_path / "messages.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-cut]))
    # A message without a reply is where the recorded run ended; a missing message is none.
    document = replay(tmp_path, "again", code=0 if cut % 2 else 1)
    assert bool(document["differences"]) == (cut % 2 == 0)


def test_a_refused_reply_is_refused_again(tmp_path: Path) -> None:
    bad = json.dumps({"now": 10, "events": [event(10, "DANCE")]}).encode()
    entries = record(
        tmp_path,
        code=3,
        fault=lambda message, good: bad if is_at(message, "JOB_SUBMITTED") else good,
    )
    assert entries[-1]["msg"]["events"][0]["type"] == "DANCE"
    assert replay(tmp_path, "again")["differences"] == []


def test_a_broken_record_is_bad_input(tmp_path: Path) -> None:
    record(tmp_path)
    with (tmp_path / "messages.jsonl").open("a") as file:
        file.write("{}\n")
    document = replay(tmp_path, "again", code=2)
    assert document["problems"][0]["line"] > 1


@pytest.mark.parametrize("name", ["py_easy_ideal_ties", "pr_kinds", "pr_dyn", "py_fcfs_mixed"])
def test_recorded_runs_of_real_batsim_replay(tmp_path: Path, name: str) -> None:
    real = Path(__file__).parents[4] / "shared" / "data" / "batsim" / "real"
    if not real.exists():
        pytest.skip(f"{real} is not on this machine")
    words = shlex.split(json.loads((real / name / "run.json").read_text())["batsim_cmd"])[1:]
    line = [
        str(real / "inputs" / word) if (real / "inputs" / word).exists() else word for word in words
    ]
    cut = line.index("-s")
    del line[cut : cut + 2]
    line[line.index("-e") + 1] = str(tmp_path / "out")
    document = answer("batsim", *line, "--replay", str(real / name / "messages.jsonl"))
    assert document["messages"] > 1
    assert document["differences"] == []
