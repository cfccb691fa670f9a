"""``equipoise schema``: what an editor needs to complete our files."""

from __future__ import annotations

from typing import get_args

from equipoise.cli.answer import print_json
from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.files.schema import FileKind

KINDS: tuple[FileKind, ...]
KINDS = get_args(FileKind)


def run(kind: str, *, as_json: bool) -> int:
    """Print the schema; it is JSON either way."""
    for known in KINDS:
        if kind == known:
            print_json(files.schema(known))
            return 0
    problem = Problem(key=kind, what="there is no such kind of file", cure=", ".join(KINDS))
    raise InvalidInput("schema", [problem])
