"""Hypothesis profiles, interrupts and the order of the tests.

The profile ``dev`` is for work by hand, ``ci`` for ``make test``, ``night`` for a long hunt. The
variable HYPOTHESIS_PROFILE selects it.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

_COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=200, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("night", max_examples=20_000, print_blob=True, **_COMMON)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)


def draw_without_constants_of_the_sources() -> None:
    """Make the examples of a law depend on the law alone.

    Hypothesis mixes the literals of all imported modules of the project into its draws, so a
    derandomized law draws other examples after other tests have imported other modules. Neither a
    setting nor the interface of backends turns this off: a backend of one's own also changes how
    the engine explores. An update of Hypothesis that renames the function fails here, and the law
    of test_determinism_of_laws.py fails if it no longer has an effect.
    """
    if not callable(getattr(providers, "_get_local_constants", None)):
        raise pytest.UsageError("this version of Hypothesis collects constants in another way")
    providers._get_local_constants = Constants


if PROFILE == "ci":
    draw_without_constants_of_the_sources()

# A shell lets the processes of its background ignore interrupts. Commands that tests start and
# interrupt would inherit that.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of foreign schedulers last: ``make test`` makes them in the background."""
    items.sort(key=lambda item: "e2e/targets" in item.path.as_posix())
