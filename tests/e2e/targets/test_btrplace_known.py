"""The findings files of BtrPlace: one line for each kind, all seen again, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import answer, call
from equipoise.adapters.btrplace.java_build import VERSIONS
from equipoise.adapters.btrplace.scheduler import (
    TRIAL_OPTIONS,
    BtrPlace,
    btrplace_entry,
    start_btrplace,
)
from equipoise.adapters.targets.environment import MissingTarget, PinnedTarget
from equipoise.adapters.targets.worker import Worker
from equipoise.fuzz.campaign import CampaignLimits, Finding, FuzzCampaign
from equipoise.fuzz.campaign.findings import judge_baseline
from equipoise.fuzz.trial import TrialVerdict
from equipoise.fuzz.trial.stored import StoredTrial, read_lines, trial_of


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    try:
        worker = start_btrplace()
    except MissingTarget as error:
        pytest.skip(str(error))
    with worker:
        yield worker


def key(line: StoredTrial) -> tuple[object, ...]:
    """What a line of a findings file is about: a kind of defects, and a setting."""
    trial = trial_of(line)
    verdict = TrialVerdict(
        line.outcome, line.message, not trial.objections, trial.is_broken_at_first
    )
    return (tuple(line.settings.items()), *Finding(verdict, line.number, trial, trial).kind)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.version)
def test_a_findings_file_has_one_line_for_each_kind_and_setting(version: PinnedTarget) -> None:
    lines = list(read_lines(version.findings.read_bytes(), str(version.findings)))
    assert {line.target_version for line in lines} == {version.version}
    assert {tuple(line.settings.items()) for line in lines} == {(), (("repair", "on"),)}
    keys = list(map(key, lines))
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("repair", ["off", "on"])
def test_all_that_is_known_is_seen_again_and_nothing_else(worker: Worker, repair: str) -> None:
    known = btrplace_entry()
    assert known.version == worker.version
    assert known.findings is not None
    wanted = {"repair": "on"} if repair == "on" else {}
    lines = read_lines(known.findings.read_bytes(), str(known.findings))
    mine = [line for line in lines if dict(line.settings) == wanted]
    btrplace = BtrPlace(repair=repair == "on", starter=lambda: worker)
    found = judge_baseline(btrplace, mine)
    assert found.disappeared == ()
    assert found.kinds == {key(line)[1:] for line in mine}
    campaign = FuzzCampaign(
        "btrplace", btrplace, known.constraints, TRIAL_OPTIONS, 5, CampaignLimits(tests=250)
    )
    assert found.new(campaign.run()) == []


def test_a_saved_finding_is_judged_again_with_its_own_setting(
    worker: Worker, tmp_path: Path
) -> None:
    path = str(tmp_path / "found.jsonl")
    words = ("fuzz", "btrplace", "--constraint", "SplitAmong")
    found = answer(*words, "--tests", "40", "--with", "repair=on", "--save", path)
    assert (found["version"], found["settings"]) == (worker.version, {"repair": "on"})
    again = answer("fuzz", "btrplace", "--replay", path, code=1)
    assert again["settings"] == {"repair": "on"}
    assert len(found["defects"]) > 2
    assert list(map(told, again["defects"])) == list(map(told, found["defects"]))


def told(defect: dict[str, Any]) -> list[Any]:
    """What is said of a defect, but for how often it was seen and whether it was known."""
    return [defect[key] for key in ("class", "constraint", "mode", "message", "shrunk")]


def test_findings_of_another_version_are_not_compared_with(worker: Worker) -> None:
    other = next(version for version in VERSIONS if version.version != worker.version)
    options = ("--tests", "1", "--known", str(other.findings), "--json")
    done = call("fuzz", "btrplace", *options)
    assert done.returncode == 2
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["code"] == "findings-mismatch"
    assert {other.version, worker.version} <= set(problem["what"].replace(",", "").split())
