"""Store: the journal on disk, typed events in the order in which they happened, never altered.

Enter by ``open_journal(url)``; ``MemoryJournal`` is the same without a database.
Never decides what is written, never forgets what it acknowledged, never reads a clock.
"""

from equipoise.store.journal import Journal
from equipoise.store.memory import MemoryJournal

__all__ = ["Journal", "MemoryJournal", "open_journal"]


def open_journal(url: str, *, journal: str = "main", create: bool = True) -> Journal:
    """Open a journal at a file path, ``sqlite:///path`` or ``postgresql://user@host/database``.

    Without ``create`` a journal that is not there yet is refused. Close it, or use ``with``.
    """
    # SQLAlchemy takes longer to import than all of us: only who opens a database pays for it.
    from equipoise.store.database import open_database  # noqa: PLC0415

    return open_database(url, journal=journal, create=create)
