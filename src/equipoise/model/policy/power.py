"""The power policy: when hosts enter and leave standby, the required benefit, and the limits."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.policy.balance import Fraction, Multiple, PriorityLevel
from equipoise.model.quantity import Count, HostKey, PositiveCount, PositiveSeconds, Seconds, Watts
from equipoise.model.value import Value

DAY_S: Final = 86_400
TimeOfDay = Annotated[
    str,
    Meta(
        # The look-ahead refuses a final newline, as in ``ID_PATTERN``.
        pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$(?!\n)",
        title="time of the day",
        description="from 00:00 to 24:00, with both digits of the hour",
    ),
]
PerKwh = Annotated[float, Meta(ge=0, le=10**6)]
HistorySeconds = Annotated[int, Meta(ge=1, le=3600)]
"""Seconds within the last hour, which is the length of the demand history."""


class PowerAutomation(StrEnum):
    """What runs without approval."""

    OFF = "off"
    """No host is put into standby, and hosts in standby are powered on."""
    MANUAL = "manual"
    """Nothing runs without approval; power changes are only recommended."""
    FULL = "full"


class PowerOverride(StrEnum):
    """The automation of a single host."""

    STAYS_ON = "stays_on"
    """The host is never put into standby. It is powered on like other hosts."""
    LEFT_ALONE = "left_alone"
    """The host is neither put into standby nor powered on."""
    MANUAL = "manual"
    FULL = "full"
    """The host is put into standby even if its last power-on failed."""


class StandbyPreference(StrEnum):
    """A criterion for the order of hosts: first into standby, last powered on."""

    SIZE = "size"
    """Small hosts first: large hosts have more capacity for new demand."""
    EFFICIENCY = "efficiency"
    """Hosts with the highest power per capacity first."""
    TEMPERATURE = "temperature"
    """Hot hosts first."""
    EVACUATION = "evacuation"
    """Hosts with the least memory to copy first."""


class PowerMeasure(StrEnum):
    """What the utilisation of a host counts of its VMs."""

    DEMAND = "demand"
    CONFIGURATION = "configuration"
    """All vCPUs at the speed of the fastest host, and the configured memory: consolidation that no
    rise of demand can make wrong."""


class Day(StrEnum):
    """A day of the week. The clock of a simulated world begins at midnight on a Monday."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class PowerWindow(Value):
    """A time of the day with another automation. If ``end`` is earlier, it lasts past midnight."""

    start: TimeOfDay
    end: TimeOfDay
    automation: PowerAutomation
    days: tuple[Day, ...] = tuple(Day)
    """The days on which the window starts."""

    def holds(self, at_ms: int) -> bool:
        """Whether the window is open at a time."""
        day, second = divmod(at_ms // 1000, DAY_S)
        start, end = _second_of_day(self.start), _second_of_day(self.end)
        today, yesterday = self._starts_on(day), self._starts_on(day - 1)
        # Past midnight the window of yesterday is still open.
        if start < end:
            return today and start <= second < end
        return (today and second >= start) or (yesterday and second < end)

    def _starts_on(self, day: int) -> bool:
        return tuple(Day)[day % 7] in self.days


def _second_of_day(time: str) -> int:
    hours, minutes = time.split(":")
    return 3600 * int(hours) + 60 * int(minutes)


class EnergyTariff(Value):
    """Price and CO2 of energy."""

    price_per_kwh: PerKwh = 0.30
    currency: Annotated[str, Meta(min_length=1, max_length=8)] = "EUR"
    co2_g_per_kwh: PerKwh = 400


class PowerPolicy(Value):
    """Settings of power management. Defaults are the DPM values of the DRS paper."""

    automation: PowerAutomation = PowerAutomation.FULL
    threshold: PriorityLevel = 3
    """Required benefit of a standby: at 3 ``benefit_times``, doubled with each step down, halved
    with each step up. At 1 no host is put into standby."""
    target: Fraction = 0.63
    """Target utilisation of the CPU and memory of a host."""
    tolerance: Fraction = 0.18
    """Allowed distance of the utilisation from its target."""
    measure: PowerMeasure = PowerMeasure.DEMAND
    """What counts as the utilisation of a host."""
    off_window_s: HistorySeconds = 2400
    """Length of the demand history for power-offs."""
    on_window_s: HistorySeconds = 300
    """Length of the demand history for power-ons."""
    deviations: Annotated[float, Meta(ge=0, le=10)] = 2.0
    """Standard deviations that are added to the mean demand of these histories."""
    worst_deviations: Annotated[float, Meta(ge=0, le=10)] = 3.0
    """Standard deviations above the mean of the last hour for the worst case during a standby."""
    benefit_times: Multiple = 40.0
    """Required ratio of the benefit of a standby, the unused capacity, to its cost."""
    saving_min: Fraction = 0.6
    """Smallest saving of a standby, as a part of what the idle host draws. The VMs of the host cost
    power on other hosts, most of all where hosts save power by themselves."""
    asleep_s: PositiveSeconds = 14_400
    """Expected standby time of a host that even the worst case does not need. A host that the worst
    case needs stays in standby for as long as demand was stable lately."""
    observe_s: Annotated[int, Meta(ge=0, le=3000)] = 0
    """No host is put into standby before demand has been observed for this time."""
    hosts_on_min: Count = 2
    """Fewest hosts that stay on: with a single one, its failure would stop every VM."""
    hosts: Mapping[HostKey, PowerOverride] = {}
    cooldown_s: Seconds = 1800
    """Shortest time between a power-on and the next power-off of any host."""
    retry_s: Seconds = 300
    """Shortest time between a failed power-on and the next attempt."""
    windows: tuple[PowerWindow, ...] = ()
    """Times with another automation. The first window that is open applies."""
    order: tuple[StandbyPreference, ...] = (StandbyPreference.SIZE, StandbyPreference.EVACUATION)
    cap_watts: Watts | None = None
    """Power cap of the cluster: hosts are put into standby until the cap holds."""
    moves_per_pass: PositiveCount = 1000
    """Most moves of one pass to empty hosts. One host may always be emptied."""
    foresight_s: Count = 0
    """How far ahead demand is forecast from the time of day; 0 uses the past demand only."""
    tariff: EnergyTariff = EnergyTariff()

    @property
    def low(self) -> float:
        """The utilisation below which a host is under-used."""
        return max(0.0, self.target - self.tolerance)

    @property
    def high(self) -> float:
        """The utilisation above which a host is over-used."""
        return self.target + self.tolerance

    def automation_at(self, at_ms: int) -> PowerAutomation:
        """Return the automation that applies at a time."""
        opened = (window.automation for window in self.windows if window.holds(at_ms))
        return next(opened, self.automation)
