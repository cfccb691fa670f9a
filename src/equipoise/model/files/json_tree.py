"""JSON to a tree. Values come from the C scanner; lines are looked up only for what is wrong.

So a file of 100 MB with a slip costs about twice its decoding, not a position for every value.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

from equipoise.model.files.findings import FOUND_MAX, Finding
from equipoise.model.files.text import DEPTH_MAX, refuse
from equipoise.model.files.tree import Tree
from equipoise.model.files.words import Path, is_sound, twice_shown

_DIGITS_MAX: Final = 4000
_BREAK: Final = re.compile("\n")
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_scan: Final = json.JSONDecoder().raw_decode
# Python refuses integers of very many digits, a float may have any; but asking for it is slow.
_scan_patiently: Final = json.JSONDecoder(parse_int=float).raw_decode


class _Doubled(Exception):
    """Some key is given twice in one mapping."""


def has_doubled_keys(text: str) -> bool:
    """Whether some mapping has a key twice, which no decoder complains about. Keeps no values."""
    try:
        json.JSONDecoder(object_pairs_hook=_complain).decode(text)
    except (_Doubled, ValueError):  # what one decoder accepts and another does not is doubtful too
        return True
    return False


def read_json(text: str, source: str) -> Tree:
    """Read JSON with all that can be found wrong in its mappings, or refuse what is not JSON."""
    doubled: list[dict[str, Any]] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            made = dict(reversed(pairs))  # the first one wins, as its line is shown
            doubled.append(made)
        return made

    try:
        root = _decode(text, mapping)
    except json.JSONDecodeError as error:
        _refuse_syntax(error, source)
    except RecursionError:
        _refuse_depth(text, source)
    if _is_too_deep(root):
        _refuse_depth(text, source)
    lines = _Lines(text)
    found: list[Finding] = []
    if doubled:
        found += islice(_find_doubled({id(made) for made in doubled}, root, lines), FOUND_MAX)
    if _HALF.search(text):
        found += islice(_find_halves(root), FOUND_MAX)
    return Tree(root, lines.line_of, found)


class _Mark(NamedTuple):
    """Where an entry of a container stands: its key (or itself, in a list) and its value."""

    step: str | int
    at: int
    value_at: int


class _Lines:
    """Finds the line of a path by walking down to it; each container on the way is walked once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks: array[int] | None = None
        self._known: dict[int, dict[str | int, _Mark]] = {}

    def line_of(self, path: Path) -> int | None:
        """The line of a value, or of the nearest thing around it that exists."""
        at = value_at = _blank(self._text, 0)
        for step in path:
            mark = self._inside(value_at).get(step)
            if mark is None:
                break
            at, value_at = mark.at, mark.value_at
        return self._line(at)

    def doubled(self, path: Path) -> Iterator[tuple[str, int, int]]:
        """Each key that a mapping has more than once, with its first and second line."""
        value_at = _blank(self._text, 0)
        for step in path:
            value_at = self._inside(value_at)[step].value_at
        seen: dict[str | int, int] = {}
        for key, at, _ in _entries(self._text, value_at):
            if key in seen:
                yield str(key), self._line(seen[key]), self._line(at)
            seen.setdefault(key, at)

    def _inside(self, at: int) -> dict[str | int, _Mark]:
        if at not in self._known:
            marks: dict[str | int, _Mark] = {}
            for mark in _entries(self._text, at):
                marks.setdefault(mark.step, mark)
            self._known[at] = marks
        return self._known[at]

    def _line(self, at: int) -> int:
        if self._breaks is None:
            self._breaks = array("q", (found.start() for found in _BREAK.finditer(self._text)))
        return bisect_left(self._breaks, at) + 1


def _entries(text: str, at: int) -> Iterator[_Mark]:
    """Walk over one container of JSON that is known to be right."""
    opening, place = text[at], 0
    at = _blank(text, at + 1) if opening in "[{" else len(text)
    while at < len(text) and text[at] not in "]}":
        start = at
        step: str | int = place
        if opening == "{":
            step, at = _scan(text, at)
            at = _blank(text, _blank(text, at) + 1)  # behind the colon
        value_at = at
        try:
            _, at = _scan(text, at)
        except ValueError:
            _, at = _scan_patiently(text, at)
        yield _Mark(step, start, value_at)
        at, place = _blank(text, at), place + 1
        if text[at] == ",":
            at = _blank(text, at + 1)


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _complain(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise _Doubled


def _decode(text: str, mapping: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    try:
        return json.JSONDecoder(object_pairs_hook=mapping).decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.JSONDecoder(object_pairs_hook=mapping, parse_int=_whole).decode(text)


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


def _find_doubled(idents: set[int], root: Any, lines: _Lines) -> Iterator[Finding]:
    for path, node in _nodes(root, dict, list):
        if id(node) in idents:
            for key, first, second in lines.doubled(path):
                yield Finding((*path, key), twice_shown(first, second), "keep one")


def _find_halves(root: Any) -> Iterator[Finding]:
    for path, node in _nodes(root, dict, list, str):
        texts = [node, path[-1]] if path else [node]
        if not all(is_sound(text) for text in texts if isinstance(text, str)):
            yield Finding(path, "the text has half a character in it", "no \\ud800 to \\udfff")


def _nodes(root: Any, *kinds: type) -> Iterator[tuple[Path, Any]]:
    """Every value of some kinds with its path, from the top to the end."""
    waiting: list[tuple[Path, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        inner: Iterable[tuple[str | int, Any]] = ()
        if isinstance(node, dict):
            inner = node.items()
        elif isinstance(node, list):
            inner = enumerate(node)
        parts = [((*path, step), part) for step, part in inner if isinstance(part, kinds)]
        waiting += reversed(parts)


def _is_too_deep(root: Any) -> bool:
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


def _refuse_depth(text: str, source: str) -> NoReturn:
    depth, line = 0, None
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > DEPTH_MAX:
            line = text.count("\n", 0, match.start()) + 1
            break
    refuse(source, f"nested deeper than {DEPTH_MAX} levels", "take the brackets apart", line)


def _refuse_syntax(error: json.JSONDecodeError, source: str) -> NoReturn:
    what = f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}, at column {error.colno}"
    cure = "keys and text in double quotes, commas between entries and none behind the last"
    if error.msg == "Extra data":
        what, cure = "something follows the end of the document", "one document in one file"
    elif not error.doc[error.pos :].strip():
        what = "the file ends too early: a bracket, brace or quote is not closed"
        cure = "close it, or complete the file"
    refuse(source, what, cure, error.lineno)
