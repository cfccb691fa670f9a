"""``python -m equipoise.adapters.targets`` makes what can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.targets import __main__ as command
from equipoise.errors import WorldError


def test_a_target_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Path:
        raise WorldError("the registry lacks it")

    monkeypatch.setattr(command, "SETUP_COMMANDS", {"a": fail, "b": lambda: Path("b-folder")})
    assert command.main([]) == 3
    assert capsys.readouterr().out == "b-folder\n"


def test_an_unknown_target_is_refused_before_any_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "SETUP_COMMANDS", {"a": lambda: Path("a-folder")})
    assert command.main(["a", "z"]) == 2
    assert capsys.readouterr().out == ""
