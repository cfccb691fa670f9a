"""Recorded runs of real Batsim 4.2.0 replayed against our simulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.batsim.protocol.replay import EXPLAINED, replay

RECORDED = Path(__file__).parents[5] / "shared/data/batsim/real"


def test_only_explained_runs_differ(tmp_path: Path) -> None:
    names = sorted(path.parent.name for path in RECORDED.glob("*/run.json"))
    if not names:
        pytest.skip("the recorded runs of Batsim are not beside the repository")
    different = set()
    for name in names:
        out = tmp_path / name
        out.mkdir()
        if replay(RECORDED / name, RECORDED / "inputs", out).differences:
            different.add(name)
    assert len(names) == 108
    assert different == set(EXPLAINED)
