"""Balance advice: the moves and host switches that a pass recommends, with reasons and figures.

Also builds the intents of an advice, and the snapshot after its moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, sqrt
from typing import Final, NamedTuple

from equipoise.balance.repair.faults import BalanceFault
from equipoise.model.action import Action, EnterMaintenance, Migrate, PowerOff
from equipoise.model.action_durations import Estimates
from equipoise.model.host import RequestedHostState
from equipoise.model.plan import Intent, Rejection
from equipoise.model.quantity import HostId, RuleId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot


def move_step_id(vm: VmId) -> StepId:
    """Return the step id of the move of a VM within a pass."""
    return StepId(f"move-{vm}")


def parking_step_id(vm: VmId) -> StepId:
    """Return the step id of the move of a VM to a host that it leaves again within a pass."""
    return StepId(f"park-{vm}")


class Transfer(NamedTuple):
    """A VM that goes from one host to another."""

    vm: VmId
    source: HostId
    target: HostId
    parking: bool = False
    """Whether the VM leaves the target again: it makes way for another VM."""
    after: tuple[VmId, ...] = ()
    """The VMs that must have moved to their last target before."""
    after_parking: tuple[VmId, ...] = ()
    """The VMs that must have been parked before."""

    @property
    def step(self) -> StepId:
        """The step id of the move within a pass."""
        return parking_step_id(self.vm) if self.parking else move_step_id(self.vm)

    @property
    def prerequisites(self) -> tuple[StepId, ...]:
        """The steps that must have ended before."""
        return (*map(move_step_id, self.after), *map(parking_step_id, self.after_parking))


def switch_step_id(host: HostId) -> StepId:
    """Return the step id of the switch of a host within a pass."""
    return StepId(f"switch-{host}")


class IntentBuilder:
    """Builds intents with the expected duration of their actions."""

    def __init__(self, snapshot: Snapshot, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates

    def of(
        self, step: StepId, action: Action, reason: str = "", after: Iterable[StepId] = ()
    ) -> Intent:
        """Return the intent of any action."""
        duration_ms = self._estimates.duration_ms(action, self._snapshot)
        return Intent(
            id=step, action=action, duration_ms=duration_ms, after=tuple(after), reason=reason
        )

    def move(self, transfer: Transfer, reason: str = "", after: Iterable[StepId] = ()) -> Intent:
        """Return the intent that migrates a VM."""
        action = Migrate(vm=transfer.vm, source=transfer.source, target=transfer.target)
        return self.of(transfer.step, action, reason, (*transfer.prerequisites, *after))

    def switch(self, switch: HostSwitchAdvice) -> Intent:
        """Return the intent that switches a host once it is empty."""
        return self.of(
            switch_step_id(switch.host),
            switch.action,
            f"the operator requests {switch.desired} for {switch.host}",
            map(move_step_id, switch.after),
        )


def snapshot_after_moves(snapshot: Snapshot, moves: Iterable[tuple[VmId, HostId]]) -> Snapshot:
    """Return the snapshot with the VMs on their target hosts."""
    changed = {vm: snapshot.vms[vm].but(host=host) for vm, host in moves}
    return replace(snapshot, vms=snapshot.vms.but(changed)) if changed else snapshot


MANDATORY_PRIORITY: Final = 1
"""The priority of a move that a rule or a requested host state needs."""
RELIEF_PRIORITY: Final = 2
"""The priority of a move that relieves an overloaded host: the first after the rules."""
LOWEST_PRIORITY: Final = 5


class BalanceCode(StrEnum):
    """Why a move is recommended. The values are stable and are keys of ``CODES``."""

    BALANCE = "balance"
    RELIEF = "relieve-overload"
    RULE = "repair-rule"
    EVACUATE = "evacuate"
    FREE_CAPACITY = "free-capacity"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAdvice:
    """A recommended move."""

    vm: VmId
    source: HostId
    target: HostId
    code: BalanceCode
    priority: int
    """1 repairs a rule. 2 relieves overload. 2 to 5 reduce the imbalance, by how large it is."""
    reason: str
    gain: Mapping[str, float]
    """The fall of the imbalance, and the demand that becomes met, by resource and second.

    For a relief move, also by how many MHz and MiB the overload falls.
    """
    cost: Mapping[str, float]
    risk: Mapping[str, float]
    """The seconds that demand is assumed to stay, and the gain if the worst case follows."""
    considered: tuple[Rejection, ...] = ()
    after: tuple[VmId, ...] = ()
    """The VMs that must have moved before."""
    automatic: bool = True
    """Whether the move runs without approval."""
    parking: bool = False
    """Whether the VM leaves the target again in this pass: it makes way for another VM."""
    after_parking: tuple[VmId, ...] = ()
    """The VMs that must have been parked before."""

    @property
    def transfer(self) -> Transfer:
        """The move without its reasons."""
        return Transfer(
            self.vm, self.source, self.target, self.parking, self.after, self.after_parking
        )


@dataclass(frozen=True, slots=True)
class HostSwitchAdvice:
    """A host that goes into the requested state once it is empty."""

    host: HostId
    desired: RequestedHostState
    after: tuple[VmId, ...]
    automatic: bool = True
    """Whether the switch runs without approval."""

    @property
    def action(self) -> Action:
        """The switch as an action."""
        if self.desired is RequestedHostState.MAINTENANCE:
            return EnterMaintenance(host=self.host)
        return PowerOff(host=self.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceAdvice:
    """The result of one pass."""

    moves: tuple[MoveAdvice, ...] = ()
    switches: tuple[HostSwitchAdvice, ...] = ()
    faults: tuple[BalanceFault, ...] = ()
    """What is wrong with rules and host states, and no move repairs."""
    rejected: tuple[Rejection, ...] = ()
    """Moves that were found and dropped: by the gate, or below the threshold."""
    repairs: tuple[RuleId, ...] = ()
    before: float = 0.0
    after: float = 0.0
    """The imbalance before and after the actions, each as a pass on that state reads it."""
    gain: float = 0.0
    """By how much the moves lower the imbalance, in the weights of the start.

    It differs from ``before - after`` if the moves end a scarcity, because the weights follow the
    loads.
    """
    ignored: tuple[RuleId, ...] = ()
    """The soft rules about hosts that the pass ignored, because they prevent a repair."""
    fewest: bool = True
    """Whether no repair of the rules has fewer moves."""
    overload: tuple[BalanceFault, ...] = ()
    """What is overloaded after the moves: what the cluster lacks, then the hosts."""
    contended: tuple[str, ...] = ()
    """The resources of which some host had too little before the moves."""
    crowded: int = 0
    """The number of hosts whose demand exceeds their capacity after the moves."""
    summary: str = ""

    @property
    def unresolved(self) -> tuple[BalanceFault, ...]:
        """Everything that stays wrong after the moves: broken rules, then overload."""
        return self.faults + self.overload

    @property
    def actions(self) -> tuple[Action, ...]:
        """All moves and switches, in an order in which they fit."""
        moves = (Migrate(vm=move.vm, source=move.source, target=move.target) for move in self.moves)
        return (*moves, *(switch.action for switch in self.switches))


def move_priority(imbalance: float, hosts: int) -> int:
    """Return the priority of a move at an imbalance among so many hosts: 2 to 5.

    As in vSphere: one level per tenth of imbalance; the steps are smaller with more hosts.
    """
    # The imbalance is a standard deviation: on many hosts the same figure hides single hosts that
    # are much fuller, so it counts as more urgent.
    steps = ceil(imbalance / 0.1 * sqrt(max(1, hosts)))
    return min(LOWEST_PRIORITY, max(MANDATORY_PRIORITY + 1, 6 - steps))
