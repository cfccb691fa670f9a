"""Access files: how an adapter reaches its hosts. The reading that all adapters share.

An access file is YAML or JSON and never holds a secret. Each adapter has a type for its file and a
check of its own; all problems of a file are reported at once, with their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from equipoise.errors import InvalidInput
from equipoise.files.document import (
    FileFormat,
    ParsedTree,
    check_size_for_format,
    decode_text,
    detect_formats,
)
from equipoise.files.json_reader import read_json
from equipoise.files.type_check import check_types
from equipoise.files.yaml_reader import read_yaml
from equipoise.model.diagnostics import Diagnostics, KeyPath, TooManyDiagnostics
from equipoise.model.value import Value

A = TypeVar("A", bound=Value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """The place of a file, and the environment that it may refer to."""

    source: str
    """The name of the file in messages."""
    folder: Path
    """The folder that relative paths start from."""
    environ: Mapping[str, str]


def read_access(
    content: bytes,
    source: str,
    file_type: type[A],
    check: Callable[[A, Diagnostics], None],
    *,
    valid_part: Callable[[Any, Diagnostics], Any | None] = lambda _root, _diagnostics: None,
    old_keys: Mapping[str, str] | None = None,
) -> A:
    """Read an access file; raise ``InvalidInput`` with all its problems.

    ``check`` finds the problems that types cannot express. If the types are wrong, it receives what
    ``valid_part`` returns, so that one message lists the problems of both kinds. ``old_keys`` maps
    keys of earlier versions to their present names.
    """
    language = detect_formats(content, source)[0]
    check_size_for_format(len(content), source, language)
    text = decode_text(content, source)
    reader = read_json if language is FileFormat.JSON else read_yaml
    tree = _with_new_keys(reader(text, source), old_keys or {})
    diagnostics = Diagnostics(tree.diagnostics)
    with suppress(TooManyDiagnostics):
        check_types(tree.root, file_type, diagnostics)
        # Conversion would raise at the first wrong type, so it receives only parts without one.
        root = valid_part(tree.root, diagnostics) if diagnostics else tree.root
        if root is not None:
            access = msgspec.convert(root, file_type)
            check(access, diagnostics)
            if not diagnostics:
                return access
    raise InvalidInput(source, diagnostics.problems(tree.line_of))


def _with_new_keys(tree: ParsedTree, old_keys: Mapping[str, str]) -> ParsedTree:
    """Return a tree in which old keys of the top level have their new names."""
    root = tree.root
    if not isinstance(root, dict):
        return tree
    # A file with both keys stays as it is: the type check then reports the old one.
    renamed = {new: old for old, new in old_keys.items() if old in root and new not in root}
    if not renamed:
        return tree

    def line_of(path: KeyPath) -> int | None:
        # The reader knows the lines by the keys that the file has.
        return tree.line_of((renamed.get(str(path[0]), path[0]), *path[1:]) if path else path)

    new_of = {old: new for new, old in renamed.items()}
    new_root = {new_of.get(key, key): value for key, value in root.items()}
    return ParsedTree(new_root, line_of, tree.diagnostics)


def is_variable_name(name: str) -> bool:
    """Return whether a text can be the name of an environment variable."""
    return name.isascii() and name.isidentifier()
