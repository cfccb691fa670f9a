"""The JSON document of ``bench``."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.documents.json_document import Document


class MeasurementRow(Document):
    """One measurement of a benchmark suite."""

    what: str
    seconds: float
    plain: str
    """The plain way of the comparison; empty without a comparison."""
    plain_seconds: float | None
    count: int
    """The number of equal operations in that time."""
    figures: Mapping[str, float]
    """Other results of the measurement."""
    note: str
    ratio: float | None
    """How many times faster than the plain way."""
    per_second: float | None
    """Operations per second, if there are several."""


class BenchDocument(Document):
    """The JSON document of ``equipoise bench``."""

    rows: tuple[MeasurementRow, ...]
