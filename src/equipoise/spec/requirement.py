"""A requirement: a constraint with its arguments, and its reference judgement on one case.

``judge_case`` does not check whether the steps of a plan may start, and it charges the plan with
old violations too. Every faster judge must agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from equipoise.errors import InvalidInput
from equipoise.model.plan import Step
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.breaches import Breach
from equipoise.spec.evaluate.explain import FormulaFailure, format_value
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.language.syntax import Term
from equipoise.spec.library import custom_specification, library_constraints
from equipoise.spec.moments import moments
from equipoise.spec.specification import Specification


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """A constraint that must hold, with its arguments."""

    specification: Specification
    name: str
    arguments: Mapping[str, Any]
    continuous: bool = False
    title: str = ""
    """The name in reports; by default the constraint and its arguments."""
    repaired: bool = False
    """Whether the plan may leave it violated until the end, because the plan repairs it."""

    def __str__(self) -> str:
        return self.title or f"{self.name}({', '.join(map(format_value, self.arguments.values()))})"

    @property
    def library_name(self) -> str | None:
        """The name of the constraint in the library; ``None`` for a user's, even if named alike."""
        is_library = library_constraints().get(self.name) is self.specification
        return self.name if is_library else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name or by text: the other process has the library or reads the text."""
        known = self.arguments, self.continuous, self.title, self.repaired
        if self.library_name is not None:
            return _from_library, (self.name, *known)
        text = self.specification.text
        if not text:
            raise TypeError(f"{self.name} has no source text, so it cannot be pickled")
        return _from_custom, (text, self.name, *known)

    def failure(self, context: EvaluationContext) -> FormulaFailure | None:
        """Return why it does not hold in a context; ``None`` if it holds."""
        specification = self.specification
        try:
            if specification.holds(self.name, self.arguments, context):
                return None
        except InvalidInput as error:
            return _evaluation_failure(error)
        return self.explain(specification.constraints[self.name].formula, self.arguments, context)

    def explain(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> FormulaFailure:
        """Return why a part of it is false; a part without a value counts as false."""
        try:
            return self.specification.explain(term, names, context)
        except InvalidInput as error:
            return _evaluation_failure(error)

    def explain_breach(self, breach: Breach, context: EvaluationContext) -> FormulaFailure:
        """Return why an element of it is violated."""
        try:
            explained = breach.explain(context)
        except InvalidInput as error:
            return _evaluation_failure(error)
        # Without a value the whole formula gives the reason.
        failure = explained or self.failure(context)
        assert failure is not None, "only a false formula has breaches"
        return failure


def _from_library(name: str, *known: Any) -> Requirement:
    return Requirement(library_constraints()[name], name, *known)


def _from_custom(text: str, name: str, *known: Any) -> Requirement:
    return Requirement(custom_specification(text), name, *known)


def _evaluation_failure(error: InvalidInput) -> FormulaFailure:
    (problem, *_) = error.problems
    line = problem.excerpt.split("\n")[0].strip()
    text = f"{line}: {problem.what}" if line else problem.what
    return FormulaFailure(text, sentence=text, code=problem.code)


class Case(NamedTuple):
    """An initial state and the steps of a plan."""

    initial: Snapshot
    steps: tuple[Step, ...] = ()


class CaseViolation(NamedTuple):
    """The first violation of a constraint in a case."""

    at_ms: int
    """The first judged moment at which the constraint is false."""
    why: FormulaFailure
    happened_ms: int
    """When the cause happened: for ``always`` it may differ from the judged moment."""


def judge_case(requirement: Requirement, case: Case) -> CaseViolation | None:
    """Return the first violation of a requirement in a case; ``None`` if it holds."""
    violated = _first_violation(requirement, case)
    if violated is None:
        return None
    at_ms, times, context = violated
    failure = requirement.explain(
        requirement.specification.constraints[requirement.name].formula,
        requirement.arguments,
        context,
    )
    happened_ms = at_ms if failure.moment is None else times[failure.moment]
    return CaseViolation(at_ms, failure, happened_ms)


def _first_violation(
    requirement: Requirement, case: Case
) -> tuple[int, list[int], EvaluationContext] | None:
    """Return the first judged moment at which it is false, and the times of all moments."""
    # The draft of a moment changes with the next one, so every state is frozen.
    past = [(moment.at_ms, StateView.of(moment.state.freeze())) for moment in moments(*case)]
    views, steps = [view for _, view in past], PlanSteps(case.steps)
    # Shared by all moments: ``always`` and ``sometime`` have one value for the whole plan.
    temporal_cache: dict[Any, bool] = {}
    for at_ms, view in past if requirement.continuous else past[-1:]:
        context = EvaluationContext(
            view, views[0], views[-1], steps, views, temporal_cache=temporal_cache
        )
        if not requirement.specification.holds(requirement.name, requirement.arguments, context):
            return at_ms, [at for at, _ in past], context
    return None


def case_holds(requirement: Requirement, case: Case) -> bool:
    """Whether a requirement holds in a case; cheaper than ``judge_case``, without the reason."""
    return _first_violation(requirement, case) is None


def holds_in_state(requirement: Requirement, state: Snapshot) -> bool:
    """Whether a requirement holds in a state without a plan."""
    view = StateView.of(state)
    context = EvaluationContext(view, view, view, PlanSteps(()), [view])
    return requirement.specification.holds(requirement.name, requirement.arguments, context)
