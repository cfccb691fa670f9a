"""The type checker rejects the execution of a plan that is not verified."""

from __future__ import annotations

from pathlib import Path

from mypy import api

SNIPPET = """
from equipoise.control import ControlConfig
from equipoise.control.executor import Executor
from equipoise.model.plan import Plan
from equipoise.plan import Refusal, verify
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.state.snapshot import Snapshot

def act(plan: Plan, snapshot: Snapshot) -> None:
    Executor({what}, CapacityLedger(snapshot), ControlConfig())
"""


def mypy_errors(what: str, folder: Path) -> str:
    path = folder / "snippet.py"
    path.write_text(SNIPPET.format(what=what))
    out, _, _ = api.run(["--strict", "--cache-dir", str(folder / "cache"), str(path)])
    return out


def test_a_plan_or_an_unchecked_verdict_cannot_be_executed(tmp_path: Path) -> None:
    assert 'has incompatible type "Plan"; expected "VerifiedPlan"' in mypy_errors("plan", tmp_path)
    unchecked = mypy_errors("verify(snapshot, plan)", tmp_path)
    assert 'has incompatible type "VerifiedPlan | Refusal"' in unchecked
