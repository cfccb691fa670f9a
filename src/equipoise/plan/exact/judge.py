"""The judge of the planner's plans, and the exclusion of what it refuses from the model.

The exclusion is lazy constraint generation: the model excludes what the judge refuses, with
everything that looks alike. Only conditions that cannot be translated need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.model.plan import Plan, Violation
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.exact.formula.functions import SymbolicOperators
from equipoise.plan.exact.model import PlanningModel, chosen_value
from equipoise.plan.exact.solver import Literal, Solution
from equipoise.plan.exact.task import HostCondition, PlanningTask, RuleCondition, VmCondition
from equipoise.plan.exact.timeline.schedules import CandidateAction
from equipoise.plan.exact.timeline.states import (
    FinalState,
    InitialState,
    StateAfterEnds,
    StateAfterStarts,
    TimelineState,
)
from equipoise.plan.exact.values import options_of
from equipoise.plan.network import NetworkJudge, NetworkPaths
from equipoise.plan.verify import replay_violations
from equipoise.spec.evaluate.breaches import NO_BREACHES, Breaches, worse_breaches
from equipoise.spec.evaluate.cells import TrackingView
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, ReadSet, StateView
from equipoise.spec.judge import Charge, SpecificationJudge
from equipoise.spec.language.vocabulary import START_SENSITIVE_FUNCTIONS
from equipoise.spec.moments import Judge, MomentPhase, PlanMoment, moments


class RefusedPlan(AssertionError):
    """The planner made a plan that the judge refuses: a bug of the planner, with its case."""

    def __init__(self, task: PlanningTask, plan: Plan, violations: tuple[Violation, ...]) -> None:
        first = violations[0]
        super().__init__(f"the judge refuses a solved plan: {first.constraint}: {first.detail}")
        self.task = task
        self.plan = plan
        self.violations = violations


def judge_plan(
    task: PlanningTask, plan: Plan, also: Iterable[RuleCondition] = ()
) -> tuple[Violation, ...]:
    """Return what a plan violates: hard conditions, preconditions, and the given soft conditions.

    A rule that holds before the plan, and reads nothing that the plan touches, holds all along.
    """
    vms, hosts = _touched(task.snapshot, plan)
    hard = (condition for condition in task.hard if isinstance(condition, RuleCondition))
    rules = [
        condition
        for condition in (*hard, *also)
        if task.parts.may_change(condition.requirement, vms, hosts)
    ]
    judges: list[Judge] = [
        SpecificationJudge(
            [rule.requirement for rule in rules if rule.kept is kept], plan.steps, charge=charge
        )
        for kept, charge in ((False, Charge.EVERYTHING), (True, Charge.DAMAGE))
    ]
    judges.append(_FinalStateJudge(task))
    if task.problem.network is not None:
        given = task.problem.durations.get(ActionKind.MIGRATE)
        timed = () if given is None else given.of.keys()
        judges.append(NetworkJudge(NetworkPaths(task.problem.network), timed))
    return replay_violations(task.snapshot, plan, judges)


def _touched(snapshot: Snapshot, plan: Plan) -> tuple[set[VmId], set[HostId]]:
    """Return the VMs and hosts that a plan may change, also those that it does not name."""
    vms, hosts = set[VmId](), set[HostId]()
    for step in plan.steps:
        seen = step.footprint
        hosts.update(seen.hosts)
        if seen.vm is not None:
            vms.add(seen.vm)
            # A kill or an allocation names no host, but frees or takes capacity on one.
            current_host = snapshot.placement.get(seen.vm)
            hosts.update(() if current_host is None else (current_host,))
        if seen.switched is not None:  # the agents of a host start and stop with it
            vms.update(snapshot.residents.get(seen.switched, ()))
    return vms, hosts


class _FinalStateJudge:
    """Judges whether every VM and host ends in its desired state."""

    def __init__(self, task: PlanningTask) -> None:
        self._conditions = [
            condition for condition in task.hard if not isinstance(condition, RuleCondition)
        ]

    def __call__(self, moment: PlanMoment) -> Iterable[Violation]:
        """Judge the final moment only."""
        if moment.phase is not MomentPhase.FINAL:
            return
        for condition in self._conditions:
            state = _state(condition, moment)
            if state != condition.state:
                yield Violation(
                    constraint=condition.title,
                    at_ms=moment.at_ms,
                    detail=f"its final state is {state}",
                    code="final-state-missed",
                )


def _state(condition: VmCondition | HostCondition, moment: PlanMoment) -> str:
    if isinstance(condition, VmCondition):
        return moment.state.vms[condition.vm].state
    return moment.state.hosts[condition.host].state


def exclude_refused(
    model: PlanningModel, plan: Plan, solution: Solution, wrong: Sequence[Violation]
) -> bool:
    """Exclude what a plan violates; return whether a constraint was added."""
    violated = {violation.constraint for violation in wrong}
    # The model demands less of a rule that is kept than the judge.
    kept = (
        condition
        for condition in model.task.conditions
        if isinstance(condition, RuleCondition) and condition.kept
    )
    conditions = [
        condition
        for condition in dict.fromkeys((*model.left_to_judge, *kept))
        if str(condition.requirement) in violated
    ]
    for condition in conditions:
        _Exclusion(model, plan, solution, condition).add()
    return bool(conditions)


class _Exclusion:
    """One condition that one plan violates."""

    def __init__(
        self, model: PlanningModel, plan: Plan, solution: Solution, condition: RuleCondition
    ) -> None:
        self._model = model
        self._builder = model.builder
        self._timeline = model.timeline
        self._operators = SymbolicOperators(model.builder)
        self._plan = plan
        self._solution = solution
        self._condition = condition

    def add(self) -> None:
        """Add the constraint that excludes the violation."""
        requirement = self._condition.requirement
        owner, name = requirement.specification, requirement.name
        # A soft condition may be violated, but then the plan must not count it as satisfied.
        given = tuple(
            soft.literal for soft in self._model.kept if soft.condition is self._condition
        )
        # A formula about the plan excludes the plan itself; any other excludes what it read.
        if owner.looks_beyond(name):
            alike = list(self._literals_of_plan())
        else:
            alike = list(self._literals_of_moment())
        self._builder.require(-self._builder.all(alike), given)

    def _literals_of_plan(self) -> Iterator[Literal]:
        for candidate in self._timeline.candidates():
            present = self._solution.holds(candidate.present)
            yield candidate.present if present else -candidate.present
            for host in (candidate.source, candidate.target):
                yield options_of(host)[chosen_value(host, self._solution)]
            # The time of an action outside the plan means nothing.
            if present:
                yield self._builder.equal(candidate.start, self._solution.number(candidate.start))

    def _literals_of_moment(self) -> Iterator[Literal]:
        """Yield what the formula read at the first moment at which it was false."""
        phase, at_ms, state, reads = self._first_violation()
        moment = self._moment(phase, at_ms)
        yield from moment.literals
        view = StateView.of(state)
        for vm in sorted(reads.vms):
            yield self._same(moment.state.vm_host(vm), view.vm(vm).host)
            yield self._same(moment.state.vm_state(vm), view.vm(vm).state.value)
            for name, amount in view.vm(vm).consumption.items():
                yield self._builder.equal(moment.state.consumption(vm, name), amount)
        for host in sorted(reads.hosts):
            yield self._same(moment.state.host_state(host), view.host(host).state.value)
            yield self._same(moment.state.running(host), view.running(host))
            yield self._same(moment.state.hosted(host), view.hosted(host))
        if not START_SENSITIVE_FUNCTIONS.isdisjoint(
            self._condition.requirement.specification.calls(self._condition.requirement.name)
        ):
            for candidate in self._timeline.candidates():
                runs = self._builder.all((candidate.present, moment.state.underway(candidate)))
                yield runs if self._was_underway(candidate, phase, at_ms) else -runs

    def _was_underway(self, candidate: CandidateAction, phase: MomentPhase, at_ms: int) -> bool:
        """Whether an action was under way in the refused plan."""
        solution = self._solution
        if not solution.holds(candidate.present) or phase in (
            MomentPhase.INITIAL,
            MomentPhase.FINAL,
        ):
            return False
        begins, ends = solution.number(candidate.begin_ms), solution.number(candidate.end_ms)
        begun = begins <= at_ms if phase is MomentPhase.STARTS else begins < at_ms
        return begun and at_ms < ends

    def _same(self, undecided: Any, value: Any) -> Literal:
        return self._operators.equal(undecided, value)

    def _first_violation(self) -> tuple[MomentPhase, int, Snapshot, ReadSet]:
        requirement, snapshot = self._condition.requirement, self._timeline.snapshot
        initial = StateView.of(snapshot)
        # Of a rule that was broken and is kept, only what gets worse is a violation.
        at_first = EvaluationContext(initial, initial, initial)
        before = self._breaches(at_first) if self._condition.kept else NO_BREACHES
        for moment in moments(snapshot, self._plan.steps):
            if not requirement.continuous and moment.phase is not MomentPhase.FINAL:
                continue
            view = TrackingView(moment.state)
            context = EvaluationContext(view, initial, view, PlanSteps(self._plan.steps))
            try:
                holds = requirement.specification.holds(
                    requirement.name, requirement.arguments, context
                )
            except InvalidInput:
                holds = False
            if not holds and (
                not self._condition.kept or worse_breaches(self._breaches(context), before)
            ):
                return moment.phase, moment.at_ms, moment.state.freeze(), view.reads
        raise AssertionError(f"the judge refuses {requirement}, but it holds at every moment")

    def _breaches(self, context: EvaluationContext) -> Breaches:
        requirement = self._condition.requirement
        formula = requirement.specification.constraints[requirement.name].formula
        return requirement.specification.breaches(formula, requirement.arguments, context)

    def _moment(self, phase: MomentPhase, at_ms: int) -> _ViolatedMoment:
        if phase is MomentPhase.INITIAL:
            return _ViolatedMoment(InitialState(self._timeline), ())
        if phase is MomentPhase.FINAL:
            return _ViolatedMoment(FinalState(self._timeline), ())
        for candidate in self._timeline.candidates():
            if not self._solution.holds(candidate.present):
                continue
            if phase is MomentPhase.ENDS and self._solution.number(candidate.end_ms) == at_ms:
                return _ViolatedMoment(
                    StateAfterEnds(self._timeline, candidate), (candidate.present,)
                )
            if phase is MomentPhase.STARTS and self._solution.number(candidate.begin_ms) == at_ms:
                return _ViolatedMoment(
                    StateAfterStarts(self._timeline, candidate), (candidate.present,)
                )
        raise AssertionError(f"nothing happens at {at_ms} ms")


class _ViolatedMoment:
    """A moment of the timeline, and the literals that such a moment exists."""

    def __init__(self, state: TimelineState, literals: tuple[Literal, ...]) -> None:
        self.state = state
        self.literals = literals
