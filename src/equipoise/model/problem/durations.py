"""How long each action of a problem takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    HostAction,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.problem.duration import MEMORY, Duration
from equipoise.model.problem.problem import ActionKind, Problem
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm

SWITCHING: Final[Mapping[ActionKind, type[HostAction]]] = {
    ActionKind.POWER_ON: PowerOn,
    ActionKind.POWER_OFF: PowerOff,
    ActionKind.ENTER_MAINTENANCE: EnterMaintenance,
    ActionKind.LEAVE_MAINTENANCE: LeaveMaintenance,
}
"""The actions that switch a host, by their kinds."""
REINSTANTIATION: Final = (ActionKind.FORGE, ActionKind.BOOT, ActionKind.SHUTDOWN)
"""What it takes to make a VM anew, one after the other."""
_BITS_PER_MIB: Final = 8 * 1024 * 1024
_BITS_PER_MS: Final = 1_000
"""Of one Mbit/s."""
_MIB_PER_S_BY_MBPS: Final = 1_000 * _BITS_PER_MS / _BITS_PER_MIB
_NOWHERE: Final = HostId("")


class Durations:
    """What a problem says about times, or else what is estimated."""

    def __init__(self, problem: Problem, snapshot: Snapshot) -> None:
        self._problem = problem
        self._snapshot = snapshot

    def vm_ms(self, kind: ActionKind, vm: VmId) -> int:
        """How long an action on a VM takes."""
        given = self._problem.durations.get(kind)
        if given is None:
            if kind is ActionKind.REINSTANTIATE:
                return sum(self.vm_ms(part, vm) for part in REINSTANTIATION)
            ms = self._problem.estimates.duration_ms(_sample(kind, vm), self._snapshot)
        else:
            ms = given.of.get(vm) or _computed(given, self._snapshot.vms[vm])
        return self._on_grid(ms)

    def move_ms(self, vm: VmId, mbps: int) -> int:
        """How long a VM migrates over a network: at the speed of its narrowest part."""
        estimates = self._problem.estimates
        given = self._problem.durations.get(ActionKind.MIGRATE)
        if given is not None:
            if vm in given.of:
                return self._on_grid(given.of[vm])
            estimates = estimates.but(migration_ms=given.ms)
        speed = min(estimates.migration_mib_per_s, mbps * _MIB_PER_S_BY_MBPS)
        over_links = estimates.but(migration_mib_per_s=speed)
        return self._on_grid(over_links.move_ms(self._snapshot.vms[vm]))

    def copying_ms(self, vm: VmId, mbps: int) -> int:
        """What a migration takes at the least: its memory goes once over the narrowest part.

        Nothing, if the problem says how long it takes, for then nobody knows what is copied.
        """
        given = self._problem.durations.get(ActionKind.MIGRATE)
        if given is not None and vm in given.of:
            return 0
        return -(-self._snapshot.vms[vm].memory_mib * _BITS_PER_MIB // (mbps * _BITS_PER_MS))

    def _on_grid(self, ms: int) -> int:
        grid = self._problem.grid_ms
        return -(-ms // grid) * grid

    def host_ms(self, kind: ActionKind, host: HostId) -> int:
        """How long it takes to switch a host."""
        given = self._problem.durations.get(kind)
        if given is None:
            action = SWITCHING[kind](host=host)
            return self._on_grid(self._problem.estimates.duration_ms(action, self._snapshot))
        return self._on_grid(given.of.get(host) or given.ms)


def _computed(given: Duration, vm: Vm) -> int:
    if not given.per_unit_ms:
        return given.ms
    units = (
        vm.memory_mib
        if given.resource == MEMORY
        else vm.consumption.get(ResourceName(given.resource), 0)
    )
    return given.ms + round(given.per_unit_ms * units)


def _sample(kind: ActionKind, vm: VmId) -> Action:
    """An action of a kind: how long it takes does not depend on where it happens."""
    match kind:
        case ActionKind.MIGRATE:
            return Migrate(vm=vm, source=_NOWHERE, target=_NOWHERE)
        case ActionKind.RESUME:
            return Resume(vm=vm, source=_NOWHERE, target=_NOWHERE)
        case ActionKind.SUSPEND:
            return Suspend(vm=vm, source=_NOWHERE)
        case ActionKind.SHUTDOWN:
            return Shutdown(vm=vm, source=_NOWHERE)
        case ActionKind.BOOT:
            return Boot(vm=vm, target=_NOWHERE)
        case ActionKind.FORGE:
            return Forge(vm=vm)
        case ActionKind.ALLOCATE:
            return Allocate(vm=vm, resource=ResourceName("x"), amount=0)
        case _:
            return Kill(vm=vm)
