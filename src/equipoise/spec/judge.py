"""The judge of a specification: it judges the moments of a plan that the gate shows to it.

A discrete constraint is judged on the final state. A continuous one is judged initially, after the
ends and after the starts of each instant, and finally. A formula about the final state or about all
moments is judged at the end, when these are known.

The judge does not charge a plan with a discrete constraint that was violated before and of which
the plan touched nothing: an old violation must not block unrelated work. It does not charge a plan
with the violated cells of a continuous constraint that the plan declares to repair; these cells
must hold at the end, and once they hold they must stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import StepId
from equipoise.spec.evaluate.cells import CellIndex, FormulaCell, TrackingView
from equipoise.spec.evaluate.explain import FormulaFailure
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.moments import MomentPhase, PlanMoment
from equipoise.spec.requirement import Requirement


@dataclass(slots=True, eq=False)
class _RequirementRecord:
    """What the judge knows about one requirement so far."""

    requirement: Requirement
    looks_ahead: bool
    reads_plan: bool
    cells: tuple[FormulaCell, ...] = ()
    broken_before: bool = False
    reported: dict[FormulaCell, frozenset[str] | None] = field(default_factory=dict)
    """The cells that are violated, each with the elements of its violation; ``None`` for a cell
    that the plan repairs, because the initial violation is not reported."""
    to_repair: tuple[FormulaCell, ...] = ()
    """The cells that are violated at the start and that the plan repairs."""


class SpecificationJudge:
    """Judges one plan by its requirements. Make a new judge for each plan."""

    def __init__(
        self,
        requirements: Iterable[Requirement],
        steps: Sequence[Step] = (),
        *,
        strict: bool = False,
    ) -> None:
        """Take the requirements; a ``strict`` judge reports old violations too."""
        self._strict = strict
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
        # Cells that the plan repairs count as reported: they are judged again at the end.
        for record in self._records:
            if record.requirement.repaired:
                record.to_repair = tuple(cell for cell in record.cells if not cell.holds)
                record.reported = dict.fromkeys(record.to_repair)
            elif record.requirement.continuous:
                yield from self._new_violations(record, record.cells, context, moment)
        # Discrete requirements are evaluated now, although they are judged at the end: it shows
        # which of them were violated before the plan, and indexes what they read.
        self._evaluate(discrete, self._discrete, moment)
        for record in self._records:
            record.broken_before = not all(cell.holds for cell in record.cells)

    def _judge_final(self, moment: PlanMoment) -> Iterator[Violation]:
        touched = self._discrete.touching(moment.touched)
        context = self._evaluate(touched, self._discrete, moment)
        # A discrete requirement is charged to the plan if the plan touched it, or if it held
        # before.
        disturbed = {id(record) for record in touched.values()}
        for record in self._records:
            if record.looks_ahead:
                yield from self._judge_whole_plan(record)
            elif record.to_repair:
                record.reported = {}
                yield from self._new_violations(record, record.to_repair, context, moment)
            elif not record.requirement.continuous and (
                self._strict
                or record.reads_plan
                or id(record) in disturbed
                or not record.broken_before
            ):
                yield from self._new_violations(record, record.cells, context, moment)

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
            elif cell.error is not None and _is_irrelevant(cell, record):
                continue
            elif cell not in record.reported:
                failure = record.requirement.explain(cell.term, cell.names, context)
                # One violation may show in two cells, as a pair (x, y) and a pair (y, x).
                known = failure.elements() in record.reported.values()
                record.reported[cell] = failure.elements()
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
                return None if moment.phase is MomentPhase.INITIAL else step.id
        return None


def _is_irrelevant(cell: FormulaCell, record: _RequirementRecord) -> bool:
    """Whether a cell without a value does not matter, because an earlier cell is false."""
    earlier = takewhile(lambda other: other is not cell, record.cells)
    return any(not other.holds and other.error is None for other in earlier)


def _record_of(requirement: Requirement) -> _RequirementRecord:
    specification, name = requirement.specification, requirement.name
    reads_plan = specification.looks_at_plan(name)
    return _RequirementRecord(requirement, specification.looks_ahead(name), reads_plan)
