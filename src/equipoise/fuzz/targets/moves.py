"""What a target would do with a cluster, as a plan that can be judged.

Targets say in which order they act, if that, and nothing of times: every action takes a second. Few
promise that there is room at every moment: of the others, it only counts whether their moves could
be made in some order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Action, EnterMaintenance, LeaveMaintenance, Migrate
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

STEP_MS: Final = 1000
IN_BETWEEN: Final = "there is room where all go, not on their way, of which it promises nothing"
ROOM: Final = "capacity"


@dataclass(frozen=True, slots=True)
class Act:
    """An action of a target, and in which round it is: those of a round are begun together."""

    action: Action
    round: int


def acts_of(told: Iterable[Mapping[str, Any]]) -> list[Act]:
    """What a worker told, in its order; each is a round of its own unless it says otherwise."""
    return [Act(_action(one), int(one.get("round", place))) for place, one in enumerate(told)]


def steps_of(acts: Sequence[Act]) -> tuple[Step, ...]:
    """A plan of actions, round after round."""
    return tuple(
        Step(
            id=StepId(f"s{number}"),
            action=act.action,
            start_ms=STEP_MS * act.round,
            end_ms=STEP_MS * (act.round + 1),
        )
        for number, act in enumerate(acts, start=1)
    )


def in_some_order(trial: Trial, acts: Sequence[Act]) -> tuple[Step, ...]:
    """The plan as it was told, or in an order in which machines can carry it out.

    If there is none, but there is room for all in the end, nothing can be said of it.
    """
    told = steps_of(acts)
    wrong = replace(trial, steps=told).objections
    if not wrong:
        return told
    other = steps_of(_one_by_one(trial.initial, acts))
    if not replace(trial, steps=other).objections:
        return other
    only_room = all(one.constraint == ROOM for one in wrong)
    if only_room and not ends_overfull(trial.initial, acts):
        raise Unsupported(IN_BETWEEN)
    return told


def is_overfull(state: Snapshot) -> bool:
    """Whether a host has not enough for those who run there."""
    there = _placed(state, ())
    return any(not _has_room(state, host, vms) for host, vms in there.items())


def ends_overfull(initial: Snapshot, acts: Sequence[Act]) -> bool:
    """Whether somebody has been moved to a host that has not enough in the end."""
    there = _placed(initial, acts)
    come = {act.action.target for act in acts if isinstance(act.action, Migrate)}
    return any(not _has_room(initial, host, there.get(host, [])) for host in come)


def _placed(initial: Snapshot, acts: Sequence[Act]) -> dict[HostId, list[Vm]]:
    """Who runs where in the end."""
    homes = {vm.id: vm.host for vm in initial.vms.values() if vm.state is VmState.RUNNING}
    come = {act.action.vm: act.action.target for act in acts if isinstance(act.action, Migrate)}
    homes |= {vm: host for vm, host in come.items() if vm in homes}
    there: dict[HostId, list[Vm]] = {}
    for vm, host in homes.items():
        if host is not None:
            there.setdefault(host, []).append(initial.vms[vm])
    return there


def _has_room(initial: Snapshot, host: HostId, vms: Sequence[Vm]) -> bool:
    capacity = initial.hosts[host].capacity
    names = {name for vm in vms for name, amount in vm.consumption.items() if amount}
    return all(
        sum(vm.consumption.get(name, 0) for vm in vms) <= capacity.get(name, 0) for name in names
    )


def _one_by_one(initial: Snapshot, acts: Sequence[Act]) -> list[Act]:
    """The same actions such that each comes where there is room for it then, if possible."""
    homes: dict[VmId, HostId | None] = {
        vm.id: vm.host for vm in initial.vms.values() if vm.state is VmState.RUNNING
    }
    left, found = list(acts), list[Act]()
    while left:
        chosen = next((one for one in left if _is_next(initial, homes, one, left)), left[0])
        left.remove(chosen)
        found.append(Act(chosen.action, len(found)))
        if isinstance(chosen.action, Migrate):
            homes[chosen.action.vm] = chosen.action.target
    return found


def _is_next(
    initial: Snapshot, homes: Mapping[VmId, HostId | None], act: Act, left: Sequence[Act]
) -> bool:
    """Whether an action can be done before all others that are left."""
    action = act.action
    if not isinstance(action, Migrate):
        return act is left[0]
    own = next(one for one in left if _moves(one.action, action.vm))
    if own is not act or action.target not in initial.hosts or action.vm not in initial.vms:
        return False
    there = [initial.vms[vm] for vm, host in homes.items() if host == action.target]
    return _has_room(initial, action.target, [*there, initial.vms[action.vm]])


def _moves(action: Action, vm: VmId) -> bool:
    return isinstance(action, Migrate) and action.vm == vm


def _action(told: Mapping[str, Any]) -> Action:
    match told:
        case {"do": "migrate", "vm": vm, "from": source, "to": target}:
            return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
        case {"do": "close", "host": host}:
            return EnterMaintenance(host=HostId(host))
        case {"do": "open", "host": host}:
            return LeaveMaintenance(host=HostId(host))
    raise ValueError(f"nobody knows how to {told.get('do')}")
