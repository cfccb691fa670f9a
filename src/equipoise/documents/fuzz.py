"""The JSON documents of ``fuzz``: a campaign, the targets, and an experiment.

``equipoise.fuzz`` is above this package, so the command line fills them.
"""

from __future__ import annotations

from collections.abc import Mapping

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
