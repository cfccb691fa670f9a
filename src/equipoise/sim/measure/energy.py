"""Energy that hosts used, energy that standby saved, and the price of both by a tariff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.capacity.waterfill import Records
from equipoise.model.policy.power import EnergyTariff

MS_PER_HOUR: Final = 3600 * 1000
_THOUSAND: Final = 1000
"""Watts in a kilowatt, and grams in a kilogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy that a run used and saved.

    The saving is an estimate: what hosts in standby would have drawn more, if they had been on and
    idle. It does not include the load that VMs might have put on them. The exact saving is the
    difference to a run with the same seed and without standby. A host that wakes draws as if idle
    and saves nothing; a host without power figures saves nothing.
    """

    kwh: float
    saved_kwh: float
    host_hours_asleep: float
    """Hours in standby of all hosts together; the time to wake does not count."""
    tariff: EnergyTariff

    @property
    def saved_pct(self) -> float:
        """Saved energy as a percentage of used and saved energy."""
        whole = self.kwh + self.saved_kwh
        return 100 * self.saved_kwh / whole if whole > 0 else 0.0

    @property
    def price(self) -> float:
        """The price of the used energy, in the currency of the tariff."""
        return self.kwh * self.tariff.price_per_kwh

    @property
    def saved_price(self) -> float:
        """The price of the saved energy."""
        return self.saved_kwh * self.tariff.price_per_kwh

    @property
    def co2_kg(self) -> float:
        """The emissions of the used energy."""
        return self.kwh * self.tariff.co2_g_per_kwh / _THOUSAND

    @property
    def saved_co2_kg(self) -> float:
        """The emissions of the saved energy."""
        return self.saved_kwh * self.tariff.co2_g_per_kwh / _THOUSAND


def compute_energy(hosts: Records, tariff: EnergyTariff) -> Energy:
    """Return the energy of all hosts, including hosts that have left."""
    return Energy(
        kwh=float(hosts["energy"].sum()) / MS_PER_HOUR / _THOUSAND,
        saved_kwh=float(hosts["energy_saved"].sum()) / MS_PER_HOUR / _THOUSAND,
        host_hours_asleep=float(hosts["standby_ms"].sum()) / MS_PER_HOUR,
        tariff=tariff,
    )
