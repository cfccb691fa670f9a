"""Every code of balance and power is registered in ``CODES`` and is in kebab-case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import equipoise
from equipoise.balance.advice import BalanceCode
from equipoise.balance.rebalance.rebalancer import OBSTACLE_CODES
from equipoise.balance.repair.placement_state import ProblemKind
from equipoise.errors import CODES
from equipoise.power.advice import PowerCode

PACKAGE = Path(equipoise.__file__).parent
LITERAL = re.compile(
    r'(?:code="|Explanation\(\s*name,\s*"|PinReason\(\s*"|_reject\(move, "|return "|return \(\s*")'
    r'([a-z][a-z_-]+)"(?=[,)])'
)


def literal_codes() -> set[str]:
    """Return the codes that stand as strings in the sources."""
    files = [*(PACKAGE / "balance").rglob("*.py"), *(PACKAGE / "power").rglob("*.py")]
    return {code for file in files for code in LITERAL.findall(file.read_text(encoding="utf-8"))}


KINDS = {value for name, value in vars(ProblemKind).items() if name.isupper()}
OBSTACLES = {code for code, _ in OBSTACLE_CODES.values()}


@pytest.mark.parametrize(
    "code", sorted({*BalanceCode, *PowerCode, *OBSTACLES, *KINDS, *literal_codes()})
)
def test_the_code_is_registered(code: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    assert CODES[code]


def test_codes_are_found_in_the_sources() -> None:
    assert {"gate-refuses", "broken-rule", "policy-override", "balanced"} <= literal_codes()
