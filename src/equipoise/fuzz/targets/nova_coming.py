"""Who comes to which host, and who lies where by then: a plan as Nova's scheduler lives it.

Nova decides about one VM after the other, when it is booted or migrated, and then sees what the
others have come to. So one step of a plan is the question, and the others were let in before. If
what is under way counts, the question is the last one to begin, and whatever has not ended by then
is under way. Else only the end counts, so their order is ours: whom the constraint is about comes
last (or first, if it asks where the others were at first), and if it is about all of them, one
without whom it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.case import Case, judge_case


class Life(StrEnum):
    """What a VM does where it lies."""

    RUNS = "runs"
    SLEEPS = "sleeps"
    IS_BOOTED = "is booted"
    IS_MIGRATED = "is migrated"


class When(StrEnum):
    """When the VM comes that is asked about."""

    LAST = "last"
    FIRST = "first"
    DURING = "during"
    """While others are under way."""


class Lying(NamedTuple):
    """Where a VM is, as Nova has it: one that is migrated is on its source until the end."""

    host: HostId
    life: Life


class Coming(NamedTuple):
    """A VM that comes to a host, and what is wanted of it."""

    wanted: Mapping[str, Any]
    """The arguments of the constraint."""
    vm: Vm
    host: Host
    snapshot: Snapshot
    """As it is before the plan begins."""
    lying: Mapping[VmId, Lying]
    """Who lies where when the VM comes; itself where it comes from, if it was anywhere."""

    @property
    def is_booted(self) -> bool:
        """Whether it was nowhere before."""
        return self.vm.id not in self.lying


_LIVES: Final[Mapping[VmState, Life]] = {
    VmState.RUNNING: Life.RUNS,
    VmState.SLEEPING: Life.SLEEPS,
}


def lying_at_first(snapshot: Snapshot) -> dict[VmId, Lying]:
    """Who lies where before anything happens."""
    return {
        vm.id: Lying(vm.host, _LIVES[vm.state])
        for vm in snapshot.vms.values()
        if vm.host is not None
    }


def coming_of(trial: Trial, when: When) -> Coming:
    """What the scheduler is asked in a trial."""
    if trial.initial.in_flight:
        raise Unsupported("actions are under way before the plan begins")
    steps = sorted(trial.steps, key=lambda one: one.start_ms)
    for step in steps:
        _check(trial.initial, step)
    during = when is When.DURING
    asked = _last_boots(steps) if during else _about(steps, trial.demand.arguments.get("v"))
    for step in reversed(asked):
        others = () if when is When.FIRST else tuple(one for one in steps if one is not step)
        lying = _under_way(trial, step, others) if during else _settled(trial, others)
        if lying is not None:
            action, initial = _comes(step), trial.initial
            vm, host = initial.vms[action.vm], initial.hosts[action.target]
            return Coming(trial.demand.arguments, vm, host, initial, lying)
    raise Unsupported("the constraint is broken already, and a filter asks what a VM changes")


def _check(snapshot: Snapshot, step: Step) -> None:
    action = step.action
    if not isinstance(action, Boot | Migrate):
        raise Unsupported("Nova's filters are asked when a VM is booted or migrated only")
    if action.vm not in snapshot.vms or action.target not in snapshot.hosts:
        raise Unsupported("the VM or the host of the plan does not exist")


def _last_boots(steps: Sequence[Step]) -> Sequence[Step]:
    """The boots that begin when nothing begins any more."""
    boots = [
        one for one in steps if isinstance(one.action, Boot) and one.start_ms == steps[-1].start_ms
    ]
    if not boots:
        raise Unsupported("the filter is asked when a VM is booted while others are under way")
    return boots


def _about(steps: Sequence[Step], vm: VmId | None) -> Sequence[Step]:
    """Any of the steps, or the last one of the VM that the constraint is about."""
    found = [one for one in steps if vm in (None, one.footprint.vm)]
    if not found:
        raise Unsupported(f"the filter is asked when {vm or 'a VM'} comes, and it does not")
    return found if vm is None else found[-1:]


def _settled(trial: Trial, others: Sequence[Step]) -> Mapping[VmId, Lying] | None:
    """Who lies where when the others have come; nothing if the constraint is broken by then."""
    if others:
        vms = trial.initial.vms
        come = {
            action.vm: vms[action.vm].but(state=VmState.RUNNING, host=action.target)
            for action in map(_comes, others)
        }
        trial = Trial(trial.demand, replace(trial.initial, vms=vms.but(come)), ())
    return None if trial.is_broken_at_first else lying_at_first(trial.initial)


def _under_way(trial: Trial, step: Step, others: tuple[Step, ...]) -> Mapping[VmId, Lying] | None:
    """The same where those who have not come yet are under way."""
    if judge_case(trial.demand, Case(trial.initial, others)) is not None:
        return None
    lying = lying_at_first(trial.initial)
    for other in others:
        action = _comes(other)
        if other.end_ms <= step.start_ms:
            lying[action.vm] = Lying(action.target, Life.RUNS)
        elif isinstance(action, Boot):
            lying[action.vm] = Lying(action.target, Life.IS_BOOTED)
        else:
            lying[action.vm] = Lying(action.source, Life.IS_MIGRATED)
    return lying


def _comes(step: Step) -> Boot | Migrate:
    assert isinstance(step.action, Boot | Migrate), "no other is asked about"
    return step.action
