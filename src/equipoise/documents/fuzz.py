"""The JSON documents of ``fuzz`` (a campaign, the targets, an experiment) and of ``bench``.

``equipoise.fuzz`` and ``equipoise.bench`` are above this package, so the command line fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from equipoise.documents.json_document import Document
from equipoise.model.plan import Plan
from equipoise.model.problem.problem import CaseFile


class DefectRow(Document):
    """Defects of one kind and cause, shown by the smallest case."""

    outcome: str = field(name="class")
    constraint: str
    mode: str
    """``discrete`` or ``continuous``."""
    seen: int
    """The number of trials that show it."""
    known: bool
    """Whether the file of known findings has it."""
    message: str
    why: str
    harm: str | None
    cause: str
    """A letter of the SafePlace paper, A to F, or empty."""
    input_valid: bool
    broken_at_first: bool
    number: int
    """The number of the trial that showed it first."""
    case: CaseFile
    shrunk: CaseFile
    made: Plan | None
    """The plan of the scheduler, if it makes one."""


class MissingFinding(Document):
    """A known finding that the campaign did not show."""

    constraint: str
    outcome: str = field(name="class")


class FuzzDocument(Document):
    """The JSON document of ``equipoise fuzz``."""

    target: str
    version: str
    settings: Mapping[str, str]
    seed: int
    interrupted: bool
    tests: int
    tests_per_s: float
    agreed: int
    outcomes: Mapping[str, int]
    defects: tuple[DefectRow, ...]
    gone: tuple[MissingFinding, ...]


class ScheduleDefectRow(Document):
    """Defects of one kind in schedules of a batch scheduler, shown by the smallest workload."""

    outcome: str = field(name="class")
    constraint: str
    """A constraint of a job, or a rule of schedules, such as ``ExclusiveHosts``."""
    mode: str
    seen: int
    message: str
    number: int
    case: Mapping[str, Any]
    """The racks of the hosts, and the jobs."""
    shrunk: Mapping[str, Any]


class ScheduleFuzzDocument(Document):
    """The JSON document of ``equipoise fuzz`` for a batch scheduler."""

    target: str
    seed: int
    interrupted: bool
    tests: int
    tests_per_s: float
    agreed: int
    outcomes: Mapping[str, int]
    defects: tuple[ScheduleDefectRow, ...]


class TargetRow(Document):
    """A scheduler that can be tested."""

    target: str
    about: str
    version: str
    question: str
    constraints: tuple[str, ...]
    """Empty for the whole library."""
    settings: Mapping[str, tuple[str, ...]]
    missing: str
    """What must be installed first; empty if nothing."""


class ExperimentRow(Document):
    """An experiment that can be run."""

    name: str
    about: str


class ExperimentTable(Document):
    """Rows with the same columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str | int], ...]


class ExperimentDocument(Document):
    """The JSON document of ``equipoise fuzz experiment``."""

    experiment: str
    target: str
    version: str
    seed: int
    tests: int
    tables: tuple[ExperimentTable, ...]
    notes: tuple[str, ...]


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
