"""Short problems for the planner: every action takes a second, unless said otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders import a_host, an_inventory
from equipoise.model.action import Migrate, describe
from equipoise.model.host import Host
from equipoise.model.problem import Duration, Problem
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.vm import Vm
from equipoise.plan.exact.answer import Answer

SECOND = {kind: Duration(ms=1000) for kind in ActionKind}


def a_problem(hosts: Iterable[Host], vms: Iterable[Vm], /, *rules: Rule, **fields: Any) -> Problem:
    """A problem with some rules."""
    given = {name: fields.pop(name) for name in ("limits", "specification") if name in fields}
    cluster = an_inventory(vms=vms, rules=rules, **given).but(hosts=tuple(hosts))
    return Problem(cluster=cluster, **{"durations": SECOND, **fields})


def a_rule(constraint: str, name: str = "r1", **given: Any) -> Rule:
    """A constraint that is to hold; ``hard`` and ``continuous`` as for any rule."""
    options = {key: given.pop(key) for key in ("hard", "continuous") if key in given}
    return Satisfy(id=RuleId(name), constraint=constraint, arguments=given, **options)


def fence(vm: str, *hosts: str, **options: Any) -> Rule:
    """A VM stays within some hosts."""
    places = tuple(map(HostId, hosts))
    return StayWithin(id=RuleId(f"{vm}-within"), vms=(VmId(vm),), hosts=places, **options)


def off(vm: str, *hosts: str, **options: Any) -> Rule:
    """A VM stays off some hosts."""
    places = tuple(map(HostId, hosts))
    return StayOff(id=RuleId(f"{vm}-off"), vms=(VmId(vm),), hosts=places, **options)


def apart(*vms: str, **options: Any) -> Rule:
    """No two of some VMs run on one host."""
    return KeepApart(id=RuleId("apart"), vms=tuple(map(VmId, vms)), **options)


def hosts(*names: str, **fields: Any) -> list[Host]:
    """Hosts that are alike."""
    return [a_host(name, **fields) for name in names]


def does(answer: Answer) -> list[str]:
    """What the plan of an answer does, in words."""
    assert answer.plan is not None
    return [describe(step.action) for step in answer.plan.steps]


def moves(answer: Answer) -> int:
    """How many migrations the plan of an answer has."""
    assert answer.plan is not None
    return sum(isinstance(step.action, Migrate) for step in answer.plan.steps)
