"""An objection: one reason why an action may not start now."""

from __future__ import annotations

from typing import NamedTuple


class Objection(NamedTuple):
    """One reason why an action may not start."""

    constraint: str
    detail: str
