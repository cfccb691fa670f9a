"""Energy: what the hosts of a run used, what sleep saved, and what both come to by a tariff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.model.policy.power import Tariff
from equipoise.place.water import Records

MS_PER_HOUR: Final = 3600 * 1000
_THOUSAND: Final = 1000
"""Watts in a kilowatt, and grams in a kilogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What a run used and saved.

    What was saved is an estimate: what sleeping hosts would have drawn on top, had they been on and
    idle. Nothing is known of what VMs would have done there, so nothing is assumed: to know what
    sleep really changed, compare with a run of the same seed in which nobody sleeps. A host that
    wakes draws as if idle and saves nothing; one without power figures saves nothing, either.
    """

    kwh: float
    saved_kwh: float
    host_hours_asleep: float
    """Hours of sleep of all hosts together; waking does not count."""
    tariff: Tariff

    @property
    def saved_pct(self) -> float:
        """What was saved, of what would have been used."""
        whole = self.kwh + self.saved_kwh
        return 100 * self.saved_kwh / whole if whole > 0 else 0.0

    @property
    def price(self) -> float:
        """What was paid for what was used, in the currency of the tariff."""
        return self.kwh * self.tariff.price_per_kwh

    @property
    def saved_price(self) -> float:
        """What would have been paid for what was saved."""
        return self.saved_kwh * self.tariff.price_per_kwh

    @property
    def co2_kg(self) -> float:
        """What went into the air for what was used."""
        return self.kwh * self.tariff.co2_g_per_kwh / _THOUSAND

    @property
    def saved_co2_kg(self) -> float:
        """What did not go into the air."""
        return self.saved_kwh * self.tariff.co2_g_per_kwh / _THOUSAND


def energy_of(hosts: Records, tariff: Tariff) -> Energy:
    """Add up what all hosts used and saved, those that have left included."""
    return Energy(
        kwh=float(hosts["energy"].sum()) / MS_PER_HOUR / _THOUSAND,
        saved_kwh=float(hosts["energy_saved"].sum()) / MS_PER_HOUR / _THOUSAND,
        host_hours_asleep=float(hosts["asleep_ms"].sum()) / MS_PER_HOUR,
        tariff=tariff,
    )
