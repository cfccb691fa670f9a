"""How many hosts may fail during one iteration (F of equation 4), from their failure rate."""

from __future__ import annotations

from math import exp
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.value import Value

Hours = Annotated[float, Meta(gt=0, le=10**9)]
HoursOrNone = Annotated[float, Meta(ge=0, le=10**9)]
LevelPct = Annotated[float, Meta(gt=0, lt=100)]
_HOUR_S: Final = 3600
_RATE_MAX: Final = 700
"""Beyond this ``exp(-rate)`` is no float; so many failures leave no reserve anyway."""


class HostFailures(Value):
    """The failure rate of the hosts. It replaces a fixed ``failover_hosts``."""

    mtbf_h: Hours
    """Mean time between two failures of one host, in hours."""
    mttr_h: HoursOrNone = 0
    """Mean time to repair a host, in hours."""
    level_pct: LevelPct = 99.999
    """The probability, in percent, that no more hosts are down than the reserve has."""

    @property
    def host_availability(self) -> float:
        """The share of time in which a host works: equation 1 of the thesis."""
        return max(0.0, self.mtbf_h - self.mttr_h) / self.mtbf_h

    def reserve(self, hosts: int, lasting_s: int) -> int:
        """Return F: with this probability no more of so many hosts are down at once meanwhile.

        A host is down if it fails in this period, or failed so shortly before that it is under
        repair. Independent failures of many hosts follow a Poisson distribution.
        """
        rate = hosts * (lasting_s / _HOUR_S + self.mttr_h) / self.mtbf_h
        if rate > _RATE_MAX:
            return hosts
        term = total = exp(-rate)
        number = 0
        while total < self.level_pct / 100 and number < hosts:
            number += 1
            term *= rate / number
            total += term
        return number
