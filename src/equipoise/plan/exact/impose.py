"""Imposing a plan: the planner is asked whether it would accept one, every action and time given.

Nothing is left to decide about the plan, so that nearly everything is folded away while it is said,
and most of the time the solver is not even asked. What cannot be said to it, the judge answers.
"""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.action import (
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
)
from equipoise.model.change.lifecycle import HOST_PASSAGES, passage
from equipoise.model.host import HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.formula.values import Unsupported
from equipoise.plan.exact.judging import judge_plan
from equipoise.plan.exact.solver.circuit import Circuit
from equipoise.plan.exact.solver.decide import ANY, Effort, decide
from equipoise.plan.exact.statement import Statement
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.course import Course, HostCourse, Leg, Station
from equipoise.plan.exact.timeline.reach import Reach
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.spec.functions import kind_of


def accepts(task: Task, plan: Plan, effort: Effort | None = None) -> bool:
    """Whether a plan keeps all that the planner demands of its own: these actions, at these times.

    How long actions take and how often a VM moves is as given; but over a network, nobody migrates
    faster than its memory is copied. Raises ``Unsupported`` for a plan that switches a host twice,
    which it never makes.
    """
    imposed = Imposed(task, plan)
    if not imposed.is_possible or not _aims_reached(task, imposed):
        return False
    statement = Statement(task, imposed)
    if decide(statement.circuit, effort or Effort(), care=ANY).decided is None:
        return False
    left = {str(one.demand) for one in statement.left_to_judge if not one.weight}
    return not left or left.isdisjoint(one.constraint for one in judge_plan(task, plan))


def _aims_reached(task: Task, imposed: Imposed) -> bool:
    vms = all(
        imposed.final_state(name) is claim.state
        for name, claims in task.vm_goals.items()
        for claim in claims
    )
    return vms and all(
        imposed.final_host_state(name) is claim.state
        for name, claims in task.host_goals.items()
        for claim in claims
    )


class Imposed(Timeline):
    """A timeline in which everything is known."""

    def __init__(self, task: Task, plan: Plan) -> None:
        self._given = plan
        self.is_possible = True
        """Whether each action finds its VM or host in the state it needs."""
        super().__init__(Circuit(), task, Reach(moves=0))

    def final_state(self, vm: VmId) -> VmState:
        """The state that a VM ends in."""
        course = self.courses.get(vm)
        return self.snapshot.vms[vm].state if course is None else course.last.state

    def final_host_state(self, host: HostId) -> HostState:
        """The state that a host ends in."""
        course = self.switches.get(host)
        return self.snapshot.hosts[host].state if course is None else course.after

    def _lay_out(self) -> None:
        by_vm: dict[VmId, list[Step]] = {}
        for step in sorted(self._given.steps, key=lambda one: (one.start_ms, one.end_ms, one.id)):
            if isinstance(step.action, HostAction):
                self._impose_switch(step, step.action)
            elif not isinstance(step.action, RoleAction):  # which takes no room and moves nobody
                by_vm.setdefault(step.action.vm, []).append(step)
        for vm in self.snapshot.vms.values():
            if vm.agent:
                self.is_possible = self.is_possible and vm.id not in by_vm
                self._lay_out_agent(vm)
            elif vm.id in by_vm:
                self._impose_course(vm, by_vm.pop(vm.id))
        self.is_possible = self.is_possible and not (by_vm.keys() - self.snapshot.vms.keys())

    def _set_clock(self) -> None:
        last_ms = max((step.end_ms for step in self._given.steps), default=0)
        self.horizon = last_ms
        given_s = self.task.problem.horizon_s
        if given_s is not None and last_ms > given_s * 1000:
            self.is_possible = False

    def _time_course(self, course: Course) -> None:
        """Its times are given."""

    def _time_leg(self, leg: Leg, after: object) -> None:
        """Its times are given."""

    def _impose_switch(self, step: Step, action: HostAction) -> None:
        if action.host in self.switches:
            raise Unsupported(f"{action.host} is switched twice")
        host = self.snapshot.hosts.get(action.host)
        before, after = HOST_PASSAGES[type(action)]
        if host is None or host.state is not before:
            self.is_possible = False
            return
        leg = self._timed(step, switched=host.id)
        self.switches[host.id] = HostCourse(host.id, before, after, leg)

    def _impose_course(self, vm: Vm, steps: Iterable[Step]) -> None:
        course = Course(vm.id, [Station(vm.state, vm.host, vm.consumption)])
        free_from = 0
        for step in steps:
            if step.start_ms < free_from or not self._impose(course, vm, step):
                self.is_possible = False
                return
            free_from = step.end_ms
        self.courses[vm.id] = course

    def _impose(self, course: Course, vm: Vm, step: Step) -> bool:
        """Add a step to a course; whether its VM is as the step needs it."""
        before, action = course.last, step.action
        way, seen = passage(action), footprint(action)
        after = before
        if isinstance(action, Allocate):
            if before.state is not VmState.RUNNING:
                return False
            amounts = {**before.amounts, action.resource: action.amount}
            after = Station(before.state, before.host, amounts)
        elif isinstance(action, Kill):
            if before.state is VmState.TERMINATED:
                return False
            after = Station(VmState.TERMINATED, None, before.amounts)
        elif way is not None:
            if (way.state_before, way.host_before) != (before.state, before.host):
                return False
            after = Station(way.state_after, way.host_after, before.amounts)
        if not self._may(vm, step):
            return False
        leg = self._timed(step, vm=vm.id, source=seen.source, target=seen.target)
        if isinstance(action, Allocate):
            leg.resource, leg.amount = action.resource, action.amount
            leg.shrinks = action.amount <= before.amounts.get(action.resource, 0)
        course.legs.append(leg)
        course.stations.append(after)
        return True

    def _may(self, vm: Vm, step: Step) -> bool:
        action = step.action
        if isinstance(action, Move) and action.source == action.target:
            return False
        named = [host for host in footprint(action).hosts if host not in self.snapshot.hosts]
        if named or not _can_be_made(vm, action):
            return False
        target = footprint(action).target
        if target is not None and not self._could_take(self.snapshot.hosts[target], vm):
            return False
        return not isinstance(action, Migrate) or self._is_slow_enough(action, step.duration_ms)

    def _is_slow_enough(self, action: Migrate, lasts_ms: int) -> bool:
        """Whether the memory of a VM can be copied meanwhile, if a network says how fast."""
        if self.routes is None:
            return True
        route = self.routes.between(action.source, action.target)
        return route is not None and lasts_ms >= self._durations.copying_ms(action.vm, route.mbps)

    def _timed(self, step: Step, **known: object) -> Leg:
        leg = self._leg(ActionKind(kind_of(step.action)), **known)
        leg.start, leg.size, leg.end = step.start_ms, step.duration_ms, step.end_ms
        self._lengths[leg] = ()
        return leg


def _can_be_made(vm: Vm, action: Action) -> bool:
    """Whether what makes a VM, or makes it anew, has something to make it from."""
    if isinstance(action, Reinstantiate) and not vm.replaceable:
        return False
    return vm.template is not None or not isinstance(action, Forge | Reinstantiate)
