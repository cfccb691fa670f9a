"""A piece of work in a process of its own."""

from __future__ import annotations

import math
import subprocess

import pytest

from equipoise.bench.measure import run_alone


def test_work_runs_in_a_process_of_its_own_and_its_memory_is_measured() -> None:
    result, memory_mib = run_alone(math.hypot, 3, 4)
    assert result == 5
    assert memory_mib > 1


def test_work_that_fails_fails_the_measurement() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_alone(math.sqrt, "four")


def test_the_memory_of_the_measuring_process_does_not_count() -> None:
    ballast = b"x" * (500 * 1024 * 1024)
    _, memory_mib = run_alone(math.hypot, 3, 4)
    assert len(ballast) > memory_mib * 1024 * 1024 > 0
