"""Writing the files that a person names."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.cli.answer import plain, progress_console
from equipoise.errors import InvalidInput, Problem


def write_file(path: Path, content: bytes, *, append: bool = False) -> None:
    """Write a file, or add to it."""
    with _explained(path), path.open("ab" if append else "wb") as file:
        file.write(content)


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before a long search rather than after it."""
    with _explained(path):
        trouble = _trouble(path)
        if trouble:
            raise OSError(trouble, os.strerror(trouble))


def say_written(page: Path) -> None:
    """Tell where a page is, and what to do with it."""
    note = f"written: open {plain(str(page))} in a browser"
    progress_console().print(note, soft_wrap=True)


def _trouble(path: Path) -> int:
    """The number of the error that writing would meet; 0 for none."""
    folder = path.parent
    if path.is_dir():
        return errno.EISDIR
    if not folder.exists():
        return errno.ENOENT
    if not folder.is_dir():
        return errno.ENOTDIR
    where = path if path.exists() else folder
    return 0 if os.access(where, os.W_OK) else errno.EACCES


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"cannot be written: {(error.strerror or str(error)).lower()}"
        problem = Problem(key="", what=what, cure="name another file")
        raise InvalidInput(str(path), [problem]) from error
