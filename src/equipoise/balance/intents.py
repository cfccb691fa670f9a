"""Builds intents (moves and host switches) from balance advice, and the snapshot after moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from equipoise.balance.advice import HostSwitchAdvice
from equipoise.model.action import Migrate
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, StepId, VmId
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
