"""Reads and writes the files that a command line names; every error names the file and the fix."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.api.loading import read_bytes
from equipoise.cli.output import printable, progress_console
from equipoise.errors import InvalidInput
from equipoise.store import Journal, MemoryJournal, open_journal


def read_text(path: Path) -> str:
    """Read a text."""
    try:
        return read_bytes(path).decode("utf-8-sig")  # without a byte order mark
    except UnicodeDecodeError as error:
        raise InvalidInput.of(
            str(path),
            f"byte {error.start} is not UTF-8",
            cure="save it as UTF-8",
            code="unreadable-file",
        ) from None


def open_new_journal(url: str | None) -> Journal:
    """Open the journal of a new run, in memory without a ``url``; reject one that has events."""
    journal = open_journal(url) if url else MemoryJournal()
    if not len(journal):
        return journal
    journal.close()
    cure = "name a new file, or read this one with 'equipoise journal'"
    raise InvalidInput.of(
        journal.source, "already has the journal of another run", cure=cure, code="already-exists"
    )


def write_file(path: Path, content: bytes, *, append: bool = False) -> None:
    """Write a file, or append to it."""
    with _as_invalid_input(path), path.open("ab" if append else "wb") as file:
        file.write(content)


def check_writable(path: Path) -> None:
    """Reject a file that cannot be written, before a long search and not after it."""
    with _as_invalid_input(path):
        error_number = _write_errno(path)
        if error_number:
            raise OSError(error_number, os.strerror(error_number))


def print_page_written(page: Path) -> None:
    """Print the path of a page on standard error."""
    note = f"written: open {printable(str(page))} in a browser"
    progress_console().print(note, soft_wrap=True)


def _write_errno(path: Path) -> int:
    """Return the ``errno`` that writing would raise, or 0."""
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
def _as_invalid_input(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise InvalidInput.of(
            str(path), what, cure="name another file", code="file-not-writable"
        ) from error
