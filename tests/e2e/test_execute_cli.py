"""Execution of a plan on a simulated world: what is advised is what is executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import answer, call, refusals
from equipoise.documents.execution import ExecuteDocument
from equipoise.documents.json_document import to_plain

ROOT = Path(__file__).parent.parent.parent
SMALL = str(ROOT / "examples" / "small.yaml")
NIGHT = str(ROOT / "examples" / "night.yaml")
FAILING = """
name: failing
duration_s: 3600
physics: {migration: {failed_pct: 100}}
cluster:
  hosts:
    - {id: h1, cores: 8, mhz_per_core: 2000, memory_mib: 8192}
    - {id: h2, cores: 8, mhz_per_core: 2000, memory_mib: 8192}
  vms: [{id: a, vcpus: 1, memory_mib: 1024, host: h1}]
"""
TWO_STEPS = """
id: two
steps:
  - {id: m, action: {do: migrate, vm: a, source: h1, target: h2}, end_ms: 10000}
  - {id: off, action: {do: power_off, host: h1}, start_ms: 10000, end_ms: 20000, after: [m]}
"""


@pytest.mark.parametrize("inventory", [SMALL, NIGHT])
def test_the_plan_of_an_advice_runs_to_its_end_and_gives_what_was_promised(
    tmp_path: Path, inventory: str
) -> None:
    plan = str(tmp_path / "plan.yaml")
    advised = json.loads(
        call("recommend", inventory, "--with", "power", "-o", plan, "--json").stdout
    )
    found = answer("execute", plan, "--world", inventory)
    assert found["outcome"] == "done"
    assert found["faults"] == []
    rows = {(row["step"], row["action"], row["vm"], row["to"]) for row in found["recommendations"]}
    assert rows == {
        (row["step"], row["action"], row["vm"], row["to"]) for row in advised["actions"]
    }
    assert {row["outcome"] for row in found["recommendations"]} == {"finished"}
    for when in ("before", "after"):
        promised = advised["imbalance"][when]
        assert found["imbalance"][when] == pytest.approx(promised, rel=0.01, abs=1e-6)
    assert found["events"][-1]["kind"] == "plan_ended"
    assert set(found) == set(ExecuteDocument.__struct_fields__)


def test_a_plan_that_the_gate_refuses_is_not_executed(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(TWO_STEPS)
    found = answer("execute", str(tmp_path / "plan.yaml"), "--world", SMALL, code=1)
    assert not found["accepted"]
    assert found["outcome"] == "refused"
    assert found["faults"]
    assert {row["outcome"] for row in found["recommendations"]} == {"waiting"}
    assert not {"action_started"} & {row["kind"] for row in found["events"]}


def test_a_step_that_fails_is_a_fault_and_its_followers_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(TWO_STEPS)
    (tmp_path / "world.yaml").write_text(FAILING)
    found = answer(
        "execute", str(tmp_path / "plan.yaml"), "--world", str(tmp_path / "world.yaml"), code=3
    )
    outcomes = [(row["outcome"], row["code"]) for row in found["recommendations"]]
    assert [outcome for outcome, _ in outcomes] == ["failed", "skipped"]
    assert outcomes[1][1] == "prerequisite-failed"
    assert [fault["subject"] for fault in found["faults"]] == ["m", "off"]
    assert found["outcome"] == "partial"
    assert found["imbalance"]["before"] == found["imbalance"]["after"]


def test_a_plan_is_no_world(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(TWO_STEPS)
    plan = str(tmp_path / "plan.yaml")
    assert refusals("execute", plan, "--world", plan) == [("wrong-type", "--world")]


def test_the_journal_of_an_execution_replays_to_the_state_after_it(tmp_path: Path) -> None:
    plan, journal = str(tmp_path / "plan.yaml"), str(tmp_path / "run.db")
    call("recommend", NIGHT, "--with", "power", "-o", plan)
    found = answer("execute", plan, "--world", NIGHT, "--journal", journal)
    events = answer("journal", journal)["events"]
    assert to_plain(events) == found["events"]
