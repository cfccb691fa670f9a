"""Who comes to which host, and who lies where by then: a plan as Nova's scheduler lives it.

Nova decides about one VM after the other, when it is booted or migrated, and then sees what the
others have come to. So one step of a plan is the question, and the others were let in before. If
what is under way counts, the question is the last one to begin, and whatever has not ended by then
is under way. Else only the end counts, so their order is ours: whom the constraint is about comes
last, and if it is about all of them, one without whom it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.case import Case, judge_case

Comes: TypeAlias = Boot | Migrate


class Life(StrEnum):
    """What a VM does where it lies."""

    RUNS = "runs"
    SLEEPS = "sleeps"
    IS_BOOTED = "is booted"
    IS_MIGRATED = "is migrated"


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


def coming_of(trial: Trial, *, during: bool) -> Coming:
    """What the scheduler is asked in a trial; ``during`` if it matters what is under way."""
    if trial.initial.in_flight:
        raise Unsupported("actions are under way before the plan begins")
    steps = sorted(trial.steps, key=lambda one: one.start_ms)
    for step in steps:
        _check(trial.initial, step)
    asked = _last_boots(steps) if during else _about(steps, trial.demand.arguments.get("v"))
    for step in reversed(asked):
        others = tuple(one for one in steps if one is not step)
        if not _is_broken(trial, others):
            return _coming(trial, step, others, during=during)
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


def _is_broken(trial: Trial, others: tuple[Step, ...]) -> bool:
    """Whether the constraint does not even hold without the one who is asked about."""
    if not others:
        return trial.is_broken_at_first
    return judge_case(trial.demand, Case(trial.initial, others)) is not None


def _coming(trial: Trial, step: Step, others: Iterable[Step], *, during: bool) -> Coming:
    lying = lying_at_first(trial.initial)
    for other in others:
        is_over = not during or other.end_ms <= step.start_ms
        action = _comes(other)
        lying[action.vm] = _over(action) if is_over else _under_way(action)
    action, initial = _comes(step), trial.initial
    vm, host = initial.vms[action.vm], initial.hosts[action.target]
    return Coming(trial.demand.arguments, vm, host, initial, lying)


def _comes(step: Step) -> Comes:
    assert isinstance(step.action, Boot | Migrate), "no other is asked about"
    return step.action


def _over(action: Comes) -> Lying:
    return Lying(action.target, Life.RUNS)


def _under_way(action: Comes) -> Lying:
    if isinstance(action, Boot):
        return Lying(action.target, Life.IS_BOOTED)
    return Lying(action.source, Life.IS_MIGRATED)
