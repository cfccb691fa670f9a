"""``equipoise kube study`` by the installed command, with a scheduler that is a script."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from command import call

SCRIPT = Path(__file__).parents[2] / "kubernetes_scheduler.py"
SCHEDULER = ("--scheduler", f"{sys.executable} {SCRIPT} {{url}}", "--reference", "stock")
PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/></zone></platform>
"""


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """Return the options for two workloads on one platform."""
    (tmp_path / "p.xml").write_text(PLATFORM)
    options = ["-p", str(tmp_path / "p.xml")]
    for name, count in (("few", 2), ("more", 5)):
        jobs = [{"id": f"{n}", "subtime": 0, "res": 1, "profile": "d"} for n in range(count)]
        content = {"nb_res": 2, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 10}}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        options += ["-w", str(tmp_path / f"{name}.json")]
    return options


def test_a_study_writes_its_tables_and_its_page(tmp_path: Path, inputs: list[str]) -> None:
    out = tmp_path / "out"
    base = ("kube", "study", *inputs, *SCHEDULER)
    axes = ("--timeouts", "30,60", "--max-steps", "5", "--repeats", "2")
    result = call(*base, *axes, "--out", str(out), "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [row["makespan_s"] for row in found["references"]] == [10, 30]
    assert [row["pods"] for row in found["references"]] == [2, 5]
    points = [(row["workload"], row["timeout_ms"], row["runs"]) for row in found["points"]]
    assert points == [(name, ms, 2) for name in ("few.json", "more.json") for ms in (30, 60)]
    assert len(found["runs"]) == 8
    for row in found["runs"]:
        # A run that did not fail either equals the reference or has an accuracy.
        assert row["exact"] == (row["accuracy"] is None and not row["failure"])
    assert json.loads((out / "study.json").read_text()) == found
    for name, count in (("points.csv", 4), ("runs.csv", 8), ("references.csv", 2)):
        with (out / name).open(newline="") as file:
            assert len(list(csv.DictReader(file))) == count
    assert "<figure" in (out / "report.html").read_text()
    again = call(*base, *axes, "--out", str(out), "--json")
    assert json.loads(again.stdout)["problems"][0]["code"] == "already-exists"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (("--timeouts", "1,x"), "--timeouts"),
        (("--timeouts", "-1"), "--timeouts"),
        (("--max-steps", "0"), "--max-steps"),
        (("--min-delays", ""), "--min-delays"),
        (("-w", "w.json", "-w", "v.json", "-w", "u.json", "-p", "p", "-p", "q"), "--platform"),
        (("-p", "p.xml"), "--platform"),
        (("--reference", "timeout"), "--reference"),
    ],
)
def test_wrong_options(arguments: tuple[str, ...], key: str) -> None:
    result = call("kube", "study", *arguments, "--json")
    assert result.returncode == 2
    assert json.loads(result.stdout)["problems"][0]["key"] == key
