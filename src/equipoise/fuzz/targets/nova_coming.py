"""Who comes to which host, and who lies where by then: a plan as Nova's scheduler lives it.

Nova decides about one VM after the other, when it is booted or migrated, and then sees what those
before it have come to. A constraint about one VM is asked when that one comes, after all others;
or before them, if it asks where they were at first. One about all is asked when each of them comes,
in an order in which it holds until the last one: the end is all that counts, so their order is
ours. If what is under way counts, boots are asked about when they begin, and whatever has not ended
by then is under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from equipoise.fuzz.schedulers.scheduler import Unsupported, without_network
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


class _Asked(NamedTuple):
    """A VM that comes, and who lies where by then."""

    comes: Boot | Migrate
    lying: Mapping[VmId, Lying]


_BROKEN: Final = "the constraint is broken already, and a filter asks what a VM changes"
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


def comings_of(trial: Trial, when: When) -> list[Coming]:
    """What the scheduler is asked in a trial, in its order."""
    without_network(trial)
    if trial.initial.in_flight:
        raise Unsupported("actions are under way before the plan begins")
    for step in trial.steps:
        _check(trial.initial, step)
    found = _in_order(trial, when)
    if not found:
        who = trial.demand.arguments.get("v", "a VM")
        raise Unsupported(f"the filter is asked when {who} comes, and it does not")
    initial = trial.initial
    return [
        Coming(trial.demand.arguments, initial.vms[one.vm], initial.hosts[one.target], initial, by)
        for one, by in found
    ]


def _in_order(trial: Trial, when: When) -> list[_Asked]:
    steps = sorted(trial.steps, key=lambda one: one.start_ms)
    if when is When.DURING:
        return _boots(trial, steps)
    about = trial.demand.arguments.get("v")
    if about is None:
        return _in_turn(trial, steps)
    own = [step for step in steps if step.footprint.vm == about]
    others = [] if when is When.FIRST else [step for step in steps if step not in own[-1:]]
    lying = _settled(trial, others)
    if lying is None:
        raise Unsupported(_BROKEN)
    return [_Asked(_comes(step), lying) for step in own[-1:]]


def _check(snapshot: Snapshot, step: Step) -> None:
    action = step.action
    if not isinstance(action, Boot | Migrate):
        raise Unsupported("Nova's filters are asked when a VM is booted or migrated only")
    if action.vm not in snapshot.vms or action.target not in snapshot.hosts:
        raise Unsupported("the VM or the host of the plan does not exist")


def _in_turn(trial: Trial, steps: Sequence[Step]) -> list[_Asked]:
    """All of them, in an order in which the constraint holds before each of them comes."""
    found: list[_Asked] = []
    left = list(steps)
    while left:
        for step in reversed(left):
            others = [one for one in left if one is not step]
            lying = _settled(trial, others)
            if lying is not None:
                break
        else:
            raise Unsupported(_BROKEN)
        found.insert(0, _Asked(_comes(step), lying))
        left = others
    return found


def _boots(trial: Trial, steps: Sequence[Step]) -> list[_Asked]:
    """The boots; of those that begin together, they come after the migrations."""
    ordered = sorted(steps, key=lambda one: (one.start_ms, isinstance(one.action, Boot)))
    if not ordered or not isinstance(ordered[-1].action, Boot):
        raise Unsupported("the filter is asked when a VM is booted while others are under way")
    if judge_case(trial.demand, Case(trial.initial, tuple(ordered[:-1]))) is not None:
        raise Unsupported(_BROKEN)
    return [
        _Asked(step.action, _under_way(trial, step, ordered[:place]))
        for place, step in enumerate(ordered)
        if isinstance(step.action, Boot)
    ]


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


def _under_way(trial: Trial, step: Step, before: Sequence[Step]) -> Mapping[VmId, Lying]:
    """Who lies where when a step begins, and who of those before it is still under way."""
    lying = lying_at_first(trial.initial)
    for other in before:
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
