"""The registry of stable codes is complete, and docs/codes.md is up to date."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from equipoise.errors import CODES, EquipoiseError, InputProblem, InvalidInput, WorldError

ROOT = Path(__file__).parent.parent
KEBAB_CASE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def tool() -> ModuleType:
    """Import tools/code_list.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("code_list", ROOT / "tools" / "code_list.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def literal_codes() -> Iterator[tuple[Path, int, str]]:
    """Yield every string that the sources pass as ``code=...`` or assign to a ``code``."""
    for path in sorted((ROOT / "src" / "equipoise").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "code":
                value: ast.expr | None = node.value
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                is_code = any(isinstance(each, ast.Name) and each.id == "code" for each in targets)
                value = node.value if is_code else None
            else:
                continue
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                yield path.relative_to(ROOT), value.lineno, value.value


def test_the_page_of_codes_is_up_to_date() -> None:
    page = (ROOT / "docs" / "codes.md").read_text()
    assert page == tool().page(), "run: python tools/code_list.py > docs/codes.md"


def test_every_code_is_on_the_page_once() -> None:
    listed = [code for _, codes in tool().sections() for code in codes]
    assert sorted(listed) == sorted(CODES)


def test_every_code_in_the_sources_is_registered() -> None:
    found = list(literal_codes())
    assert len(found) > 20, "the search finds the codes of the store at least"
    assert [place for place in found if place[2] not in CODES] == []


@pytest.mark.parametrize("package", ["cli", "report", "roles"])
def test_every_problem_states_its_code(package: str) -> None:
    """The default of ``InputProblem`` is too general for a command."""
    unstated = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "src" / "equipoise" / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("InputProblem", "diagnostics.add")
        and not any(keyword.arg == "code" for keyword in node.keywords)
    ]
    assert unstated == []


def test_codes_are_in_kebab_case_and_meanings_are_sentences() -> None:
    for code, meaning in CODES.items():
        assert KEBAB_CASE.fullmatch(code), code
        assert re.fullmatch(r"[A-Z][^\n|]*\.", meaning), code


def test_every_exception_has_a_registered_code() -> None:
    kinds = [EquipoiseError]
    while kinds:
        kind = kinds.pop()
        assert kind.code in CODES, kind
        kinds += kind.__subclasses__()


def test_an_invalid_input_has_the_code_of_its_first_problem() -> None:
    problem = InputProblem(key="a", what="is wrong", code="journal-not-found")
    assert InvalidInput("file", [problem]).code == "journal-not-found"


def test_a_world_error_keeps_the_code_that_it_is_given() -> None:
    assert WorldError("it failed").code == "world-failed"
    assert WorldError("it failed", code="disk-full").code == "disk-full"
