"""Hypothesis profiles: ``dev`` by hand, ``ci`` for ``make test``, ``night`` for a long hunt.

And interrupts that are heard: a shell lets what it runs in the background ignore them, and commands
that tests start and interrupt would inherit that.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=200, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("night", max_examples=20_000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of foreign schedulers last: ``make test`` makes them in the background."""
    items.sort(key=lambda item: "e2e/targets" in item.path.as_posix())
