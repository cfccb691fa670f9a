"""Trials in files: a line of JSON each, with where it came from and what was said of it."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.fuzz.trial.trial import Trial
from equipoise.fuzz.trial.verdict import Outcome
from equipoise.model.case import CaseFile
from equipoise.model.files.check import problems_of
from equipoise.model.rule import Argument
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import Value
from equipoise.spec.arguments import fitted
from equipoise.spec.choose import in_order
from equipoise.spec.demand import Demand
from equipoise.spec.library import all_constraints

VERSION: Final = 1
"""Of the form of a line. One of another version is refused rather than misread."""


class Stored(Value):
    """A trial as a file has it."""

    version: Annotated[int, Meta(ge=VERSION, le=VERSION)] = VERSION
    target: str
    target_version: str = ""
    """In which version the target has shown it; nothing if it is ours, or nobody has noted it."""
    constraint: str
    outcome: Outcome
    message: str = ""
    seed: int = 0
    number: int = 0
    """Which trial of that seed it was, before it was made smaller."""
    settings: Mapping[str, str] = {}
    """How the target was set, where it was not as usual."""
    specification: str = ""
    """The text that declares the constraint, if it is not in the library."""
    case: CaseFile

    def is_of(self, version: str) -> bool:
        """Whether it may have been found in a version of the target."""
        return self.target_version in ("", version)


def case_of(trial: Trial) -> CaseFile:
    """A trial as files have cases."""
    return CaseFile(
        cluster=trial.initial.inventory(),
        plan=trial.plan,
        arguments=written_arguments(trial.demand),
        continuous=trial.demand.continuous,
        network=trial.network,
    )


def written_arguments(demand: Demand) -> dict[str, Argument]:
    """The arguments of a constraint as files have them."""
    return {name: _written(value) for name, value in demand.arguments.items()}


def plain_case(trial: Trial) -> dict[str, Any]:
    """A trial as plain values, for documents of others."""
    found: dict[str, Any] = msgspec.to_builtins(case_of(trial))
    return found


def _written(value: Any) -> Argument:
    if isinstance(value, frozenset):
        return tuple(_written(one) for one in in_order(value))  # type: ignore[misc]
    return value  # type: ignore[no-any-return]


def text_of(demand: Demand) -> str:
    """What a line must say of a constraint besides its name: nothing, if the library has it."""
    return "" if demand.library_name is not None else demand.specification.text


def trial_of(stored: Stored) -> Trial:
    """The trial that a line tells of."""
    home = all_constraints(stored.specification).get(stored.constraint)
    if home is None:
        what = f"there is no constraint {stored.constraint}"
        cure = "'equipoise spec list' lists those of the library"
        raise InvalidInput("trial", [Mistake(key="constraint", what=what, cure=cure)])
    case = stored.case
    snapshot = Snapshot.of(case.cluster)
    values, problems = fitted(home.constraints[stored.constraint], case.arguments, snapshot)
    if problems:
        raise InvalidInput("trial", problems)
    steps = () if case.plan is None else case.plan.steps
    demand = Demand(home, stored.constraint, values, case.continuous)
    return Trial(demand, snapshot, steps, case.network)


def write_line(stored: Stored) -> bytes:
    """One line of a file of trials."""
    return msgspec.json.encode(stored) + b"\n"


def read_lines(content: bytes, source: str) -> Iterator[Stored]:
    """The trials of a file; a line that is none is told with its number."""
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), start=1):
        if line.strip():
            stored, mistakes = _read(line)
            if stored is None or mistakes:
                raise InvalidInput(source, [replace(one, line=number) for one in mistakes])
            yield stored


def _read(line: bytes) -> tuple[Stored | None, Sequence[Mistake]]:
    """What a line says, and whatever is wrong with it."""
    try:
        stored = msgspec.json.decode(line, type=Stored)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return None, [_misread(str(error))]
    found = [
        Mistake(key=f"case.{one.key}", what=one.what, cure=one.cure)
        for one in problems_of(stored.case)
        if not one.key.endswith(".tenant")  # chance gives VMs to tenants whom nobody has listed
    ]
    if found:
        return stored, found
    try:
        trial_of(stored)
    except InvalidInput as error:
        return stored, [
            Mistake(key=one.key or error.source, what=one.what, cure=one.cure, excerpt=one.excerpt)
            for one in error.problems
        ]
    return stored, ()


def _misread(said: str) -> Mistake:
    what, _, where = said.partition(" - at ")
    key = where.replace("`", "").replace("key in ", "").removeprefix("$.")
    if key == "version":
        return Mistake(key=key, what=f"is not {VERSION}", cure="save the case anew, with this one")
    return Mistake(key=key, what=what.replace("`", ""))
