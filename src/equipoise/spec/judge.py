"""The judge of a specification: it judges the moments of a plan that the gate shows to it.

A discrete constraint is judged on the final state. A continuous one is judged initially, after the
ends and after the starts of each instant, and finally. A formula about the final state or about all
moments is judged at the end, when these are known.

How old violations count is a choice (``Charge``). The gate compares a plan with the empty plan: it
charges what the plan breaks and what it makes worse, breach by breach. An element that was violated
before may stay so; once it is repaired, it must stay so. A campaign charges every plan with a
continuous constraint that is violated at the start.

In both, a plan may declare that it repairs a continuous constraint. Its violated cells must hold at
the end, and once they hold they must stay so; until then they may be worse than at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import takewhile
from typing import Any

from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import StepId
from equipoise.spec.evaluate.breaches import (
    NO_BREACHES,
    Breaches,
    BreachKey,
    worse_breaches,
)
from equipoise.spec.evaluate.cells import CellIndex, FormulaCell, TrackingView
from equipoise.spec.evaluate.explain import FormulaFailure
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.moments import MomentPhase, PlanMoment
from equipoise.spec.requirement import Requirement


class Charge(Enum):
    """What a plan is charged with."""

    EVERYTHING = "everything"
    """Every violation, also an old one."""
    CAMPAIGN = "campaign"
    """Every violation of a continuous constraint; an old one of a discrete constraint if the plan
    touches what the constraint reads."""
    DAMAGE = "damage"
    """What the empty plan would not violate as much."""


_Reported = FormulaCell | tuple[FormulaCell, BreachKey]


@dataclass(slots=True, eq=False)
class _RequirementRecord:
    """What the judge knows about one requirement so far."""

    requirement: Requirement
    looks_ahead: bool
    reads_plan: bool
    cells: tuple[FormulaCell, ...] = ()
    broken_before: bool = False
    reported: dict[_Reported, frozenset[str] | None] = field(default_factory=dict)
    """The cells and breaches that are violated, each with the elements of its violation; ``None``
    for a cell that the plan repairs, because the initial violation is not reported."""
    allowed: dict[FormulaCell, Breaches] = field(default_factory=dict)
    """Of the cells that the empty plan violates: the breaches that have lasted since the start."""
    allowed_as_whole: Breaches = field(default_factory=dict)
    """The breaches of the empty plan, for a formula that needs the whole plan."""
    to_repair: tuple[FormulaCell, ...] = ()
    """The cells that are violated at the start and that the plan repairs."""


class SpecificationJudge:
    """Judges one plan by its requirements. Make a new judge for each plan."""

    def __init__(
        self,
        requirements: Iterable[Requirement],
        steps: Sequence[Step] = (),
        *,
        charge: Charge = Charge.CAMPAIGN,
    ) -> None:
        """Take the requirements, the steps of the plan, and what it is charged with."""
        self._charge = charge
        self._records = tuple(map(_record_of, requirements))
        self._ahead = [record for record in self._records if record.looks_ahead]
        self._steps = PlanSteps(steps)
        self._attribution = _StepAttribution(steps)
        self._initial: StateView | None = None
        self._continuous: CellIndex[_RequirementRecord] = CellIndex()
        self._discrete: CellIndex[_RequirementRecord] = CellIndex()
        self._past: list[tuple[PlanMoment, StateView]] = []

    def __call__(self, moment: PlanMoment) -> Iterator[Violation]:
        """Yield what is violated at this moment, each violation once for as long as it lasts."""
        if not self._records:
            return
        # The views of all moments are needed only if a formula reads the final state or all
        # moments.
        if self._ahead:
            # The draft goes on changing; a state that is judged later must be frozen.
            self._past.append((moment, StateView.of(moment.state.freeze())))
        if moment.phase is MomentPhase.INITIAL:
            yield from self._judge_initial(moment)
        elif moment.phase is MomentPhase.FINAL:
            yield from self._judge_final(moment)
        else:
            touched = self._continuous.touching(moment.touched)
            yield from self._judge(touched, self._continuous, moment)

    def _judge_initial(self, moment: PlanMoment) -> Iterator[Violation]:
        self._initial = StateView.of(moment.state.freeze())
        context = EvaluationContext(self._initial, self._initial, self._initial, self._steps)
        continuous: dict[FormulaCell, _RequirementRecord] = {}
        discrete: dict[FormulaCell, _RequirementRecord] = {}
        for record in self._records:
            if not record.looks_ahead:
                requirement = record.requirement
                cells = requirement.specification.cells(
                    requirement.name, requirement.arguments, context
                )
                record.cells = tuple(cells)
                cells_of_kind = continuous if requirement.continuous else discrete
                cells_of_kind.update(dict.fromkeys(record.cells, record))
        self._evaluate(continuous, self._continuous, moment)
        if self._charge is Charge.DAMAGE:
            self._allow_old_breaches(continuous, self._continuous, moment)
        # Cells that the plan repairs count as reported: they are judged again at the end.
        for record in self._records:
            if record.requirement.repaired:
                record.to_repair = tuple(cell for cell in record.cells if not cell.holds)
                record.reported = dict.fromkeys(record.to_repair)
            elif record.requirement.continuous:
                cells = self._undecided_cells(record)
                yield from self._new_violations(record, cells, context, moment)
        # Discrete requirements are evaluated now, although they are judged at the end: it shows
        # which of them were violated before the plan, and indexes what they read.
        self._evaluate(discrete, self._discrete, moment)
        if self._charge is Charge.DAMAGE:
            self._allow_old_breaches(discrete, self._discrete, moment)
        for record in self._records:
            record.broken_before = not all(cell.holds for cell in record.cells)

    def _allow_old_breaches(
        self,
        cells: Mapping[FormulaCell, _RequirementRecord],
        index: CellIndex[_RequirementRecord],
        moment: PlanMoment,
    ) -> None:
        """Remember what the empty plan violates; without old violations this costs nothing."""
        assert self._initial is not None
        for cell, record in cells.items():
            if not cell.holds and not record.requirement.repaired:
                view = TrackingView(moment.state)
                without_plan = EvaluationContext(view, self._initial, view)
                breaches = self._breaches(cell, record, index, without_plan)
                if breaches:
                    record.allowed[cell] = breaches
        for record in self._ahead if index is self._discrete else ():
            context = EvaluationContext(
                self._initial, self._initial, self._initial, moments=[self._initial]
            )
            record.allowed_as_whole = _breaches_as_whole(record.requirement, context)

    def _breaches(
        self,
        cell: FormulaCell,
        record: _RequirementRecord,
        index: CellIndex[_RequirementRecord],
        context: EvaluationContext,
    ) -> Breaches:
        breaches, reads = cell.breaches(record.requirement.specification, context)
        index.add(cell, reads, record)
        return breaches

    def _undecided_cells(
        self, record: _RequirementRecord, touched: Mapping[FormulaCell, Any] | None = None
    ) -> list[FormulaCell]:
        """Return the cells that may violate more than they did before the plan."""
        return [
            cell
            for cell in record.cells
            if record.reads_plan or cell not in record.allowed or cell in (touched or ())
        ]

    def _judge_final(self, moment: PlanMoment) -> Iterator[Violation]:
        touched = self._discrete.touching(moment.touched)
        context = self._evaluate(touched, self._discrete, moment)
        # A discrete requirement is charged to the plan if the plan touched it, or if it held
        # before.
        disturbed = set(touched.values())
        for record in self._records:
            if record.looks_ahead:
                yield from self._judge_whole_plan(record)
            elif record.to_repair:
                record.reported = {}
                yield from self._new_violations(record, record.to_repair, context, moment)
            elif not record.requirement.continuous and (
                self._charge is not Charge.CAMPAIGN
                or record.reads_plan
                or record in disturbed
                or not record.broken_before
            ):
                cells = self._undecided_cells(record, touched)
                yield from self._new_violations(record, cells, context, moment)

    def _judge(
        self,
        cells: Mapping[FormulaCell, _RequirementRecord],
        index: CellIndex[_RequirementRecord],
        moment: PlanMoment,
    ) -> Iterator[Violation]:
        context = self._evaluate(cells, index, moment)
        by_record: dict[_RequirementRecord, list[FormulaCell]] = {}
        for cell, record in cells.items():
            by_record.setdefault(record, []).append(cell)
        for record, own_cells in by_record.items():
            yield from self._new_violations(record, own_cells, context, moment)

    def _evaluate(
        self,
        cells: Mapping[FormulaCell, _RequirementRecord],
        index: CellIndex[_RequirementRecord],
        moment: PlanMoment,
    ) -> EvaluationContext:
        """Evaluate cells again, and index what each of them reads."""
        assert self._initial is not None
        view = TrackingView(moment.state)
        context = EvaluationContext(view, self._initial, view, self._steps)
        for cell, record in cells.items():
            cell.collections.touch(moment.touched)
            index.add(cell, cell.judge(context), record)
        # Explanations evaluate other terms: they must not use the cached collections of the last
        # cell.
        context.collections = None
        return context

    def _new_violations(
        self,
        record: _RequirementRecord,
        cells: Iterable[FormulaCell],
        context: EvaluationContext,
        moment: PlanMoment,
    ) -> Iterator[Violation]:
        """Yield violations that were not reported yet; a cell that holds may be reported again."""
        for cell in cells:
            if cell.holds:
                record.reported.pop(cell, None)
                record.allowed.pop(cell, None)  # once repaired, it must stay so
            elif cell.error is not None and _is_irrelevant(cell, record):
                continue
            elif cell in record.allowed:
                yield from self._damage(record, cell, context, moment)
            elif cell not in record.reported:
                failure = record.requirement.explain(cell.term, cell.names, context)
                # One violation may show in two cells, as a pair (x, y) and a pair (y, x).
                known = failure.elements() in record.reported.values()
                record.reported[cell] = failure.elements()
                if not known:
                    yield self._violation(record.requirement, failure, moment)

    def _damage(
        self,
        record: _RequirementRecord,
        cell: FormulaCell,
        context: EvaluationContext,
        moment: PlanMoment,
    ) -> Iterator[Violation]:
        """Yield what a plan makes worse in a cell that was violated before."""
        continuous = record.requirement.continuous
        index = self._continuous if continuous else self._discrete
        present, before = self._breaches(cell, record, index, context), record.allowed[cell]
        worse = worse_breaches(present, before)
        record.allowed[cell] = {key: old for key, old in before.items() if key in present}
        for key in worse:
            if (cell, key) in record.reported:
                continue
            failure = _explain_breach(record.requirement, key, present, before, context)
            known = failure.elements() in record.reported.values()
            record.reported[cell, key] = failure.elements()
            if not known:
                yield self._violation(record.requirement, failure, moment)

    def _judge_whole_plan(self, record: _RequirementRecord) -> Iterator[Violation]:
        """Judge a formula that needs the whole plan; at every moment if it is continuous."""
        assert self._initial is not None
        requirement, final = record.requirement, self._past[-1][1]
        views = [view for _, view in self._past]
        # The value of always and sometime is the same at every moment, so it is computed once.
        temporal_cache: dict[Any, bool] = {}
        for moment, view in self._past if requirement.continuous else self._past[-1:]:
            context = EvaluationContext(
                view, self._initial, final, self._steps, views, temporal_cache=temporal_cache
            )
            failure = requirement.failure(context)
            if failure is not None and record.allowed_as_whole:
                present, before = _breaches_as_whole(requirement, context), record.allowed_as_whole
                worse = worse_breaches(present, before)
                failure = None
                if worse:
                    failure = _explain_breach(requirement, worse[0], present, before, context)
                record.allowed_as_whole = {key: before[key] for key in before if key in present}
            elif failure is None:
                record.allowed_as_whole = NO_BREACHES
            if failure is not None:
                reported = moment if failure.moment is None else self._past[failure.moment][0]
                yield self._violation(requirement, failure, reported)
                return

    def _violation(
        self, requirement: Requirement, failure: FormulaFailure, moment: PlanMoment
    ) -> Violation:
        doc = requirement.specification.constraints[requirement.name].doc.strip().removesuffix(".")
        return Violation(
            constraint=str(requirement),
            at_ms=moment.at_ms,
            detail=f"{doc}; {failure}" if doc else str(failure),
            step=self._attribution.step(failure.elements(), moment),
            code=failure.code,
        )


class _StepAttribution:
    """Finds the step that caused a violation."""

    def __init__(self, steps: Sequence[Step]) -> None:
        # The last step that touches an element is the most likely cause of a final violation.
        self._steps = sorted(steps, key=lambda step: step.end_ms, reverse=True)

    def step(self, elements: frozenset[str], moment: PlanMoment) -> StepId | None:
        """Return the step of this moment, or the last one, that touches one of the elements."""
        for step in self._steps:
            if moment.phase is MomentPhase.ENDS and step.end_ms != moment.at_ms:
                continue
            if moment.phase is MomentPhase.STARTS and step.start_ms != moment.at_ms:
                continue
            seen = step.footprint
            if not elements.isdisjoint((seen.vm or "", *seen.hosts)):
                # Before the plan starts, no step can have caused anything.
                return None if moment.phase is MomentPhase.INITIAL else step.id
        return None


def _breaches_as_whole(requirement: Requirement, context: EvaluationContext) -> Breaches:
    formula = requirement.specification.constraints[requirement.name].formula
    return requirement.specification.breaches(formula, requirement.arguments, context)


def _explain_breach(
    requirement: Requirement,
    key: BreachKey,
    present: Breaches,
    before: Breaches,
    context: EvaluationContext,
) -> FormulaFailure:
    """Return why a breach is new or larger than before the plan."""
    failure = requirement.explain_breach(present[key], context)
    if key not in before or failure.code != "rule-violated":
        return failure
    old, new = before[key].size, present[key].size
    grown = f"it misses by {new}, before the plan by {old}" if new > old else "it becomes worse"
    return replace(failure, note=f"{failure.note}; {grown}", code="rule-worsened")


# The formula is one conjunction, which is false without the cell that has no value.
def _is_irrelevant(cell: FormulaCell, record: _RequirementRecord) -> bool:
    """Whether a cell without a value does not matter, because an earlier cell is false."""
    earlier = takewhile(lambda other: other is not cell, record.cells)
    return any(not other.holds and other.error is None for other in earlier)


def _record_of(requirement: Requirement) -> _RequirementRecord:
    specification, name = requirement.specification, requirement.name
    reads_plan = specification.looks_at_plan(name)
    return _RequirementRecord(requirement, specification.looks_ahead(name), reads_plan)
