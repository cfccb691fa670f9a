"""The benchmark of planning, on one small instance, with the real BtrPlace."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from command import call
from equipoise.adapters.btrplace import java_build
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.bench.plan import instances
from equipoise.bench.plan.measured_process import run_measured


def bench(folder: Path, **env: str) -> list[dict[str, Any]]:
    named = {instances.FOLDER_VARIABLE: str(folder), "EQUIPOISE_BENCH_RUNS": "1"}
    done = call("bench", "plan", "--json", cwd=folder, **named | env)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def test_both_sides_solve_a_small_instance_and_are_measured_alike(tmp_path: Path) -> None:
    try:
        version = java_build.require_build().version
    except MissingTarget as error:
        pytest.skip(str(error))
    instances.write_instance(instances.draining(6, 30), tmp_path / "small.json.gz")
    _imposed, row = bench(tmp_path)
    assert row["what"] == "plan small, repair"
    assert row["plain"] == f"BtrPlace {version} -r"
    assert row["note"] == ""
    assert row["ratio"] == pytest.approx(row["plain_seconds"] / row["seconds"])
    figures = row["figures"]
    assert figures["verified"] == 1
    # The host that is drained has five VMs, and five more are booted; no plan is better.
    for side in ("", "peer_"):
        assert figures[f"{side}moves"] >= 5
        assert figures[f"{side}ends_s"] >= 5 + 5 + 2
        assert figures[f"{side}peak_mib"] > 10
    parts = ("load_s", "build_s", "solve_s")
    assert row["seconds"] == pytest.approx(sum(figures[part] for part in parts))


def test_without_btrplace_the_row_says_why(tmp_path: Path) -> None:
    instances.write_instance(instances.growing(6, 30), tmp_path / "small.json.gz")
    _imposed, row = bench(tmp_path, EQUIPOISE_TARGETS=str(tmp_path / "nothing"), PATH="nowhere")
    assert row["figures"]["verified"] == 1
    assert row["ratio"] is None
    assert "'java'" in row["note"]


def test_what_cannot_be_read_is_a_row_as_well(tmp_path: Path) -> None:
    (tmp_path / "bad.json.gz").write_bytes(b"not packed at all")
    _imposed, row = bench(tmp_path)
    assert row["figures"]["verified"] == 0
    assert row["ratio"] is None
    assert row["note"]


class TestAChild:
    def test_its_memory_is_its_own(self) -> None:
        here = b"x" * (300 * 2**20)  # which must not count as memory of the child
        small = run_measured([sys.executable, "-c", "print('hello')"], seconds_max=60)
        assert (small.code, small.stdout_text) == (0, "hello\n")
        assert small.peak_mib < 100 < len(here)  # so that it is still there
        large = run_measured([sys.executable, "-c", "x = b'x' * 200_000_000"], seconds_max=60)
        assert large.peak_mib > 190

    def test_one_that_takes_too_long_is_ended(self) -> None:
        ended = run_measured(
            [sys.executable, "-c", "import time; time.sleep(600)"], seconds_max=0.5
        )
        assert ended.code is None

    def test_its_code_and_what_it_complained_about_are_reported(self) -> None:
        ended = run_measured([sys.executable, "-c", "import sys; sys.exit('alas')"], seconds_max=60)
        assert (ended.code, ended.stderr_text) == (1, "alas\n")
