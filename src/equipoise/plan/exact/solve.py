"""The door of the exact planner: it looks near first, and farther until it knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.model.problem import Problem
from equipoise.model.problem.problem import MOVES_MAX
from equipoise.plan.exact.answer import Answer, Conflict, Status
from equipoise.plan.exact.conflict import in_words, smallest_conflict
from equipoise.plan.exact.near.reach import is_too_large, reaches
from equipoise.plan.exact.proof import lack_of_room, parts_of
from equipoise.plan.exact.search import Stream, is_possible, solve_exactly
from equipoise.plan.exact.solver.circuit import Circuit
from equipoise.plan.exact.solver.decide import Effort, TooLarge
from equipoise.plan.exact.task import Claim, Task
from equipoise.plan.exact.timeline.reach import Reach, Unreachable
from equipoise.plan.exact.timeline.timeline import Timeline


def solve(
    problem: Problem,
    effort: Effort | None = None,
    *,
    repair: bool = False,
    optimise: bool = False,
    stream: Stream | None = None,
) -> Answer:
    """Find a plan that keeps every claim, or the claims that are at odds.

    With ``repair`` only those move at first who may be misplaced, and others only if that does not
    do; so no plan is ever lost by it. With ``optimise`` the plan is the best of all, if there is
    time to prove it; else it is a good one.
    """
    effort = effort or Effort()
    began = effort.clock()
    task = Task.of(problem)
    if task.unclear:
        raise InvalidInput("rules", [Mistake(key="rules", what=one) for one in task.unclear])
    try:
        answer = _Planner(task, effort, stream).solve(repair=repair, optimise=optimise)
    except TooLarge:
        what = "times, amounts and weights together are more than can be counted exactly"
        mistake = Mistake(key="objective", what=what, cure="smaller weights, or a coarser grid_ms")
        raise InvalidInput("problem", [mistake]) from None
    return replace(answer, solve_s=effort.clock() - began - answer.build_s)


class _Planner:
    def __init__(self, task: Task, effort: Effort, stream: Stream | None) -> None:
        self._task = task
        self._effort = effort
        self._stream = stream
        self._build_s = 0.0

    def solve(self, *, repair: bool, optimise: bool) -> Answer:
        try:
            answer = self._look(repair=repair, optimise=optimise)
        except Unreachable as error:
            answer = Answer(Status.UNSAT, conflict=self._explain(error.claims, error.why))
        if answer.status is Status.UNSAT and answer.conflict is None:
            answer = replace(answer, conflict=self._explain(self._task.hard))
        if optimise and answer.plan is not None and not answer.optimal:
            answer = replace(answer, status=Status.TIMEOUT)
        return replace(answer, build_s=self._build_s)

    def _look(self, *, repair: bool, optimise: bool) -> Answer:
        """Look within one reach after the other; who wants the best looks within all of them."""
        best: Answer | None = None
        is_proved = not is_too_large(self._task)  # then by looking at the whole
        for reach in reaches(self._task, repair=repair, optimise=optimise):
            found = self._within(reach, best, optimise=optimise)
            if found.status is Status.UNSAT and best is None and not is_proved:
                conflict, is_proved = self._conflict_in_part(), True
                if conflict is not None:
                    return Answer(Status.UNSAT, conflict=conflict)
            whole = reach.is_whole(self._task.problem.moves_max) and not self._task.guesses_horizon
            if found.status is Status.SOLVED:
                # What no plan can be better than is known only of the whole.
                best = found if whole else replace(found, optimal=False, bounds=())
                if not optimise:
                    return best
            elif found.status is Status.TIMEOUT:
                return best or found
            elif whole:
                return found if best is None else replace(best, optimal=True, bounds=best.goals)
        return best or Answer(Status.TIMEOUT)

    def _within(self, reach: Reach, best: Answer | None, *, optimise: bool) -> Answer:
        found = solve_exactly(
            self._task,
            reach,
            self._effort,
            optimise=optimise,
            stream=self._stream,
            better_than=best.goals if best else (),
        )
        self._build_s += found.build_s
        return found

    def _conflict_in_part(self) -> Conflict | None:
        """Why the whole has no plan, if that can be told of a part of it."""
        for part in parts_of(self._task):
            planner = _Planner(part, self._effort, None)
            if planner._possible(part.claims) is False:
                return planner._explain(part.claims)
        return lack_of_room(self._task)

    # Why not

    def _explain(self, suspects: Sequence[Claim], why: str = "") -> Conflict:
        claims, certain = smallest_conflict(suspects, self._possible)
        facts = [why] if why else list(self._facts(claims))
        return Conflict(tuple(claims), in_words(claims, facts), minimal=certain)

    def _possible(self, claims: Sequence[Claim], **other: Any) -> bool | None:
        if self._effort.is_over:
            return None
        task = self._task.with_only(claims)
        reach = Reach(moves=self._task.problem.moves_max, **other)
        try:
            if is_too_large(task):  # then only what no course leads to can be told
                some = list(task.snapshot.hosts)[:1]
                hosts = dict.fromkeys(task.vm_goals, some)
                Timeline(Circuit(), task, Reach(moves=0, movable=(), hosts=hosts))
                return None
            return is_possible(task, reach, self._effort)
        except Unreachable:
            return False

    def _facts(self, claims: Sequence[Claim]) -> Iterator[str]:
        """What else has to do with it: room, time, links, or how often a VM may move."""
        if self._possible(claims, with_room=False):
            yield "there is not enough room on the hosts for that"
        problem = self._task.problem
        if problem.horizon_s is not None and self._would_be(claims, horizon_s=None):
            yield f"it cannot be done within the horizon of {problem.horizon_s} s"
        if problem.network is not None and self._would_be(claims, network=None):
            yield "the network does not carry everybody there in time"
        if problem.moves_max < MOVES_MAX and self._would_be(claims, moves_max=MOVES_MAX):
            yield f"some VM would have to move more than {problem.moves_max} times (moves_max)"

    def _would_be(self, claims: Sequence[Claim], **other: Any) -> bool:
        """Whether the claims could be kept if the problem were another one."""
        task = replace(self._task, problem=self._task.problem.but(**other))
        return bool(_Planner(task, self._effort, None)._possible(claims))
