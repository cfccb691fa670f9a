"""A plan of ours as a plan of BtrPlace."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NoReturn

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
    Reinstantiate,
    Resume,
    RoleAction,
    Shutdown,
    Suspend,
)
from equipoise.model.files.btrplace.names import Numbering, their_resource
from equipoise.model.files.btrplace.origin import Record, origin_of
from equipoise.model.files.collector import undisturbed
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import Problem as ClusterProblem
from equipoise.model.problem.durations import REINSTANTIATION, Durations
from equipoise.model.snapshot import Snapshot


def write_plan(plan: Plan, problem: ClusterProblem) -> bytes:
    """Write a plan for a problem, as BtrPlace writes those it found itself.

    All times there are whole seconds, so that a plan with others is refused. What takes a single
    millisecond takes no time there, as when it is read. There are no words for maintenance. A VM
    that is made anew is another one there, with a number of its own: it is forged and booted, then
    the old one is shut down. BtrPlace's own reader does not take the forging of a VM, nor the
    killing of one that is on no host.
    """
    with undisturbed():
        return msgspec.json.encode(plan_record(plan, problem))


def plan_record(plan: Plan, problem: ClusterProblem) -> Record:
    """The same as plain values, for whoever puts it into a document of another kind."""
    numbers = Numbering.of(problem)
    writer = _Writer(plan, problem, numbers)
    steps = sorted(plan.steps, key=lambda step: (step.start_ms, step.end_ms))
    return {
        "origin": origin_of(problem, numbers),
        "actions": [record for step in steps for record in writer.records(step)],
    }


class _Writer:
    """Makes records of steps. Knows where VMs will be, which is said of some actions there."""

    def __init__(self, plan: Plan, problem: ClusterProblem, numbers: Numbering) -> None:
        self._source = f"plan {plan.id}"
        self._numbers = numbers
        self._vms = dict(numbers.vms)
        """The numbers by which VMs go now: one that was made anew has a new one."""
        self._moments: dict[tuple[str | None, int], int] = {}
        """The second of what takes no time there, by whom it is about and by its end here."""
        self._durations = Durations(problem, Snapshot.of(problem.cluster))
        self._homes: dict[str, list[tuple[int, str | None]]] = {
            vm.id: [(0, vm.host)] for vm in problem.cluster.vms
        }
        for step in sorted(plan.steps, key=lambda step: step.end_ms):
            match step.action:
                case Boot() | Migrate() | Reinstantiate() | Resume():
                    self._homes[step.action.vm].append((step.end_ms, step.action.target))
                case Shutdown() | Kill():
                    self._homes[step.action.vm].append((step.end_ms, None))

    def records(self, step: Step) -> Iterator[Record]:
        """The record of a step; of one that makes a VM anew, the three that this takes."""
        start, end = self._seconds(step)
        action = step.action
        if not isinstance(action, Reinstantiate):
            yield self._record(step, start, end)
            return
        forged, booted = self._parts(action, start, end)
        old, new = self._vms[action.vm], max(self._vms.values()) + 1
        event = {"id": "substitutedVM", "vm": old, "newVm": new}
        stop = step.but(action=Shutdown(vm=action.vm, source=action.source))
        stopped = self._record(stop, booted, end)
        self._vms[action.vm] = new
        yield self._record(step.but(action=Forge(vm=action.vm)), start, forged)
        boot = step.but(action=Boot(vm=action.vm, target=action.target))
        yield self._record(boot, forged, booted) | {"hooks": {"pre": [event], "post": []}}
        yield stopped

    def _seconds(self, step: Step) -> tuple[int, int]:
        """When a step starts and ends there."""
        start, past_start = divmod(step.start_ms, 1000)
        end, past_end = divmod(step.end_ms, 1000)
        if not past_start and not past_end:
            return start, end
        # Those that take no time there follow each other here, a millisecond each.
        touched = step.footprint
        subject = touched.vm or touched.switched
        moment = self._moments.get((subject, step.start_ms), None if past_start else start)
        if step.duration_ms > 1 or moment is None:
            what = (
                f"it lasts from {step.start_ms} to {step.end_ms} ms, "
                "and all times of BtrPlace are whole seconds"
            )
            self._refuse(step, what, "give the problem grid_ms: 1000")
        self._moments[subject, step.end_ms] = moment
        return moment, moment

    def _parts(self, action: Reinstantiate, start: int, end: int) -> tuple[int, int]:
        """At which seconds the new VM is forged and booted, if all takes its usual share."""
        usual = [self._durations.vm_ms(kind, action.vm) for kind in REINSTANTIATION]
        forged, booted = (
            start + spent * (end - start) // sum(usual) for spent in accumulate(usual[:2])
        )
        return forged, booted

    def _record(self, step: Step, start: int, end: int) -> Record:
        kind = _KINDS.get(type(step.action))
        if kind is None:
            what = f"BtrPlace has no action such as {step.action.__struct_config__.tag}"
            self._refuse(step, what, "leave maintenance and roles out")
        return {
            "id": kind,
            **self._subjects(step),
            "start": start,
            "end": end,
            "hooks": {"pre": [], "post": []},
        }

    def _subjects(self, step: Step) -> Record:
        action, hosts = step.action, self._numbers.hosts
        if isinstance(action, HostAction):
            return {"node": hosts[action.host]}
        assert not isinstance(action, RoleAction), "it has no kind of BtrPlace's"
        vm: Record = {"vm": self._vms[action.vm]}
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

    def _refuse(self, step: Step, what: str, cure: str) -> NoReturn:
        raise InvalidInput(self._source, [Problem(key=f"steps.{step.id}", what=what, cure=cure)])


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
