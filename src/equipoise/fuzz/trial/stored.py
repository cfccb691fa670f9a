"""Trials in files: one line of JSON each, with its origin and its verdict."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from equipoise.adapters.targets.trial import Trial
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.check import find_problems
from equipoise.fuzz.trial.verdict import TrialOutcome
from equipoise.model.problem.problem import CaseFile
from equipoise.model.rule import Argument
from equipoise.model.scenario.old_keys import rename_old_keys
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import Value
from equipoise.spec.evaluate.domains import in_order
from equipoise.spec.library import all_constraints
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import bind_arguments

_OLD_VALUES: Final[Mapping[tuple[str, str], str]] = {("beside", "nobody"): "none"}
"""Values of settings in files of older versions, with today's values."""
_CODES_OF_ERRORS: Final[Mapping[type[Exception], str]] = {
    RecursionError: "too-large",
    UnicodeDecodeError: "unreadable-file",
}
_CODES_OF_WORDS: Final = {
    "missing required": "missing-key",
    "unknown field": "unknown-key",
    " >= ": "out-of-range",
    " <= ": "out-of-range",
    "out of range": "out-of-range",
    "Expected": "wrong-type",
}
VERSION: Final = 1
"""The version of the format of a line. A line with another version is rejected."""


class StoredTrial(Value):
    """A trial as a line of a file."""

    version: Annotated[int, Meta(ge=VERSION, le=VERSION)] = VERSION
    target: str
    target_version: str = ""
    """The version of the target that shows the defect; empty for our schedulers or if unknown."""
    constraint: str
    outcome: TrialOutcome
    message: str = ""
    seed: int = 0
    number: int = 0
    """The number of the original trial of that seed."""
    settings: Mapping[str, str] = {}
    """The settings of the target that differ from its defaults."""
    specification: str = ""
    """The text that declares the constraint, if it is not in the library."""
    case: CaseFile

    def is_of(self, version: str) -> bool:
        """Whether a version of the target may show the defect."""
        return self.target_version in ("", version)


def case_of(trial: Trial) -> CaseFile:
    """A trial as a case file."""
    return CaseFile(
        cluster=trial.initial.inventory(),
        plan=trial.plan,
        arguments=written_arguments(trial.demand),
        continuous=trial.demand.continuous,
        network=trial.network,
    )


def written_arguments(demand: Requirement) -> dict[str, Argument]:
    """The arguments of a constraint as files store them."""
    return {name: _file_value(value) for name, value in demand.arguments.items()}


def _file_value(value: Any) -> Argument:
    if isinstance(value, frozenset):
        return tuple(_file_value(member) for member in in_order(value))  # type: ignore[misc]
    return value  # type: ignore[no-any-return]


def specification_text(demand: Requirement) -> str:
    """The text of the constraint; empty if it is in the library."""
    return "" if demand.library_name is not None else demand.specification.text


def trial_of(stored: StoredTrial) -> Trial:
    """The trial of a line."""
    specification = all_constraints(stored.specification).get(stored.constraint)
    if specification is None:
        what = f"the constraint {stored.constraint} does not exist"
        cure = "'equipoise spec list' lists the library"
        raise InvalidInput.of("trial", what, key="constraint", cure=cure, code="unknown-constraint")
    case = stored.case
    snapshot = Snapshot.of(case.cluster)
    declared = specification.constraints[stored.constraint]
    values, problems = bind_arguments(declared, case.arguments, snapshot)
    if problems:
        raise InvalidInput("trial", problems)
    steps = () if case.plan is None else case.plan.steps
    demand = Requirement(specification, stored.constraint, values, case.continuous)
    return Trial(demand, snapshot, steps, case.network)


def write_line(stored: StoredTrial) -> bytes:
    """One line of a file of trials."""
    return msgspec.json.encode(stored) + b"\n"


def read_lines(content: bytes, source: str) -> Iterator[StoredTrial]:
    """The trials of a file; ``InvalidInput`` names the number of an invalid line."""
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), start=1):
        if line.strip():
            stored, problems = _read(line)
            if stored is None or problems:
                raise InvalidInput(source, [replace(problem, line=number) for problem in problems])
            yield stored


def _read(line: bytes) -> tuple[StoredTrial | None, Sequence[InputProblem]]:
    """The trial of a line, and the problems of the line."""
    try:
        stored = _decode(line)
    # Beside its own errors, the decoder raises ``RecursionError`` for deep nesting and
    # ``UnicodeDecodeError`` (a ``ValueError``) for text that is not UTF-8.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return None, [_decode_problem(error)]
    stored = stored.but(settings=_renamed_settings(stored.settings))
    problems = [
        replace(problem, key=f"case.{problem.key}", line=None, column=None, excerpt="")
        for problem in find_problems(stored.case)
        if not problem.key.endswith(".tenant")  # drawn VMs have tenants without a declaration
    ]
    if problems:
        return stored, problems
    try:
        trial_of(stored)
    except InvalidInput as error:
        return stored, [
            replace(problem, key=problem.key or error.source, line=None, column=None)
            for problem in error.problems
        ]
    return stored, ()


def _decode(line: bytes) -> StoredTrial:
    try:
        return msgspec.json.decode(line, type=StoredTrial)
    except msgspec.ValidationError:
        # A line of an earlier version may have old keys, which the present types refuse.
        root = msgspec.json.decode(line)
        case, renamed = rename_old_keys(
            root.get("case") if isinstance(root, dict) else None, "case"
        )
        if not renamed:
            raise
        return msgspec.convert(root | {"case": case}, StoredTrial)


def _renamed_settings(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Settings with today's values instead of those that older versions stored."""
    return {key: _OLD_VALUES.get((key, value), value) for key, value in settings.items()}


def _decode_problem(error: Exception) -> InputProblem:
    problem = validation_problem(error)
    if problem.key == "version":
        what, cure = f"is not {VERSION}", "save the case again with this version"
        return replace(problem, what=what, cure=cure, code="unsupported-feature")
    return problem


def validation_problem(error: Exception) -> InputProblem:
    """The problem of an error of msgspec: its place, what is wrong, and a code."""
    what, _, where = str(error).partition(" - at ")
    key = where.replace("`", "").replace("key in ", "").removeprefix("$.")
    return InputProblem(key=key, what=what.replace("`", ""), code=_code_of(error, what))


def _code_of(error: Exception, what: str) -> str:
    if not isinstance(error, msgspec.ValidationError):
        return _CODES_OF_ERRORS.get(type(error), "syntax-error")
    # msgspec tells its errors apart by their words only.
    return next((code for words, code in _CODES_OF_WORDS.items() if words in what), "invalid-value")
