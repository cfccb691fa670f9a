"""Durations of the actions of a planning problem: given ones, or else the estimates."""

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
from equipoise.model.problem.problem import (
    MEMORY_RESOURCE,
    ActionDuration,
    ActionKind,
    PlanningProblem,
)
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm

HOST_ACTIONS: Final[Mapping[ActionKind, type[HostAction]]] = {
    ActionKind.POWER_ON: PowerOn,
    ActionKind.POWER_OFF: PowerOff,
    ActionKind.ENTER_MAINTENANCE: EnterMaintenance,
    ActionKind.LEAVE_MAINTENANCE: LeaveMaintenance,
}
"""The actions that change the state of a host, by their kinds."""
REINSTANTIATION_STEPS: Final = (ActionKind.FORGE, ActionKind.BOOT, ActionKind.SHUTDOWN)
"""The steps of a reinstantiation, one after the other."""
_BITS_PER_MIB: Final = 8 * 1024 * 1024
_BITS_PER_MS: Final = 1_000
"""At one Mbit/s."""
_MIB_PER_S_BY_MBPS: Final = 1_000 * _BITS_PER_MS / _BITS_PER_MIB
_ANY_HOST: Final = HostId("")


class ProblemDurations:
    """The durations of actions: those of the problem, or else the estimates."""

    def __init__(self, problem: PlanningProblem, snapshot: Snapshot) -> None:
        self._problem = problem
        self._snapshot = snapshot

    def vm_ms(self, kind: ActionKind, vm: VmId) -> int:
        """Return the duration of an action on a VM."""
        given = self._problem.durations.get(kind)
        if given is None:
            if kind is ActionKind.REINSTANTIATE:
                return sum(self.vm_ms(step, vm) for step in REINSTANTIATION_STEPS)
            ms = self._problem.estimates.duration_ms(_example_action(kind, vm), self._snapshot)
        else:
            ms = given.of.get(vm) or _scaled_duration_ms(given, self._snapshot.vms[vm])
        return self._on_grid(ms)

    def move_ms(self, vm: VmId, mbps: int) -> int:
        """Return the duration of a migration over a path whose bottleneck has this bandwidth."""
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
        """Return the shortest duration of a migration: one copy of the memory at this bandwidth.

        It is 0 if the problem gives the duration for the VM: the copied amount is then unknown.
        """
        given = self._problem.durations.get(ActionKind.MIGRATE)
        if given is not None and vm in given.of:
            return 0
        return -(-self._snapshot.vms[vm].memory_mib * _BITS_PER_MIB // (mbps * _BITS_PER_MS))

    def _on_grid(self, ms: int) -> int:
        """Return a duration rounded up to a multiple of the grid."""
        grid = self._problem.grid_ms
        return -(-ms // grid) * grid

    def host_ms(self, kind: ActionKind, host: HostId) -> int:
        """Return the duration of an action on a host."""
        given = self._problem.durations.get(kind)
        if given is None:
            action = HOST_ACTIONS[kind](host=host)
            return self._on_grid(self._problem.estimates.duration_ms(action, self._snapshot))
        return self._on_grid(given.of.get(host) or given.ms)


def _scaled_duration_ms(given: ActionDuration, vm: Vm) -> int:
    if not given.per_unit_ms:
        return given.ms
    units = (
        vm.memory_mib
        if given.resource == MEMORY_RESOURCE
        else vm.consumption.get(ResourceName(given.resource), 0)
    )
    return given.ms + round(given.per_unit_ms * units)


def _example_action(kind: ActionKind, vm: VmId) -> Action:
    """Return an action of a kind. Its hosts are arbitrary: the estimates do not use them."""
    match kind:
        case ActionKind.MIGRATE:
            return Migrate(vm=vm, source=_ANY_HOST, target=_ANY_HOST)
        case ActionKind.RESUME:
            return Resume(vm=vm, source=_ANY_HOST, target=_ANY_HOST)
        case ActionKind.SUSPEND:
            return Suspend(vm=vm, source=_ANY_HOST)
        case ActionKind.SHUTDOWN:
            return Shutdown(vm=vm, source=_ANY_HOST)
        case ActionKind.BOOT:
            return Boot(vm=vm, target=_ANY_HOST)
        case ActionKind.FORGE:
            return Forge(vm=vm)
        case ActionKind.ALLOCATE:
            return Allocate(vm=vm, resource=ResourceName("x"), amount=0)
        case _:
            return Kill(vm=vm)
