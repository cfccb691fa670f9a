"""A plan of BtrPlace as a plan of the model.

Where a VM is reinstantiated, BtrPlace's plan has a new VM that replaces the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from equipoise.adapters.btrplace.format.plan_actions import (
    FORM_OF_TAG,
    AnyAction,
    PlanEvent,
    ReconfigurationPlan,
    SubstitutedVmEvent,
)
from equipoise.adapters.btrplace.format.records import (
    Numbering,
    decode_record,
    from_btrplace_resource,
    raise_if_invalid,
    tag_of,
    to_btrplace_resource,
)
from equipoise.model.action import Action, Reinstantiate, footprint
from equipoise.model.diagnostics import Diagnostics, KeyPath, TooManyDiagnostics
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.value import pause_gc


class ReinstantiationActions(NamedTuple):
    """The actions that replace a VM by a new one, in their order."""

    forge: AnyAction
    boot: AnyAction
    shutdown: AnyAction

    @property
    def is_in_order(self) -> bool:
        """Whether the new VM runs before the old one stops."""
        is_booted = self.forge.end <= self.boot.start and self.boot.end <= self.shutdown.start
        return bool(is_booted)


def find_reinstantiations(plan: ReconfigurationPlan) -> dict[int, ReinstantiationActions]:
    """Return the complete replacements of VMs by the number of the new VM, in order of time.

    A VM that is replaced twice has its second number when it gets the third.
    """
    actions = plan.actions
    forged = {action.vm: action for action in actions if tag_of(action) == "forgeVM"}
    stopped = {action.vm: action for action in actions if tag_of(action) == "shutdownVM"}
    reinstantiations: dict[int, ReinstantiationActions] = {}
    for boot, event in sorted(_substitutions(plan), key=lambda entry: entry[0].start):
        forge, shutdown = forged.get(event.new_vm), stopped.get(event.vm)
        if forge is not None and shutdown is not None and boot.vm == event.new_vm:
            reinstantiation = ReinstantiationActions(forge, boot, shutdown)
            # A shutdown ends one VM, so it completes one replacement at most.
            if reinstantiation.is_in_order and all(
                reinstantiation.shutdown != earlier.shutdown
                for earlier in reinstantiations.values()
            ):
                reinstantiations[event.new_vm] = reinstantiation
    return reinstantiations


def _substitutions(plan: ReconfigurationPlan) -> Iterator[tuple[AnyAction, SubstitutedVmEvent]]:
    for action in plan.actions:
        if tag_of(action) == "bootVM":
            for events in action.hooks.values():
                for event in events:
                    if isinstance(event, SubstitutedVmEvent):
                        yield action, event


PLAN_ID: Final = PlanId("btrplace")


def read_plan(content: bytes, source: str, problem: PlanningProblem) -> Plan:
    """Return the plan of a file for a problem; ``source`` is its name in messages.

    An action that takes no time in BtrPlace takes a millisecond here. Several such actions of a VM
    at one time follow each other in the order of the file. An allocation in a hook of an action
    becomes a step of its own at the end of the action. A VM that replaces another in BtrPlace is
    the same VM here, reinstantiated. The steps are in the order of their starts; their ids have
    the positions of the actions in the file.
    """
    with pause_gc():
        plan = decode_record(content, source, ReconfigurationPlan)
        diagnostics = Diagnostics()
        reader = _PlanReader(problem, plan, diagnostics)
        steps: list[Step] = []
        with suppress(TooManyDiagnostics):
            for position, action in enumerate(plan.actions):
                steps += reader.steps_of(action, position)
        raise_if_invalid(diagnostics, content, source)
        steps.sort(key=lambda step: (step.start_ms, step.end_ms))
        return Plan(id=PLAN_ID, steps=tuple(steps))


class _PlanReader:
    """Turns actions into steps, and reports unknown VMs, nodes and resources."""

    def __init__(
        self, problem: PlanningProblem, plan: ReconfigurationPlan, diagnostics: Diagnostics
    ) -> None:
        numbers = Numbering.of(problem)
        self._vms, self._hosts = dict(numbers.vm_names), numbers.host_names
        self._resources = {name for host in problem.cluster.hosts for name in host.capacity}
        self._reinstantiations = find_reinstantiations(plan)
        self._replaced = {
            reinstantiation.shutdown.vm: reinstantiation
            for reinstantiation in self._reinstantiations.values()
        }
        for new, reinstantiation in self._reinstantiations.items():
            if reinstantiation.shutdown.vm in self._vms:
                self._vms[new] = self._vms[reinstantiation.shutdown.vm]
        self._instant_steps: dict[tuple[str | None, int], Step] = {}
        """The last step that takes no time in BtrPlace, by its VM or host and its second."""
        self._diagnostics = diagnostics
        self._path: KeyPath = ()

    def steps_of(self, action: AnyAction, position: int) -> Iterator[Step]:
        self._path = ("actions", position)
        converted, start, end = self._action(action), action.start, action.end
        if end < start:
            what = f"{end} is before the start, {start}"
            self._report(("end",), what, f"{start} or more", "out-of-range")
        reinstantiation = self._reinstantiation_of(action)
        if reinstantiation is not None:
            if action is not reinstantiation.boot:
                return  # the boot stands for all three actions
            converted, start, end = (
                self._reinstantiate(reinstantiation),
                reinstantiation.forge.start,
                reinstantiation.shutdown.end,
            )
        step_id = StepId(f"{converted.__struct_config__.tag}-{position}")
        if start < end:
            step = Step(id=step_id, action=converted, start_ms=1000 * start, end_ms=1000 * end)
        else:
            step = self._instant_step(step_id, converted, start)
        yield step
        for hook, events in action.hooks.items():
            if hook.lower() not in ("pre", "post"):
                what = "this hook is not known"
                self._report(("hooks", hook), what, "pre or post", "unknown-key")
            for number, event in enumerate(events):
                yield from self._event_steps(event, ("hooks", hook, number), step, end)

    def _reinstantiation_of(self, action: AnyAction) -> ReinstantiationActions | None:
        """Return the replacement that an action is a part of, if any."""
        tag = tag_of(action)
        if tag == "shutdownVM":
            reinstantiation = self._replaced.get(action.vm)
            is_part = reinstantiation is not None and reinstantiation.shutdown is action
            return reinstantiation if is_part else None
        return self._reinstantiations.get(action.vm) if tag in ("forgeVM", "bootVM") else None

    def _reinstantiate(self, reinstantiation: ReinstantiationActions) -> Reinstantiate:
        return Reinstantiate(
            vm=self._vm(reinstantiation.boot.vm),
            source=self._host(reinstantiation.shutdown.on, "on"),
            target=self._host(reinstantiation.boot.on, "on"),
        )

    def _event_steps(self, event: PlanEvent, path: KeyPath, step: Step, end: int) -> Iterator[Step]:
        if isinstance(event, SubstitutedVmEvent):
            if event.new_vm not in self._reinstantiations:
                what = f"the VM {event.new_vm} replaces {event.vm} but is not forged and booted"
                cure = "forge and boot it, then shut the old VM down, each once"
                self._report(path, what, cure, "contradiction")
            return
        action = self._path
        self._path = (*action, *path)
        allocation = self._action(event)
        self._path = action
        _, hook, number = path
        step_id = StepId(f"allocate-{action[1]}-{hook}-{number}")
        yield self._instant_step(step_id, allocation, end, after=step)

    def _instant_step(
        self, step_id: StepId, action: Action, at: int, after: Step | None = None
    ) -> Step:
        """Return a step of a millisecond, after the other steps of its VM or host then."""
        touched = footprint(action)
        key = (touched.vm or touched.switched, at)
        candidates = (after, self._instant_steps.get(key))
        earlier = {step.id: step for step in candidates if step is not None}
        start_ms = max([1000 * at, *(step.end_ms for step in earlier.values())])
        step = self._instant_steps[key] = Step(
            id=step_id,
            action=action,
            start_ms=start_ms,
            end_ms=start_ms + 1,
            after=tuple(earlier),
        )
        return step

    def _action(self, record: AnyAction) -> Action:
        """Return the action of a record, or of an event that allocates."""
        form = FORM_OF_TAG[tag_of(record)]
        names = {key: self._value(key, getattr(record, key)) for key in form.keys}
        if form.tag == "suspendVM" and names["from"] != names["to"]:
            what = f"the VM {record.vm} cannot be suspended to another node"
            cure = f"write {getattr(record, 'from')}"
            self._report(("to",), what, cure, "unsupported-feature")
        return form.action(**{field: names[key] for key, field in form.keys.items()})

    def _value(self, key: str, value: Any) -> Any:
        match key:
            case "vm":
                return self._vm(value)
            case "amount":
                return value
            case "rc":
                return self._resource(value)
        return self._host(value, key)

    def _resource(self, btrplace_name: str) -> str:
        name = from_btrplace_resource(btrplace_name)
        if name not in self._resources:
            known = sorted(map(to_btrplace_resource, self._resources))
            self._diagnostics.add_unknown((*self._path, "rc"), "resource", btrplace_name, known)
        return name

    def _vm(self, number: int) -> VmId:
        return VmId(self._id_of(self._vms, number, "VM", "vm"))

    def _host(self, number: int, key: str) -> HostId:
        return HostId(self._id_of(self._hosts, number, "node", key))

    def _id_of(self, names: Mapping[int, str], number: int, noun: str, key: str) -> str:
        name = names.get(number)
        if name is None:
            what = f"the problem has no {noun} {number}"
            cure = "check that the plan is for this problem"
            self._report((key,), what, cure, "unknown-name")
        return name or ""

    def _report(self, path: KeyPath, what: str, cure: str, code: str) -> None:
        self._diagnostics.add((*self._path, *path), what, cure, code=code)
