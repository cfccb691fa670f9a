"""The type checker rejects the execution of a plan that is not verified."""

from __future__ import annotations

from pathlib import Path

from mypy import api

SNIPPET = """
from equipoise.control.config import ControlConfig
from equipoise.control.executor import Executor
from equipoise.model.plan import Plan
from equipoise.plan import Refusal, verify
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.state.snapshot import Snapshot

def act(plan: Plan, snapshot: Snapshot) -> None:
    Executor(plan, CapacityLedger(snapshot), ControlConfig())
    Executor(verify(snapshot, plan), CapacityLedger(snapshot), ControlConfig())
"""


def test_a_plan_or_an_unchecked_verdict_cannot_be_executed(tmp_path: Path) -> None:
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    # One run for both calls: without a cache the checker reads the whole package.
    out, _, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(path)])
    assert 'has incompatible type "Plan"; expected "VerifiedPlan"' in out
    assert 'has incompatible type "VerifiedPlan | Refusal"' in out
