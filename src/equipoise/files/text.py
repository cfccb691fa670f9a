"""Bytes to text: the largest size of a file, its format (YAML or JSON) and its encoding."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NoReturn

from equipoise.errors import InputProblem, InvalidInput

DEPTH_MAX: Final = 64
"""How deep lists and mappings may be nested. The deepest valid file needs about 12 levels."""


class FileFormat(StrEnum):
    """The language of a file."""

    JSON = "JSON"
    YAML = "YAML"


FILE_SIZE_MAX: Final = {FileFormat.JSON: 128 * 1024 * 1024, FileFormat.YAML: 32 * 1024 * 1024}
"""The largest size of a file in bytes. The YAML parser is slower, so its limit is lower."""

_MIB: Final = 1024 * 1024
# In JSON a quoted key or the end follows the brace; keys of a YAML flow mapping are rarely quoted.
_JSON_START: Final = re.compile(rb'\s*(?:\{\s*["}]|\[\s*["\[\]{\d-])')
# Everything but the printable characters of YAML 1.2. Surrogates cannot occur in UTF-8.
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def check_size(size: int, source: str) -> None:
    """Reject a file by its size and name alone, before it is read.

    The name decides the limit. A name without a known suffix may be JSON, which has the higher one.
    """
    check_size_for_format(
        size, source, FileFormat.YAML if has_yaml_name(source) else FileFormat.JSON
    )


def check_size_for_format(size: int, source: str, file_format: FileFormat) -> None:
    """Reject a file that is too large for its language."""
    limit = FILE_SIZE_MAX[file_format]
    if size <= limit:
        return
    cure = f"at most {limit // _MIB} MiB"
    if file_format is FileFormat.YAML:
        cure += f"; write it as JSON, which may have {FILE_SIZE_MAX[FileFormat.JSON] // _MIB} MiB"
    what = f"the file is too large for {file_format}: {size / _MIB:.1f} MiB"
    reject_file(source, what, cure, code="too-large")


def detect_formats(content: bytes, source: str) -> tuple[FileFormat, ...]:
    """Return the languages in which a file may be written, the more likely one first."""
    if _unpacked_name(source).endswith(".json"):
        return (FileFormat.JSON,)
    if not _JSON_START.match(content):
        return (FileFormat.YAML,)
    # A YAML flow mapping with quoted keys starts like JSON, so YAML remains possible.
    return (FileFormat.JSON, FileFormat.YAML)


def decode_text(content: bytes, source: str) -> str:
    """Decode a file as UTF-8, or reject it with the line of the first byte that is not text."""
    if not content or content.isspace():
        reject_file(source, "the file is empty", _SEE_EXAMPLES, 1, code="empty-value")
    at = content.find(b"\0")
    if at >= 0:
        what = "the file has a NUL byte, so it is not UTF-8 text"
        reject_file(source, what, _SAVE_AS_UTF8, _line_at(content, at), code="unreadable-file")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        what = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        line = _line_at(content, error.start)
        reject_file(source, what, _SAVE_AS_UTF8, line, code="unreadable-file")
    return text.removeprefix("\ufeff")


def check_printable(text: str, source: str) -> None:
    """Reject control characters, which YAML allows only as escapes within double quotes."""
    match = _UNPRINTABLE.search(text)
    if match:
        what = f"the character U+{ord(match[0]):04X} is not allowed in a file"
        cure = f'write "\\u{ord(match[0]):04x}" in double quotes'
        line = text.count("\n", 0, match.start()) + 1
        reject_file(source, what, cure, line, code="unreadable-file")


def reject_file(
    source: str, what: str, cure: str, line: int | None = None, *, code: str
) -> NoReturn:
    """Raise ``InvalidInput`` with one problem of the document as a whole."""
    raise InvalidInput(source, [InputProblem(key="", what=what, cure=cure, line=line, code=code)])


_SAVE_AS_UTF8: Final = "save the file as UTF-8 text"
_SEE_EXAMPLES: Final = "see examples/ for complete files"


def _line_at(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


def has_yaml_name(source: str) -> bool:
    """Whether the name of a file ends like that of a YAML file, packed or not."""
    return _unpacked_name(source).endswith((".yaml", ".yml"))


def _unpacked_name(source: str) -> str:
    return source.lower().removesuffix(".gz")
