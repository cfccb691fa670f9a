"""Numbers in words."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """Write ``1 host`` or ``2 hosts``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
