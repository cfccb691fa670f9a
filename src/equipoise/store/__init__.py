"""Store: the journal, typed events in the order in which they happened, never altered.

Start with ``open_journal(url)``; ``MemoryJournal`` is the same without a database. The store
never drops an event that it has acknowledged, and never reads a clock.
"""

from pathlib import Path

from equipoise.store.journal import SUFFIX, Journal, LinesJournal, MemoryJournal

__all__ = ["Journal", "MemoryJournal", "open_journal"]


def open_journal(url: str, *, journal: str = "main", create: bool = True) -> Journal:
    """Open a journal at a file path, ``sqlite:///path`` or ``postgresql://user@host/database``.

    A path that ends in ``.jsonl`` is a text file with a line per event, any other path is SQLite.
    Without ``create`` a journal that does not exist raises ``InvalidInput``. The caller closes the
    journal, or uses it in a ``with`` statement.
    """
    if url.endswith(SUFFIX) and "://" not in url:
        return LinesJournal(Path(url), create=create)
    # The import of SQLAlchemy takes longer than all other imports, so only this call does it.
    from equipoise.store.database import open_database  # noqa: PLC0415

    return open_database(url, journal=journal, create=create)
