"""Showing a place in a text: the line itself, with a caret under what is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.errors import InvalidInput, Problem
from equipoise.spec.language.syntax import Place

SHOWN_MAX: Final = 100
"""Of longer lines only the part around the place is shown."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text and what it is called."""

    name: str
    text: str

    def problem(self, place: Place, what: str, cure: str = "") -> Problem:
        """Say what is wrong at a place, and show it."""
        return Problem(
            key="",
            what=what,
            cure=cure,
            line=place.line,
            column=place.column,
            excerpt=self.excerpt(place),
        )

    def refused(self, place: Place, what: str, cure: str = "") -> InvalidInput:
        """The same as an error of its own."""
        return InvalidInput(self.name, [self.problem(place, what, cure)])

    def excerpt(self, place: Place) -> str:
        """The line with a caret under the place."""
        lines = self.text.splitlines()
        line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        start = max(0, place.column - 1 - SHOWN_MAX // 2) if len(line) > SHOWN_MAX else 0
        shown = line[start : start + SHOWN_MAX]
        indent = "".join("\t" if one == "\t" else " " for one in line[start : place.column - 1])
        width = max(1, min(place.width, len(shown) - len(indent)))
        return f"{shown}\n{indent}{'^' * width}"

    def end(self) -> Place:
        """The last place of the text."""
        lines = self.text.rstrip().splitlines() or [""]
        return Place(len(lines), len(lines[-1]) + 1)
