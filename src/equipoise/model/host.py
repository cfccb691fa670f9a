"""A host: its size, state, power profile, and the capacity that remains for VMs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from equipoise.model.quantity import (
    Amount,
    Celsius,
    Cores,
    HostKey,
    Mhz,
    MhzPerCore,
    Mib,
    Overcommit,
    PositiveMib,
    ResourceNameKey,
    Watts,
)
from equipoise.model.value import Value


class HostState(StrEnum):
    """The power state of a host. Only a host that is ``on`` accepts VMs."""

    ON = "on"
    STANDBY = "standby"
    MAINTENANCE = "maintenance"
    FAILED = "failed"


HOST_STATES: Final = tuple(HostState)


class RequestedHostState(StrEnum):
    """The state that the operator requests for a host. Its VMs are moved away first."""

    MAINTENANCE = "maintenance"
    STANDBY = "standby"


def watts_at(curve: Sequence[float], load: float) -> float:
    """Return the power of a host at a load from 0 to 1.

    The curve has the power at evenly spaced loads from none to full; it is linear between two
    points. Simulated VM hosts and hosts of jobs use this one function; the first compile it.
    """
    position = min(load, 1.0) * (len(curve) - 1)
    # At full load the last interval is taken, so that ``lower + 1`` exists.
    lower = min(int(position), len(curve) - 2)
    return curve[lower] + (curve[lower + 1] - curve[lower]) * (position - lower)


class PowerProfile(Value):
    """Power draw of a host in watts. All zeros: unknown, and the host is not power-managed."""

    idle_watts: Watts = 0
    peak_watts: Watts = 0
    standby_watts: Watts = 0
    managed: bool = False
    """Whether the host reduces its power by itself at low load (P-states)."""
    managed_watts: tuple[Watts, ...] = ()
    """The power curve of a managed host, at evenly spaced loads from idle to full; two or more."""
    cap_watts: Watts | None = None
    """The power cap that the host enforces. Under a cap not all CPU cycles are usable."""

    @property
    def curve(self) -> tuple[Watts, ...]:
        """The power draw at evenly spaced loads from idle to full."""
        if self.managed and self.managed_watts:
            return self.managed_watts
        return (self.idle_watts, self.peak_watts)

    @property
    def known(self) -> bool:
        """Whether the power draw of the host is known."""
        return any(self.curve)

    @property
    def max_watts(self) -> int:
        """The highest power draw: at full load, or at the cap."""
        # A cap below the idle power cannot be kept: an idle host draws its idle power.
        top = self.curve[-1]
        return top if self.cap_watts is None else min(top, max(self.cap_watts, self.curve[0]))

    @property
    def usable_fraction(self) -> float:
        """The fraction of all CPU cycles that is usable under the cap."""
        curve, cap = self.curve, self.cap_watts
        if cap is None or cap >= curve[-1]:
            return 1.0
        steps = len(curve) - 1
        # The curve never falls, so these are its first points. Interpolate up to the next point.
        below = sum(watts <= cap for watts in curve)
        if below == 0:
            return 0.0
        low, high = curve[below - 1], curve[below]
        return (below - 1 + (cap - low) / (high - low)) / steps


class HostReserve(Value):
    """Capacity that the host keeps for its own software."""

    cpu_mhz: Mhz = 0
    memory_mib: Mib = 0


class Host(Value):
    """A physical machine that runs VMs."""

    id: HostKey
    cores: Cores
    mhz_per_core: MhzPerCore
    memory_mib: PositiveMib
    state: HostState = HostState.ON
    requested: RequestedHostState | None = None
    """The state that the operator requests: deciders evacuate the host and change its state."""
    power: PowerProfile = PowerProfile()
    reserve: HostReserve = HostReserve()
    temperature_c: Celsius | None = None
    """The measured temperature, if there is a sensor."""
    labels: Mapping[str, str] = {}
    capacity: Mapping[ResourceNameKey, Amount] = {}
    """Shareable resources beyond CPU and memory, e.g. ``network_mbps: 10000``."""
    memory_overcommit: Overcommit | None = None
    """Configured memory of VMs per MiB of usable memory, instead of the factor of the cluster."""
    cpu_overcommit: Overcommit | None = None
    """vCPUs of VMs per core, instead of the factor of the cluster."""

    @property
    def cpu_mhz(self) -> int:
        """The CPU capacity of all cores."""
        return self.cores * self.mhz_per_core

    @property
    def usable_cpu_mhz(self) -> int:
        """The CPU capacity for VMs: without the reserve, and under the power cap."""
        if self.power.cap_watts is None:
            return self.cpu_mhz - self.reserve.cpu_mhz
        # Rounded down: a promise of one MHz too many would break the cap.
        return max(0, int(self.power.usable_fraction * self.cpu_mhz) - self.reserve.cpu_mhz)

    @property
    def usable_memory_mib(self) -> int:
        """The memory for VMs: without the reserve."""
        return self.memory_mib - self.reserve.memory_mib

    @property
    def configured_memory_max_mib(self) -> int:
        """The configured memory that VMs on the host may have together."""
        if self.memory_overcommit is None:
            return self.usable_memory_mib
        return _committable(self.usable_memory_mib, self.memory_overcommit)

    @property
    def vcpus_max(self) -> int | None:
        """The vCPUs that VMs on the host may have together; ``None`` if there is no limit."""
        if self.cpu_overcommit is None:
            return None
        return _committable(self.cores, self.cpu_overcommit)


def _committable(amount: int, factor: float) -> int:
    """Return an amount times a factor, rounded down."""
    # In whole millionths: as a float, 100 times 2.3 would be 229.
    return amount * round(factor * _MILLION) // _MILLION


_MILLION: Final = 10**6
