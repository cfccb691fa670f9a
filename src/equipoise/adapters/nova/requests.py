"""The placement requests that a plan makes of Nova: one VM after the other, each on one host.

Nova decides when a VM is booted or migrated, and then sees the VMs that were placed before it. A
constraint about one VM is judged when that VM is placed, after all others, or before them if it is
about their initial hosts. A constraint about all VMs is judged for each of them, in an order in
which it holds until the last one: only the end counts, so the order is ours. If actions in flight
count, boots are judged when they start, and what has not ended by then is in flight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from equipoise.adapters.targets.scheduler import UnsupportedTrial, require_no_network
from equipoise.adapters.targets.trial import Trial
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.requirement import Case, judge_case


class InstanceState(StrEnum):
    """The state of a VM on its host."""

    RUNNING = "runs"
    SUSPENDED = "sleeps"
    BOOTING = "is booted"
    MIGRATING = "is migrated"


class PlacementOrder(StrEnum):
    """When the VM of a constraint is placed."""

    LAST = "last"
    FIRST = "first"
    DURING = "during"
    """While other actions are in flight."""


class InstanceLocation(NamedTuple):
    """The host of a VM in Nova: a migrating VM is on its source until the end."""

    host: HostId
    state: InstanceState


class PlacementRequest(NamedTuple):
    """A VM that is placed on a host, and the constraint that it must satisfy."""

    arguments: Mapping[str, Any]
    """The arguments of the constraint."""
    vm: Vm
    host: Host
    snapshot: Snapshot
    """The cluster before the plan starts."""
    locations: Mapping[VmId, InstanceLocation]
    """The locations of all VMs at the request; a migrated VM is on its source."""

    @property
    def is_booted(self) -> bool:
        """Whether the VM had no host before."""
        return self.vm.id not in self.locations


class _PlacedAction(NamedTuple):
    """A boot or migration, and the locations of all VMs at its request."""

    action: Boot | Migrate
    locations: Mapping[VmId, InstanceLocation]


ACTIONS_IN_FLIGHT: Final = "actions are in flight before the plan starts"
_ALREADY_VIOLATED: Final = (
    "the constraint is violated before the VM is placed, and a filter judges only the placement"
)
_INSTANCE_STATES: Final[Mapping[VmState, InstanceState]] = {
    VmState.RUNNING: InstanceState.RUNNING,
    VmState.SLEEPING: InstanceState.SUSPENDED,
}


def not_placed(vm: str) -> str:
    """The reason why a filter cannot judge a VM that is neither booted nor migrated."""
    return f"the filter judges the placement of {vm}, and the trial does not place it"


def initial_locations(snapshot: Snapshot) -> dict[VmId, InstanceLocation]:
    """The locations of all VMs before the plan starts."""
    return {
        vm.id: InstanceLocation(vm.host, _INSTANCE_STATES[vm.state])
        for vm in snapshot.vms.values()
        if vm.host is not None
    }


def placement_requests(trial: Trial, when: PlacementOrder) -> list[PlacementRequest]:
    """The placement requests of a trial, in their order."""
    require_no_network(trial)
    if trial.initial.in_flight:
        raise UnsupportedTrial(ACTIONS_IN_FLIGHT, "unsupported-cluster")
    for step in trial.steps:
        _check(trial.initial, step)
    placed = _ordered_actions(trial, when)
    if not placed:
        vm = trial.demand.arguments.get("v", "a VM")
        raise UnsupportedTrial(not_placed(vm), "unsupported-plan")
    initial = trial.initial
    return [
        PlacementRequest(
            trial.demand.arguments,
            initial.vms[action.vm],
            initial.hosts[action.target],
            initial,
            locations,
        )
        for action, locations in placed
    ]


def _ordered_actions(trial: Trial, when: PlacementOrder) -> list[_PlacedAction]:
    steps = sorted(trial.steps, key=lambda step: step.start_ms)
    if when is PlacementOrder.DURING:
        return _boots(trial, steps)
    about = trial.demand.arguments.get("v")
    if about is None:
        return _one_after_another(trial, steps)
    own = [step for step in steps if step.footprint.vm == about]
    others = (
        [] if when is PlacementOrder.FIRST else [step for step in steps if step not in own[-1:]]
    )
    locations = _locations_after(trial, others)
    if locations is None:
        raise UnsupportedTrial(_ALREADY_VIOLATED, "already-violated")
    return [_PlacedAction(_placing_action(step), locations) for step in own[-1:]]


def _check(snapshot: Snapshot, step: Step) -> None:
    action = step.action
    if not isinstance(action, Boot | Migrate):
        raise UnsupportedTrial("Nova's filters judge only boots and migrations", "unsupported-plan")
    if action.vm not in snapshot.vms or action.target not in snapshot.hosts:
        raise UnsupportedTrial("the VM or the host of the plan does not exist", "unsupported-plan")


def _one_after_another(trial: Trial, steps: Sequence[Step]) -> list[_PlacedAction]:
    """All placements, in an order in which the constraint holds before each of them.

    The order is built from its end: the last step is one without which the constraint holds.
    """
    ordered: list[_PlacedAction] = []
    remaining = list(steps)
    while remaining:
        for step in reversed(remaining):
            others = [other for other in remaining if other is not step]
            locations = _locations_after(trial, others)
            if locations is not None:
                break
        else:
            raise UnsupportedTrial(_ALREADY_VIOLATED, "already-violated")
        ordered.insert(0, _PlacedAction(_placing_action(step), locations))
        remaining = others
    return ordered


def _boots(trial: Trial, steps: Sequence[Step]) -> list[_PlacedAction]:
    """The boots; of steps that start together, migrations come first."""
    ordered = sorted(steps, key=lambda step: (step.start_ms, isinstance(step.action, Boot)))
    if not ordered or not isinstance(ordered[-1].action, Boot):
        raise UnsupportedTrial(
            "the filter judges a boot while other actions are in flight", "unsupported-plan"
        )
    if judge_case(trial.demand, Case(trial.initial, tuple(ordered[:-1]))) is not None:
        raise UnsupportedTrial(_ALREADY_VIOLATED, "already-violated")
    return [
        _PlacedAction(step.action, _locations_in_flight(trial, step, ordered[:position]))
        for position, step in enumerate(ordered)
        if isinstance(step.action, Boot)
    ]


def _locations_after(
    trial: Trial, others: Sequence[Step]
) -> Mapping[VmId, InstanceLocation] | None:
    """The locations after the other steps; ``None`` if the constraint is violated by then."""
    if others:
        vms = trial.initial.vms
        placed = {
            action.vm: vms[action.vm].but(state=VmState.RUNNING, host=action.target)
            for action in map(_placing_action, others)
        }
        trial = Trial(trial.demand, replace(trial.initial, vms=vms.but(placed)), ())
    return None if trial.is_broken_at_first else initial_locations(trial.initial)


def _locations_in_flight(
    trial: Trial, step: Step, before: Sequence[Step]
) -> Mapping[VmId, InstanceLocation]:
    """The locations when a step starts; earlier steps that have not ended are in flight."""
    locations = initial_locations(trial.initial)
    for other in before:
        action = _placing_action(other)
        if other.end_ms <= step.start_ms:
            locations[action.vm] = InstanceLocation(action.target, InstanceState.RUNNING)
        elif isinstance(action, Boot):
            locations[action.vm] = InstanceLocation(action.target, InstanceState.BOOTING)
        else:
            locations[action.vm] = InstanceLocation(action.source, InstanceState.MIGRATING)
    return locations


def _placing_action(step: Step) -> Boot | Migrate:
    assert isinstance(step.action, Boot | Migrate), "_check has rejected all other actions"
    return step.action
