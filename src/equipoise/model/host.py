"""A host: the machine that VMs run on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from equipoise.model.quantity import (
    Amount,
    Cores,
    HostKey,
    Mhz,
    MhzPerCore,
    Mib,
    MibPresent,
    NameKey,
    Temperature,
    Watts,
)
from equipoise.model.value import Value


class HostState(StrEnum):
    """What a host is doing. Only a host that is ``on`` accepts VMs."""

    ON = "on"
    STANDBY = "standby"
    MAINTENANCE = "maintenance"
    FAILED = "failed"


class HostWish(StrEnum):
    """What an operator wants a host to become; its VMs leave first."""

    MAINTENANCE = "maintenance"
    STANDBY = "standby"


class PowerFigures(Value):
    """Watts drawn by a host. Zero everywhere means: not known, no power management."""

    idle_watts: Watts = 0
    peak_watts: Watts = 0
    standby_watts: Watts = 0
    managed: bool = False
    """Whether the host saves power by itself when it has little to do (P-states)."""
    managed_watts: tuple[Watts, ...] = ()
    """What it draws then: evenly spaced from no use to full use, at least two figures."""
    cap_watts: Watts | None = None
    """What it may draw at the most, by its own controls: then not all cycles can be used."""

    @property
    def curve(self) -> tuple[Watts, ...]:
        """What it draws, evenly spaced from no use to full use."""
        if self.managed and self.managed_watts:
            return self.managed_watts
        return (self.idle_watts, self.peak_watts)

    @property
    def known(self) -> bool:
        """Whether anything is known about what it draws."""
        return any(self.curve)

    @property
    def most_watts(self) -> int:
        """What it draws at the most."""
        top = self.curve[-1]
        return top if self.cap_watts is None else min(top, max(self.cap_watts, self.curve[0]))

    @property
    def usable_part(self) -> float:
        """What part of all cycles can be used under the cap."""
        curve, cap = self.curve, self.cap_watts
        if cap is None or cap >= curve[-1]:
            return 1.0
        steps = len(curve) - 1
        below = sum(watts <= cap for watts in curve)  # a curve never falls
        if below == 0:
            return 0.0
        left, right = curve[below - 1], curve[below]
        return (below - 1 + (cap - left) / (right - left)) / steps


class HostReserve(Value):
    """What the host keeps for itself; VMs never get it."""

    cpu_mhz: Mhz = 0
    memory_mib: Mib = 0


class Host(Value):
    """A machine with its size, its state and what it keeps for itself."""

    id: HostKey
    cores: Cores
    mhz_per_core: MhzPerCore
    memory_mib: MibPresent
    state: HostState = HostState.ON
    requested: HostWish | None = None
    """What it is to become: deciders see to it that its VMs leave and that it is switched."""
    power: PowerFigures = PowerFigures()
    reserve: HostReserve = HostReserve()
    temperature_c: Temperature | None = None
    """How hot it is, where somebody measures it."""
    labels: Mapping[str, str] = {}
    capacity: Mapping[NameKey, Amount] = {}
    """Shareable resources beyond CPU and memory, e.g. ``network_mbps: 10000``."""

    @property
    def cpu_mhz(self) -> int:
        """All cycles of all cores."""
        return self.cores * self.mhz_per_core

    @property
    def usable_cpu_mhz(self) -> int:
        """Cycles left for VMs."""
        if self.power.cap_watts is None:
            return self.cpu_mhz - self.reserve.cpu_mhz
        return max(0, int(self.power.usable_part * self.cpu_mhz) - self.reserve.cpu_mhz)

    @property
    def usable_memory_mib(self) -> int:
        """Memory left for VMs."""
        return self.memory_mib - self.reserve.memory_mib
