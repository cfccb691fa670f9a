"""The power policy: when hosts sleep and wake, what that must be worth, and the brakes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.policy.balance import Level, Part, Times
from equipoise.model.quantity import (
    Count,
    CountPresent,
    HostKey,
    Seconds,
    SecondsPresent,
    Watts,
)
from equipoise.model.value import Value

DAY_S: Final = 86_400
TimeOfDay = Annotated[
    str,
    Meta(
        pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$(?!\n)",
        title="time of the day",
        description="from 00:00 to 24:00, with both digits of the hour",
    ),
]
Rate = Annotated[float, Meta(ge=0, le=10**6)]
Remembered = Annotated[int, Meta(ge=1, le=3600)]
"""Seconds of the last hour, which is what is remembered."""


class PowerAutomation(StrEnum):
    """What is done without asking."""

    OFF = "off"
    """Nobody is put to sleep, and who sleeps is woken."""
    MANUAL = "manual"
    """Nothing: everything is only recommended."""
    FULL = "full"


class PowerOverride(StrEnum):
    """What may be done with one host, whatever holds for the others."""

    STAYS_ON = "stays_on"
    """It is never put to sleep; it is woken like the others."""
    LEFT_ALONE = "left_alone"
    """It is neither put to sleep nor woken."""
    MANUAL = "manual"
    FULL = "full"
    """Also if it failed to wake the last time: somebody vouches for it."""


class Preference(StrEnum):
    """What decides which hosts sleep first, and which are woken last."""

    SIZE = "size"
    """Small hosts sleep first: large ones have more room for what may come."""
    EFFICIENCY = "efficiency"
    """Those that draw most for what they do sleep first."""
    TEMPERATURE = "temperature"
    """The hottest sleep first."""
    EVACUATION = "evacuation"
    """Those that are emptied with the least copying sleep first."""


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
    """A time of the day in which something else holds; one that ends earlier goes over midnight."""

    start: TimeOfDay
    end: TimeOfDay
    automation: PowerAutomation
    days: tuple[Day, ...] = tuple(Day)
    """The days on which it begins."""

    def holds(self, at_ms: int) -> bool:
        """Whether it holds at some time."""
        day, second = divmod(at_ms // 1000, DAY_S)
        start, end = _second(self.start), _second(self.end)
        today, yesterday = self._begins_on(day), self._begins_on(day - 1)
        if start < end:
            return today and start <= second < end
        return (today and second >= start) or (yesterday and second < end)

    def _begins_on(self, day: int) -> bool:
        return tuple(Day)[day % 7] in self.days


def _second(time: str) -> int:
    hours, minutes = time.split(":")
    return 3600 * int(hours) + 60 * int(minutes)


class Tariff(Value):
    """What energy costs."""

    price_per_kwh: Rate = 0.30
    currency: Annotated[str, Meta(min_length=1, max_length=8)] = "EUR"
    co2_g_per_kwh: Rate = 400


class PowerPolicy(Value):
    """When hosts sleep and when they are woken."""

    automation: PowerAutomation = PowerAutomation.FULL
    threshold: Level = 3
    """How much a sleeping host must be worth: at 3 what ``benefit_times`` says, twice that with
    each step down, half with each step up. At 1 nobody is put to sleep."""
    target: Part = 0.63
    """How much of a host's CPU and memory should be in use ..."""
    tolerance: Part = 0.18
    """... and how far it may be from that."""
    off_window_s: Remembered = 2400
    """What was asked for in the last so many seconds decides who may sleep, ..."""
    on_window_s: Remembered = 300
    """... and in the last so many, who must wake: the mean of it, and so many ..."""
    deviations: Annotated[float, Meta(ge=0, le=10)] = 2.0
    """... standard deviations."""
    worst_deviations: Annotated[float, Meta(ge=0, le=10)] = 3.0
    """So many above the mean of the last hour is the worst that may come while a host sleeps."""
    benefit_times: Times = 40.0
    """What is not used of a sleeping host must be so many times what its sleep costs."""
    asleep_s: SecondsPresent = 14_400
    """How long a host is expected to sleep that nobody misses, not even at the worst; one that
    would then be missed sleeps as long as demand has lately stayed about the same."""
    observe_s: Annotated[int, Meta(ge=0, le=3000)] = 0
    """Nobody is put to sleep before demand has been observed for so long."""
    hosts_on_min: Count = 2
    """At least so many hosts stay on: with a single one, its failure would take everything."""
    hosts: Mapping[HostKey, PowerOverride] = {}
    cooldown_s: Seconds = 1800
    """Nobody is put to sleep so soon after any host was woken."""
    retry_s: Seconds = 300
    """Nobody who failed to wake is tried again so soon."""
    windows: tuple[PowerWindow, ...] = ()
    """Times in which something else holds; the first that holds decides."""
    order: tuple[Preference, ...] = (Preference.SIZE, Preference.EVACUATION)
    cap_watts: Watts | None = None
    """What all hosts may draw together at the most: as many sleep as it takes."""
    moves_per_pass: CountPresent = 1000
    """How many VMs are moved at most in one pass to empty hosts; one host is always emptied."""
    foresight_s: Count = 0
    """How far ahead demand is foretold by the time of day; 0 looks at what was asked for only."""
    tariff: Tariff = Tariff()

    @property
    def low(self) -> float:
        """A host that uses less than this of a resource has little to do."""
        return max(0.0, self.target - self.tolerance)

    @property
    def high(self) -> float:
        """A host that uses more than this of a resource has too much to do."""
        return self.target + self.tolerance

    def automation_at(self, at_ms: int) -> PowerAutomation:
        """What may be done without asking at some time."""
        held = (one.automation for one in self.windows if one.holds(at_ms))
        return next(held, self.automation)
