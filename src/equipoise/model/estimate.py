"""How long actions are expected to take: all that deciders know of the speed of the world.

Whether the world is that fast is another matter. The estimates are kept apart from any model of it,
so that a decider is judged with the estimates it would have had.
"""

from __future__ import annotations

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
from equipoise.model.quantity import MillisecondsPresent
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import Value
from equipoise.model.vm import Vm

Speed = Annotated[float, Meta(ge=0.001, le=10**9)]
ROUNDS_MAX: Final = 10


class Estimates(Value):
    """Expected durations."""

    migration_mib_per_s: Speed = 500
    """How fast the memory of a migrating VM is copied ..."""
    migration_ms: MillisecondsPresent = 2_000
    """... and what comes on top of it."""
    written_mib_per_ghz: Annotated[float, Meta(ge=0, le=10**6)] = 0
    """How much memory per second a VM writes to for each GHz that it uses; 0: no second round."""
    suspend_mib_per_s: Speed = 500
    power_on_ms: MillisecondsPresent = 180_000
    power_off_ms: MillisecondsPresent = 60_000
    maintenance_ms: MillisecondsPresent = 10_000
    boot_ms: MillisecondsPresent = 30_000
    shutdown_ms: MillisecondsPresent = 20_000
    forge_ms: MillisecondsPresent = 60_000
    other_ms: MillisecondsPresent = 1_000

    def move_ms(self, vm: Vm, seen_mib_per_s: float | None = None) -> int:
        """How long a VM is expected to be on its way to another host.

        The memory it writes to meanwhile is copied again, and what it writes to during that, and so
        on: with each round the same part less, at most ten times in all. What was seen lately says
        more than any estimate: all rounds are in it.
        """
        if seen_mib_per_s is not None:
            return max(1, round(1000 * vm.memory_mib / seen_mib_per_s))
        copied_mib = float(vm.memory_mib)
        if self.written_mib_per_ghz:
            written = self.written_mib_per_ghz * vm.demand.cpu_mhz / 1000
            rounds = 1 / max(1 - written / self.migration_mib_per_s, 1 / ROUNDS_MAX)
            copied_mib += (rounds - 1) * min(vm.memory_mib, vm.demand.memory_mib)
        return self.migration_ms + round(1000 * copied_mib / self.migration_mib_per_s)

    def duration_ms(self, action: Action, snapshot: Snapshot) -> int:
        """How long an action is expected to take."""
        match action:
            case Migrate():
                return self.move_ms(snapshot.vms[action.vm])
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
            case Reinstantiate():
                return self.forge_ms + self.boot_ms + self.shutdown_ms
            case _:
                return self.other_ms
