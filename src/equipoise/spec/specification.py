"""A specification: constraints that were read, found sound, and can be judged by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from equipoise.errors import InvalidInput, Problem
from equipoise.model.draft import Draft
from equipoise.model.plan import Step
from equipoise.model.snapshot import Snapshot
from equipoise.spec.check import check
from equipoise.spec.choose import is_packing
from equipoise.spec.compile import Compiler
from equipoise.spec.parse import parse
from equipoise.spec.place import Source
from equipoise.spec.syntax import Binding, Constraint, Name, Parameter
from equipoise.spec.view import Frame, Steps, View
from equipoise.spec.vocabulary import plain


class Specification:
    """The constraints of a file, by name."""

    def __init__(self, source: Source, constraints: Sequence[Constraint]) -> None:
        checked = check(constraints, source)
        if checked.problems:
            raise InvalidInput(source.name, checked.problems)
        self.constraints = {one.name: one for one in constraints}
        self._compiler = Compiler(source, self.constraints, checked.asked)

    @classmethod
    def read(cls, text: str, name: str = "specification") -> Self:
        """Read a file; all that is wrong with it is told at once."""
        return cls(Source(name, text), parse(text, name))

    def holds(self, name: str, arguments: Mapping[str, Any], frame: Frame) -> bool:
        """Whether a constraint holds for some arguments at the moment a frame looks at."""
        constraint = self.constraints[name]
        places = [arguments[one.name] for one in constraint.parameters]
        return bool(self._compiler.constraint(constraint)(frame, places))

    def arguments(self, name: str, given: Mapping[str, Any], state: Snapshot) -> dict[str, Any]:
        """Make values of the language of what a person gave; say all that does not fit."""
        constraint = self.constraints.get(name)
        if constraint is None:
            known = ", ".join(self.constraints)
            problem = Problem(key=name, what="there is no such constraint", cure=f"one of {known}")
            raise InvalidInput("constraint", [problem])
        wanted = {one.name: one for one in constraint.parameters}
        problems = [
            Problem(key=f"{name}.{one}", what="is not an argument", cure=", ".join(wanted))
            for one in given
            if one not in wanted
        ]
        problems += [
            Problem(key=f"{name}.{one}", what="is missing", cure="give it a value")
            for one in wanted
            if one not in given
        ]
        values = {one: _frozen(value) for one, value in given.items()}
        for one, parameter in wanted.items():
            if one in values:
                what = _misfit(values[one], parameter, state)
                problems += [Problem(key=f"{name}.{one}", what=what)] if what else []
        if problems:
            raise InvalidInput("constraint", problems)
        return values


def frame_of(
    now: Snapshot | Draft,
    *,
    initial: Snapshot | Draft | None = None,
    final: Snapshot | Draft | None = None,
    steps: Sequence[Step] = (),
) -> Frame:
    """What a formula sees of a state; without others it is the first and the last one as well."""
    view = View.of(now)
    return Frame(
        view,
        view if initial is None else View.of(initial),
        view if final is None else View.of(final),
        Steps(steps),
    )


def _frozen(value: Any) -> Any:
    """Lists and sets of a file become sets; so do the groups in them."""
    if isinstance(value, Collection) and not isinstance(value, str | tuple):
        return frozenset(_frozen(one) for one in value)
    return value


def _misfit(value: Any, parameter: Parameter, state: Snapshot) -> str:
    """Say why a value cannot be an argument; nothing if it can."""
    domain = plain(parameter.domain.name) if isinstance(parameter.domain, Name) else ""
    if domain in {"int", "string"}:
        wanted = int if domain == "int" else str
        fits = isinstance(value, wanted) and not isinstance(value, bool)
        return "" if fits else f"{value!r} is not {'a number' if domain == 'int' else 'text'}"
    members: Collection[str] = getattr(state, domain, ())
    match parameter.binding:
        case Binding.MEMBER:
            return "" if value in members else f"there is no {domain.removesuffix('s')} {value}"
        case Binding.SUBSET:
            strange = _strange(value, members)
            return f"not among {domain}: {strange}" if strange else ""
        case Binding.PACKING:
            if isinstance(value, frozenset) and all(isinstance(one, frozenset) for one in value):
                return "" if is_packing(value, members) else "the groups overlap or are not known"
            return "a packing is a list of groups"


def _strange(value: Any, members: Collection[str]) -> str:
    if not isinstance(value, frozenset):
        return str(value)
    return ", ".join(sorted(str(one) for one in value if one not in members))
