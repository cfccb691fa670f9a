"""The type checker itself refuses to execute what was not verified."""

from __future__ import annotations

from pathlib import Path

from mypy import api

SNIPPET = """
from equipoise.control import ControlConfig
from equipoise.control.executor import Executor
from equipoise.model.plan import Plan
from equipoise.plan import Refusal, verify
from equipoise.plan.ledger import Ledger
from equipoise.model.snapshot import Snapshot

def act(plan: Plan, snapshot: Snapshot) -> None:
    Executor({what}, Ledger(snapshot), ControlConfig())
"""


def complaints(what: str, folder: Path) -> str:
    path = folder / "snippet.py"
    path.write_text(SNIPPET.format(what=what))
    out, _, _ = api.run(["--strict", "--cache-dir", str(folder / "cache"), str(path)])
    return out


def test_a_plan_and_an_unread_verdict_cannot_be_executed(tmp_path: Path) -> None:
    assert 'has incompatible type "Plan"; expected "VerifiedPlan"' in complaints("plan", tmp_path)
    unread = complaints("verify(snapshot, plan)", tmp_path)
    assert 'has incompatible type "VerifiedPlan | Refusal"' in unread
