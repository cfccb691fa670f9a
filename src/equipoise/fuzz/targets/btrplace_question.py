"""A trial as a question to BtrPlace, or the reason why there is no such question.

A cluster is told as our files of BtrPlace's tell it, and so are the actions of a plan. A VM that is
not made yet is nobody there, unless the plan makes it; then BtrPlace is told its template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.btrplace_constraint import told_constraint
from equipoise.fuzz.targets.btrplace_network import against_network, tell_memory
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import (
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.files.btrplace import Numbering, plan_record, read_plan
from equipoise.model.host import HostState
from equipoise.model.plan import Step, Violation
from equipoise.model.problem import Problem
from equipoise.model.vm import VmState
from equipoise.plan.network import OVERLOADED

Question = dict[str, Any]

_ACTIONS: Final = PowerOn | PowerOff | Forge | Boot | Shutdown | Migrate | Suspend | Resume | Kill
_HOST_STATES: Final = frozenset((HostState.ON, HostState.STANDBY))
_KNOWN_THERE: Final = frozenset(("host_on", "host_empty", "host_life", OVERLOADED))
"""Why machines could not carry a plan out, as BtrPlace knows by itself: hosts that are not on, and
links that carry no more."""
_ROOM: Final = "capacity"
_ALL: Final = 100
"""Percent of what a host has, which it may give without any overbooking."""


def encode(trial: Trial, *, repair: bool) -> Question:
    """Put a trial into BtrPlace's words; raise ``Unsupported`` if it has none for it."""
    for why in _reasons_against(trial):
        raise Unsupported(why)
    problem = Problem(cluster=trial.initial.inventory(), network=trial.network)
    unmade = _unmade(trial)
    numbers = Numbering.of(problem)
    record = plan_record(trial.plan, problem)
    if trial.network is not None:
        tell_memory(trial, trial.network, numbers.vms, record["origin"])
    return {
        **record,
        "unmade": {str(numbers.vms[vm]): template for vm, template in unmade.items()},
        "constraint": told_constraint(trial, numbers),
        "repair": repair,
    }


def read_made(trial: Trial, told: dict[str, Any]) -> tuple[Step, ...]:
    """The steps of a plan that BtrPlace made for the cluster of a trial."""
    problem = Problem(cluster=trial.initial.inventory())
    return read_plan(msgspec.json.encode(told), "BtrPlace's plan", problem).steps


def _reasons_against(trial: Trial) -> Iterator[str]:
    snapshot = trial.initial
    if snapshot.in_flight:
        yield "actions are under way already, and BtrPlace begins when nothing is"
    for host in snapshot.hosts.values():
        if host.state not in _HOST_STATES:
            yield f"{host.id} is {host.state}, and nodes of BtrPlace are on or off"
    for vm in snapshot.vms.values():
        if vm.state is VmState.TERMINATED:
            yield f"{vm.id} has ended, and such a VM is nobody in BtrPlace"
    for name, count in Counter(map(_subject, trial.steps)).items():
        if count > 1:
            yield f"{name} has {count} actions, and BtrPlace plans one at the most"
    for step in trial.steps:
        yield from _against_step(step)
    yield from against_network(trial)
    for objection in trial.objections:
        yield from _against_objection(trial, objection)


def _subject(step: Step) -> str:
    touched = step.footprint
    return str(touched.vm or touched.switched)


def _against_step(step: Step) -> Iterator[str]:
    action = step.action
    if not isinstance(action, _ACTIONS):
        yield f"BtrPlace does not plan to {action.__struct_config__.tag}, and takes time for it"
    if step.start_ms % 1000 or step.end_ms % 1000:
        yield f"{step.id} begins or ends within a second, and BtrPlace counts in whole ones"
    if isinstance(action, Kill) and step.start_ms:
        yield f"{step.id} kills a VM later than at 0, when BtrPlace does"


def _against_objection(trial: Trial, objection: Violation) -> Iterator[str]:
    """A plan that machines could not carry out is put only if BtrPlace could know."""
    if objection.constraint == _ROOM:
        vms = trial.initial.vms.values()
        if any(vm.cpu.reservation_mhz or vm.memory.reservation_mib for vm in vms):
            yield f"BtrPlace is not told what VMs reserve: {objection.detail}"
        if trial.demand.library_name == "Overbook" and trial.demand.arguments["percent"] != _ALL:
            yield "to overbook is a limit besides what a host has here, and in its place there"
    elif objection.constraint not in _KNOWN_THERE:
        yield f"BtrPlace would not know why the plan cannot be carried out: {objection.detail}"


def _unmade(trial: Trial) -> dict[str, str]:
    """The VMs that the plan makes, and from what; nobody else that is not made yet may be named."""
    forged = {step.action.vm for step in trial.steps if isinstance(step.action, Forge)}
    vms = trial.initial.vms.values()
    unmade = {vm.id: vm.template or "" for vm in vms if vm.state is VmState.INIT}
    named = _names(list(trial.demand.arguments.values()))
    for vm in unmade:
        if vm in named and vm not in forged:
            raise Unsupported(f"{vm} is not made yet, and such a VM is nobody in BtrPlace")
    return {vm: template for vm, template in unmade.items() if vm in forged}


def _names(value: Any) -> set[str]:
    """All names in the arguments of a constraint, however deep in groups."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, list | tuple | frozenset):
        return {name for one in value for name in _names(one)}
    return set()
