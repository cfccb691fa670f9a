"""What a judge is: it looks at the moments of a replayed plan and says what is broken.

The gate owns the replay; judges only look. The specification language supplies one; ``rules`` is
the one for the rules of the inventory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from equipoise.model.draft import Draft
from equipoise.model.plan import Violation
from equipoise.plan.ledger import Touched


class Phase(Enum):
    """Which of the moments of a plan is looked at."""

    INITIAL = "initial"
    """Before anything has happened."""
    ENDS = "ends"
    """All actions that end at this instant have ended."""
    STARTS = "starts"
    """All actions that start at this instant have started."""
    FINAL = "final"
    """Everything has happened."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at one moment of a plan."""

    phase: Phase
    at_ms: int
    """Counted from the start of the plan."""
    state: Draft
    """To look at, never to change."""
    touched: Touched
    """What has changed since the moment before; at the end, since the beginning."""


class Judge(Protocol):
    """Looks at one moment of a plan after the other."""

    def __call__(self, moment: Moment) -> Iterable[Violation]:
        """Say what is broken at this moment."""
        ...
