"""What was found wrong in a document, gathered until all is known. Never stops at the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, Self

from equipoise.errors import Problem
from equipoise.model.files.words import Path, closest, listed, path_shown, quoted

LineOf = Callable[[Path], int | None]

SHOWN_MAX: Final = 100
"""How many problems a person is shown at once."""
FOUND_MAX: Final = 1000
"""After so many nobody looks further: the file is not what it should be."""


class Enough(Exception):
    """So much has been found that looking further would only take time."""


class Finding(NamedTuple):
    """One thing that is wrong at a path; its line is looked up when it is shown."""

    path: Path
    what: str
    cure: str = ""
    first: Path | None = None
    """Where the other half of the contradiction stands."""
    line: int | None = None
    """Given when the reader knows it better than the path does."""


class Findings:
    """A growing list of findings; a part of the document may write to it below its own path."""

    def __init__(self, found: Iterable[Finding] = ()) -> None:
        self._found: list[Finding] = list(found)
        self._above: Path = ()

    def __len__(self) -> int:
        return len(self._found)

    def all(self) -> tuple[Finding, ...]:
        """What has been found."""
        return tuple(self._found)

    @property
    def is_full(self) -> bool:
        """Whether more have been found than will be shown, so that care is wasted on them."""
        return len(self._found) > SHOWN_MAX

    @property
    def paths(self) -> list[Path]:
        """Where something is wrong."""
        return [finding.path for finding in self._found]

    def below(self, *steps: str | int) -> Self:
        """Give a view for a part of the document: what it adds lies below ``steps``."""
        part = type(self)()
        part._found, part._above = self._found, self._above + steps
        return part

    def add(self, path: Path, what: str, cure: str = "", first: Path | None = None) -> None:
        """Note that something is wrong, or raise ``Enough``."""
        if len(self._found) >= FOUND_MAX:
            raise Enough
        other = None if first is None else self._above + first
        self._found.append(Finding(self._above + path, what, cure, other))

    def add_unknown(self, path: Path, noun: str, name: str, known: Collection[str]) -> None:
        """Note that a name stands for nothing, and guess which one was meant."""
        among = f"the {noun}s are: {listed(known)}" if known else f"no {noun} is listed"
        cure = self.guess(name, known) + among
        self.add(path, f"there is no {noun} {quoted(name)}", cure)

    def guess(self, word: str, words: Collection[str]) -> str:
        """Begin a cure with the word that was meant, if one is near and the cure will be shown."""
        near = None if self.is_full else closest(word, words)
        return "" if near is None else f"did you mean {quoted(near)}? "

    def problems(self, line_of: LineOf | None = None) -> list[Problem]:
        """Say them all, from the top of the file to its end, and how many were left out."""
        said = [_said(finding, line_of) for finding in self._found[:SHOWN_MAX]]
        said.sort(key=lambda problem: problem.line or 0)
        more = len(self._found) - len(said)
        if more > 0:
            least = "at least " if len(self._found) >= FOUND_MAX else ""
            what = f"... and {least}{more} more"
            said.append(Problem(key="", what=what, cure="mend these first"))
        return said


def _said(finding: Finding, line_of: LineOf | None) -> Problem:
    line = finding.line or (line_of(finding.path) if line_of else None)
    what = finding.what
    if finding.first is not None:
        first = line_of(finding.first) if line_of else None
        what += f" {path_shown(finding.first)}" + (f" on line {first}" if first else "")
    return Problem(key=path_shown(finding.path), what=what, cure=finding.cure, line=line)
