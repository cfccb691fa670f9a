"""Caution: a plan says when actions end, the world decides it.

The gate judges the moments of a plan as it was timed. When it is carried out, actions that overlap
end in any order, and one of them may fail. So before a step starts, every continuous demand that it
may affect is judged in each state that may come of it: the step under way or ended, and each of the
other actions under way ended or not. A step that would be a risk waits until less is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import combinations
from typing import Final

from equipoise.errors import InvalidInput
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft, Touched
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.plan.imagined import Imagined
from equipoise.plan.objection import Objection
from equipoise.plan.worst import sides, worst
from equipoise.spec.cells import Cell, CellIndex, WatchedView
from equipoise.spec.demand import Demand
from equipoise.spec.view import Frame, Reads, View

OPEN_MAX: Final = 5
"""Of how many other actions all orders of ends are tried; with more, a step waits."""


class Caution:
    """Knows the continuous demands, and what each of them looks at in the present state."""

    def __init__(self, draft: Draft, demands: Iterable[Demand]) -> None:
        self._initial = View.of(draft.freeze())
        self._index: CellIndex[Demand] = CellIndex()
        self._stale: dict[Cell, Demand] = {}
        self._keys: dict[StepId, Reads] = {}
        frame = Frame(self._initial, self._initial, self._initial)
        for demand in demands:
            if demand.continuous and _is_about_states(demand):
                cells = demand.specification.cells(demand.name, demand.arguments, frame)
                self._stale.update(dict.fromkeys(cells, demand))

    def notice(self, touched: Touched) -> None:
        """Something has changed; whatever looks at it will be looked at again."""
        for cell, demand in self._index.touching(touched).items():
            cell.memory.touch(touched)
            self._stale[cell] = demand

    def companions(self, step: StepId) -> tuple[VmId | HostId, ...]:
        """The VMs and hosts whose changes may make or end the risk that a step was found to be."""
        reads = self._keys.get(step)
        return () if reads is None else (*reads.vms, *reads.hosts)

    def risks(self, draft: Draft, step: Step) -> Iterator[Objection]:
        """Say which demands a step might break, whatever else ends before it."""
        self._refresh(draft)
        affected = self._index.touching(_touched_by(draft, step))
        if not affected:
            return
        trial = _Trial(draft, self._initial, step)
        told: set[Demand] = set()
        for cell, demand in affected.items():
            detail = "" if demand in told else trial.verdict(cell, demand)
            if detail:
                told.add(demand)
                yield Objection(str(demand), detail)
        self._keys[step.id] = trial.keys

    def _refresh(self, draft: Draft) -> None:
        if self._stale:
            view = WatchedView(draft)
            frame = Frame(view, self._initial, view)
            for cell, demand in self._stale.items():
                self._index.add(cell, cell.judge(frame), demand)
            self._stale = {}


def _is_about_states(demand: Demand) -> bool:
    """Whether a demand can be judged in a single state, without the plan and its end."""
    return not demand.specification.looks_beyond(demand.name)


def _touched_by(draft: Draft, step: Step) -> Touched:
    """Everything a step may change, also what it does not name."""
    seen = step.footprint
    if seen.switched is not None:  # its agents wake and sleep with it
        return Touched(draft.residents(seen.switched), seen.hosts)
    vm = None if seen.vm is None else draft.vms.get(seen.vm)
    if vm is None:
        return Touched((), seen.hosts)
    return Touched((vm.id,), seen.hosts if vm.host is None else (*seen.hosts, vm.host))


class _Trial:
    """All that may come of starting one step."""

    def __init__(self, draft: Draft, initial: View, step: Step) -> None:
        self._draft = draft
        self._initial = initial
        self._step = step
        self._views: dict[tuple[_Course, frozenset[StepId]], WatchedView] = {}
        self._under_way = {
            name: _touched_by(draft, running.step) for name, running in draft.in_flight.items()
        }
        self._reads = Reads()
        self.keys = Reads()
        """What must change for the verdict to be another one."""

    def verdict(self, cell: Cell, demand: Demand) -> str:
        """Say how a cell may come to be broken by the step; nothing if it cannot."""
        tried: list[StepId] = []
        detail = self._verdict(cell, demand, tried)
        self.keys.add(self._reads)
        for name in tried if detail else ():
            self.keys.vms.update(self._under_way[name].vms)
            self.keys.hosts.update(self._under_way[name].hosts)
        return detail

    def _verdict(self, cell: Cell, demand: Demand, tried: list[StepId]) -> str:
        fresh: list[StepId] = []
        self._reads.add(cell.seen)
        while True:
            for done in _subsets(tried):
                if fresh and done.isdisjoint(fresh):
                    continue  # tried before
                for course in (_Course.BEGUN, _Course.ENDED):
                    if not self._holds(cell, course, done) and self._holds(
                        cell, _Course.NOT_BEGUN, done
                    ):
                        frame = self._frame(course, done)
                        why = demand.why(cell.term, cell.names, frame)
                        return f"it may come to this: {why}"
            fresh = sorted(self._open(cell) - set(tried))
            if not fresh:
                return ""
            tried += fresh
            if len(tried) > OPEN_MAX:
                if self._leaves_enough(cell, demand, tried):
                    return ""
                return f"too much is under way to be sure: {len(tried)} other actions"

    def _open(self, cell: Cell) -> set[StepId]:
        """The actions under way whose end may matter to a cell."""
        found = set(filter(self._is_seen, self._under_way))
        return found | self._sharing(cell, self._under_way.keys() - found)

    def _sharing(self, cell: Cell, steps: Iterable[StepId]) -> set[StepId]:
        """Those that would change a share of a large collection, alone or with another one."""
        if not cell.memory:
            return set()
        shares = {name: cell.memory.shares_touched(self._under_way[name]) for name in steps}
        often = Counter(share for some in shares.values() for share in some)
        found = set()
        for name, some in shares.items():
            frame = self._frame(_Course.NOT_BEGUN, frozenset([name]))
            if some and (
                any(often[share] > 1 for share in some)
                or cell.memory.would_change(frame, self._under_way[name])
            ):
                found.add(name)
        return found

    def _leaves_enough(self, cell: Cell, demand: Demand, others: Iterable[StepId]) -> bool:
        """Whether a count stays right even in the worst case; no if that cannot be told."""
        counted = sides(cell.term)
        if counted is None or any(map(self._is_seen, others)):
            return False
        shares = {one: cell.memory.shares_touched(self._under_way[one]) for one in others}
        more, less = (demand.specification.closure_of(one, cell.names) for one in counted)

        def spare(course: _Course, done: frozenset[StepId]) -> int:
            frame = self._remembering(cell, course, done)
            return int(more(frame, cell.places)) - int(less(frame, cell.places))

        try:
            enough = all(
                worst(partial(spare, course), shares) >= 0
                for course in (_Course.BEGUN, _Course.ENDED)
            )
        except InvalidInput:
            return False
        # Trying it out may have led to something that no share had looked at before.
        return enough and not any(map(self._is_seen, self._under_way))

    def _is_seen(self, step: StepId) -> bool:
        """Whether an action under way touches what was looked at beside large collections."""
        touched = self._under_way[step]
        seen = self._reads
        return not (seen.vms.isdisjoint(touched.vms) and seen.hosts.isdisjoint(touched.hosts))

    def _holds(self, cell: Cell, course: _Course, done: frozenset[StepId]) -> bool:
        try:
            return bool(cell.closure(self._remembering(cell, course, done), cell.places))
        except InvalidInput:
            return False  # what has no value does not hold

    def _remembering(self, cell: Cell, course: _Course, done: frozenset[StepId]) -> Frame:
        frame = self._frame(course, done)
        state = frame.now.state
        touched = Touched(tuple(state.touched_vms), tuple(state.touched_hosts))
        frame.memory = cell.memory.imagining(touched)
        return frame

    def _frame(self, course: _Course, done: frozenset[StepId]) -> Frame:
        view = self._views.get((course, done))
        if view is None:
            view = self._views[course, done] = WatchedView(self._imagined(course, done))
            view.reads = self._reads
        return Frame(view, self._initial, view)

    def _imagined(self, course: _Course, done: frozenset[StepId]) -> Imagined:
        state, at_ms, step = Imagined(self._draft), self._draft.at_ms, self._step
        for name in sorted(done):
            attempt = self._draft.in_flight[name].attempt
            transition.change(state, ActionFinished(at_ms=at_ms, step=name, attempt=attempt))
        if course is not _Course.NOT_BEGUN:
            transition.change(state, ActionStarted(at_ms=at_ms, step=step, attempt=1))
        if course is _Course.ENDED:
            transition.change(state, ActionFinished(at_ms=at_ms, step=step.id, attempt=1))
        return state


class _Course(Enum):
    """How far the step has come."""

    NOT_BEGUN = 0
    BEGUN = 1
    ENDED = 2


def _subsets(names: Sequence[StepId]) -> Iterator[frozenset[StepId]]:
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))
