"""The judge of solved plans: the planner never returns a plan that it refuses."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.plan import Plan, Violation
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.exact.task import HostCondition, PlanningTask, RuleCondition, VmCondition
from equipoise.plan.network import NetworkJudge, NetworkPaths
from equipoise.plan.verify import replay_violations
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.moments import Judge, MomentPhase, PlanMoment


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
    strict = SpecificationJudge((rule.requirement for rule in rules), plan.steps, strict=True)
    judges: list[Judge] = [strict, _FinalStateJudge(task)]
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
