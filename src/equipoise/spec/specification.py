"""A specification: constraints that are parsed, checked and compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Self

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.plan import Step
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.arguments import bind_arguments
from equipoise.spec.evaluate.cells import FormulaCell, FormulaSplitter
from equipoise.spec.evaluate.compile import Closure, Compiler
from equipoise.spec.evaluate.explain import FormulaExplainer, FormulaFailure
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.language.parse import parse
from equipoise.spec.language.syntax import (
    Always,
    Call,
    Constraint,
    Sometime,
    SourceText,
    StateRef,
    Term,
    calls_in,
    subterms,
)
from equipoise.spec.language.vocabulary import canonical_name
from equipoise.spec.typecheck import check_types


class Specification:
    """The constraints of a file, by name."""

    def __init__(
        self,
        source: SourceText,
        constraints: Sequence[Constraint],
        known: Mapping[str, Specification] | None = None,
    ) -> None:
        """Check and compile constraints, which may call the ``known`` ones of other files."""
        self.text = source.text
        """The source text."""
        self.constraints: dict[str, Constraint] = {
            constraint.name: constraint for constraint in constraints
        }
        self._known: Mapping[str, Specification] = known or {}
        others = [owner.constraints[name] for name, owner in self._known.items()]
        # All problems are reported before anything is compiled.
        checked = check_types(constraints, source, others)
        if checked.problems:
            raise InvalidInput(source.name, checked.problems)
        self.warnings = checked.warnings
        """What is allowed, but probably a mistake."""
        called = {name for constraint in constraints for name in calls_in(constraint.formula)}
        foreign = {name: self._known[name].closure(name) for name in called if name in self._known}
        self._compiler = Compiler(source, self.constraints, checked.overloads, foreign)
        self._splitter = FormulaSplitter(self._compiler)
        self._calls: dict[str, frozenset[str]] = {}
        self._looks_ahead: dict[str, bool] = {}

    @classmethod
    def read(
        cls,
        text: str,
        name: str = "specification",
        known: Mapping[str, Specification] | None = None,
    ) -> Self:
        """Read a file; the error lists every problem of it."""
        return cls(SourceText(name, text), parse(text, name), known)

    def declared(self) -> dict[str, Constraint]:
        """Return every constraint that can be called here, by name; its own hide the others."""
        others = {name: owner.constraints[name] for name, owner in self._known.items()}
        return others | self.constraints

    def closure(self, name: str) -> Closure:
        """Return the compiled formula of a constraint."""
        return self._compiler.constraint(self.constraints[name])

    def calls(self, name: str) -> frozenset[str]:
        """Return the functions that a constraint calls, directly or through other constraints."""
        if name not in self._calls:
            functions: set[str] = set()
            for called in calls_in(self.constraints[name].formula):
                owner = self.owner(called)
                functions |= {canonical_name(called)} if owner is None else owner.calls(called)
            self._calls[name] = frozenset(functions)
        return self._calls[name]

    def looks_ahead(self, name: str) -> bool:
        """Whether a constraint, or one it calls, reads the final state or all moments."""
        if name not in self._looks_ahead:
            parts = subterms(self.constraints[name].formula)
            self._looks_ahead[name] = any(map(self._part_looks_ahead, parts))
        return self._looks_ahead[name]

    def looks_at_plan(self, name: str) -> bool:
        """Whether a constraint reads the actions of the plan, at any time."""
        return "actions" in self.calls(name)

    def looks_beyond(self, name: str) -> bool:
        """Whether a constraint reads more than one state: other states, or the plan."""
        return self.looks_ahead(name) or self.looks_at_plan(name)

    def _part_looks_ahead(self, part: Term) -> bool:
        if isinstance(part, Always | Sometime):
            return True
        if not isinstance(part, Call):
            return False
        owner = self.owner(part.function)
        ahead = owner is not None and owner.looks_ahead(part.function)
        return ahead or part.moment is StateRef.FINAL

    def owner(self, name: str) -> Specification | None:
        """Return the specification that declares a constraint; ``None`` for a function."""
        return self if name in self.constraints else self._known.get(name)

    def function_of(self, call: Call) -> str:
        """Return the function of a call; one name may mean a function of VMs and one of hosts."""
        return self._compiler.function_of(call)

    def holds(self, name: str, arguments: Mapping[str, Any], context: EvaluationContext) -> bool:
        """Whether a constraint holds for some arguments in a context."""
        constraint = self.constraints[name]
        bindings = [arguments[parameter.name] for parameter in constraint.parameters]
        return bool(self.closure(name)(context, bindings))

    def cells(
        self, name: str, arguments: Mapping[str, Any], context: EvaluationContext
    ) -> Sequence[FormulaCell]:
        """Return the parts of a constraint; it holds if and only if all of them hold."""
        constraint = self.constraints[name]
        given = {parameter.name: arguments[parameter.name] for parameter in constraint.parameters}
        try:
            return tuple(self._splitter.cells(constraint.formula, given, context))
        except InvalidInput:  # a domain has no value: the constraint is one cell, which is false
            return (self._splitter.cell(constraint.formula, given),)

    def closure_of(self, term: Term, names: Mapping[str, Any]) -> Closure:
        """Return the compiled form of a part of a formula, in which these names are bound."""
        return self._splitter.closure(term, names)

    def explain(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> FormulaFailure:
        """Return why a formula of this specification is false in a context."""
        return FormulaExplainer(self, self._compiler, context).explain(term, names)

    def arguments(self, name: str, given: Mapping[str, Any], state: Snapshot) -> dict[str, Any]:
        """Return the given arguments as values of the language; raise if they do not fit."""
        constraint = self.constraints.get(name)
        if constraint is None:
            close = get_close_matches(name, self.constraints, n=1)
            cure = f"did you mean {close[0]}?" if close else "'equipoise spec list' lists them"
            problem = InputProblem(
                key=name, what="there is no such constraint", cure=cure, code="unknown-constraint"
            )
            raise InvalidInput("constraint", [problem])
        values, problems = bind_arguments(constraint, given, state)
        if problems:
            raise InvalidInput("constraint", problems)
        return values


def context_of(
    now: Snapshot | Draft,
    *,
    initial: Snapshot | Draft | None = None,
    final: Snapshot | Draft | None = None,
    steps: Sequence[Step] = (),
) -> EvaluationContext:
    """Return the context of a formula; by default the state is also the initial and final one."""
    view = StateView.of(now)
    return EvaluationContext(
        view,
        view if initial is None else StateView.of(initial),
        view if final is None else StateView.of(final),
        PlanSteps(steps),
    )
