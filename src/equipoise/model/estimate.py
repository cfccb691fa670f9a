"""How long actions are expected to take: all that deciders know of the speed of the world.

Whether the world is that fast is another matter. The estimates are kept apart from any model of it,
so that a decider is judged with the estimates it would have had.
"""

from __future__ import annotations

from typing import Annotated

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
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.quantity import MillisecondsPresent
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import Value
from equipoise.model.vm import Vm

Speed = Annotated[float, Meta(ge=0.001, le=10**9)]


class Estimates(Value):
    """Expected durations."""

    migration_mib_per_s: Speed = 500
    """How fast the memory of a migrating VM is copied, all rounds together ..."""
    migration_ms: MillisecondsPresent = 2_000
    """... and what comes on top of it."""
    suspend_mib_per_s: Speed = 500
    power_on_ms: MillisecondsPresent = 180_000
    power_off_ms: MillisecondsPresent = 60_000
    maintenance_ms: MillisecondsPresent = 10_000
    boot_ms: MillisecondsPresent = 30_000
    shutdown_ms: MillisecondsPresent = 20_000
    forge_ms: MillisecondsPresent = 60_000
    other_ms: MillisecondsPresent = 1_000

    def move_ms(self, vm: Vm) -> int:
        """How long a VM is expected to be on its way to another host."""
        return self.migration_ms + round(1000 * vm.memory_mib / self.migration_mib_per_s)

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
            case _:
                return self.other_ms
