"""The violations of a plan, as several documents list them."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.documents.json_document import Document
from equipoise.model.plan import Violation


class ViolationRow(Document):
    """One constraint that a plan breaks."""

    constraint: str = ""
    at: int | None = None
    """Milliseconds since the start of the plan."""
    step: str | None = None
    detail: str = ""
    code: str = ""
    """A key of ``equipoise.errors.CODES``."""


class CheckDocument(Document):
    """The JSON document of ``equipoise check``."""

    accepted: bool
    violations: tuple[ViolationRow, ...]


def violation_rows(violations: Iterable[Violation]) -> tuple[ViolationRow, ...]:
    """Return one row per violation."""
    return tuple(
        ViolationRow(
            constraint=violation.constraint,
            at=violation.at_ms,
            step=violation.step,
            detail=violation.detail,
            code=violation.code,
        )
        for violation in violations
    )


def check_document(violations: tuple[Violation, ...]) -> CheckDocument:
    """Return the verdict of the gate about a plan."""
    return CheckDocument(accepted=not violations, violations=violation_rows(violations))
