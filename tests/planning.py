"""Short problems for the planner: every action takes a second by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders import a_host, an_inventory
from equipoise.model.action import Migrate, describe
from equipoise.model.host import Host
from equipoise.model.problem import ActionDuration, PlanningProblem
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.vm import Vm
from equipoise.plan.exact.result import PlanningResult

SECOND = {kind: ActionDuration(ms=1000) for kind in ActionKind}


def a_problem(
    hosts: Iterable[Host], vms: Iterable[Vm], /, *rules: Rule, **fields: Any
) -> PlanningProblem:
    """Return a problem with some rules."""
    given = {name: fields.pop(name) for name in ("limits", "specification") if name in fields}
    cluster = an_inventory(vms=vms, rules=rules, **given).but(hosts=tuple(hosts))
    return PlanningProblem(cluster=cluster, **{"durations": SECOND, **fields})


def a_rule(constraint: str, name: str = "r1", **given: Any) -> Rule:
    """Return a rule that requires a constraint."""
    options = {key: given.pop(key) for key in ("hard", "continuous") if key in given}
    return Satisfy(id=RuleId(name), constraint=constraint, arguments=given, **options)


def fence(vm: str, *hosts: str, **options: Any) -> Rule:
    """Return a rule that keeps a VM within some hosts."""
    places = tuple(map(HostId, hosts))
    return StayWithin(id=RuleId(f"{vm}-within"), vms=(VmId(vm),), hosts=places, **options)


def off(vm: str, *hosts: str, **options: Any) -> Rule:
    """Return a rule that keeps a VM off some hosts."""
    places = tuple(map(HostId, hosts))
    return StayOff(id=RuleId(f"{vm}-off"), vms=(VmId(vm),), hosts=places, **options)


def apart(*vms: str, **options: Any) -> Rule:
    """Return a rule that keeps VMs on different hosts."""
    return KeepApart(id=RuleId("apart"), vms=tuple(map(VmId, vms)), **options)


def hosts(*names: str, **fields: Any) -> list[Host]:
    """Return equal hosts."""
    return [a_host(name, **fields) for name in names]


def does(answer: PlanningResult) -> list[str]:
    """Return the actions of an answer's plan, as texts."""
    assert answer.plan is not None
    return [describe(step.action) for step in answer.plan.steps]


def moves(answer: PlanningResult) -> int:
    """Return the number of migrations in an answer's plan."""
    assert answer.plan is not None
    return sum(isinstance(step.action, Migrate) for step in answer.plan.steps)
