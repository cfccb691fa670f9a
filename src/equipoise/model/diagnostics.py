"""Diagnostics: what is wrong in an input file, collected until every problem is known.

A diagnostic has a code, the path of the value, a sentence and a fix. The functions format paths,
values and names for a message: quoted, shortened, with the closest known name. They accept any
value that a file may hold and never emit a control character.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, NamedTuple, Self

from equipoise.errors import InputProblem

KeyPath = tuple[str | int, ...]
"""The path from the root of a document to a value: keys and positions, ``("vms", 3, "host")``."""

_TEXT_LENGTH_MAX: Final = 60
_LIST_LENGTH_MAX: Final = 12
_CANDIDATES_MAX: Final = 2000
_LENGTH_GAP_MAX: Final = 3
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LATIN_END: Final = 0xFF
_PLANE_END: Final = 0xFFFF
# Below 2**53 a float holds every whole number exactly, so the printed digits are those of the file.
_EXACT_INTEGER_MAX: Final = 10**15


def quoted(text: str) -> str:
    """Return text in double quotes, with escapes that both YAML and JSON understand."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def format_value(value: object) -> str:
    """Return a value of a file for a message: long text is shortened, containers are only named."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _shorten(_number_literal(value))
    if isinstance(value, str):
        return quoted(_shorten(value))
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def format_number(value: float) -> str:
    """Return a number as a file would have it: a whole number without ``.0``."""
    whole = float(value).is_integer() and abs(value) < _EXACT_INTEGER_MAX
    return str(int(value)) if whole else _number_literal(value)


def is_encodable(text: str) -> bool:
    """Whether text can be encoded as UTF-8. A lone surrogate, half a character, cannot."""
    return text.isascii() or _SURROGATE.search(text) is None


def describe_value(value: object) -> str:
    """Return a value with its kind: ``the text "a"``, ``the number 3``, ``a list``."""
    if isinstance(value, str):
        return f"the text {format_value(value)}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"the number {format_value(value)}" if is_number else format_value(value)


def format_path(path: KeyPath) -> str:
    """Return a path as text: ``vms[3].cpu.reservation_mhz``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            text += f".{_shorten(step)}" if text else _shorten(step)
        else:
            text += f"[{quoted(_shorten(step))}]"
    return text


def describe_duplicate_key(first: int, second: int) -> str:
    """Return the message for a key that a mapping has twice, with both lines."""
    where = f"on line {first}" if first == second else f"on lines {first} and {second}"
    return f"this key is given twice, {where}"


def format_list(words: Iterable[str]) -> str:
    """Return words separated by commas; a long list is cut and ends with ``...``."""
    first_words = list(islice(words, _LIST_LENGTH_MAX + 1))
    tail = ", ..." if len(first_words) > _LIST_LENGTH_MAX else ""
    return ", ".join(map(make_printable, first_words[:_LIST_LENGTH_MAX])) + tail


def make_printable(word: str) -> str:
    """Return a word unchanged if it is printable, else quoted and escaped."""
    return _shorten(word) if word.isprintable() else quoted(_shorten(word))


def closest_match(word: str, words: Iterable[str]) -> str | None:
    """Return the word that is most similar to ``word``, or ``None`` if none is similar."""
    # The comparison is slow. A file may have 100,000 ids, so only some of similar length are tried.
    candidates = (known for known in words if abs(len(known) - len(word)) <= _LENGTH_GAP_MAX)
    by_lower = {known.lower(): known for known in islice(candidates, _CANDIDATES_MAX)}
    matches = get_close_matches(word[:_TEXT_LENGTH_MAX].lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT_LENGTH_MAX else text[:_TEXT_LENGTH_MAX] + "..."


def _number_literal(value: float) -> str:
    if isinstance(value, int):
        # Python refuses to print integers of more than 4300 digits.
        return (
            str(value) if value.bit_length() < 4 * _TEXT_LENGTH_MAX else "a number of many digits"
        )
    if math.isnan(value):
        return "NaN"
    return repr(value).replace("inf", "infinity")


def _escape(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= _LATIN_END:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _PLANE_END else f"\\U{code:08x}"


LineLookup = Callable[[KeyPath], int | None]
"""Returns the line of a path in a file."""

DIAGNOSTICS_SHOWN_MAX: Final = 100
"""How many problems one error lists."""
DIAGNOSTICS_MAX: Final = 1000
"""After so many problems a check stops: the file is probably of another kind."""


class TooManyDiagnostics(Exception):
    """``DIAGNOSTICS_MAX`` is reached. The check stops; the problems so far are reported."""


class Replacement(NamedTuple):
    """A valid value in place of one that could not be read, so that the rest can be checked."""

    value: Any = None
    leaves_out: bool = False
    """Whether the key is left out instead."""


class Diagnostic(NamedTuple):
    """One problem at a path. Its line is looked up when it is shown."""

    path: KeyPath
    what: str
    """What is wrong."""
    cure: str = ""
    """How to fix it."""
    first: KeyPath | None = None
    """The path of the earlier statement that this one contradicts or repeats."""
    line: int | None = None
    """The line, if the reader knows it better than the path does."""
    code: str = "invalid-value"
    """A key of ``errors.CODES``."""
    replacement: Replacement | None = None


class Diagnostics:
    """A list of diagnostics that grows. A view adds below a path of its own: see ``below``."""

    def __init__(self, diagnostics: Iterable[Diagnostic] = ()) -> None:
        self._diagnostics: list[Diagnostic] = list(diagnostics)
        self._prefix: KeyPath = ()

    def __len__(self) -> int:
        return len(self._diagnostics)

    def all(self) -> tuple[Diagnostic, ...]:
        """Return all diagnostics in the order in which they were added."""
        return tuple(self._diagnostics)

    @property
    def is_full(self) -> bool:
        """Whether there are more than an error lists, so that a suggestion is wasted time."""
        return len(self._diagnostics) > DIAGNOSTICS_SHOWN_MAX

    @property
    def paths(self) -> list[KeyPath]:
        """The paths of all diagnostics."""
        return [diagnostic.path for diagnostic in self._diagnostics]

    def below(self, *steps: str | int) -> Self:
        """Return a view that adds to the same list, with ``steps`` before every path."""
        view = type(self)()
        view._diagnostics, view._prefix = self._diagnostics, self._prefix + steps
        return view

    def add(
        self,
        path: KeyPath,
        what: str,
        cure: str = "",
        first: KeyPath | None = None,
        *,
        code: str = "invalid-value",
        replacement: Replacement | None = None,
    ) -> None:
        """Add a problem, or raise ``TooManyDiagnostics``.

        ``first`` is the path of an earlier statement; its text and line end the sentence.
        """
        if len(self._diagnostics) >= DIAGNOSTICS_MAX:
            raise TooManyDiagnostics
        earlier = None if first is None else self._prefix + first
        self._diagnostics.append(
            Diagnostic(self._prefix + path, what, cure, earlier, None, code, replacement)
        )

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add diagnostics at paths that have none yet."""
        known = set(self.paths)
        for diagnostic in diagnostics:
            if diagnostic.path not in known:
                if len(self._diagnostics) >= DIAGNOSTICS_MAX:
                    raise TooManyDiagnostics
                self._diagnostics.append(diagnostic)

    def add_unknown(self, path: KeyPath, noun: str, name: str, known: Collection[str]) -> None:
        """Add the problem that no ``noun`` has that name, with the most similar name."""
        names = f"the {noun}s are: {format_list(known)}" if known else f"no {noun} is listed"
        cure = self.suggestion(name, known) + names
        self.add(path, f"there is no {noun} {quoted(name)}", cure, code="unknown-name")

    def suggestion(self, word: str, words: Collection[str]) -> str:
        """Return ``did you mean ...?`` with the most similar word, or nothing without one."""
        match = None if self.is_full else closest_match(word, words)
        return "" if match is None else f"did you mean {quoted(match)}? "

    def problems(self, line_of: LineLookup | None = None) -> list[InputProblem]:
        """Return the problems in the order of their lines; the last tells how many are left out."""
        problems_shown = [
            _to_problem(diagnostic, line_of)
            for diagnostic in self._diagnostics[:DIAGNOSTICS_SHOWN_MAX]
        ]
        problems_shown.sort(key=lambda problem: problem.line or 0)
        more = len(self._diagnostics) - len(problems_shown)
        if more > 0:
            at_least = "at least " if len(self._diagnostics) >= DIAGNOSTICS_MAX else ""
            what = f"... and {at_least}{more} more"
            problems_shown.append(
                InputProblem(key="", what=what, cure="fix these first", code="more-problems")
            )
        return problems_shown


def _to_problem(diagnostic: Diagnostic, line_of: LineLookup | None) -> InputProblem:
    line = diagnostic.line or (line_of(diagnostic.path) if line_of else None)
    what = diagnostic.what
    if diagnostic.first is not None:
        first_line = line_of(diagnostic.first) if line_of else None
        what += f" {format_path(diagnostic.first)}"
        what += f" on line {first_line}" if first_line else ""
    return InputProblem(
        key=format_path(diagnostic.path),
        what=what,
        cure=diagnostic.cure,
        line=line,
        code=diagnostic.code,
    )
