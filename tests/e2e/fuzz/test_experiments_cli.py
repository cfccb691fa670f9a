"""``equipoise fuzz experiment``, from the command line, without foreign schedulers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import answer, call, call_here


def test_without_a_name_the_experiments_are_listed() -> None:
    found = answer("fuzz", "experiment")
    listed = call_here("fuzz", "experiment").stdout
    assert all(row["name"] in listed and row["about"] in listed for row in found)
    assert [row["name"] for row in found] == ["modes", "repair", "oracle", "causes"]


def test_an_experiment_supports_any_suitable_scheduler() -> None:
    words = ("fuzz", "experiment", "modes", "--target", "faulty-C", "--tests", "40")
    found = answer(*words, "--seed", "2")
    assert (found["experiment"], found["target"], found["seed"], found["tests"]) == (
        "modes", "faulty-C", 2, 40,
    )  # fmt: skip
    total = found["tables"][0]["rows"][-1]
    assert total["constraint"] == "all"
    assert total["discrete"] == 0
    assert total["continuous"] > 0
    assert answer(*words, "--seed", "2") == found


def test_tables_are_printed() -> None:
    done = call_here("fuzz", "experiment", "causes", "--target", "faulty-B", "--tests", "60")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("causes: ")
    assert any(line.split()[:3] == ["paper:", "trials", "704"] for line in lines)


@pytest.mark.parametrize(
    ("words", "codes", "named"),
    [
        (("mods",), ["unknown-name"], "modes"),
        (("repair", "--target", "planner"), ["unsupported-experiment"], "'repair'"),
        (("oracle", "--target", "faulty-A"), ["unsupported-experiment"], "faulty-A"),
        (("modes", "--hosts", "3-1"), [], "--hosts: 3-1 "),
    ],
)
def test_invalid_arguments_are_reported(
    words: tuple[str, ...], codes: list[str], named: str
) -> None:
    found = answer("fuzz", "experiment", *words, code=2)
    assert found["error"] == ("bad input" if codes else "usage")
    assert [problem["code"] for problem in found["problems"]] == codes
    assert named in found["message"]


def test_a_missing_btrplace_is_reported(tmp_path: Path) -> None:
    done = call("fuzz", "experiment", "oracle", "--json", EQUIPOISE_TARGETS=str(tmp_path))
    assert done.returncode == 2
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["code"] == "scheduler-missing"
    assert str(tmp_path) in problem["what"]
    assert "Traceback" not in done.stderr


def test_a_campaign_is_still_called_by_its_target_alone() -> None:
    assert "experiment" in call_here("fuzz", "--help").stdout
    assert any(
        line.split()[:1] == ["planner"] for line in call_here("fuzz", "--list").stdout.splitlines()
    )
