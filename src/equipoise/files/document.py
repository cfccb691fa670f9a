"""A file on its way to values: size, format, encoding, and the tree that a reader makes of it.

The tree has mappings, lists and scalars, the line of each, and the problems found on reading.
``without_invalid_parts`` removes what could not be read, so that the rest can still be checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, NoReturn

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.diagnostics import Diagnostic, KeyPath, LineLookup


class _Unreadable:
    """Takes the place of a value that could not be read. Its problem is already reported."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Final = _Unreadable()


@dataclass(frozen=True, slots=True)
class ParsedTree:
    """Mappings, lists and scalars, with the problems of the reader."""

    root: Any
    line_of: LineLookup
    diagnostics: list[Diagnostic] = field(default_factory=list)


class Gap(NamedTuple):
    """The elements that were removed from a list because they could not be read."""

    positions: tuple[int, ...]
    """The positions, in the file, of the elements that remain."""
    unread_ids: tuple[str, ...]
    """The ids of the removed elements, as far as they are known."""


Gaps = dict[KeyPath, Gap]
"""By the path of the list. Lists without a removed element are not in it."""


def gaps_below(gaps: Gaps, key: str) -> Gaps:
    """Return the gaps of the lists below a key, with paths that start there."""
    return {path[1:]: gap for path, gap in gaps.items() if path[0] == key}


def without_invalid_parts(tree: ParsedTree, paths: list[KeyPath]) -> tuple[Any, Gaps] | None:
    """Return the tree without the keys and list elements at these paths, and the gaps they leave.

    An element here is one of an outermost list: a host, a VM, a rule, a step. The result is
    ``None`` if other parts refer to what is removed, because they would look wrong without it.
    """
    invalid: dict[KeyPath, dict[int, None]] = {}
    root, gaps = tree.root, {}
    for full in paths:
        path = _path_to_remove(full)
        depth = next((d for d, step in enumerate(path) if isinstance(step, int)), None)
        # Problems of single keys first: they may remove a list whose elements have problems too.
        if depth is None:
            if _is_referenced(path):
                return None
            root = _without_key(root, path)
            continue
        position = path[depth]
        assert isinstance(position, int)
        invalid.setdefault(path[:depth], {})[position] = None
    for path, positions in invalid.items():
        elements = _list_at(tree.root, path)
        if elements is None:  # the list itself could not be read
            return None
        if _list_at(root, path) is None:  # an unknown key above the list was removed
            continue
        rest = tuple(at for at in range(len(elements)) if at not in positions)
        removed = [elements[at] for at in positions if at < len(elements)]
        gaps[path] = Gap(rest, _ids(removed))
        root = _with_value(root, path, [elements[at] for at in rest])
    return root, gaps


def with_replacements(tree: ParsedTree, diagnostics: Iterable[Diagnostic]) -> ParsedTree:
    """Return the tree with a valid value in place of each one that has a replacement."""
    copied: dict[int, Any] = {}
    """The copy of each container that changes, by the identity of the original."""

    def copy_of(node: Any) -> Any:
        if id(node) not in copied:
            copied[id(node)] = dict(node) if isinstance(node, dict) else list(node)
        return copied[id(node)]

    if not isinstance(tree.root, dict):
        return tree
    root = copy_of(tree.root)
    for diagnostic in diagnostics:
        if diagnostic.replacement is None or not diagnostic.path:
            continue
        original: Any = tree.root
        changed: Any = root
        *above, last = diagnostic.path
        for step in above:
            inner = _child(original, step)
            if not isinstance(inner, dict | list):
                break
            changed[step] = copy_of(inner)
            original, changed = inner, changed[step]
        else:
            if diagnostic.replacement.leaves_out:
                changed.pop(last, None)
            else:
                changed[last] = diagnostic.replacement.value
    return ParsedTree(root, tree.line_of, tree.diagnostics)


def _child(node: Any, step: str | int) -> Any:
    if isinstance(node, dict):
        return node.get(step)
    return node[step] if isinstance(step, int) and step < len(node) else None


_REFERENCED_KEYS: Final = frozenset(
    (
        "cluster", "hosts", "vms", "pools", "tenants", "resources", "groups", "plan", "steps",
        "fleet", "loads", "switches",
    )
)  # fmt: skip
_OPTIONAL_KEYS: Final = frozenset(("physics", "faults"))
"""No other part of a file refers to these keys, and every record below them is optional."""


def _is_referenced(path: KeyPath) -> bool:
    """Whether other parts of the file refer to this one, so that its removal causes problems."""
    if not path or path[0] in _OPTIONAL_KEYS:
        return not path
    return path[-1] in _REFERENCED_KEYS or path[:-1] == ("loads",)


def _path_to_remove(path: KeyPath) -> KeyPath:
    """Return the path to remove for a problem at ``path``: the record around it, if optional."""
    if (
        not path
        or path[0] not in _OPTIONAL_KEYS
        or any(isinstance(step, int) for step in path[2:3])
    ):
        return path
    return path[:2]


def _without_key(node: Any, path: KeyPath) -> Any:
    """Return the tree without one key, or unchanged if it does not have the key."""
    key = path[0]
    if not isinstance(node, dict) or key not in node:
        return node
    if len(path) == 1:
        return {name: value for name, value in node.items() if name != key}
    return {**node, key: _without_key(node[key], path[1:])}


def _list_at(node: Any, path: KeyPath) -> list[Any] | None:
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, list) else None


def _with_value(node: Any, path: KeyPath, value: Any) -> Any:
    if not path:
        return value
    return {**node, path[0]: _with_value(node[path[0]], path[1:], value)}


def _ids(elements: list[Any]) -> tuple[str, ...]:
    names = map(_id, elements)
    return tuple(name for name in names if isinstance(name, str))


def _id(element: Any) -> Any:
    """Return the id of an element: for a fleet that of its template, for an event that of its host
    or VM."""
    if not isinstance(element, dict):
        return None
    if "id" in element:
        return element["id"]
    inner = next((element[key] for key in ("like", "host", "vm") if key in element), None)
    return inner.get("id") if isinstance(inner, dict) else inner


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
        reject_file(source, "the file is empty", SEE_EXAMPLES, 1, code="empty-value")
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
    # Editors on Windows write a byte order mark.
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
SEE_EXAMPLES: Final = "see examples/ for complete files"
"""The fix for a file without any content that could be corrected."""


def _line_at(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


def has_yaml_name(source: str) -> bool:
    """Whether the name of a file ends like that of a YAML file, packed or not."""
    return _unpacked_name(source).endswith((".yaml", ".yml"))


def _unpacked_name(source: str) -> str:
    return source.lower().removesuffix(".gz")
