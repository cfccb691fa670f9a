"""The list of schedulers on terminals of any width, and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from equipoise.cli.fuzz.campaign import _settings_text, _targets_table
from equipoise.cli.output import PIPE_WIDTH
from equipoise.fuzz.registry import registered_schedulers


@pytest.mark.parametrize("width", [80, 132, PIPE_WIDTH])
def test_the_list_of_targets_loses_nothing(width: int) -> None:
    entries = list(registered_schedulers())
    out = io.StringIO()
    Console(file=out, width=width).print(_targets_table(entries))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in out.getvalue()
    # The last column wraps: without the first three, its words follow each other.
    start = next(line.index("description") for line in lines if "description" in line)
    described = "".join(line[start:].strip() for line in lines).replace(" ", "")
    for entry in entries:
        assert any(line.split()[:2] == [entry.name, entry.question] for line in lines), entry.name
        for part in (entry.about, entry.version, _settings_text(entry)):
            assert part.replace(" ", "") in described, (entry.name, part)
    (header,) = [line for line in lines if line.split()[:1] == ["target"]]
    assert header.split() == ["target", "question", "constraints", "description"]
