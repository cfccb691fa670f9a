"""The examples of a law in the profile ``ci`` depend on nothing but the law."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CONSTANT = 31415926535
# A process of its own, because the profile is chosen when conftest.py is imported.
SCRIPT = """
import json, sys
import conftest
from hypothesis import given, settings, strategies as st

def examples():
    drawn = []

    @settings(derandomize=True, max_examples=200, database=None)
    @given(st.lists(st.integers(), min_size=5))
    def law(numbers):
        drawn.append(numbers)

    law()
    return drawn

before = examples()
sys.path.insert(0, sys.argv[1])
import imported_by_others
json.dump([before, examples()], sys.stdout)
"""


def examples(profile: str, folder: Path) -> tuple[list[list[int]], list[list[int]]]:
    """Return what a law draws before and after a module with a constant is imported."""
    (folder / "imported_by_others.py").write_text(f"CONSTANT = {CONSTANT}\n")
    drawn = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        cwd=TESTS, env=os.environ | {"HYPOTHESIS_PROFILE": profile},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    before, after = json.loads(drawn)
    return before, after


def test_a_law_draws_the_same_examples_alone_and_after_imports(tmp_path: Path) -> None:
    before, after = examples("ci", tmp_path)
    assert len(before) == 200
    assert before == after


def test_the_night_profile_draws_constants_of_the_sources(tmp_path: Path) -> None:
    before, after = examples("night", tmp_path)
    assert not any(CONSTANT in numbers for numbers in before)
    assert any(CONSTANT in numbers for numbers in after)
