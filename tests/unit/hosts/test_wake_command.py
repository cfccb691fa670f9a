"""What the command prints, and what it does about hosts side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.cli.hosts.wake import AT_ONCE, Outcome, Task, Wishes, _all_at_once, run, task_of
from equipoise.errors import InvalidInput
from equipoise.hosts.wake.port import Power, Seen

DEAD = {
    "wol": {
        "mac": "525400123456",
        "broadcast": "no.such.invalid",
        "check": "no.such.invalid:22",
    }
}


def test_two_options_make_one_task() -> None:
    assert task_of(state=False, sleep=False) is Task.WAKE
    assert task_of(state=True, sleep=False) is Task.STATE
    assert task_of(state=False, sleep=True) is Task.SLEEP
    with pytest.raises(InvalidInput, match="does not go together with --sleep"):
        task_of(state=True, sleep=True)


def test_outcomes_keep_the_order_of_the_hosts() -> None:
    seen = [Seen(by=str(n), power=Power.ON) for n in range(3 * AT_ONCE)]
    assert _all_at_once([lambda one=one: one for one in seen]) == seen  # type: ignore[misc]
    assert _all_at_once([]) == []


def test_a_bug_in_a_thread_is_not_lost() -> None:
    def broken() -> Outcome:
        raise AssertionError("a bug")

    with pytest.raises(AssertionError, match="a bug"):
        _all_at_once([broken])


def test_a_refusal_is_shown_to_people_and_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "access.json"
    file.write_text(json.dumps({"hosts": {"h1": DEAD}}))
    assert run(file, Wishes(), as_json=False) == 3
    assert "the name no.such.invalid is not known" in capsys.readouterr().out
    assert run(file, Wishes(task=Task.STATE), as_json=True) == 3
    (found,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (found["ok"], found["cause"], found["power"]) == (False, "unreachable", None)


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        run(tmp_path / "access.yaml", Wishes(), as_json=False)
