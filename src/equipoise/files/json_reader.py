"""JSON to a tree. The C scanner reads the values; a line is looked up only for a diagnostic.

A file of 100 MB with one error therefore costs about twice its decoding, not a position for every
value.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

from equipoise.files.document import DEPTH_MAX, ParsedTree, reject_file
from equipoise.model.diagnostics import (
    DIAGNOSTICS_MAX,
    Diagnostic,
    KeyPath,
    describe_duplicate_key,
    is_encodable,
)

_DIGITS_MAX: Final = 4000
_LINE_BREAK: Final = re.compile("\n")
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_scan: Final = json.JSONDecoder().raw_decode
# Python refuses integers of more than 4300 digits. A float may have any number of digits, but a
# decoder with this hook is slower, so it is used only after the first one fails.
_scan_long_numbers: Final = json.JSONDecoder(parse_int=float).raw_decode


class _DuplicateKey(Exception):
    """A mapping has a key twice."""


def has_duplicate_keys(text: str) -> bool:
    """Whether a mapping has a key twice, which no decoder reports. Keeps no values."""
    try:
        json.JSONDecoder(object_pairs_hook=_reject_duplicates).decode(text)
    except (_DuplicateKey, ValueError):
        # A ValueError means that this decoder is stricter than msgspec: the slow reader decides.
        return True
    return False


def read_json(text: str, source: str) -> ParsedTree:
    """Return the tree of a JSON text with the problems of its mappings; reject what is not JSON."""
    duplicates: list[dict[str, Any]] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            entries = dict(reversed(pairs))  # the first value wins, because its line is shown
            duplicates.append(entries)
        return entries

    try:
        root = _decode(text, mapping)
    except json.JSONDecodeError as error:
        _reject_syntax(error, source)
    except RecursionError:
        _reject_depth(text, source)
    if _is_too_deep(root):
        _reject_depth(text, source)
    lines = _LineIndex(text)
    diagnostics: list[Diagnostic] = []
    if duplicates:
        diagnostics += islice(
            _find_duplicate_keys({id(entries) for entries in duplicates}, root, lines),
            DIAGNOSTICS_MAX,
        )
    if _SURROGATE_ESCAPE.search(text):
        diagnostics += islice(_find_surrogates(root), DIAGNOSTICS_MAX)
    return ParsedTree(root, lines.line_of, diagnostics)


class _EntryPosition(NamedTuple):
    """The offsets of an entry of a container: of its key (in a list, its value) and its value."""

    step: str | int
    at: int
    value_at: int


class _LineIndex:
    """Finds the line of a path by a walk from the root. Each container on the way is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks: array[int] | None = None
        self._known: dict[int, dict[str | int, _EntryPosition]] = {}

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a value, or of the innermost container around it that exists."""
        at = value_at = _skip_blanks(self._text, 0)
        for step in path:
            position = self._inside(value_at).get(step)
            if position is None:
                break
            at, value_at = position.at, position.value_at
        return self._line(at)

    def duplicates(self, path: KeyPath) -> Iterator[tuple[str, int, int]]:
        """Yield each key that a mapping has more than once, with its first and second line."""
        value_at = _skip_blanks(self._text, 0)
        for step in path:
            value_at = self._inside(value_at)[step].value_at
        seen: dict[str | int, int] = {}
        for key, at, _ in _entries(self._text, value_at):
            if key in seen:
                yield str(key), self._line(seen[key]), self._line(at)
            seen.setdefault(key, at)

    def _inside(self, at: int) -> dict[str | int, _EntryPosition]:
        if at not in self._known:
            positions: dict[str | int, _EntryPosition] = {}
            for position in _entries(self._text, at):
                positions.setdefault(position.step, position)
            self._known[at] = positions
        return self._known[at]

    def _line(self, at: int) -> int:
        if self._breaks is None:
            self._breaks = array("q", (match.start() for match in _LINE_BREAK.finditer(self._text)))
        return bisect_left(self._breaks, at) + 1


def _entries(text: str, at: int) -> Iterator[_EntryPosition]:
    """Yield the entries of one container, in a text that is known to be valid JSON."""
    opening, position = text[at], 0
    at = _skip_blanks(text, at + 1) if opening in "[{" else len(text)
    while at < len(text) and text[at] not in "]}":
        start = at
        step: str | int = position
        if opening == "{":
            step, at = _scan(text, at)
            at = _skip_blanks(text, _skip_blanks(text, at) + 1)  # behind the colon
        value_at = at
        try:
            _, at = _scan(text, at)
        except ValueError:
            _, at = _scan_long_numbers(text, at)
        yield _EntryPosition(step, start, value_at)
        at, position = _skip_blanks(text, at), position + 1
        if text[at] == ",":
            at = _skip_blanks(text, at + 1)


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise _DuplicateKey


def _decode(text: str, mapping: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    try:
        return json.JSONDecoder(object_pairs_hook=mapping).decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.JSONDecoder(object_pairs_hook=mapping, parse_int=_parse_integer).decode(text)


def _parse_integer(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


def _find_duplicate_keys(idents: set[int], root: Any, lines: _LineIndex) -> Iterator[Diagnostic]:
    for path, node in _nodes(root, dict, list):
        if id(node) in idents:
            for key, first, second in lines.duplicates(path):
                what = describe_duplicate_key(first, second)
                yield Diagnostic((*path, key), what, "keep one", code="duplicate-key")


def _find_surrogates(root: Any) -> Iterator[Diagnostic]:
    for path, node in _nodes(root, dict, list, str):
        texts = [node, path[-1]] if path else [node]
        if not all(is_encodable(text) for text in texts if isinstance(text, str)):
            what = "the text has half a character in it"
            yield Diagnostic(path, what, "no \\ud800 to \\udfff", code="unreadable-file")


def _nodes(root: Any, *kinds: type) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the root and every value of these types below it, each with its path, in file order."""
    waiting: list[tuple[KeyPath, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        inner: Iterable[tuple[str | int, Any]] = ()
        if isinstance(node, dict):
            inner = node.items()
        elif isinstance(node, list):
            inner = enumerate(node)
        parts = [((*path, step), part) for step, part in inner if isinstance(part, kinds)]
        # A stack returns the last part first; reversed, the walk follows the file.
        waiting += reversed(parts)


def _is_too_deep(root: Any) -> bool:
    # Level by level instead of recursion: the tree may be deeper than Python's stack.
    level = [root] if isinstance(root, dict | list) else []
    for _ in range(DEPTH_MAX):
        level = [
            part
            for node in level
            for part in (node.values() if isinstance(node, dict) else node)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _reject_depth(text: str, source: str) -> NoReturn:
    depth, line = 0, None
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > DEPTH_MAX:
            line = text.count("\n", 0, match.start()) + 1
            break
    what = f"the file is nested deeper than {DEPTH_MAX} levels"
    reject_file(source, what, "remove levels of brackets", line, code="too-large")


def _reject_syntax(error: json.JSONDecodeError, source: str) -> NoReturn:
    what = f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}, at column {error.colno}"
    cure = "put keys and text in double quotes, and commas between entries but not after the last"
    if error.msg == "Extra data":
        what, cure = "text follows the end of the document", "write one document in one file"
    elif not error.doc[error.pos :].strip():
        what = "the file ends too early: a bracket, brace or quote is not closed"
        cure = "close it, or complete the file"
    reject_file(source, what, cure, error.lineno, code="syntax-error")
