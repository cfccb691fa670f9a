"""A plan of BtrPlace as a plan of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
    footprint,
)
from equipoise.model.files.btrplace import plan_form as form
from equipoise.model.files.btrplace.decode import decoded, raise_if_any
from equipoise.model.files.btrplace.names import Numbering, our_resource, their_resource
from equipoise.model.files.btrplace.renewals import Renewal, renewals_of
from equipoise.model.files.collector import undisturbed
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.files.words import Path
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import Problem
from equipoise.model.quantity import HostId, PlanId, StepId, VmId

PLAN_ID: Final = PlanId("btrplace")


def read_plan(content: bytes, source: str, problem: Problem) -> Plan:
    """Read a plan for a problem; ``source`` is what messages call the file.

    An action that takes no time there takes a millisecond here; if a VM has several at one moment,
    one comes after the other, in the order of the file. What is allocated along with an action,
    before or after it, is such a step of its own here, at the moment when the action has ended. A
    VM that takes the place of another one there is the same VM here, made anew. The steps are in
    the order of their starts; their ids have the places of the actions in the file.
    """
    with undisturbed():
        plan = decoded(content, source, form.ReconfigurationPlan)
        found = Findings()
        reader = _Reader(problem, plan, found)
        steps: list[Step] = []
        with suppress(Enough):
            for place, action in enumerate(plan.actions):
                steps += reader.steps_of(action, place)
        raise_if_any(found, content, source)
        steps.sort(key=lambda step: (step.start_ms, step.end_ms))
        return Plan(id=PLAN_ID, steps=tuple(steps))


class _Reader:
    """Makes steps of actions, and finds those that are about somebody unknown."""

    def __init__(self, problem: Problem, plan: form.ReconfigurationPlan, found: Findings) -> None:
        numbers = Numbering.of(problem)
        self._vms, self._hosts = dict(numbers.vm_names), numbers.host_names
        self._resources = {name for host in problem.cluster.hosts for name in host.capacity}
        self._renewals = renewals_of(plan)
        self._replaced = {one.shutdown.vm: one for one in self._renewals.values()}
        for new, renewal in self._renewals.items():
            if renewal.shutdown.vm in self._vms:
                self._vms[new] = self._vms[renewal.shutdown.vm]
        self._momentary: dict[tuple[str | None, int], Step] = {}
        """The last step that takes no time there, by whom it is about and by its second."""
        self._found = found
        self._path: Path = ()

    def steps_of(self, action: form.PlanAction, place: int) -> Iterator[Step]:
        self._path = ("actions", place)
        made, start, end = self._action(action), action.start, action.end
        if end < start:
            self._find(("end",), f"{end} is before the start, {start}", f"{start} or more")
        renewal = self._renewal(action)
        if renewal is not None:
            if action is not renewal.boot:
                return  # it is part of what the boot is read as
            made, start, end = self._anew(renewal), renewal.forge.start, renewal.shutdown.end
        step_id = StepId(f"{made.__struct_config__.tag}-{place}")
        if start < end:
            step = Step(id=step_id, action=made, start_ms=1000 * start, end_ms=1000 * end)
        else:
            step = self._in_no_time(step_id, made, start)
        yield step
        for hook, events in action.hooks.items():
            if hook.lower() not in ("pre", "post"):
                self._find(("hooks", hook), "this hook is not known", "pre or post")
            for number, event in enumerate(events):
                yield from self._along(event, ("hooks", hook, number), step, end)

    def _renewal(self, action: form.PlanAction) -> Renewal | None:
        """What an action is a part of, if a VM is made anew by it."""
        if isinstance(action, form.ShutdownVm):
            found = self._replaced.get(action.vm)
            return found if found is not None and found.shutdown is action else None
        if isinstance(action, form.ForgeVm | form.BootVm):
            return self._renewals.get(action.vm)
        return None

    def _anew(self, renewal: Renewal) -> Reinstantiate:
        source = self._host(renewal.shutdown.on, "on")
        return Reinstantiate(
            vm=self._vm(renewal.boot.vm), source=source, target=self._host(renewal.boot.on, "on")
        )

    def _along(self, event: form.PlanEvent, path: Path, step: Step, end: int) -> Iterator[Step]:
        if isinstance(event, form.SubstitutedVmEvent):
            if event.new_vm not in self._renewals:
                what = f"the VM {event.new_vm} takes the place of {event.vm} without being made"
                cure = "it is forged and booted, and then the old one shut down, once each"
                self._find(path, what, cure)
            return
        action = self._path
        self._path = (*action, *path)
        along = self._allocate(event)
        self._path = action
        _, hook, number = path
        step_id = StepId(f"allocate-{action[1]}-{hook}-{number}")
        yield self._in_no_time(step_id, along, end, after=step)

    def _in_no_time(
        self, step_id: StepId, action: Action, at: int, after: Step | None = None
    ) -> Step:
        """A step for what takes no time there, after all that the VM or host has at that second."""
        touched = footprint(action)
        key = (touched.vm or touched.switched, at)
        earlier = {one.id: one for one in (after, self._momentary.get(key)) if one is not None}
        start_ms = max([1000 * at, *(one.end_ms for one in earlier.values())])
        step = self._momentary[key] = Step(
            id=step_id,
            action=action,
            start_ms=start_ms,
            end_ms=start_ms + 1,
            after=tuple(earlier),
        )
        return step

    def _action(self, action: form.PlanAction) -> Action:
        match action:
            case form.BootNode():
                return PowerOn(host=self._host(action.node, "node"))
            case form.ShutdownNode():
                return PowerOff(host=self._host(action.node, "node"))
            case form.MigrateVm() | form.SuspendVm() | form.ResumeVm():
                return self._move(action)
            case form.BootVm():
                return Boot(vm=self._vm(action.vm), target=self._host(action.on, "on"))
            case form.ShutdownVm():
                return Shutdown(vm=self._vm(action.vm), source=self._host(action.on, "on"))
            case form.AllocateVm():
                return self._allocate(action)
            case form.ForgeVm():
                return Forge(vm=self._vm(action.vm))
            case form.KillVm():
                return Kill(vm=self._vm(action.vm))

    def _move(self, action: form.MigrateVm | form.SuspendVm | form.ResumeVm) -> Action:
        vm = self._vm(action.vm)
        source, target = self._host(action.source, "from"), self._host(action.target, "to")
        if isinstance(action, form.MigrateVm):
            return Migrate(vm=vm, source=source, target=target)
        if isinstance(action, form.ResumeVm):
            return Resume(vm=vm, source=source, target=target)
        if source != target:
            what = f"the VM {action.vm} is to sleep elsewhere than it ran, which it cannot here"
            self._find(("to",), what, f"{action.source}")
        return Suspend(vm=vm, source=source)

    def _allocate(self, one: form.AllocateVm | form.AllocateEvent) -> Allocate:
        name = our_resource(one.resource)
        if name not in self._resources:
            known = sorted(map(their_resource, self._resources))
            self._found.add_unknown((*self._path, "rc"), "resource", one.resource, known)
        return Allocate(vm=self._vm(one.vm), resource=name, amount=one.amount)

    def _vm(self, number: int) -> VmId:
        return VmId(self._known(self._vms, number, "VM", "vm"))

    def _host(self, number: int, key: str) -> HostId:
        return HostId(self._known(self._hosts, number, "node", key))

    def _known(self, names: Mapping[int, str], number: int, noun: str, key: str) -> str:
        name = names.get(number)
        if name is None:
            what = f"the problem has no {noun} {number}"
            self._find((key,), what, "is the plan for this problem?")
        return name or ""

    def _find(self, path: Path, what: str, cure: str) -> None:
        self._found.add((*self._path, *path), what, cure)
