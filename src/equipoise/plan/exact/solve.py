"""The entry point of the exact planner: it solves narrow scopes first, and wider ones if needed.

Within one scope, one model has everything that may happen. The solver runs again until the judge
accepts its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import MOVES_MAX
from equipoise.model.quantity import RuleId
from equipoise.plan.exact.judge import RefusedPlan, exclude_refused, judge_plan
from equipoise.plan.exact.model import PlanningModel, plan_of
from equipoise.plan.exact.narrowing import SMALL_MAX, is_too_large, search_scopes
from equipoise.plan.exact.objectives import (
    HostDemand,
    host_demands,
    host_loads,
    overload_goal,
    total_overload,
    unevenness_goal,
)
from equipoise.plan.exact.result import (
    ConditionConflict,
    ConflictReason,
    PlanningResult,
    PlanningStatus,
    capacity_shortage,
    describe_conflict,
    smallest_conflict,
    subproblems_of,
)
from equipoise.plan.exact.solver import (
    FAIR,
    FIRST,
    GOOD,
    OPTIMAL,
    POLISHED,
    CpModelBuilder,
    IntExpression,
    Literal,
    ObjectiveOverflow,
    SearchBudget,
    SearchProgress,
    Solution,
    SolutionQuality,
    SolverResult,
    SolverStatus,
    solve_model,
)
from equipoise.plan.exact.task import (
    PlanCondition,
    PlanningTask,
    RuleCondition,
    SearchScope,
    UnreachableState,
)
from equipoise.plan.exact.timeline.timeline import Timeline

JudgedPlan = Callable[[], Plan | None]
"""Judges a plan and returns it; ``None`` if the judge refuses it."""
PlanListener = Callable[[SearchProgress, JudgedPlan], None]
"""Receives each better plan; judging the plan may take longer than finding it."""


def solve_scope(
    task: PlanningTask,
    scope: SearchScope,
    budget: SearchBudget,
    *,
    optimise: bool,
    stream: PlanListener | None = None,
    better_than: PlanningResult | None = None,
) -> PlanningResult:
    """Find a plan within a scope, the best one if ``optimise``, or prove that there is none.

    With ``better_than``, the search is for a better plan than that one.
    """
    began = budget.clock()
    model = PlanningModel.of(task, scope)
    built = budget.clock()
    answer = _ScopeSearch(model, budget, stream).run(optimise=optimise, known=better_than)
    return replace(answer, build_s=built - began, solve_s=budget.clock() - built)


def is_possible(task: PlanningTask, scope: SearchScope, budget: SearchBudget) -> bool | None:
    """Whether there is a plan within a scope; ``None`` if the budget ends before that is known."""
    model = PlanningModel.of(task, scope)
    status = _ScopeSearch(model, budget).solve_until_accepted(None, FIRST).status
    if status is SolverStatus.NONE:
        # A later end might still give a plan, so that nothing is proved.
        return None if task.guesses_horizon else False
    unproved = model.left_to_judge and not scope.with_capacity  # the judge did not see these
    return None if status is SolverStatus.UNKNOWN or unproved else True


class _ScopeSearch:
    """One model, solved again and again until the judge accepts the plan."""

    def __init__(
        self, model: PlanningModel, budget: SearchBudget, stream: PlanListener | None = None
    ) -> None:
        self._model = model
        self._builder = model.builder
        self._budget = budget
        self._stream = stream
        self._goals = tuple(model.goals())

    def run(self, *, optimise: bool, known: PlanningResult | None = None) -> PlanningResult:
        bounds: list[int | None] = []
        best: Solution | None = None
        optimal = optimise
        if known is not None:
            self._require_better(known)
        for goal in self._goals:
            result = self._solve_goal(goal, optimise=optimise, polish=known is not None)
            if result.status is SolverStatus.NONE:
                assert best is None, "a solution stays feasible under its own bound"
                return PlanningResult(PlanningStatus.UNSAT)
            if result.solution is None:
                optimal = False
                break
            best = result.solution
            bounds.append(result.bound)
            optimal = optimal and result.status is SolverStatus.BEST
            # Lexicographic order: later goals must not make this one worse.
            self._builder.require_at_most(goal, best.number(goal))
            # The next goal starts from the best solution so far.
            self._builder.hint_all(best.values)
        if best is None:
            return PlanningResult(PlanningStatus.TIMEOUT)
        # A goal that the search could not reach within its budget leaves no time for the load.
        complete = len(bounds) == len(self._goals)
        best = self._without_overload(best) if complete else best
        best = self._without_needless_actions(best)
        best = self._on_less_loaded_hosts(best) if complete else best
        return self._answer(best, bounds, optimal=optimal)

    def _without_needless_actions(self, best: Solution) -> Solution:
        """Return an equally good solution without useless actions, if a short search finds one."""
        spare = self._model.spare()
        if spare is None or self._budget.is_over:
            return best
        shorter = self.solve_until_accepted(spare, GOOD, watched=False).solution
        if shorter is None:
            return best  # which has no values for the variables of this goal
        if self._changing:
            self._builder.require_at_most(spare, shorter.number(spare))
        return shorter

    # The load of hosts comes after all goals of the problem.

    @cached_property
    def _changing(self) -> list[HostDemand]:
        """The hosts whose load the plan can change; none if no VM demands anything."""
        task = self._model.task
        if not task.demands or not self._model.with_capacity:
            return []
        return list(host_demands(self._model.timeline, task.demands))

    @cached_property
    def _overload(self) -> IntExpression:
        """The overload of these hosts; other hosts have the same overload in every plan."""
        return overload_goal(self._model.timeline, self._changing)

    def _changing_overload(self, plan: Plan) -> int:
        """Return the value of this goal for a plan."""
        task = self._model.task
        among = {(demand.host, demand.column) for demand in self._changing}
        return total_overload(host_loads(task.snapshot, plan, task.demands), among)

    def _without_overload(self, best: Solution) -> Solution:
        """Return an equally good solution with the least overload, and keep it that low."""
        if not self._changing or isinstance(self._overload, int):
            return best
        known = self._changing_overload(plan_of(self._model.timeline, best))
        if known > 0 and not self._budget.is_over:
            self._builder.require_at_most(self._overload, known)
            better = self.solve_until_accepted(self._overload, GOOD, watched=False).solution
            if better is not None:
                best, known = better, better.number(self._overload)
                self._builder.hint_all(best.values)
        self._builder.require_at_most(self._overload, known)
        return best

    def _on_less_loaded_hosts(self, best: Solution) -> Solution:
        """Return an equally good solution whose VMs are on less loaded hosts, by a short search."""
        if not self._changing or self._budget.is_over:
            return best
        goal = unevenness_goal(self._model.timeline, self._changing)
        self._builder.hint_all(best.values)
        narrowed = self._model.timeline.scope.hosts is not None
        quality = FAIR if narrowed else POLISHED
        return self.solve_until_accepted(goal, quality, watched=False).solution or best

    def _require_better(self, known: PlanningResult) -> None:
        """Require that a goal is smaller than known and that no goal before it is larger."""
        builder = self._builder
        # Lexicographic comparison: equal or better in all earlier goals, strictly better in one.
        ways, so_far = [], list[Literal]()
        goals, values = self._goals, known.goals
        if known.plan is not None and known.overload and self._changing:
            goals = (*goals, self._overload)
            values = (*values, self._changing_overload(known.plan))
        for goal, value in zip(goals, values, strict=True):
            ways.append(builder.all((*so_far, builder.at_most(goal, value - 1))))
            so_far.append(builder.at_most(goal, value))
        builder.require(builder.any(ways))

    def _solve_goal(
        self, goal: IntExpression, *, optimise: bool, polish: bool = False
    ) -> SolverResult:
        """Return the best solution; without ``optimise`` a good one, and if that is hard, any.

        With ``polish`` there is a plan already, and only a short search is worth its time.
        """
        if optimise:
            return self.solve_until_accepted(goal, OPTIMAL)
        if polish:
            return self.solve_until_accepted(goal, POLISHED)
        narrowed = self._model.timeline.scope.hosts is not None
        result = self.solve_until_accepted(goal, FAIR if narrowed else GOOD)
        if result.status is not SolverStatus.UNKNOWN or self._budget.is_over:
            return result
        return self.solve_until_accepted(goal, FIRST)

    def solve_until_accepted(
        self, goal: IntExpression | None, quality: SolutionQuality, *, watched: bool = True
    ) -> SolverResult:
        """Return the best solution that the judge accepts."""
        # The same plan twice means that the exclusion had no effect, which would loop forever.
        refused: Plan | None = None
        watch = self._watch if watched else None
        while True:
            result = solve_model(self._builder, self._budget, goal, watch, quality)
            if result.solution is None or not self._model.with_capacity:
                return result  # without capacity the judge would only report missing capacity
            plan = plan_of(self._model.timeline, result.solution)
            violations = judge_plan(
                self._model.task, plan, self._soft_conditions_to_judge(result.solution)
            )
            if not violations:
                return result
            if plan == refused or not exclude_refused(
                self._model, plan, result.solution, violations
            ):
                raise RefusedPlan(self._model.task, plan, violations)
            refused = plan

    def _soft_conditions_to_judge(self, solution: Solution) -> list[RuleCondition]:
        """Return the soft conditions that only the judge can check and the solution satisfies."""
        to_judge = self._model.left_to_judge
        kept = (soft for soft in self._model.kept if soft.condition in to_judge)
        return [soft.condition for soft in kept if solution.holds(soft.literal)]

    def _watch(self, progress: SearchProgress, solution: Solution) -> None:
        if self._stream is None:
            return

        def judged() -> Plan | None:
            plan = plan_of(self._model.timeline, solution)
            soft = self._soft_conditions_to_judge(solution)
            return None if judge_plan(self._model.task, plan, soft) else plan

        self._stream(progress, judged)

    def _answer(self, best: Solution, bounds: list[int | None], *, optimal: bool) -> PlanningResult:
        plan = plan_of(self._model.timeline, best)
        task = self._model.task
        violations = judge_plan(task, plan, task.soft) if task.soft else ()
        violated = {violation.constraint for violation in violations}
        broken = tuple(soft for soft in task.soft if str(soft.requirement) in violated)
        loads = host_loads(task.snapshot, plan, task.demands)
        return PlanningResult(
            PlanningStatus.SOLVED,
            plan,
            optimal=optimal,
            goals=tuple(best.number(goal) for goal in self._goals),
            bounds=tuple(bounds),
            broken=broken,
            overload=total_overload(loads) if loads else None,
        )


def solve(
    problem: PlanningProblem,
    budget: SearchBudget | None = None,
    *,
    repair: bool = False,
    optimise: bool = False,
    stream: PlanListener | None = None,
    kept: Collection[RuleId] | None = None,
) -> PlanningResult:
    """Find a plan that satisfies every condition, or a minimal set of conditions in conflict.

    With ``repair`` only VMs that may be misplaced move at first, and others only if that is not
    enough; so no plan is ever lost by it. With ``optimise`` the plan is the best of all if the
    budget allows a proof; otherwise it is a good one. ``kept`` says how rules count that are broken
    before the plan (``PlanningTask.of``).
    """
    budget = budget or SearchBudget()
    began = budget.clock()
    task = PlanningTask.of(problem, kept)
    if task.invalid:
        raise InvalidInput(
            "rules",
            [InputProblem(key="rules", what=text, code="invalid-rule") for text in task.invalid],
        )
    try:
        answer = _Planner(task, budget, stream).solve(repair=repair, optimise=optimise)
    except ObjectiveOverflow:
        what = "times, amounts and weights together are too large to be computed exactly"
        cure = "use smaller weights or a coarser grid_ms"
        problem_found = InputProblem(key="objective", what=what, cure=cure, code="number-too-large")
        raise InvalidInput("problem", [problem_found]) from None
    return replace(answer, solve_s=budget.clock() - began - answer.build_s)


class _Planner:
    def __init__(
        self, task: PlanningTask, budget: SearchBudget, stream: PlanListener | None = None
    ) -> None:
        self._task = task
        self._budget = budget
        self._stream = stream
        self._build_s = 0.0

    def solve(self, *, repair: bool, optimise: bool) -> PlanningResult:
        try:
            answer = self._search(repair=repair, optimise=optimise)
        except UnreachableState as error:
            reason = ConflictReason(error.code, error.why)
            conflict = self._explain(error.conditions, reason)
            answer = PlanningResult(PlanningStatus.UNSAT, conflict=conflict)
        if answer.status is PlanningStatus.UNSAT and answer.conflict is None:
            answer = replace(answer, conflict=self._explain(self._task.hard))
        if optimise and answer.plan is not None and not answer.optimal:
            # The caller asked for the best plan; this one may not be it.
            answer = replace(answer, status=PlanningStatus.TIMEOUT)
        return replace(answer, build_s=self._build_s)

    def _search(self, *, repair: bool, optimise: bool) -> PlanningResult:
        """Search one scope after the other; with ``optimise``, all of them."""
        best: PlanningResult | None = None
        is_proved = not is_too_large(self._task)  # a small task is proved by its widest scope
        for scope in search_scopes(self._task, repair=repair, optimise=optimise):
            result = self._solve_in(scope, best, optimise=optimise)
            if result.status is PlanningStatus.UNSAT and best is None and not is_proved:
                # Once, when a narrow scope failed: a proof is cheaper than wider scopes.
                conflict, is_proved = self._conflict_in_part(), True
                if conflict is not None:
                    return PlanningResult(PlanningStatus.UNSAT, conflict=conflict)
            whole = scope.is_whole(self._task.problem.moves_max) and not self._task.guesses_horizon
            if result.status is PlanningStatus.SOLVED:
                # Bounds that hold within a narrow scope do not hold for the whole problem.
                best = result if whole else replace(result, optimal=False, bounds=())
                if not (optimise or self._is_worth_more(best)):
                    return best
            elif result.status is PlanningStatus.TIMEOUT:
                if optimise or best is None:
                    return best or result
            elif whole and best is not None:
                return replace(best, optimal=True, bounds=best.goals) if optimise else best
            elif whole:
                return result
        return best or PlanningResult(PlanningStatus.TIMEOUT)

    def _is_worth_more(self, found: PlanningResult) -> bool:
        """Whether wider scopes are searched for a plan that overloads no host."""
        snapshot = self._task.snapshot
        is_small = len(snapshot.vms) * len(snapshot.hosts) <= SMALL_MAX
        return bool(found.overload) and is_small and not self._budget.is_over

    def _solve_in(
        self, scope: SearchScope, best: PlanningResult | None, *, optimise: bool
    ) -> PlanningResult:
        result = solve_scope(
            self._task,
            scope,
            self._budget,
            optimise=optimise,
            stream=self._stream,
            better_than=best,
        )
        self._build_s += result.build_s
        return result

    def _conflict_in_part(self) -> ConditionConflict | None:
        """Return why the whole has no plan, if a part of it shows that."""
        for part in subproblems_of(self._task):
            planner = _Planner(part, self._budget)
            if planner._possible(part.conditions) is False:
                return planner._explain(part.conditions)
        return capacity_shortage(self._task)

    # The reasons of a conflict.

    def _explain(
        self, suspects: Sequence[PlanCondition], reason: ConflictReason | None = None
    ) -> ConditionConflict:
        if not self._budget.explains:
            return ConditionConflict.of(suspects, (), minimal=False)
        conditions, certain = smallest_conflict(suspects, self._possible)
        facts = list(self._facts(conditions)) if reason is None else [reason]
        reasons = describe_conflict(conditions, facts)
        return ConditionConflict.of(conditions, reasons, minimal=certain)

    def _possible(self, conditions: Sequence[PlanCondition], **other: Any) -> bool | None:
        if self._budget.is_over:
            return None
        task = self._task.with_only(conditions)
        scope = SearchScope(moves=self._task.problem.moves_max, **other)
        try:
            if is_too_large(task):  # then only an unreachable state can be proved
                one_host = list(task.snapshot.hosts)[:1]
                hosts = dict.fromkeys(task.vm_conditions, one_host)
                Timeline(CpModelBuilder(), task, SearchScope(moves=0, movable=(), hosts=hosts))
                return None
            return is_possible(task, scope, self._budget)
        except UnreachableState:
            return False

    def _facts(self, conditions: Sequence[PlanCondition]) -> Iterator[ConflictReason]:
        """Yield what else causes the conflict: capacity, horizon, network or the limit of moves.

        Each is relaxed in turn; if the conditions become possible, it is a cause.
        """
        if self._possible(conditions, with_capacity=False):
            yield ConflictReason("no-capacity", "the hosts do not have enough capacity")
        problem = self._task.problem
        if problem.horizon_s is not None and self._possible_with(conditions, horizon_s=None):
            text = f"no plan ends within the horizon of {problem.horizon_s} s"
            yield ConflictReason("past-horizon", text)
        if problem.network is not None and self._possible_with(conditions, network=None):
            text = "the network cannot finish all migrations before the horizon"
            yield ConflictReason("network-too-slow", text)
        if problem.moves_max < MOVES_MAX and self._possible_with(conditions, moves_max=MOVES_MAX):
            text = f"a VM would have to move more than {problem.moves_max} times (moves_max)"
            yield ConflictReason("moves-exceeded", text)

    def _possible_with(self, conditions: Sequence[PlanCondition], **other: Any) -> bool:
        """Whether the conditions can be satisfied if the problem is changed."""
        task = replace(self._task, problem=self._task.problem.but(**other))
        return bool(_Planner(task, self._budget)._possible(conditions))
