"""Whether the planner accepts a given plan: every action and time is fixed.

Nothing is left to decide, so most of the model folds away and the solver is rarely called. The
judge decides about formulas that cannot be translated for the solver.
"""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.action import (
    HOST_TRANSITIONS,
    Action,
    Allocate,
    Forge,
    HostAction,
    Kill,
    Migrate,
    Move,
    Reinstantiate,
    RoleAction,
    footprint,
    kind_of,
    vm_transition,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.judge import judge_plan
from equipoise.plan.exact.model import PlanningModel
from equipoise.plan.exact.solver import FIRST, CpModelBuilder, SearchBudget, solve_model
from equipoise.plan.exact.task import PlanningTask, SearchScope
from equipoise.plan.exact.timeline.schedules import (
    CandidateAction,
    HostSchedule,
    VmSchedule,
    VmSegment,
)
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.plan.exact.values import UnsupportedFormula


def accepts_plan(task: PlanningTask, plan: Plan, budget: SearchBudget | None = None) -> bool:
    """Whether a plan satisfies everything that the planner demands of its own plans.

    The durations and the number of moves are those of the plan; but over a network, no migration
    is shorter than the copying of its memory. Raises ``UnsupportedFormula`` for a plan that
    switches a host twice, which the planner never makes.
    """
    fixed = FixedTimeline(task, plan)
    if not fixed.is_possible or not _final_states_reached(task, fixed):
        return False
    model = PlanningModel(task, fixed)
    if solve_model(model.builder, budget or SearchBudget(), quality=FIRST).solution is None:
        return False
    hard = [condition for condition in model.left_to_judge if not condition.weight]
    # The solver knows nothing about these; the judge sees the plan itself.
    unproved = {str(condition.requirement) for condition in hard}
    return not unproved or unproved.isdisjoint(
        violation.constraint for violation in judge_plan(task, plan)
    )


def _final_states_reached(task: PlanningTask, fixed: FixedTimeline) -> bool:
    vms = all(
        fixed.final_state(name) is condition.state
        for name, conditions in task.vm_conditions.items()
        for condition in conditions
    )
    return vms and all(
        fixed.final_host_state(name) is condition.state
        for name, conditions in task.host_conditions.items()
        for condition in conditions
    )


class FixedTimeline(Timeline):
    """A timeline in which everything is decided."""

    def __init__(self, task: PlanningTask, plan: Plan) -> None:
        self._given = plan
        self.is_possible = True
        """Whether each action finds its VM or host in the state that it needs."""
        # The scope adds no move of its own: every action comes from the plan.
        super().__init__(CpModelBuilder(), task, SearchScope(moves=0))

    def final_state(self, vm: VmId) -> VmState:
        """Return the state that a VM ends in."""
        schedule = self.schedules.get(vm)
        return self.snapshot.vms[vm].state if schedule is None else schedule.last.state

    def final_host_state(self, host: HostId) -> HostState:
        """Return the state that a host ends in."""
        schedule = self.host_schedules.get(host)
        return self.snapshot.hosts[host].state if schedule is None else schedule.after

    def _lay_out(self) -> None:
        by_vm: dict[VmId, list[Step]] = {}
        by_time = sorted(
            self._given.steps, key=lambda timed: (timed.start_ms, timed.end_ms, timed.id)
        )
        for step in by_time:
            if isinstance(step.action, HostAction):
                self._fix_switch(step, step.action)
            elif not isinstance(step.action, RoleAction):  # a role takes no capacity
                by_vm.setdefault(step.action.vm, []).append(step)
        for vm in self.snapshot.vms.values():
            if vm.agent:
                self.is_possible = self.is_possible and vm.id not in by_vm
                self._lay_out_agent(vm)
            elif vm.id in by_vm:
                self._fix_schedule(vm, by_vm.pop(vm.id))
        self.is_possible = self.is_possible and not (by_vm.keys() - self.snapshot.vms.keys())

    def _set_clock(self) -> None:
        last_ms = max((step.end_ms for step in self._given.steps), default=0)
        self.horizon = last_ms
        given_s = self.task.problem.horizon_s
        if given_s is not None and last_ms > given_s * 1000:
            self.is_possible = False

    def _time_schedule(self, schedule: VmSchedule) -> None:
        """Do nothing: the plan gives the times."""

    def _time_candidate(self, candidate: CandidateAction, after: object) -> None:
        """Do nothing: the plan gives the times."""

    def _fix_switch(self, step: Step, action: HostAction) -> None:
        if action.host in self.host_schedules:
            raise UnsupportedFormula(f"{action.host} is switched twice")
        host = self.snapshot.hosts.get(action.host)
        before, after = HOST_TRANSITIONS[type(action)]
        if host is None or host.state is not before:
            self.is_possible = False
            return
        candidate = self._timed(step, switched=host.id)
        self.host_schedules[host.id] = HostSchedule(host.id, before, after, candidate)

    def _fix_schedule(self, vm: Vm, steps: Iterable[Step]) -> None:
        schedule = VmSchedule(vm.id, [VmSegment(vm.state, vm.host, vm.consumption)])
        # A VM has one action at a time.
        free_from = 0
        for step in steps:
            if step.start_ms < free_from or not self._add_step(schedule, vm, step):
                self.is_possible = False
                return
            free_from = step.end_ms
        self.schedules[vm.id] = schedule

    def _add_step(self, schedule: VmSchedule, vm: Vm, step: Step) -> bool:
        """Add a step to a schedule; return whether its VM is in the state that the step needs."""
        before, action = schedule.last, step.action
        change, seen = vm_transition(action), footprint(action)
        after = before
        if isinstance(action, Allocate):
            if before.state is not VmState.RUNNING:
                return False
            amounts = {**before.amounts, action.resource: action.amount}
            after = VmSegment(before.state, before.host, amounts)
        elif isinstance(action, Kill):  # unlike other actions, it is allowed in several states
            if before.state is VmState.TERMINATED:
                return False
            after = VmSegment(VmState.TERMINATED, None, before.amounts)
        elif change is not None:
            if (change.state_before, change.host_before) != (before.state, before.host):
                return False
            after = VmSegment(change.state_after, change.host_after, before.amounts)
        if not self._is_allowed(vm, step):
            return False
        candidate = self._timed(step, vm=vm.id, source=seen.source, target=seen.target)
        if isinstance(action, Allocate):
            candidate.resource, candidate.amount = action.resource, action.amount
            candidate.shrinks = action.amount <= before.amounts.get(action.resource, 0)
        schedule.candidates.append(candidate)
        schedule.segments.append(after)
        return True

    def _is_allowed(self, vm: Vm, step: Step) -> bool:
        action = step.action
        if isinstance(action, Move) and action.source == action.target:
            return False
        unknown = [host for host in footprint(action).hosts if host not in self.snapshot.hosts]
        if unknown or not _can_be_created(vm, action):
            return False
        target = footprint(action).target
        if target is not None and not self._can_host(self.snapshot.hosts[target], vm):
            return False
        return not isinstance(action, Migrate) or self._is_slow_enough(action, step.duration_ms)

    def _is_slow_enough(self, action: Migrate, lasts_ms: int) -> bool:
        """Whether the memory of a VM can be copied in this time; true without a network."""
        if self.routes is None:
            return True
        route = self.routes.between(action.source, action.target)
        return route is not None and lasts_ms >= self._durations.copying_ms(action.vm, route.mbps)

    def _timed(self, step: Step, **known: object) -> CandidateAction:
        candidate = self._new_candidate(ActionKind(kind_of(step.action)), **known)
        candidate.start, candidate.size, candidate.end = (
            step.start_ms,
            step.duration_ms,
            step.end_ms,
        )
        # The clock reads an entry of every candidate; the time of this one is fixed already.
        self._lengths[candidate] = ()
        return candidate


def _can_be_created(vm: Vm, action: Action) -> bool:
    """Whether an action that creates a VM has a template for it."""
    if isinstance(action, Reinstantiate) and not vm.replaceable:
        return False
    return vm.template is not None or not isinstance(action, Forge | Reinstantiate)
