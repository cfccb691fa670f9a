"""The exact planner: everything that may happen is one model, and the solver decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from equipoise.model.plan import Plan
from equipoise.plan.exact.answer import Answer, Status
from equipoise.plan.exact.extract import plan_of
from equipoise.plan.exact.judging import RefusedPlan, judge_plan
from equipoise.plan.exact.lessons import learn
from equipoise.plan.exact.solver.circuit import Truth
from equipoise.plan.exact.solver.decide import (
    ANY,
    BEST,
    FAIR,
    GOOD,
    Care,
    Decisions,
    Effort,
    Outcome,
    Progress,
    Verdict,
    decide,
)
from equipoise.plan.exact.solver.number import Number
from equipoise.plan.exact.statement import Statement
from equipoise.plan.exact.task import RuleClaim, Task
from equipoise.plan.exact.timeline.reach import Reach

Plans = Callable[[], Plan | None]
"""Gives a plan once it is judged, which may take longer than finding it; none if it is refused."""
Stream = Callable[[Progress, Plans], None]
"""Is told of each plan that is better than the one before, and may ask for it."""


def solve_exactly(
    task: Task,
    reach: Reach,
    effort: Effort,
    *,
    optimise: bool,
    stream: Stream | None = None,
    better_than: tuple[int, ...] = (),
) -> Answer:
    """Find a plan within a reach, the best one if asked to, or prove that there is none.

    ``better_than`` are the goals of a plan that is known: only a better one is looked for.
    """
    began = effort.clock()
    statement = Statement.of(task, reach)
    built = effort.clock()
    answer = _Search(statement, effort, stream).run(optimise=optimise, known=better_than)
    return replace(answer, build_s=built - began, solve_s=effort.clock() - built)


def is_possible(task: Task, reach: Reach, effort: Effort) -> bool | None:
    """Whether there is a plan within a reach; nothing if that was not found out in time."""
    statement = Statement.of(task, reach)
    found = _Search(statement, effort).lawful(None, ANY).verdict
    if found is Verdict.NONE:
        return None if task.guesses_horizon else False
    unseen = statement.left_to_judge and not reach.with_room  # nobody has looked at these
    return None if found is Verdict.UNKNOWN or unseen else True


class _Search:
    """One statement, solved again and again until the judge has nothing to say."""

    def __init__(self, statement: Statement, effort: Effort, stream: Stream | None = None) -> None:
        self._statement = statement
        self._circuit = statement.circuit
        self._effort = effort
        self._stream = stream
        self._goals = tuple(statement.goals())

    def run(self, *, optimise: bool, known: tuple[int, ...] = ()) -> Answer:
        bounds: list[int | None] = []
        best: Decisions | None = None
        optimal = optimise
        if known:
            self._require_better(known)
        for goal in self._goals:
            found = self._good(goal, optimise=optimise)
            if found.verdict is Verdict.NONE:
                assert best is None, "what was possible is so under its own bound"
                return Answer(Status.UNSAT)
            if found.decided is None:
                optimal = False
                break
            best = found.decided
            bounds.append(found.bound)
            optimal = optimal and found.verdict is Verdict.BEST
            self._circuit.require_at_most(goal, best.number(goal))
            self._circuit.hint_all(best.values)
        if best is None:
            return Answer(Status.TIMEOUT)
        return self._answer(self._tidied(best), bounds, optimal=optimal)

    def _tidied(self, best: Decisions) -> Decisions:
        """As good, but without what is of no use to any goal, as far as that is found soon."""
        spare = self._statement.spare()
        if spare is None or self._effort.is_over:
            return best
        return self.lawful(spare, GOOD, watched=False).decided or best

    def _require_better(self, known: tuple[int, ...]) -> None:
        """Some goal must be smaller than it is known to be possible, and none before it larger."""
        circuit = self._circuit
        ways, so_far = [], list[Truth]()
        for goal, value in zip(self._goals, known, strict=True):
            ways.append(circuit.all((*so_far, circuit.at_most(goal, value - 1))))
            so_far.append(circuit.at_most(goal, value))
        circuit.require(circuit.any(ways))

    def _good(self, goal: Number, *, optimise: bool) -> Outcome:
        """The best solution; or without much ado a good one, and if that is hard, any."""
        if optimise:
            return self.lawful(goal, BEST)
        narrowed = self._statement.timeline.reach.hosts is not None
        found = self.lawful(goal, FAIR if narrowed else GOOD)
        if found.verdict is not Verdict.UNKNOWN or self._effort.is_over:
            return found
        return self.lawful(goal, ANY)

    def lawful(self, goal: Number | None, care: Care, *, watched: bool = True) -> Outcome:
        """The best solution that the judge does not refuse."""
        refused: Plan | None = None
        watch = self._watch if watched else None
        while True:
            found = decide(self._circuit, self._effort, goal, watch, care)
            if found.decided is None or not self._statement.with_room:
                return found  # the judge would only say that there is no room
            plan = plan_of(self._statement.timeline, found.decided)
            wrong = judge_plan(self._statement.task, plan, self._promised(found.decided))
            if not wrong:
                return found
            if plan == refused or not learn(self._statement, plan, found.decided, wrong):
                raise RefusedPlan(self._statement.task, plan, wrong)
            refused = plan

    def _promised(self, decided: Decisions) -> list[RuleClaim]:
        """The soft claims that only the judge can look at, and that were decided to be kept."""
        left = self._statement.left_to_judge
        kept = (one for one in self._statement.kept if one.claim in left)
        return [one.claim for one in kept if decided.holds(one.truth)]

    def _watch(self, progress: Progress, decided: Decisions) -> None:
        if self._stream is None:
            return

        def judged() -> Plan | None:
            plan = plan_of(self._statement.timeline, decided)
            wrong = judge_plan(self._statement.task, plan, self._promised(decided))
            return None if wrong else plan

        self._stream(progress, judged)

    def _answer(self, best: Decisions, bounds: list[int | None], *, optimal: bool) -> Answer:
        plan = plan_of(self._statement.timeline, best)
        task = self._statement.task
        blamed = {one.constraint for one in judge_plan(task, plan, task.soft)} if task.soft else ()
        broken = tuple(one for one in task.soft if str(one.demand) in blamed)
        return Answer(
            Status.SOLVED,
            plan,
            optimal=optimal,
            goals=tuple(best.number(goal) for goal in self._goals),
            bounds=tuple(bounds),
            broken=broken,
        )
