"""What a scheduler is asked: one small class is all that your own needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from equipoise.fuzz.trial.trial import Trial


class Unsupported(Exception):
    """The scheduler has no words for a trial, and says so instead of guessing."""


class TooLate(Exception):
    """The scheduler gave no answer in time."""


class Scheduler(Protocol):
    """Says whether it would accept a plan: just these actions at just these times."""

    def accepts(self, trial: Trial) -> bool:
        """Whether the plan of a trial keeps its constraint, and machines could carry it out."""
        ...
