"""Balance advice: the moves and host switches that a pass recommends, with reasons and figures.

Also builds the intents of an advice, and the snapshot after its moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, sqrt
from typing import Final

from equipoise.balance.repair.faults import BalanceFault
from equipoise.model.action import Action, EnterMaintenance, Migrate, PowerOff
from equipoise.model.estimate import Estimates
from equipoise.model.host import RequestedHostState
from equipoise.model.plan import Intent, Rejection
from equipoise.model.quantity import HostId, RuleId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap


def move_step_id(vm: VmId) -> StepId:
    """Return the step id of the move of a VM within a pass."""
    return StepId(f"move-{vm}")


def switch_step_id(host: HostId) -> StepId:
    """Return the step id of the switch of a host within a pass."""
    return StepId(f"switch-{host}")


class BalanceIntentBuilder:
    """Builds intents from moves and host switches."""

    def __init__(self, snapshot: Snapshot, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates

    def move(self, vm: VmId, source: HostId, target: HostId) -> Intent:
        """Return the intent that migrates a VM."""
        return Intent(
            id=move_step_id(vm),
            action=Migrate(vm=vm, source=source, target=target),
            duration_ms=self._estimates.move_ms(self._snapshot.vms[vm]),
        )

    def switch(self, switch: HostSwitchAdvice) -> Intent:
        """Return the intent that switches a host once it is empty."""
        return Intent(
            id=switch_step_id(switch.host),
            action=switch.action,
            duration_ms=self._estimates.duration_ms(switch.action, self._snapshot),
            after=tuple(map(move_step_id, switch.after)),
            reason=f"the operator requests {switch.desired} for {switch.host}",
        )


def snapshot_after_moves(snapshot: Snapshot, moves: Iterable[tuple[VmId, HostId]]) -> Snapshot:
    """Return the snapshot with the VMs on their target hosts."""
    changed = {vm: snapshot.vms[vm].but(host=host) for vm, host in moves}
    return replace(snapshot, vms=FrozenMap({**snapshot.vms, **changed})) if changed else snapshot


MANDATORY_PRIORITY: Final = 1
"""The priority of a move that a rule or a requested host state needs."""
LOWEST_PRIORITY: Final = 5


class BalanceCode(StrEnum):
    """Why a move is recommended. The values are stable and are keys of ``CODES``."""

    BALANCE = "balance"
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
    """1 repairs a rule. 2 to 5 reduce the imbalance; a larger imbalance is more urgent."""
    reason: str
    gain: Mapping[str, float]
    """The fall of the imbalance, and the demand that becomes met, by resource and second."""
    cost: Mapping[str, float]
    risk: Mapping[str, float]
    """The seconds that demand is assumed to stay, and the gain if the worst case follows."""
    considered: tuple[Rejection, ...] = ()
    after: tuple[VmId, ...] = ()
    """The VMs that must have moved before."""
    automatic: bool = True
    """Whether the move runs without approval."""

    @property
    def action(self) -> Action:
        """The migration as an action."""
        return Migrate(vm=self.vm, source=self.source, target=self.target)


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
    rejected: tuple[Rejection, ...] = ()
    """Moves that were found and dropped: by the gate, or below the threshold."""
    repairs: tuple[RuleId, ...] = ()
    before: float = 0.0
    after: float = 0.0
    """The imbalance before and after the moves."""
    fewest: bool = True
    """Whether no repair of the rules has fewer moves."""
    crowded: int = 0
    """The number of hosts whose load exceeds their capacity after the moves."""
    summary: str = ""


def move_priority(imbalance: float, hosts: int) -> int:
    """Return the priority of a move at an imbalance among so many hosts: 2 to 5.

    As in vSphere: one level per tenth of imbalance; the steps are smaller with more hosts.
    """
    steps = ceil(imbalance / 0.1 * sqrt(max(1, hosts)))
    return min(LOWEST_PRIORITY, max(MANDATORY_PRIORITY + 1, 6 - steps))
