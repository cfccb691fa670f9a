"""The model of a task for the solver, and the plan of a solution."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from equipoise.model.action import Action
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import ObjectiveMeasure
from equipoise.model.problem.problem import ActionKind, action_of
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.exact.formula.translate import FormulaTranslator, SymbolicContext
from equipoise.plan.exact.objectives import goal_expression
from equipoise.plan.exact.solver import (
    FALSE,
    TRUE,
    CpModelBuilder,
    IntExpression,
    Literal,
    Solution,
    weighted_sum,
)
from equipoise.plan.exact.task import (
    PlanningTask,
    RequirementPart,
    RuleCondition,
    SearchScope,
    measures_of,
    relevant_vms,
)
from equipoise.plan.exact.timeline.constraints import HostConstraints, NetworkConstraints
from equipoise.plan.exact.timeline.schedules import CandidateAction
from equipoise.plan.exact.timeline.states import FinalState, InitialState, TimelineState, states_of
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.plan.exact.values import UnsupportedFormula, options_of
from equipoise.plan.preconditions import prerequisites
from equipoise.spec.evaluate.breaches import BreachFinder
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.language.syntax import Term
from equipoise.spec.language.vocabulary import START_SENSITIVE_FUNCTIONS
from equipoise.spec.requirement import Requirement

AMOUNT_SENSITIVE_FUNCTIONS: Final = frozenset({"cons", "actions", "underway"})
"""The functions whose values change when an allocation changes the amounts of a VM."""


@dataclass(frozen=True, slots=True)
class SoftCondition:
    """A soft condition and the literal that it is satisfied."""

    condition: RuleCondition
    literal: Literal


@dataclass(frozen=True, slots=True)
class PossibleChanges:
    """The VMs and hosts that may change; separately those that do more than grow or shrink."""

    vms: frozenset[VmId]
    hosts: frozenset[HostId]
    moving_vms: frozenset[VmId]
    moving_hosts: frozenset[HostId]

    @classmethod
    def of(cls, timeline: Timeline) -> PossibleChanges:
        """Return the VMs and hosts that may change in a timeline."""
        schedules = timeline.schedules.values()
        moving = [
            schedule
            for schedule in schedules
            if any(candidate.kind is not ActionKind.ALLOCATE for candidate in schedule.candidates)
        ]
        return cls(
            frozenset(timeline.schedules),
            timeline.hosts_of(schedules),
            frozenset(schedule.vm for schedule in moving),
            timeline.hosts_of(moving),
        )

    def seen_by(self, requirement: Requirement) -> tuple[frozenset[VmId], frozenset[HostId]]:
        """Return the VMs and hosts whose changes may change a requirement."""
        if looks_at_amounts(requirement):
            return self.vms, self.hosts
        return self.moving_vms, self.moving_hosts


def looks_at_amounts(requirement: Requirement) -> bool:
    """Whether an allocation alone may change a requirement."""
    return not AMOUNT_SENSITIVE_FUNCTIONS.isdisjoint(
        requirement.specification.calls(requirement.name)
    )


class PlanningModel:
    """Everything that the solver gets."""

    @classmethod
    def of(cls, task: PlanningTask, scope: SearchScope) -> PlanningModel:
        """Return the model of a task within a scope."""
        return cls(task, Timeline(CpModelBuilder(), task, scope))

    def __init__(self, task: PlanningTask, timeline: Timeline) -> None:
        self.task = task
        self.timeline = timeline
        self.builder = timeline.builder
        self.with_capacity = timeline.scope.with_capacity
        HostConstraints(self.timeline).require(with_capacity=self.with_capacity)
        if self.timeline.routes is not None:
            NetworkConstraints(self.timeline, self.timeline.routes).require()
        self._translator = FormulaTranslator(self.builder)
        self._initial, self._final = InitialState(self.timeline), FinalState(self.timeline)
        self._moments: dict[tuple[CandidateAction, bool], list[tuple[TimelineState, Literal]]] = {}
        self._changes = PossibleChanges.of(self.timeline)
        self.left_to_judge: list[RuleCondition] = []
        """Conditions that cannot be translated; the judge checks every plan for them."""
        self.kept: list[SoftCondition] = []
        self._unbroken: list[Term] = []
        for condition in task.conditions:
            if isinstance(condition, RuleCondition):
                self._add_condition(condition)

    def goals(self) -> Iterator[IntExpression]:
        """Yield the expressions to minimise, the most important first."""
        if self.kept:
            yield weighted_sum((soft.condition.weight, -soft.literal) for soft in self.kept)
        for goal in self.task.problem.objective:
            yield goal_expression(self.timeline, measures_of(goal))

    def spare(self) -> IntExpression | None:
        """Return the secondary goal, which breaks ties; ``None`` if it is a goal itself.

        It is the sum of all ends. A useless action, or a needless wait, makes it larger.
        """
        if self.task.counts(ObjectiveMeasure.MTTR):
            return None
        return goal_expression(self.timeline, {ObjectiveMeasure.MTTR: 1})

    def _add_condition(self, condition: RuleCondition) -> None:
        given: tuple[Literal, ...] = ()
        if condition.weight:
            kept = self.builder.literal()
            self.kept.append(SoftCondition(condition, kept))
            given = (kept,)
        # A formula without a translation is checked by the judge and refined afterwards.
        try:
            self._require(condition.requirement, given, kept=condition.kept)
        except UnsupportedFormula:
            self.left_to_judge.append(condition)

    def _require(
        self, requirement: Requirement, given: tuple[Literal, ...], *, kept: bool = False
    ) -> None:
        about = relevant_vms(requirement)
        vms, hosts = self._changes.seen_by(requirement)
        contexts: list[tuple[SymbolicContext, Literal]] | None = None
        for part in self.task.parts.of(requirement):
            known = part.reads is not None
            if known and not part.holds and kept:
                self._require_no_worse(requirement, part, given)
            elif known and not part.holds and requirement.repaired:
                self._require_at_end(requirement, part, given)
            elif known and not part.holds and requirement.continuous:
                self.builder.require(FALSE, given)  # violated at the start, which counts
            # Parts that no candidate can change are decided by their current value.
            elif part.is_touched(vms, hosts):
                if contexts is None:
                    contexts = list(self._contexts(requirement, about, known=known))
                owner = requirement.specification
                unchanged = about - vms if about is not None and known and part.holds else None
                for context, present in contexts:
                    self._translator.require(
                        owner, part.term, part.names, context, (*given, present), unchanged
                    )
            elif not part.holds:
                self.builder.require(FALSE, given)

    def _require_at_end(
        self, requirement: Requirement, part: RequirementPart, given: tuple[Literal, ...]
    ) -> None:
        """Require that a part holds at the end, which is violated before the plan."""
        context = SymbolicContext(self._final, self._initial, self._final, ())
        owner = requirement.specification
        self._translator.require(owner, part.term, part.names, context, given)

    def _require_no_worse(
        self, requirement: Requirement, part: RequirementPart, given: tuple[Literal, ...]
    ) -> None:
        """Require what still holds of a violated part; the judge sees the whole."""
        owner = requirement.specification
        contexts = list(self._contexts(requirement, relevant_vms(requirement), known=True))
        view = StateView.of(self.task.snapshot)
        finder = BreachFinder(owner, EvaluationContext(view, view, view))
        for term, names in finder.weakened(part.term, part.names):
            # The translator knows terms by their identity, so they must not be freed.
            self._unbroken.append(term)
            for context, present in contexts:
                self._translator.require(owner, term, names, context, (*given, present))

    def _contexts(
        self, requirement: Requirement, about: frozenset[VmId] | None, *, known: bool
    ) -> Iterator[tuple[SymbolicContext, Literal]]:
        """Yield the moments at which a requirement is judged; the first only if it is unknown."""
        owner = requirement.specification
        # Most functions change only at ends; then moments after starts need no constraint.
        starts = not START_SENSITIVE_FUNCTIONS.isdisjoint(owner.calls(requirement.name))
        ahead = owner.looks_ahead(requirement.name)
        between = (
            self._between(requirement, about, starts) if ahead or requirement.continuous else []
        )
        every = [(self._initial, TRUE), *between, (self._final, TRUE)] if ahead else ()
        if requirement.continuous:
            for state, present in between if known else [(self._initial, TRUE), *between]:
                yield SymbolicContext(state, self._initial, self._final, every), present
        if not (requirement.continuous and known):  # the last of all moments is the final one
            yield SymbolicContext(self._final, self._initial, self._final, every), TRUE

    # A state changes only at the ends and starts of actions. So the states around these moments
    # cover a whole plan, whatever times the solver chooses.

    def _between(
        self, requirement: Requirement, about: frozenset[VmId] | None, starts: bool
    ) -> list[tuple[TimelineState, Literal]]:
        """Return the moments in between at which a requirement may have changed."""
        if about is None:
            candidates = self.timeline.candidates()
        else:
            schedules = self.timeline.schedules
            concerned = [schedules[vm] for vm in sorted(about & schedules.keys())]
            candidates = (
                candidate.by_host or candidate
                for schedule in concerned
                for candidate in schedule.candidates
            )
        every = looks_at_amounts(requirement)
        return _each_once(
            moment
            for candidate in candidates
            if every or candidate.kind is not ActionKind.ALLOCATE
            for moment in self._moments_of(candidate, starts=starts)
        )

    def _moments_of(
        self, candidate: CandidateAction, *, starts: bool
    ) -> list[tuple[TimelineState, Literal]]:
        if (candidate, starts) not in self._moments:
            self._moments[candidate, starts] = list(
                states_of(self.timeline, candidate, starts=starts)
            )
        return self._moments[candidate, starts]


def _each_once(
    moments: Iterable[tuple[TimelineState, Literal]],
) -> list[tuple[TimelineState, Literal]]:
    """Return the moments without repetitions: in a given plan, many actions end together."""
    distinct: dict[Hashable, tuple[TimelineState, Literal]] = {}
    for moment, present in moments:
        # An undecided moment is a moment of its own: the solver may choose any time for it.
        key = moment.known if moment.known is not None and present == TRUE else id(moment)
        distinct.setdefault(key, (moment, present))
    return list(distinct.values())


PLAN_ID = PlanId("solved")


def plan_of(timeline: Timeline, solution: Solution) -> Plan:
    """Return the plan of a solution, with its steps in order of time."""
    unit = timeline.unit_ms
    timed = [
        (
            solution.number(candidate.start) * unit,
            solution.number(candidate.end) * unit,
            _action(candidate, solution),
        )
        for candidate in timeline.candidates()
        if solution.holds(candidate.present)
    ]
    return plan_with_steps(timeline.snapshot, timed)


def plan_with_steps(snapshot: Snapshot, timed: Iterable[tuple[int, int, Action]]) -> Plan:
    """Return a plan of timed actions, each with its prerequisites."""
    steps = [
        Step(id=StepId(f"s{number}"), action=action, start_ms=start, end_ms=end)
        # Actions have no order: ties keep that of the candidates, which is the order of the file.
        for number, (start, end, action) in enumerate(sorted(timed, key=lambda item: item[:2]), 1)
    ]
    waits = prerequisites(steps, snapshot.placement)
    return Plan(
        id=PLAN_ID,
        base_version=snapshot.version,
        steps=tuple(step.but(after=waits[step.id]) for step in steps),
    )


def chosen_value(value: Any, solution: Solution) -> Any:
    """Return the option that the solver chose."""
    options = options_of(value).items()
    return next(option for option, literal in options if solution.holds(literal))


def _action(candidate: CandidateAction, solution: Solution) -> Action:
    fields = {
        "host": candidate.switched,
        "vm": candidate.vm,
        "source": chosen_value(candidate.source, solution),
        "target": chosen_value(candidate.target, solution),
        "resource": candidate.resource,
        "amount": candidate.amount,
    }
    return action_of(candidate.kind, fields)
