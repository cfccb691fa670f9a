"""``equipoise fuzz``, as a user calls it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builders import figures
from command import call_here

EQUIPOISE = Path(sys.executable).parent / "equipoise"
CORPUS = Path(__file__).parents[2] / "corpus" / "faulty.jsonl"


def call(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call_here(*words)
    assert done.returncode == code, done.stderr
    return done


def answer(*words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("fuzz", *words, "--json", code=code).stdout)
    return found


def test_the_installed_command_runs_a_campaign() -> None:
    words = ("fuzz", "planner", "--constraint", "Ban", "--tests", "20", "--json")
    done = subprocess.run([EQUIPOISE, *words], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["agreed"] == 20


def test_our_planner_agrees_with_the_specification() -> None:
    found = answer("planner", "--tests", "300", "--seed", "11")
    assert (found["tests"], found["agreed"], found["defects"]) == (300, 300, [])
    assert found["seed"] == 11


OVERLAPPING = ("--constraint", "RunningCapacity", "--constraint", "Seq")
"""Where it makes a difference that actions overlap."""


@pytest.mark.parametrize(
    ("letter", "where"),
    [("A", ()), ("B", ()), ("C", ()), ("D", OVERLAPPING), ("E", OVERLAPPING), ("F", ())],
)
def test_deliberate_faults_are_found_and_shrunk(letter: str, where: tuple[str, ...]) -> None:
    found = answer(f"faulty-{letter}", "--tests", "1000", "--failures", "1", *where, code=1)
    (defect,) = found["defects"]
    shrunk = defect["shrunk"]
    assert len(shrunk["cluster"]["vms"]) <= 2
    assert len(shrunk["cluster"]["hosts"]) <= 2
    assert defect["class"] in {"under-filtering", "over-filtering", "crash"}
    assert defect["why"]


def test_a_saved_case_gives_the_same_verdict_again(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    found = answer("faulty-C", "--tests", "200", "--save", str(path), code=1)
    again = answer("faulty-C", "--replay", str(path), code=1)
    assert again["tests"] == len(found["defects"])
    assert [
        (defect["class"], defect["constraint"], defect["mode"]) for defect in again["defects"]
    ] == [(defect["class"], defect["constraint"], defect["mode"]) for defect in found["defects"]]
    assert answer("planner", "--replay", str(path))["agreed"] == again["tests"]


def test_trials_may_have_a_network_and_our_planner_agrees_about_it() -> None:
    wires = 'network={"switches": [1, 3], "detours": 0.5}'
    found = answer("planner", "--tests", "200", "--set", wires, "--set", "network.limited=0.5")
    assert (found["agreed"], found["defects"]) == (200, [])


def test_a_fault_about_networks_is_found_and_saved_with_the_network(
    tmp_path: Path,
) -> None:
    saved = tmp_path / "found.jsonl"
    page = tmp_path / "found.html"
    more = ("--tests", "100", "--save", str(saved), "--report", str(page))
    found = answer("faulty-unwired", *more, code=1)
    shrunk = found["defects"][0]["shrunk"]
    assert len(shrunk["network"]["switches"]) == 1
    assert len(shrunk["network"]["links"]) == len(shrunk["cluster"]["hosts"]) == 2
    assert "link or switch" in page.read_text()
    again = answer("faulty-unwired", "--replay", str(saved), code=1)
    assert [defect["shrunk"] for defect in again["defects"]] == [
        defect["shrunk"] for defect in found["defects"]
    ]
    assert answer("planner", "--replay", str(saved))["defects"] == []
    told = call("fuzz", "faulty-departing", "--tests", "500", code=1).stdout
    line, *_ = {line.strip() for line in told.splitlines() if "Mbit/s: " in line}
    assert figures(line)
    assert "towards" in told


def test_findings_are_printed() -> None:
    done = call("fuzz", "faulty-C", "--constraint", "Spread", "--tests", "400", code=1)
    finding, *_ = [line for line in done.stdout.splitlines() if "under-filtering, " in line]
    assert {"introduced", "Spread", "continuous"} <= set(re.findall(r"\w+", finding))
    assert "migrate" in done.stdout


def test_the_targets_are_listed() -> None:
    named = {row["target"] for row in json.loads(call("fuzz", "--list", "--json").stdout)}
    assert {"planner", "faulty-A", "faulty-F"} <= named
    listed = [line.split()[:1] for line in call("fuzz", "--list").stdout.splitlines()]
    assert all([name] in listed for name in named)


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("plannr",), "unknown-name", "planner"),
        (("planner", "--constraint", "Spred"), "unknown-constraint", "Spread"),
        (("mutant-Spread",), "unknown-name", "mutant-Spread-"),
        (("mutant-Spread-momentum",), "unknown-name", "mutant-Spread-moment"),
        (("mutant-Sprd-moment",), "unknown-name", "fuzz --list"),
        (("planner", "--spec", "/dev/null"), "empty-value", "/dev/null"),
        (("planner", "--known", str(CORPUS)), "findings-mismatch", "faulty-A"),
        (("planner", "--workers", "9" * 5000), "invalid-value", "1,000"),
        (("planner", "--workers", "two", "--replay", "/dev/null"), "invalid-value", "'two'"),
        (
            ("planner", "--known", "/dev/null", "--replay", "/dev/null"),
            "option-conflict",
            "--known",
        ),
        (("planner", "--constraint", "Fence", "--vms", "0"), "impossible-trials", "Fence"),
        (("planner", "--set", 'given={"nb": ["x"]}'), "invalid-value", "given.nb: 'x'"),
        (
            ("planner", "--constraint", "Root", "--set", "broken_at_first=true"),
            "impossible-trials",
            "3,000 trials of Root",
        ),
        (("planner", "--save", "/nowhere/at/all.jsonl"), "file-not-writable", "/nowhere/at/all"),
        (("planner", "--replay", "/nowhere/at/all.jsonl"), "file-not-readable", "/nowhere/at/all"),
    ],
)
def test_invalid_arguments_are_reported(words: tuple[str, ...], code: str, named: str) -> None:
    done = call_here("fuzz", *words, "--json")
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert [problem["code"] for problem in found["problems"]] == [code]
    assert named in found["message"]
    assert done.stderr == f"{found['message']}\n"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("planner", "--hosts", "3-1"), "--hosts: 3-1 "),
        (("planner", "--vms", "many"), "--vms: many "),
        (("planner", "--vms", "1-"), "--vms: 1- "),
        (("planner", "--vms", "1-5000"), "1,000"),
        ((), "TARGET"),
    ],
)
def test_wrong_usage_names_the_option(words: tuple[str, ...], named: str) -> None:
    done = call_here("fuzz", *words, "--json")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert (document["error"], document["code"]) == ("usage", "usage-error")
    assert named in done.stderr


def test_an_invalid_file_of_trials_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text('\n{"target": "planner"}\n')
    (problem,) = answer("planner", "--replay", str(path), code=2)["problems"]
    assert (problem["file"], problem["line"]) == (str(path), 2)


def test_a_mutant_is_tested_with_its_altered_constraint() -> None:
    found = answer("mutant-Spread-moment", "--tests", "1000", "--failures", "1", code=1)
    assert {defect["constraint"] for defect in found["defects"]} == {"Spread"}


def test_constraints_without_possible_trials_are_left_out_and_named() -> None:
    done = call("fuzz", "planner", "--tests", "200", "--vms", "0", "--set", "continuous=true")
    assert "planner: 200 trials" in done.stdout
    left = done.stderr.split("left out, because the options allow no trial of them: ")[1]
    assert {"Fence", "Running"} <= set(left.replace("\n", " ").replace(",", "").split())


def test_constraints_that_are_never_broken_at_first_are_left_out_and_named() -> None:
    done = call("fuzz", "planner", "--tests", "40", "--set", "broken_at_first=true")
    assert "planner: 40 trials" in done.stdout
    left = done.stderr.split("left out, because the options allow no trial of them: ")[1]
    named = set(left.splitlines()[0].split(", "))
    assert {"Root", "Seq", "MaxMoves"} <= named
    assert not {"Spread", "Fence", "ShareableResource"} & named


def test_a_bug_in_the_specification_ends_the_campaign_with_the_case_saved(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from equipoise.adapters.targets import trial\n"
        "def broken(*_):\n    raise KeyError('ours')\n"
        "trial.case_holds = broken\n"
    )
    saved = tmp_path / "broken.jsonl"
    paths = (str(tmp_path), os.environ.get("PYTHONPATH"))
    words = ("planner", "--replay", str(CORPUS), "--save", str(saved), "--json")
    done = subprocess.run(
        [EQUIPOISE, "fuzz", *words],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert done.returncode == 70
    assert json.loads(done.stdout)["error"] == "bug"
    assert json.loads(done.stdout)["code"] == "internal-error"
    assert "KeyError: 'ours'" in done.stderr
    assert str(saved) in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(saved.read_text())["message"] == "KeyError: 'ours'"


def test_a_failing_own_constraint_is_reported_with_the_case(tmp_path: Path) -> None:
    spec, saved = tmp_path / "mine.spec", tmp_path / "case.jsonl"
    spec.write_text("Div(nb : int) discrete ::= card(vms) / nb <= 3")
    words = ("planner", "--spec", str(spec), "--tests", "200", "--save", str(saved))
    (problem,) = answer(*words, code=2)["problems"]
    assert (problem["code"], problem["key"]) == ("evaluation-failed", "Div")
    assert "zero" in problem["what"]
    assert str(saved) in problem["cure"]
    assert "Div(nb : int)" in json.loads(saved.read_text())["specification"]
    again = ("planner", "--replay", str(saved), "--save", str(tmp_path / "again.jsonl"))
    (problem,) = answer(*again, code=2)["problems"]
    assert (problem["code"], problem["key"]) == ("evaluation-failed", "Div")
