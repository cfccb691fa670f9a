"""What adapters of balancers share: a cluster without a plan goes in, moves come out.

Balancers state at most an order of their moves and no times, so every action takes one second.
Few of them promise that hosts have capacity at every moment. For the others, it only matters
whether some order of their moves can be executed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from equipoise.adapters.targets.scheduler import (
    MAKES_ITS_OWN_PLAN,
    SchedulerCrash,
    UnsupportedTrial,
    require_no_network,
)
from equipoise.adapters.targets.trial import Trial, TrialOptions
from equipoise.adapters.targets.worker import TargetCrash, WorkerClient
from equipoise.capacity.ledger import CommittedCapacity, vm_claim
from equipoise.model.action import Action, EnterMaintenance, LeaveMaintenance, Migrate
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState

STEP_MS: Final = 1000
NO_CAPACITY_ON_THE_WAY: Final = (
    "hosts have capacity after all moves but not in between, where the balancer promises nothing"
)
CAPACITY: Final = "capacity"


@dataclass(frozen=True, slots=True)
class TargetAction:
    """An action of a target and its round; the actions of a round start together."""

    action: Action
    round: int


def read_actions(records: Iterable[Mapping[str, Any]]) -> list[TargetAction]:
    """Read the actions of a worker, in its order; each has its own round if it states none."""
    return [
        TargetAction(_read_action(record), int(record.get("round", position)))
        for position, record in enumerate(records)
    ]


def steps_in_rounds(acts: Sequence[TargetAction]) -> tuple[Step, ...]:
    """The actions as steps of a plan, round after round."""
    return tuple(
        Step(
            id=StepId(f"s{number}"),
            action=act.action,
            start_ms=STEP_MS * act.round,
            end_ms=STEP_MS * (act.round + 1),
        )
        for number, act in enumerate(acts, start=1)
    )


def executable_order(trial: Trial, acts: Sequence[TargetAction]) -> tuple[Step, ...]:
    """The plan in the order of the balancer, or in another order that can be executed.

    If no order can be executed only because hosts lack capacity in between, the trial is
    unsupported: the balancer promises nothing about that.
    """
    stated = steps_in_rounds(acts)
    objections = replace(trial, steps=stated).objections
    if not objections:
        return stated
    reordered = steps_in_rounds(_sequential(trial.initial, acts))
    if not replace(trial, steps=reordered).objections:
        return reordered
    only_capacity = all(objection.constraint == CAPACITY for objection in objections)
    if only_capacity and not ends_overcommitted(trial.initial, acts):
        raise UnsupportedTrial(NO_CAPACITY_ON_THE_WAY, "not-promised")
    return stated


def is_overcommitted(state: Snapshot) -> bool:
    """Whether a host has less capacity than its running VMs claim."""
    capacity = CommittedCapacity.of(state)
    return any(capacity.is_overcommitted(host) for host in state.hosts)


def ends_overcommitted(initial: Snapshot, acts: Sequence[TargetAction]) -> bool:
    """Whether the target of a migration lacks capacity after all migrations."""
    placement = _Placement(initial)
    migrations = [act.action for act in acts if isinstance(act.action, Migrate)]
    for migration in migrations:
        placement.migrate(migration)
    return any(placement.capacity.is_overcommitted(migration.target) for migration in migrations)


class _Placement:
    """The hosts of the running VMs and the ledger of their capacity, migration by migration."""

    def __init__(self, initial: Snapshot) -> None:
        self._vms = initial.vms
        self.capacity = CommittedCapacity.of(initial)
        self._host_of = {
            vm.id: vm.host for vm in initial.vms.values() if vm.state is VmState.RUNNING
        }

    def fits(self, migration: Migrate) -> bool:
        """Whether the target has capacity for the VM beside the VMs that are there now."""
        return self.capacity.fits(vm_claim(self._vms[migration.vm]), migration.target)

    def migrate(self, migration: Migrate) -> None:
        """Move a VM. A VM that does not run holds no capacity and stays."""
        source = self._host_of.get(migration.vm)
        if source is not None:
            claim = vm_claim(self._vms[migration.vm])
            self.capacity.release(claim, source)
            self.capacity.commit(claim, migration.target)
            self._host_of[migration.vm] = migration.target


def _sequential(initial: Snapshot, acts: Sequence[TargetAction]) -> list[TargetAction]:
    """The same actions in an order in which each migration finds capacity, if there is one.

    Greedy: the first remaining action that fits is next. If none fits, the first one is next.
    """
    placement = _Placement(initial)
    remaining, ordered = list(acts), list[TargetAction]()
    while remaining:
        fitting = (act for act in remaining if _can_be_next(initial, placement, act, remaining))
        chosen = next(fitting, remaining[0])
        remaining.remove(chosen)
        ordered.append(TargetAction(chosen.action, len(ordered)))
        if isinstance(chosen.action, Migrate):
            placement.migrate(chosen.action)
    return ordered


def _can_be_next(
    initial: Snapshot,
    placement: _Placement,
    act: TargetAction,
    remaining: Sequence[TargetAction],
) -> bool:
    """Whether an action can be executed before all other remaining actions."""
    action = act.action
    if not isinstance(action, Migrate):
        return act is remaining[0]
    # The migrations of one VM keep their order.
    first = next(other for other in remaining if _is_migration_of(other.action, action.vm))
    if first is not act or action.target not in initial.hosts or action.vm not in initial.vms:
        return False
    return placement.fits(action)


def _is_migration_of(action: Action, vm: VmId) -> bool:
    return isinstance(action, Migrate) and action.vm == vm


def _read_action(record: Mapping[str, Any]) -> Action:
    match record:
        case {"do": "migrate", "vm": vm, "from": source, "to": target}:
            return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
        case {"do": "close", "host": host}:
            return EnterMaintenance(host=HostId(host))
        case {"do": "open", "host": host}:
            return LeaveMaintenance(host=HostId(host))
    raise ValueError(f"unknown action {record.get('do')!r}")


MEMORY: Final = ResourceName("memory_gib")
MIB_PER_GIB: Final = 1024
ANY_OBJECTION: Final = "Running"
"""The constraint whose trials report every objection to a plan of a balancer."""
JUDGED_ELSEWHERE: Final = (
    f"objections that are independent of the constraint are judged by trials of {ANY_OBJECTION}"
)
OVERCOMMITTED: Final = "a host has less capacity than its VMs consume before the first move"
BALANCER_OPTIONS: Final = TrialOptions(
    hosts=(1, 5),
    vms=(1, 7),
    agents=0,
    paired=0,
    replaceable=0,
    actions=(0, 0),
    allocated=0,
    switched=0,
)
"""Trials without a plan, with clusters that every balancer can express."""


class BalancerClient(WorkerClient):
    """A balancer in a worker process: a cluster goes in, actions come out."""

    def _ask_actions(
        self, question: Mapping[str, Any], *, seconds_max: float, is_isolated: bool
    ) -> Sequence[Mapping[str, Any]]:
        """The actions of the balancer.

        A crash is reported only if the constraint is not judged in isolation: otherwise every
        constraint would report the same crash.
        """
        (answer,) = self._ask(lambda worker: worker.act([question], seconds_max=seconds_max))
        if isinstance(answer, TargetCrash):
            if is_isolated:
                raise UnsupportedTrial(JUDGED_ELSEWHERE, "judged-elsewhere")
            raise SchedulerCrash(answer.what)
        return answer


def require_supported(
    trial: Trial, *, offered: Collection[ResourceName], taken: Collection[ResourceName]
) -> None:
    """Raise ``UnsupportedTrial`` for a plan, a network or a cluster that no balancer handles.

    Every host must offer each resource of ``offered``, every VM must take each one of ``taken``.
    """
    require_no_network(trial)
    if trial.steps:
        raise UnsupportedTrial(MAKES_ITS_OWN_PLAN, "unsupported-plan")
    if trial.is_broken_at_first and trial.demand.name != "Maintenance":
        raise UnsupportedTrial(
            "the constraint is violated initially, and balancers do not promise to repair it",
            "already-violated",
        )
    for host in trial.initial.hosts.values():
        if any(host.capacity.get(name, 0) < 1 for name in offered):
            raise UnsupportedTrial(_lacks(host.id, offered), "unsupported-cluster")
    for vm in trial.initial.vms.values():
        if any(vm.consumption.get(name, 0) < 1 for name in taken):
            raise UnsupportedTrial(_lacks(vm.id, taken), "unsupported-cluster")
    if is_overcommitted(trial.initial):
        raise UnsupportedTrial(OVERCOMMITTED, "already-violated")


def _lacks(name: str, resources: Collection[ResourceName]) -> str:
    return f"{name} must have at least 1 of each of {', '.join(resources)}"
