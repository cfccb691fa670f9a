"""A specification: constraints that were read, found sound, and can be judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Self

from equipoise.errors import InvalidInput, Problem
from equipoise.model.change.draft import Draft
from equipoise.model.plan import Step
from equipoise.model.snapshot import Snapshot
from equipoise.spec.arguments import fitted
from equipoise.spec.cells import Cell, Splitter
from equipoise.spec.check import check
from equipoise.spec.compile import Closure, Compiler
from equipoise.spec.explain import Explainer, Why
from equipoise.spec.language.parse import parse
from equipoise.spec.language.place import Source
from equipoise.spec.language.syntax import (
    Always,
    Call,
    Constraint,
    Moment,
    Sometime,
    Term,
    calls_in,
    parts_of,
)
from equipoise.spec.language.vocabulary import plain
from equipoise.spec.view import Frame, Steps, View


class Specification:
    """The constraints of a file, by name."""

    def __init__(
        self,
        source: Source,
        constraints: Sequence[Constraint],
        known: Mapping[str, Specification] | None = None,
    ) -> None:
        """Make it of constraints, which may call others that are ``known``, by name."""
        self.text = source.text
        """As it was written."""
        self.constraints: dict[str, Constraint] = {one.name: one for one in constraints}
        self._known: Mapping[str, Specification] = known or {}
        others = [one.constraints[name] for name, one in self._known.items()]
        checked = check(constraints, source, others)
        if checked.problems:
            raise InvalidInput(source.name, checked.problems)
        self.warnings = checked.warnings
        """What is allowed, but most likely not meant."""
        called = {name for one in constraints for name in calls_in(one.formula)}
        foreign = {name: self._known[name].closure(name) for name in called if name in self._known}
        self._compiler = Compiler(source, self.constraints, checked.asked, foreign)
        self._splitter = Splitter(self._compiler)
        self._calls: dict[str, frozenset[str]] = {}
        self._looks_ahead: dict[str, bool] = {}

    @classmethod
    def read(
        cls,
        text: str,
        name: str = "specification",
        known: Mapping[str, Specification] | None = None,
    ) -> Self:
        """Read a file; all that is wrong with it is told at once."""
        return cls(Source(name, text), parse(text, name), known)

    def declared(self) -> dict[str, Constraint]:
        """Every constraint that can be called here, by name; its own hide the others."""
        others = {name: one.constraints[name] for name, one in self._known.items()}
        return others | self.constraints

    def closure(self, name: str) -> Closure:
        """The compiled formula of a constraint."""
        return self._compiler.constraint(self.constraints[name])

    def calls(self, name: str) -> frozenset[str]:
        """The functions that a constraint calls, itself or through others."""
        if name not in self._calls:
            found: set[str] = set()
            for called in calls_in(self.constraints[name].formula):
                home = self.home(called)
                found |= {plain(called)} if home is None else home.calls(called)
            self._calls[name] = frozenset(found)
        return self._calls[name]

    def looks_ahead(self, name: str) -> bool:
        """Whether a constraint, or one it calls, asks for the final state or for all moments."""
        if name not in self._looks_ahead:
            parts = parts_of(self.constraints[name].formula)
            self._looks_ahead[name] = any(map(self._asks_ahead, parts))
        return self._looks_ahead[name]

    def looks_at_plan(self, name: str) -> bool:
        """Whether a constraint asks for the actions of the plan, whenever they are."""
        return "actions" in self.calls(name)

    def looks_beyond(self, name: str) -> bool:
        """Whether a constraint asks for more than one state: for others, or for the plan."""
        return self.looks_ahead(name) or self.looks_at_plan(name)

    def _asks_ahead(self, part: Term) -> bool:
        if isinstance(part, Always | Sometime):
            return True
        if not isinstance(part, Call):
            return False
        home = self.home(part.function)
        ahead = home is not None and home.looks_ahead(part.function)
        return ahead or part.moment is Moment.FINAL

    def home(self, name: str) -> Specification | None:
        """The specification that declares a constraint."""
        return self if name in self.constraints else self._known.get(name)

    def function_of(self, call: Call) -> str:
        """Which function a call in a formula asks: those of VMs and of hosts have one name."""
        return self._compiler.function_of(call)

    def holds(self, name: str, arguments: Mapping[str, Any], frame: Frame) -> bool:
        """Whether a constraint holds for some arguments at the moment a frame looks at."""
        constraint = self.constraints[name]
        places = [arguments[one.name] for one in constraint.parameters]
        return bool(self.closure(name)(frame, places))

    def cells(self, name: str, arguments: Mapping[str, Any], frame: Frame) -> Sequence[Cell]:
        """The parts that must all hold for a constraint to hold, whatever a plan does."""
        constraint = self.constraints[name]
        given = {one.name: arguments[one.name] for one in constraint.parameters}
        try:
            return tuple(self._splitter.cells(constraint.formula, given, frame))
        except InvalidInput:  # what it is about has no value; then it does not hold, as a whole
            return (self._splitter.cell(constraint.formula, given),)

    def closure_of(self, term: Term, names: Mapping[str, Any]) -> Closure:
        """The compiled form of a part of a formula, in which these names have places."""
        return self._splitter.closure(term, names)

    def why(self, term: Term, names: Mapping[str, Any], frame: Frame) -> Why:
        """Say why a formula of this specification is false at the moment a frame looks at."""
        return Explainer(self, self._compiler, frame).why(term, names)

    def arguments(self, name: str, given: Mapping[str, Any], state: Snapshot) -> dict[str, Any]:
        """Make values of the language of what a person gave; say all that does not fit."""
        constraint = self.constraints.get(name)
        if constraint is None:
            close = get_close_matches(name, self.constraints, n=1)
            cure = f"did you mean {close[0]}?" if close else "'equipoise spec list' lists them"
            problem = Problem(key=name, what="there is no such constraint", cure=cure)
            raise InvalidInput("constraint", [problem])
        values, problems = fitted(constraint, given, state)
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
