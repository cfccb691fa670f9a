"""``equipoise fuzz experiment``, from the command line, without foreign schedulers."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import answer, call


def test_without_a_name_the_experiments_are_listed() -> None:
    assert "discrete and continuous mode" in call("fuzz", "experiment").stdout
    found = answer("fuzz", "experiment")
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
    done = call("fuzz", "experiment", "causes", "--target", "faulty-B", "--tests", "60")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("causes: defects by constraint and by the causes A to F")
    assert any(line.split()[:3] == ["paper:", "trials", "704"] for line in lines)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mods",), "did you mean modes?"),
        (("repair", "--target", "planner"), "planner has no setting 'repair'"),
        (("oracle", "--target", "faulty-A"), "faulty-A has no checker"),
        (("modes", "--hosts", "3-1"), "3-1 is neither a number nor a range"),
    ],
)
def test_invalid_arguments_are_reported(words: tuple[str, ...], told: str) -> None:
    done = call("fuzz", "experiment", *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_missing_btrplace_is_reported(tmp_path: Path) -> None:
    done = call("fuzz", "experiment", "oracle", EQUIPOISE_TARGETS=str(tmp_path))
    assert done.returncode == 2
    assert "BtrPlace is not available" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_campaign_is_still_called_by_its_target_alone() -> None:
    assert "experiment" in call("fuzz", "--help").stdout
    assert "our exact planner" in call("fuzz", "--list").stdout
