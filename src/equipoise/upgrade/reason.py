"""A reason: a stable code and a sentence with the names and figures of the case."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """Why a resource waits, a set is refused or undone, or a command is rejected."""

    code: str
    """A key of ``errors.CODES``. Programs compare the code."""
    text: str
    """A sentence for the operator. It may change between versions."""

    def __str__(self) -> str:
        """Return the sentence."""
        return self.text
