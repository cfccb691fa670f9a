"""The figures of a whole run: payload, satisfaction, happiness, energy, SLA breaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.capacity.waterfill import Floats, Records
from equipoise.model.policy.power import EnergyTariff
from equipoise.model.quantity import TenantId
from equipoise.sim.measure.sampling import RunRecord
from equipoise.sim.measure.sla import SlaBreach

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Happiness:
    """Happiness of a pool's VMs: the CPU that they got, of the smaller of entitlement and demand.

    DRS calls a VM happy that gets all it is entitled to and asks for.
    """

    pool: str
    mean_pct: float
    """The mean over the run."""
    happy_pct: float
    """The share of VMs with a happiness of at least 95 %, as mean over the run."""
    final_mean_pct: float
    final_happy_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareClass:
    """Figures of the VMs with the same shares of a resource, to judge fairness."""

    resource: str
    shares: int
    vms: int
    payload_pct: float
    satisfied_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsatisfied:
    """Demand of VMs that was not met, for any reason. A VM that is down keeps its demand."""

    cpu_mhz_h: float
    memory_mib_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The figures of a whole run."""

    payload_cpu_pct: float
    """CPU that VMs used, of the CPU capacity of the cluster (equation 7 of the paper)."""
    payload_memory_pct: float
    satisfied_cpu_pct: float
    """CPU that VMs got, of their demand."""
    satisfied_memory_pct: float
    unsatisfied: Unsatisfied
    cpu_ready_pct: float
    """The share of their running time that VMs waited for a CPU."""
    share_classes: tuple[ShareClass, ...]
    happiness: tuple[Happiness, ...]
    imbalance_initial: float
    imbalance_final: float
    imbalance_target: float
    below_target_at_s: float | None
    energy: Energy
    downtime_s: float
    """VM-seconds in which VMs that should have run did not."""
    breaches: Mapping[TenantId, SlaBreach]

    @property
    def energy_kwh(self) -> float:
        """The energy that all hosts used."""
        return self.energy.kwh


def compute_measures(
    vms: Records,
    hosts: Records,
    record: RunRecord,
    target: float,
    energy: Energy,
    breaches: Mapping[TenantId, SlaBreach],
) -> Measures:
    """Compute the figures of a run from its totals and its samples."""
    cpu, memory = float(hosts["cpu_sum"].sum()), float(hosts["memory_sum"].sum())
    at_s, imbalances = record.cluster["at_s"], record.cluster["imbalance"]
    below = np.nonzero(imbalances <= target)[0]
    return Measures(
        payload_cpu_pct=_percent(vms["cpu_allocated_sum"].sum(), cpu),
        payload_memory_pct=_percent(vms["memory_allocated_sum"].sum(), memory),
        satisfied_cpu_pct=_percent(
            vms["cpu_allocated_sum"].sum(), vms["cpu_demand_sum"].sum(), 100.0
        ),
        satisfied_memory_pct=_percent(
            vms["memory_allocated_sum"].sum(), vms["memory_demand_sum"].sum(), 100.0
        ),
        unsatisfied=Unsatisfied(cpu_mhz_h=_unmet(vms, "cpu"), memory_mib_h=_unmet(vms, "memory")),
        cpu_ready_pct=_percent(vms["ready_sum"].sum(), vms["run_ms"].sum()),
        share_classes=(*_share_classes(vms, "cpu", cpu), *_share_classes(vms, "memory", memory)),
        happiness=_happiness(record),
        imbalance_initial=float(imbalances[0]),
        imbalance_final=float(imbalances[-1]),
        imbalance_target=target,
        below_target_at_s=float(at_s[below[0]]) if len(below) else None,
        energy=energy,
        downtime_s=float(vms["down_ms"].sum()) / 1000,
        breaches=breaches,
    )


def _percent(part: float, whole: float, of_nothing: float = 0.0) -> float:
    return 100 * float(part) / float(whole) if whole else of_nothing


def _unmet(vms: Records, resource: str) -> float:
    """Return the unmet demand times hours. A surplus of one VM does not offset another."""
    unmet = vms[f"{resource}_demand_sum"] - vms[f"{resource}_allocated_sum"]
    return float(np.maximum(unmet, 0.0).sum()) / MS_PER_HOUR


def _share_classes(vms: Records, resource: str, capacity: float) -> tuple[ShareClass, ...]:
    classes = []
    for shares in np.unique(vms[f"{resource}_shares"]):
        members = vms[vms[f"{resource}_shares"] == shares]
        allocated = members[f"{resource}_allocated_sum"].sum()
        demand = members[f"{resource}_demand_sum"].sum()
        classes.append(
            ShareClass(
                resource=resource,
                shares=int(shares),
                vms=len(members),
                payload_pct=_percent(allocated, capacity),
                satisfied_pct=_percent(allocated, demand, 100.0),
            )
        )
    return tuple(classes)


def _happiness(record: RunRecord) -> tuple[Happiness, ...]:
    table = record.pools
    pools = []
    for pool in dict.fromkeys(table["pool"]):
        rows = table["pool"] == pool
        mean, happy = table["happiness_pct"][rows], table["happy_pct"][rows]
        pools.append(
            Happiness(
                pool=str(pool),
                mean_pct=_mean(mean),
                happy_pct=_mean(happy),
                final_mean_pct=float(mean[-1]),
                final_happy_pct=float(happy[-1]),
            )
        )
    return tuple(pools)


def _mean(figures: Floats) -> float:
    return float(np.mean(figures))
