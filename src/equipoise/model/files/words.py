"""How paths, values and names are said to a person: quoted, shortened, with the nearest guess.

Never raises on anything a file may hold, and never prints a character that could upset a terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

Path = tuple[str | int, ...]
"""The way from the top of a document to a value: keys and places, ``("vms", 3, "host")``."""

_SHOWN_MAX: Final = 60
_LISTED_MAX: Final = 12
_GUESSES_MAX: Final = 2000
_LENGTH_GAP_MAX: Final = 3
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LATIN_END: Final = 0xFF
_PLANE_END: Final = 0xFFFF
_EXACT_BELOW: Final = 10**15


def quoted(text: str) -> str:
    """Put text in double quotes so that YAML and JSON-minded people read back the same text."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def shown(value: object) -> str:
    """Say a value found in a file; long ones are cut, containers are only named."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _cut(_number(value))
    if isinstance(value, str):
        return quoted(_cut(value))
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def figure(value: float) -> str:
    """Say a number that was read, as somebody would write it: without a needless ``.0``."""
    whole = float(value).is_integer() and abs(value) < _EXACT_BELOW
    return str(int(value)) if whole else _number(value)


def is_sound(text: str) -> bool:
    """Whether text can be written to a file at all: half a character (a surrogate) cannot."""
    return text.isascii() or _SURROGATE.search(text) is None


def kind_of(value: object) -> str:
    """Say what kind of value was found, in the words of somebody who edits a file."""
    if isinstance(value, str):
        return f"the text {shown(value)}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"the number {shown(value)}" if is_number else shown(value)


def path_shown(path: Path) -> str:
    """Say where a value is: ``vms[3].cpu.reservation_mhz``."""
    said = ""
    for step in path:
        if isinstance(step, int):
            said += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            said += f".{_cut(step)}" if said else _cut(step)
        else:
            said += f"[{quoted(_cut(step))}]"
    return said


def twice_shown(first: int, second: int) -> str:
    """Say that a key is given twice, and where."""
    where = f"on line {first}" if first == second else f"on lines {first} and {second}"
    return f"this key is given twice, {where}"


def listed(words: Iterable[str]) -> str:
    """Say some words, not all of them if they are many."""
    some = list(islice(words, _LISTED_MAX + 1))
    tail = ", ..." if len(some) > _LISTED_MAX else ""
    return ", ".join(map(printable, some[:_LISTED_MAX])) + tail


def printable(word: str) -> str:
    """Give a word as it is if it can do no harm, else in quotes."""
    return _cut(word) if word.isprintable() else quoted(_cut(word))


def closest(word: str, words: Iterable[str]) -> str | None:
    """Guess which of the words was meant, or ``None`` when nothing is near."""
    # Comparing is slow, so that among very many words only some of about the same length are tried.
    near = (known for known in words if abs(len(known) - len(word)) <= _LENGTH_GAP_MAX)
    by_lower = {known.lower(): known for known in islice(near, _GUESSES_MAX)}
    found = get_close_matches(word[:_SHOWN_MAX].lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."


def _number(value: float) -> str:
    if isinstance(value, int):
        # Python refuses to print very long integers, and nobody wants to read them.
        return str(value) if value.bit_length() < 4 * _SHOWN_MAX else "a number of many digits"
    if math.isnan(value):
        return "NaN"
    return repr(value).replace("inf", "infinity")


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= _LATIN_END:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _PLANE_END else f"\\U{code:08x}"
