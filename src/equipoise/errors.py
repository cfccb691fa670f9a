"""Every exception of the house, on one page.

    EquipoiseError
    ├── InvalidInput       what a person gave us cannot be used; says where, what, and the cure
    ├── MissingExtra       an optional part is not installed; names the extra
    ├── Bug                a fault of ours that was seen in time to keep what shows it
    ├── Interrupted        a person has ended it; what there was by then has been told
    └── WorldError         something outside refused or broke
        └── Conflict       the world has moved on: observe again, never force

Any other bug is an ``AssertionError``; "no good answer" is a value (``Refusal``), not an exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class EquipoiseError(Exception):
    """The root, so that a face can catch everything that is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in a file, said so that a person can mend it."""

    key: str
    """The path of the value, e.g. ``vms[3].memory_mib``; empty for the document as a whole."""
    what: str
    """What is wrong, with the value found."""
    cure: str = ""
    """What to write instead."""
    line: int | None = None
    """Counted from 1; unknown for values that did not come from a file."""
    column: int | None = None
    """Counted from 1, where it is known."""
    excerpt: str = ""
    """The line itself, with a caret under the place."""

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column is not None else ""
        place = f"line {self.line}{column}: " if self.line is not None else ""
        key = f"{self.key}: " if self.key else ""
        cure = f" ({self.cure})" if self.cure else ""
        shown = "".join(f"\n    {line}" for line in self.excerpt.splitlines())
        return f"{place}{key}{self.what}{cure}{shown}"


class InvalidInput(EquipoiseError):
    """What a person gave us cannot be used. Carries all the problems, not the first."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        assert self.problems, "an InvalidInput without a problem helps nobody"
        super().__init__(str(self))

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


class MissingExtra(EquipoiseError):
    """An optional part is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        super().__init__(f"{needed_for} needs an optional part: pip install 'equipoise[{extra}]'")


class Bug(EquipoiseError):
    """A fault of ours that was seen in time to keep what shows it."""


class Interrupted(EquipoiseError):
    """A person has ended it early, and what there was by then has been told."""


class WorldError(EquipoiseError):
    """Something outside refused or broke: a database, a host, a network."""


class Conflict(WorldError):
    """The world has moved on since it was read: observe again, never force."""
