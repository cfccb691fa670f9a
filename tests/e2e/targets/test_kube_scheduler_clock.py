"""A real kube-scheduler on the virtual clock, without any server: it tries again and again."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from clock_probe import Probe, running
from equipoise.adapters.kubernetes.clock.build import find_scheduler
from equipoise.adapters.kubernetes.clock.page import START_NS
from equipoise.errors import EquipoiseError

STEPS = 60
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
"""


@pytest.fixture(scope="module")
def scheduler() -> Path:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    try:
        program = find_scheduler()
    except EquipoiseError as error:
        pytest.skip(str(error))
    if program is None:
        pytest.skip("run 'python -m equipoise.adapters.targets kube-scheduler'")
    return program


def instants(scheduler: Path, folder: Path) -> list[int]:
    """Step through timers and return their instants since the start."""
    config = folder / "kubeconfig"
    config.write_text(KUBECONFIG)
    words = (f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0")
    with running(scheduler, folder, *words) as started:
        return asyncio.run(_step(started))


async def _step(started: Probe) -> list[int]:
    passed = []
    for _ in range(STEPS):
        assert await started.step()
        passed.append(started.page.now_ns - START_NS)
    return passed


def test_its_timers_lead_through_virtual_time(scheduler: Path, tmp_path: Path) -> None:
    passed = instants(scheduler, tmp_path)
    assert passed == sorted(passed)
    assert passed[-1] > 1_000_000_000
