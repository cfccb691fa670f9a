"""Moves as wishes: the form in which the gate, the arbiter and the journal know them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from equipoise.balance.advice import Switch
from equipoise.model.action import Migrate
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap


def step_of(vm: VmId) -> StepId:
    """What the move of a VM is called within a pass."""
    return StepId(f"move-{vm}")


def switch_of(host: HostId) -> StepId:
    """What the switching of a host is called within a pass."""
    return StepId(f"switch-{host}")


class Wishes:
    """Makes intents of moves, and of the switching of hosts."""

    def __init__(self, snapshot: Snapshot, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates

    def move(self, vm: VmId, source: HostId, target: HostId) -> Intent:
        """Wish that a VM goes from one host to another."""
        return Intent(
            id=step_of(vm),
            action=Migrate(vm=vm, source=source, target=target),
            duration_ms=self._estimates.move_ms(self._snapshot.vms[vm]),
        )

    def switch(self, one: Switch) -> Intent:
        """Wish that a host is switched once it is empty."""
        return Intent(
            id=switch_of(one.host),
            action=one.action,
            duration_ms=self._estimates.duration_ms(one.action, self._snapshot),
            after=tuple(map(step_of, one.after)),
            reason=f"{one.host} is to go into {one.wish}",
        )


def after_moves(snapshot: Snapshot, moves: Iterable[tuple[VmId, HostId]]) -> Snapshot:
    """The cluster once VMs are where they should go."""
    changed = {vm: snapshot.vms[vm].but(host=host) for vm, host in moves}
    return replace(snapshot, vms=FrozenMap({**snapshot.vms, **changed})) if changed else snapshot
