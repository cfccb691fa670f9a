"""What the command prints, and what it does about hosts side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.adapters.bmc.host_power import HostPower, PowerReading
from equipoise.cli.wake import (
    HOSTS_IN_PARALLEL,
    PowerTask,
    WakeOptions,
    WakeOutcome,
    _run_in_threads,
    power_task,
    run,
)
from equipoise.errors import InvalidInput

DEAD = {
    "wol": {
        "mac": "525400123456",
        "broadcast": "no.such.invalid",
        "check": "no.such.invalid:22",
    }
}


def test_two_options_make_one_task() -> None:
    assert power_task(state=False, sleep=False) is PowerTask.WAKE
    assert power_task(state=True, sleep=False) is PowerTask.STATE
    assert power_task(state=False, sleep=True) is PowerTask.SLEEP
    with pytest.raises(InvalidInput) as caught:
        power_task(state=True, sleep=True)
    assert caught.value.code == "option-conflict"
    assert "--sleep" in str(caught.value)


def test_outcomes_keep_the_order_of_the_hosts() -> None:
    seen = [PowerReading(by=str(n), power=HostPower.ON) for n in range(3 * HOSTS_IN_PARALLEL)]
    assert _run_in_threads([lambda number=number: number for number in seen]) == seen  # type: ignore[misc]
    assert _run_in_threads([]) == []


def test_a_bug_in_a_thread_is_not_lost() -> None:
    def broken() -> WakeOutcome:
        raise AssertionError("a bug")

    with pytest.raises(AssertionError, match="a bug"):
        _run_in_threads([broken])


def test_a_refusal_is_printed_as_text_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "access.json"
    file.write_text(json.dumps({"hosts": {"h1": DEAD}}))
    assert run(file, WakeOptions(), as_json=False) == 3
    assert "no.such.invalid" in capsys.readouterr().out
    assert run(file, WakeOptions(task=PowerTask.STATE), as_json=True) == 3
    (found,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (found["ok"], found["cause"], found["power"]) == (False, "unreachable", None)
    assert found["code"] == "controller-unreachable"


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(tmp_path / "access.yaml", WakeOptions(), as_json=False)
    assert caught.value.code == "file-not-readable"
