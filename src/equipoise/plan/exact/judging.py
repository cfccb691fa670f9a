"""The judge of solved plans: nobody sees a plan that it refuses."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.plan import Plan, Violation
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.exact.task import HostClaim, RuleClaim, Task, VmClaim
from equipoise.plan.network import NetworkJudge, Ways
from equipoise.plan.verify import judged
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.moment import Judge, Moment, Phase


class RefusedPlan(AssertionError):
    """The planner made a plan that the judge refuses: a bug of the planner, with its case."""

    def __init__(self, task: Task, plan: Plan, violations: tuple[Violation, ...]) -> None:
        first = violations[0]
        super().__init__(f"the judge refuses a solved plan: {first.constraint}: {first.detail}")
        self.task = task
        self.plan = plan
        self.violations = violations


def judge_plan(task: Task, plan: Plan, also: Iterable[RuleClaim] = ()) -> tuple[Violation, ...]:
    """All that a plan breaks: hard claims, what machines can do, and soft claims named as well.

    Whatever holds before the plan, and has to do with nobody whom it touches, holds all along.
    """
    vms, hosts = _touched(task.snapshot, plan)
    rules = [
        one
        for one in (*(one for one in task.hard if isinstance(one, RuleClaim)), *also)
        if task.parts.may_change(one.demand, vms, hosts)
    ]
    strict = SpecificationJudge((one.demand for one in rules), plan.steps, strict=True)
    judges: list[Judge] = [strict, _Aims(task)]
    if task.problem.network is not None:
        given = task.problem.durations.get(ActionKind.MIGRATE)
        timed = () if given is None else given.of.keys()
        judges.append(NetworkJudge(Ways(task.problem.network), timed))
    return judged(task.snapshot, plan, judges)


def _touched(snapshot: Snapshot, plan: Plan) -> tuple[set[VmId], set[HostId]]:
    """Everybody to whom something may happen by a plan, also whom it does not name."""
    vms, hosts = set[VmId](), set[HostId]()
    for step in plan.steps:
        seen = step.footprint
        hosts.update(seen.hosts)
        if seen.vm is not None:
            vms.add(seen.vm)
            home = snapshot.placement.get(seen.vm)
            hosts.update(() if home is None else (home,))
        if seen.switched is not None:  # its agents wake and sleep with it
            vms.update(snapshot.residents.get(seen.switched, ()))
    return vms, hosts


class _Aims:
    """Judges whether every element has become in the end what it is to be."""

    def __init__(self, task: Task) -> None:
        self._claims = [one for one in task.hard if not isinstance(one, RuleClaim)]

    def __call__(self, moment: Moment) -> Iterable[Violation]:
        """Look at the end only."""
        if moment.phase is not Phase.FINAL:
            return
        for claim in self._claims:
            has = _state(claim, moment)
            if has != claim.state:
                detail = f"it is {has} in the end"
                yield Violation(constraint=claim.title, at_ms=moment.at_ms, detail=detail)


def _state(claim: VmClaim | HostClaim, moment: Moment) -> str:
    if isinstance(claim, VmClaim):
        return moment.state.vms[claim.vm].state
    return moment.state.hosts[claim.host].state
