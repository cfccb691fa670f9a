"""Ctrl-C during a campaign: the findings so far are printed; a second one ends it at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from command import COMMAND, answer

INTERRUPTED = 130
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])
_HOOK = """
import os, signal, time
from pathlib import Path
os.environ.setdefault("MAIN_PID", str(os.getpid()))
from equipoise.fuzz.campaign import batch
judge, calls = batch._judge_drawn, []
def judging(*given):
    calls.append(1)
    yield from judge(*given)
    {after}
batch._judge_drawn = judging
"""
_ASK_ONCE = """
    if len(calls) == 40:
        try:
            Path(os.environ["ASKED"]).touch(exist_ok=False)
            os.kill(int(os.environ["MAIN_PID"]), signal.SIGINT)
        except FileExistsError:
            pass
"""
"""In the second batch of the first worker."""
_HANG = """
    Path(os.environ["ASKED"]).touch()
    time.sleep(600)
"""


@contextmanager
def campaign(folder: Path, after: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A campaign in which something happens after trials of a constraint were judged."""
    (folder / "sitecustomize.py").write_text(_HOOK.format(after=after.strip()))
    env = os.environ | {"PYTHONPATH": str(folder), "ASKED": str(folder / "asked")}
    with subprocess.Popen(
        [str(COMMAND), "fuzz", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=folder,
        start_new_session=True,
    ) as process:  # fmt: skip
        yield process


@WORKERS
def test_an_interrupted_campaign_writes_its_findings(tmp_path: Path, workers: str) -> None:
    names = {"--save": "found.jsonl", "--report": "f.html", "--csv": "f.csv", "--junit": "f.xml"}
    files = [word for option, name in names.items() for word in (option, name)]
    words = ("faulty-C", "--seconds", "600", "--workers", workers, "--json", *files)
    with campaign(tmp_path, _ASK_ONCE, *words) as process:
        out, said = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED, said
    assert said.endswith("interrupted\n")
    assert "Traceback" not in said
    found = json.loads(out)
    assert found["interrupted"] is True
    assert found["tests"] > 0
    assert found["defects"]
    assert len((tmp_path / "f.csv").read_text().splitlines()) == len(found["defects"]) + 1
    assert "; interrupted" in (tmp_path / "f.html").read_text()
    facts = ElementTree.parse(tmp_path / "f.xml").getroot().iter("property")
    assert ("interrupted", "true") in [(fact.get("name"), fact.get("value")) for fact in facts]
    again = answer("fuzz", "faulty-C", "--replay", str(tmp_path / "found.jsonl"), code=1)
    assert again["interrupted"] is False
    assert [(defect["class"], defect["constraint"]) for defect in again["defects"]] == [
        (defect["class"], defect["constraint"]) for defect in found["defects"]
    ]


@WORKERS
def test_a_second_interrupt_ends_it_at_once(tmp_path: Path, workers: str) -> None:
    words = ("faulty-C", "--seconds", "600", "--workers", workers, "--json")
    with campaign(tmp_path, _HANG, *words) as process:
        while not (tmp_path / "asked").exists():
            assert process.poll() is None
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        assert process.stderr is not None
        assert "Ctrl-C again stops at once" in process.stderr.readline()
        time.sleep(1)  # longer than what counts as an echo of the first
        os.killpg(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, said
    assert json.loads(out)["error"] == "interrupted"
    assert "Traceback" not in said


@WORKERS
def test_an_interruption_is_printed(tmp_path: Path, workers: str) -> None:
    words = ("planner", "--seconds", "600", "--workers", workers)
    with campaign(tmp_path, _ASK_ONCE, *words) as process:
        out, said = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED, said
    assert out.splitlines()[0].endswith("agree; interrupted")
    assert said.endswith("interrupted\n")
