"""The judge of a specification: it looks at the moments of a plan, as the gate shows them.

A discrete constraint is judged on the final state; a continuous one initially, after the ends and
after the starts of each instant, and finally. A formula that speaks of the final state or of all
moments is judged at the end, when these are known.

A plan is not charged with a discrete constraint that was broken before and of which it touched
nothing: an old fault must not block other work. Nor with what is broken of a continuous one at the
start, if it says that it mends it: then that must hold in the end, and once it holds, for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import StepId
from equipoise.spec.cells import Cell, CellIndex, WatchedView
from equipoise.spec.demand import Demand
from equipoise.spec.explain import Why
from equipoise.spec.moment import Moment, Phase
from equipoise.spec.view import Frame, Steps, View


@dataclass(slots=True, eq=False)
class _Docket:
    """What is known about one demand so far."""

    demand: Demand
    looks_ahead: bool
    planned: bool
    cells: tuple[Cell, ...] = ()
    broken_before: bool = False
    told: dict[Cell, frozenset[str] | None] = field(default_factory=dict)
    """The cells that are known to be broken, and what each of the faults is about; of those that
    are to be mended, nothing is told."""
    owed: tuple[Cell, ...] = ()
    """The cells that are broken at the start and are to be mended."""


class SpecificationJudge:
    """Judges what is demanded of one plan. Made anew for each plan."""

    def __init__(
        self, demands: Iterable[Demand], steps: Sequence[Step] = (), *, strict: bool = False
    ) -> None:
        """Judge by some demands; a ``strict`` judge forgives no old fault."""
        self._strict = strict
        self._dockets = tuple(map(_docket, demands))
        self._ahead = [docket for docket in self._dockets if docket.looks_ahead]
        self._steps = Steps(steps)
        self._blamed = _Blame(steps)
        self._initial: View | None = None
        self._continuous: CellIndex[_Docket] = CellIndex()
        self._discrete: CellIndex[_Docket] = CellIndex()
        self._past: list[tuple[Moment, View]] = []

    def __call__(self, moment: Moment) -> Iterator[Violation]:
        """Say what is broken at this moment, each thing once for as long as it stays broken."""
        if not self._dockets:
            return
        if self._ahead:
            # A draft goes on changing; what is looked at again later must be frozen.
            self._past.append((moment, View.of(moment.state.freeze())))
        if moment.phase is Phase.INITIAL:
            yield from self._open(moment)
        elif moment.phase is Phase.FINAL:
            yield from self._close(moment)
        else:
            touched = self._continuous.touching(moment.touched)
            yield from self._judge(touched, self._continuous, moment)

    def _open(self, moment: Moment) -> Iterator[Violation]:
        self._initial = View.of(moment.state.freeze())
        frame = Frame(self._initial, self._initial, self._initial, self._steps)
        every: dict[Cell, _Docket] = {}
        later: dict[Cell, _Docket] = {}
        for docket in self._dockets:
            if not docket.looks_ahead:
                demand = docket.demand
                cells = demand.specification.cells(demand.name, demand.arguments, frame)
                docket.cells = tuple(cells)
                kept = every if demand.continuous else later
                kept.update(dict.fromkeys(docket.cells, docket))
        self._look(every, self._continuous, moment)
        for docket in self._dockets:
            if docket.demand.mended:
                docket.owed = tuple(cell for cell in docket.cells if not cell.holds)
                docket.told = dict.fromkeys(docket.owed)
            elif docket.demand.continuous:
                yield from self._news(docket, docket.cells, frame, moment)
        self._look(later, self._discrete, moment)
        for docket in self._dockets:
            docket.broken_before = not all(cell.holds for cell in docket.cells)

    def _close(self, moment: Moment) -> Iterator[Violation]:
        touched = self._discrete.touching(moment.touched)
        frame = self._look(touched, self._discrete, moment)
        disturbed = {id(docket) for docket in touched.values()}
        for docket in self._dockets:
            if docket.looks_ahead:
                yield from self._look_back(docket)
            elif docket.owed:
                docket.told = {}
                yield from self._news(docket, docket.owed, frame, moment)
            elif not docket.demand.continuous and (
                self._strict
                or docket.planned
                or id(docket) in disturbed
                or not docket.broken_before
            ):
                yield from self._news(docket, docket.cells, frame, moment)

    def _judge(
        self, cells: Mapping[Cell, _Docket], index: CellIndex[_Docket], moment: Moment
    ) -> Iterator[Violation]:
        frame = self._look(cells, index, moment)
        by_docket: dict[_Docket, list[Cell]] = {}
        for cell, docket in cells.items():
            by_docket.setdefault(docket, []).append(cell)
        for docket, some in by_docket.items():
            yield from self._news(docket, some, frame, moment)

    def _look(
        self, cells: Mapping[Cell, _Docket], index: CellIndex[_Docket], moment: Moment
    ) -> Frame:
        """Judge cells anew, and note what each has looked at."""
        assert self._initial is not None
        view = WatchedView(moment.state)
        frame = Frame(view, self._initial, view, self._steps)
        for cell, docket in cells.items():
            cell.memory.touch(moment.touched)
            index.add(cell, cell.judge(frame), docket)
        frame.memory = None
        return frame

    def _news(
        self, docket: _Docket, cells: Iterable[Cell], frame: Frame, moment: Moment
    ) -> Iterator[Violation]:
        """Tell what is broken and was not told; whatever holds again may be told again."""
        for cell in cells:
            if cell.holds:
                docket.told.pop(cell, None)
            elif cell.trouble is not None and _is_idle(cell, docket):
                continue
            elif cell not in docket.told:
                why = docket.demand.why(cell.term, cell.names, frame)
                known = why.elements() in docket.told.values()  # one fault may show in two cells
                docket.told[cell] = why.elements()
                if not known:
                    yield self._violation(docket.demand, why, moment)

    def _look_back(self, docket: _Docket) -> Iterator[Violation]:
        """Judge a formula that needs the whole plan, at every moment if it is continuous."""
        assert self._initial is not None
        demand, final = docket.demand, self._past[-1][1]
        views = [view for _, view in self._past]
        eternal: dict[Any, bool] = {}
        for moment, view in self._past if demand.continuous else self._past[-1:]:
            frame = Frame(view, self._initial, final, self._steps, views, eternal=eternal)
            why = demand.fault(frame)
            if why is not None:
                told = moment if why.moment is None else self._past[why.moment][0]
                yield self._violation(demand, why, told)
                return

    def _violation(self, demand: Demand, why: Why, moment: Moment) -> Violation:
        doc = demand.specification.constraints[demand.name].doc.strip().removesuffix(".")
        step = self._blamed.step(why.elements(), moment)
        said = f"{doc}; {why}" if doc else str(why)
        return Violation(constraint=str(demand), at_ms=moment.at_ms, detail=said, step=step)


class _Blame:
    """Finds the step after which something was broken."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = sorted(steps, key=lambda one: one.end_ms, reverse=True)

    def step(self, elements: frozenset[str], moment: Moment) -> StepId | None:
        """The step that has just ended or started, or the last one, if it touched an element."""
        for step in self._steps:
            if moment.phase is Phase.ENDS and step.end_ms != moment.at_ms:
                continue
            if moment.phase is Phase.STARTS and step.start_ms != moment.at_ms:
                continue
            seen = step.footprint
            if not elements.isdisjoint((seen.vm or "", *seen.hosts)):
                return None if moment.phase is Phase.INITIAL else step.id
        return None


def _is_idle(cell: Cell, docket: _Docket) -> bool:
    """Whether a part without a value does not matter: an earlier one is false already."""
    earlier = takewhile(lambda one: one is not cell, docket.cells)
    return any(not one.holds and one.trouble is None for one in earlier)


def _docket(demand: Demand) -> _Docket:
    specification, name = demand.specification, demand.name
    planned = specification.looks_at_plan(name)
    return _Docket(demand, specification.looks_ahead(name), planned)
