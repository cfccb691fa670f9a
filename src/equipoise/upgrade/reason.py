"""A reason: a stable code and a sentence with the names and figures of the case.

Also the decisions about sets and resources that carry one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.event import (
    ResourceGivenUp,
    ResourceIsolated,
    SetEnded,
    SetOutcome,
    SetUndoStarted,
)
from equipoise.model.upgrade.request import SetId


class Reason(NamedTuple):
    """Why a resource waits, a set is refused or undone, or a command is rejected."""

    code: str = ""
    """A key of ``errors.CODES``. Programs compare the code."""
    text: str = ""
    """A sentence for the operator. It may change between versions."""

    def __str__(self) -> str:
        """Return the sentence."""
        return self.text


NO_REASON: Final = Reason()


def set_undo_started(at_ms: int, set_: SetId, reason: Reason) -> SetUndoStarted:
    """Return the decision to undo a set."""
    return SetUndoStarted(at_ms=at_ms, set=set_, reason=reason.text, code=reason.code)


def set_ended(at_ms: int, set_: SetId, outcome: SetOutcome, reason: Reason) -> SetEnded:
    """Return the decision that a set has ended."""
    return SetEnded(at_ms=at_ms, set=set_, outcome=outcome, reason=reason.text, code=reason.code)


def resource_given_up(
    at_ms: int, resource: ResourceId, sets: Iterable[SetId], reason: Reason
) -> ResourceGivenUp:
    """Return the decision that some sets change a resource no further."""
    return ResourceGivenUp(
        at_ms=at_ms, resource=resource, sets=tuple(sets), reason=reason.text, code=reason.code
    )


def resource_isolated(
    at_ms: int, resource: ResourceId, reason: Reason, *, failed: bool
) -> ResourceIsolated:
    """Return the decision to isolate a resource."""
    return ResourceIsolated(
        at_ms=at_ms, resource=resource, failed=failed, reason=reason.text, code=reason.code
    )
