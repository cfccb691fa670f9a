"""Asking a worker what a target would do, action by action; with a worker of our own."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import coded
from equipoise.adapters.targets import environment
from equipoise.adapters.targets.scheduler import SchedulerTimeout
from equipoise.adapters.targets.worker import TargetCrash, Worker, WorkerClient
from equipoise.adapters.targets.worker_path.equipoise_worker import normalised
from equipoise.errors import WorldError

SCRIPT = """
import os, time
from equipoise_worker import serve
def act(questions):
    return {"answers": [one(question) for question in questions]}
def one(question):
    if question.get("leave"):
        os._exit(3)
    if question.get("wait"):
        time.sleep(60)
    return {"crash": "it broke"} if question.get("crash") else {"acts": question["acts"]}
serve("pytest", act=act)
"""
MOVE = {"do": "migrate", "vm": "v", "from": "g", "to": "h"}


class Acting(WorkerClient):
    """Says what it would do."""

    def ask(self, seconds_max: float = 60.0, **question: object) -> object:
        return self._ask(lambda worker: worker.act([question], seconds_max=seconds_max))


@pytest.fixture(name="begin")
def fixture_begin(tmp_path: Path) -> Iterator[Callable[[], Worker]]:
    shutil.copy(Path(environment.__file__).parent / "worker_path" / "equipoise_worker.py", tmp_path)
    script = tmp_path / "acting_worker.py"
    script.write_text(SCRIPT)
    started: list[Worker] = []

    def begin() -> Worker:
        started.append(Worker([sys.executable, script], name="acting_worker"))
        return started[-1]

    yield begin
    for worker in started:
        worker.close()


def test_each_question_is_answered_by_itself(begin: Callable[[], Worker]) -> None:
    with begin() as worker:
        said = worker.act([{"acts": [MOVE]}, {"crash": True}, {"acts": []}])
        assert said == ((MOVE,), TargetCrash("it broke"), ())
        with pytest.raises(WorldError, check=coded("worker-answer-invalid")):
            worker.act([{"acts": [{"vm": "v"}]}])


def test_a_lost_worker_is_replaced(begin: Callable[[], Worker]) -> None:
    with Acting(begin) as asked:
        with pytest.raises(WorldError, check=coded("worker-died")):
            asked.ask(leave=True)
        assert asked.ask(acts=[MOVE]) == ((MOVE,),)
        with pytest.raises(SchedulerTimeout):
            asked.ask(0.2, wait=True)
        assert asked.ask(acts=[]) == ((),)


def test_a_crash_is_described_by_its_place() -> None:
    found = set()
    for text in ("{", "[1, "):
        with pytest.raises(json.JSONDecodeError) as caught:
            json.loads(text)
        found.add(normalised(caught.value, "json"))
    assert all(crash.startswith("JSONDecodeError (json/decoder.py:") for crash in found)
    assert not any("char" in crash for crash in found)
