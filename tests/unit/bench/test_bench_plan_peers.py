"""The benchmark of planning, when a side breaks: it found no plan, and the others go on."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.adapters.btrplace.format.plan_actions import PlanCost
from equipoise.bench.plan import instances
from equipoise.bench.plan.btrplace_comparison import SolverRun, _run_solver

WHOLE = '{"actions": [{"id": "bootVM", "vm": 1, "start": 0, "end": 2}]}'


def asked(folder: Path, plan: str | None, **said: Any) -> SolverRun:
    """Run a planner that writes a plan, or half of one, and a report."""
    path = folder / "plan.json"
    answer = {"load_s": 1, "build_s": 2, "solve_s": 3, "total_s": 6, "status": "solved"} | said
    write = "" if plan is None else f"open({str(path)!r}, 'w').write({plan!r})"
    program = f"{write}\nprint({json.dumps(answer)!r})"
    return _run_solver([sys.executable, "-c", program], path, lambda one: float(one["total_s"]))


def test_a_plan_is_counted(tmp_path: Path) -> None:
    found = asked(tmp_path, WHOLE, verified=True)
    assert (found.amount, found.why, found.verified) == (PlanCost(2, 0), "", True)
    assert (found.total_s, found.times["solve_s"]) == (6, 3)


@pytest.mark.parametrize("plan", ['{"actions": [{"id":', "", "[]", '{"actions": [7]}', "{}"])
def test_who_wrote_half_a_plan_found_none(plan: str, tmp_path: Path) -> None:
    found = asked(tmp_path, plan)
    assert (found.amount, found.why) == (None, "its plan cannot be read")
    assert found.total_s == 6


def test_who_broke_after_the_plan_was_written_found_none(tmp_path: Path) -> None:
    found = asked(tmp_path, WHOLE, status="error", error="no space left")
    assert (found.amount, found.why) == (None, "no space left")


def test_who_wrote_no_plan_says_why(tmp_path: Path) -> None:
    assert asked(tmp_path, None, status="unsat").why == "unsat"


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


NET = {"model": {"views": [{"id": "shareableResource"}, {"id": "net"}]}}


@pytest.mark.parametrize(
    ("content", "has"),
    [
        (packed(json.dumps(NET).encode()), True),
        (packed(b'{"model": {"views": []}}'), False),
        (b"not packed", False),
        (packed(json.dumps(NET).encode())[:-12], False),
        (packed(b"x")[:10] + b"\xff" * 20, False),
        (packed(b"no JSON"), False),
        (packed(b"[]"), False),
        (packed(b'{"model": {"views": ["net"]}}'), False),
    ],
)
def test_what_cannot_be_read_has_no_network(content: bytes, has: bool, tmp_path: Path) -> None:
    path = tmp_path / "one.json.gz"
    path.write_bytes(content)
    assert instances.has_network(path) is has
