"""A plan of ours as a plan of BtrPlace."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import msgspec

from equipoise.errors import InvalidInput, Problem
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    Forge,
    HostAction,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.files.btrplace.names import Numbering, their_resource
from equipoise.model.files.btrplace.origin import Record, origin_of, whole_seconds
from equipoise.model.files.collector import undisturbed
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import Problem as ClusterProblem


def write_plan(plan: Plan, problem: ClusterProblem) -> bytes:
    """Write a plan for a problem, as BtrPlace writes those it found itself.

    A start that is not at a whole second is written as the second before, an end as the one after.
    There are no words for maintenance. BtrPlace's own reader does not take the forging of a VM, nor
    the killing of one that is on no host.
    """
    numbers = Numbering.of(problem)
    writer = _Writer(plan, problem, numbers)
    steps = sorted(plan.steps, key=lambda step: (step.start_ms, step.end_ms))
    with undisturbed():
        document = {
            "origin": origin_of(problem, numbers),
            "actions": [writer.record(step) for step in steps],
        }
        return msgspec.json.encode(document)


class _Writer:
    """Makes records of steps. Knows where VMs will be, which is said of some actions there."""

    def __init__(self, plan: Plan, problem: ClusterProblem, numbers: Numbering) -> None:
        self._source = f"plan {plan.id}"
        self._numbers = numbers
        self._homes: dict[str, list[tuple[int, str | None]]] = {
            vm.id: [(0, vm.host)] for vm in problem.cluster.vms
        }
        for step in sorted(plan.steps, key=lambda step: step.end_ms):
            match step.action:
                case Boot() | Migrate() | Resume():
                    self._homes[step.action.vm].append((step.end_ms, step.action.target))
                case Shutdown() | Kill():
                    self._homes[step.action.vm].append((step.end_ms, None))

    def record(self, step: Step) -> Record:
        """The record of one step."""
        kind = _KINDS.get(type(step.action))
        if kind is None:
            what = f"BtrPlace has no action such as {step.action.__struct_config__.tag}"
            problem = Problem(key=f"steps.{step.id}", what=what, cure="leave maintenance out")
            raise InvalidInput(self._source, [problem])
        return {
            "id": kind,
            **self._subjects(step),
            "start": step.start_ms // 1000,
            "end": whole_seconds(step.end_ms),
            "hooks": {"pre": [], "post": []},
        }

    def _subjects(self, step: Step) -> Record:
        action, hosts = step.action, self._numbers.hosts
        if isinstance(action, HostAction):
            return {"node": hosts[action.host]}
        vm: Record = {"vm": self._numbers.vms[action.vm]}
        match action:
            case Migrate() | Resume():
                return vm | {"from": hosts[action.source], "to": hosts[action.target]}
            case Suspend():
                return vm | {"from": hosts[action.source], "to": hosts[action.source]}
            case Boot():
                return vm | {"on": hosts[action.target]}
            case Shutdown():
                return vm | {"on": hosts[action.source]}
            case Allocate():
                taken = {"rc": their_resource(action.resource), "amount": action.amount}
                return vm | taken | self._where(step, action.vm)
            case Kill():
                return vm | self._where(step, action.vm)
        return vm

    def _where(self, step: Step, vm: str) -> Record:
        """On which host a VM is when a step starts, if it is on one."""
        homes = self._homes[vm]
        at = bisect_right(homes, step.start_ms, key=lambda home: home[0])
        host = homes[max(at, 1) - 1][1]
        return {} if host is None else {"on": self._numbers.hosts[host]}


_KINDS: Final[dict[type[Action], str]] = {
    PowerOn: "bootNode",
    PowerOff: "shutdownNode",
    Forge: "forgeVM",
    Boot: "bootVM",
    Shutdown: "shutdownVM",
    Migrate: "migrateVM",
    Suspend: "suspendVM",
    Resume: "resumeVM",
    Allocate: "allocate",
    Kill: "killVM",
}
