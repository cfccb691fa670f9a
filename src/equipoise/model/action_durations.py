"""Estimated durations of actions: all that deciders know of the speed of the world.

The world may be slower or faster. Estimates are independent of any simulation model, so that a
decider is judged with the estimates that it would have on real hosts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.action import (
    Action,
    Boot,
    EnterMaintenance,
    Forge,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.quantity import PositiveMilliseconds
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import Value
from equipoise.model.vm import Vm

Speed = Annotated[float, Meta(ge=0.001, le=10**9)]
COPY_ROUNDS_MAX: Final = 10


class Estimates(Value):
    """Expected durations of actions."""

    migration_mib_per_s: Speed = 500
    """Speed at which a migration copies memory."""
    migration_ms: PositiveMilliseconds = 2_000
    """Fixed time of a migration, added to the copying."""
    written_mib_per_ghz: Annotated[float, Meta(ge=0, le=10**6)] = 20
    """Memory that a VM writes per second and GHz of CPU use; 0 for no second copy round.

    The default is that of an ordinary server. The speed of a VM's last migration replaces it.
    """
    suspend_mib_per_s: Speed = 500
    power_on_ms: PositiveMilliseconds = 180_000
    power_off_ms: PositiveMilliseconds = 60_000
    maintenance_ms: PositiveMilliseconds = 10_000
    boot_ms: PositiveMilliseconds = 30_000
    shutdown_ms: PositiveMilliseconds = 20_000
    forge_ms: PositiveMilliseconds = 60_000
    other_ms: PositiveMilliseconds = 1_000

    def move_ms(self, vm: Vm, measured_mib_per_s: float | None = None) -> int:
        """Return the expected duration of a migration.

        Memory that the VM writes during a copy round is copied again in the next one. Each round is
        shorter by the same factor, so the sum is a geometric series. It is capped at ten rounds. A
        measured speed of an earlier migration includes all rounds and replaces the estimate.
        """
        if measured_mib_per_s is not None:
            return max(1, round(1000 * vm.memory_mib / measured_mib_per_s))
        return self.unmeasured_moves_ms((vm,))[0]

    def unmeasured_moves_ms(self, vms: Iterable[Vm]) -> list[int]:
        """Return ``move_ms`` of VMs that have never moved; a pass asks for those of all VMs."""
        fixed_ms, speed = self.migration_ms, self.migration_mib_per_s
        written_per_mhz = self.written_mib_per_ghz / 1000 / speed
        least = 1 / COPY_ROUNDS_MAX
        durations = []
        for vm in vms:
            size_mib, demand = vm.memory_mib, vm.demand
            active_mib = demand.memory_mib
            # 1 + r + r^2 + ... = 1 / (1 - r), with r = write speed / copy speed.
            kept = 1 - written_per_mhz * demand.cpu_mhz
            more = (1 / (kept if kept > least else least)) - 1
            copied_mib = size_mib + more * (size_mib if size_mib < active_mib else active_mib)
            durations.append(fixed_ms + round(1000 * copied_mib / speed))
        return durations

    def migration_of(self, vm: Vm, snapshot: Snapshot) -> int:
        """Return the expected duration of the next migration of a VM, as learned so far.

        A migration that was broken off says that the next one takes longer than it did.
        """
        speeds = snapshot.move_speeds
        if not speeds:
            return self.move_ms(vm)
        expected_ms = self.move_ms(vm, speeds.of(vm.id, vm.host))
        most = speeds.most(vm.id)
        return expected_ms if most is None else max(expected_ms, self.move_ms(vm, most))

    def duration_ms(self, action: Action, snapshot: Snapshot) -> int:
        """Return the expected duration of an action."""
        match action:
            case Migrate():
                return self.migration_of(snapshot.vms[action.vm], snapshot)
            case Suspend() | Resume():
                memory_mib = snapshot.vms[action.vm].memory_mib
                return self.other_ms + round(1000 * memory_mib / self.suspend_mib_per_s)
            case PowerOn():
                return self.power_on_ms
            case PowerOff():
                return self.power_off_ms
            case EnterMaintenance() | LeaveMaintenance():
                return self.maintenance_ms
            case Boot():
                return self.boot_ms
            case Shutdown():
                return self.shutdown_ms
            case Forge():
                return self.forge_ms
            # The three steps of the replacement run one after the other.
            case Reinstantiate():
                return self.forge_ms + self.boot_ms + self.shutdown_ms
            case _:
                return self.other_ms
