"""Orders to a campaign that another process runs: by the installed command, on both databases."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command import COMMAND, answer, call_here, located
from equipoise.documents.event_text import describe_event
from equipoise.errors import InvalidInput
from equipoise.store import open_journal
from postgres import Server, fixture_postgres

assert fixture_postgres  # pytest finds it by its name

LIMIT_S = 120
CAMPAIGN = """
name: two-switches
catalog:
  descriptions:
    - {component: switch, version: v1}
    - {component: switch, version: v2, upgrade: {duration_s: 20}}
    - {component: router, version: v1}
    - {component: router, version: v2, upgrade: {duration_s: 20}}
requests:
  - id: first
    sets:
      - id: switches
        checkpoints_pct: [50]
        changes: [{does: upgrade, resources: [s1, s2], version: v2}]
cluster:
  hosts: [{id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 1024}]
  resources:
    - {id: s1, kind: switch, version: v1}
    - {id: s2, kind: switch, version: v1}
    - {id: r1, kind: router, version: v1}
  dependencies: [{dependent: s1, sponsor: s2, kind: peer_stateless, presence: current_future}]
"""
REQUEST = """
id: second
sets:
  - {id: router, changes: [{does: upgrade, resources: [r1], version: v2}]}
"""


@pytest.fixture(name="url", params=["sqlite", "postgresql"])
def fixture_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "upgrade.db")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


@pytest.fixture(name="campaign")
def fixture_campaign(tmp_path: Path) -> str:
    (tmp_path / "more.yaml").write_text(REQUEST)
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    return str(path)


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in the background, which ends with the test."""
    with subprocess.Popen(
        [COMMAND, "upgrade", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def journal_lines(url: str) -> list[str]:
    try:
        with open_journal(url, create=False) as journal:
            return [describe_event(event) for event in journal.events()]
    except InvalidInput:  # it is not there yet
        return []


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.1)


def has(url: str, words: str) -> Callable[[], bool]:
    return lambda: any(words in line for line in journal_lines(url))


def test_a_run_under_way_takes_orders_from_another_terminal(url: str, campaign: str) -> None:
    line = (campaign, "--journal", url)

    def ordered(*orders: str, code: int = 0) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = answer("upgrade", *line, *orders, code=code)["orders"]
        return told

    with running(*line, "--wait", "--pace", "60") as run:
        until(has(url, "waits for approval at a checkpoint"))
        (unknown,) = ordered("--command", "undo:swiches", code=1)
        assert unknown["code"] == "unknown-set"
        assert "switches" in unknown["refused"]
        assert not any("swiches" in line for line in journal_lines(url)), "it was not even posted"

        more = str(Path(campaign).with_name("more.yaml"))
        (posted,) = ordered("--request", more)
        assert (posted["order"], posted["number"], posted["refused"]) == ("request second", 1, "")
        assert posted["at_s"] is not None, "the run has taken it over"
        until(has(url, "set router applied"))
        (late,) = ordered("--command", "undo:router", code=1)
        assert late["code"] == "set-ended"
        (twice,) = ordered("--request", more, code=1)
        assert twice["code"] == "duplicate-set"

        several = ordered("--command", "priority:switches=5", "--command", "pause")
        assert [command["number"] for command in several] == [2, 3]
        second = call_here("upgrade", *line, "--json")
        assert second.returncode == 3, "two runs with one journal would both act"
        assert json.loads(second.stdout)["code"] == "world-changed"
        run.send_signal(signal.SIGKILL)
        run.wait()

    before = journal_lines(url)
    told = answer("upgrade", *line, "--command", "resume", "--command", "approve:switches")
    assert {change_set["set"]: change_set["outcome"] for change_set in told["sets"]} == {
        "switches": "applied", "router": "applied"
    }  # fmt: skip
    assert journal_lines(url)[: len(before)] == before
    commands = [line for line in journal_lines(url) if line.startswith("command: ")]
    assert commands == [
        "command: priority:switches=5", "command: pause", "command: resume",
        "command: approve:switches",
    ]  # fmt: skip


def test_a_set_is_undone_while_the_run_goes_on(url: str, campaign: str) -> None:
    line = (campaign, "--journal", url)
    with running(*line, "--wait", "--pace", "60") as run:
        until(has(url, "waits for approval at a checkpoint"))
        answer("upgrade", *line, "--command", "undo:switches")
        out, _ = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0
    (set_,) = json.loads(out)["sets"]
    assert (set_["outcome"], set_["code"]) == ("undone", "undo-commanded")


def test_orders_make_no_difference_to_when_a_paced_run_is_where(
    tmp_path: Path, campaign: str
) -> None:
    paced, plain = str(tmp_path / "paced.db"), str(tmp_path / "plain.db")
    for url, more in ((paced, ("--pace", "100")), (plain, ())):
        call_here("upgrade", campaign, "--journal", url, *more)
    assert answer("journal", paced)["sha256"] == answer("journal", plain)["sha256"]


def test_a_request_that_makes_no_sense_is_reported_with_its_line(
    tmp_path: Path, campaign: str
) -> None:
    request = tmp_path / "more.yaml"
    request.write_text(REQUEST.replace("[r1]", "[r2]"))
    line = ("upgrade", campaign, "--request", str(request))
    place = "sets[0].changes[0].resources[0]"
    assert located(*line) == [("unknown-name", place, 4)]
    request.write_text(REQUEST.replace("v2}", "v2, undo_threshold: 7}"))
    (order,) = answer(*line, code=1)["orders"]
    assert order["code"] == "threshold-too-high"
    assert "router" in order["refused"]
    assert "7" in order["refused"]


def test_a_journal_is_not_continued_by_another_engine_or_campaign(
    tmp_path: Path, campaign: str
) -> None:
    url = str(tmp_path / "upgrade.db")
    assert call_here("upgrade", campaign, "--journal", url).returncode == 1, "it waits for approval"
    other = Path(campaign).with_name("other.yaml")
    other.write_text(CAMPAIGN.replace("duration_s: 20", "duration_s: 30"))
    (changed,) = answer("upgrade", str(other), "--journal", url, code=2)["problems"]
    assert (changed["code"], changed["file"]) == ("journal-mismatch", str(other))
    assert "catalog" in changed["what"]
    access = ("--engine", "ansible", "--access", campaign)
    (engine,) = answer("upgrade", campaign, "--journal", url, *access, code=2)["problems"]
    assert (engine["code"], engine["file"]) == ("journal-mismatch", "--engine")
    assert "--engine sim" in engine["cure"]
    (waiting,) = answer("upgrade", campaign, "--wait", code=2)["problems"]
    assert (waiting["code"], waiting["file"]) == ("option-conflict", "--wait")
