"""Every code of upgrades and roles is in the registry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from equipoise.errors import CODES
from equipoise.roles.lint import DefectKind

SOURCE = Path(__file__).parents[3] / "src" / "equipoise"
CODED_CALLS = ("Reason", "InfeasibleSet")
"""Calls whose first argument is a code."""


def codes_in(package: str) -> Iterator[str]:
    for path in sorted((SOURCE / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            arguments = [node.args[0]] if name in CODED_CALLS and node.args else []
            arguments += [item.value for item in node.keywords if item.arg == "code"]
            for argument in arguments:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def test_every_code_of_an_upgrade_reason_is_registered() -> None:
    used = set(codes_in("upgrade"))
    assert len(used) > 40
    assert used <= set(CODES)


def test_every_defect_kind_of_a_layout_is_registered() -> None:
    assert {kind.value for kind in DefectKind} <= set(CODES)
