"""From bytes to text: how large a file may be, which language it is in, and whether it is text."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NoReturn

from equipoise.errors import InvalidInput, Problem

DEPTH_MAX: Final = 64
"""How deep lists and mappings may be nested; no file of ours needs a fifth of it."""


class Language(StrEnum):
    """The language a file is written in."""

    JSON = "JSON"
    YAML = "YAML"


SIZE_MAX: Final = {Language.JSON: 128 * 1024 * 1024, Language.YAML: 32 * 1024 * 1024}
"""The most bytes that a file of each language may have."""

_MIB: Final = 1024 * 1024
# In JSON a key in quotes or the end follows the brace; a flow mapping of YAML has bare keys.
_JSON_START: Final = re.compile(rb'\s*(?:\{\s*["}]|\[\s*["\[\]{\d-])')
# What YAML 1.2 allows in a file, less the NUL and what UTF-8 cannot hold.
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def check_size(size: int, source: str) -> None:
    """Refuse a file by its size and name alone, so that a monster need not be read.

    The name decides what is allowed; a name that says nothing may hold JSON, which may be larger.
    """
    check_size_of(size, source, Language.YAML if is_named_yaml(source) else Language.JSON)


def check_size_of(size: int, source: str, language: Language) -> None:
    """Refuse a file that is too large for its language."""
    most = SIZE_MAX[language]
    if size <= most:
        return
    cure = f"at most {most // _MIB} MiB"
    if language is Language.YAML:
        cure += f"; write it as JSON, which may have {SIZE_MAX[Language.JSON] // _MIB} MiB"
    what = f"the file is too large for {language}: {size / _MIB:.1f} MiB"
    raise InvalidInput(source, [Problem(key="", what=what, cure=cure)])


def languages_of(content: bytes, source: str) -> tuple[Language, ...]:
    """Say in which languages to try to read a file, the likelier one first."""
    if _unpacked_name(source).endswith(".json"):
        return (Language.JSON,)
    if not _JSON_START.match(content):
        return (Language.YAML,)
    # A flow mapping with quoted keys looks like JSON from the outside.
    return (Language.JSON, Language.YAML)


def text_of(content: bytes, source: str) -> str:
    """Decode a file, or say on which line it stops being text."""
    if not content or content.isspace():
        refuse(source, "the file is empty", "see the examples for what belongs into it", 1)
    at = content.find(b"\0")
    if at >= 0:
        refuse(source, "there is a NUL byte: this is not UTF-8 text", _SAVE, _line(content, at))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        what = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        refuse(source, what, _SAVE, _line(content, error.start))
    return text.removeprefix("\ufeff")


def check_printable(text: str, source: str) -> None:
    """Refuse control characters, which YAML allows only as escapes within quotes."""
    found = _UNPRINTABLE.search(text)
    if found:
        what = f"the character U+{ord(found[0]):04X} is not allowed in a file"
        line = text.count("\n", 0, found.start()) + 1
        refuse(source, what, f'write "\\u{ord(found[0]):04x}" in double quotes', line)


def refuse(source: str, what: str, cure: str, line: int | None = None) -> NoReturn:
    """Refuse a whole document for one reason."""
    raise InvalidInput(source, [Problem(key="", what=what, cure=cure, line=line)])


_SAVE: Final = "save the file as UTF-8 text"


def _line(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


def is_named_yaml(source: str) -> bool:
    """Whether the name says that a file is YAML."""
    return _unpacked_name(source).endswith((".yaml", ".yml"))


def _unpacked_name(source: str) -> str:
    return source.lower().removesuffix(".gz")
