"""What a run amounts to: payload, satisfaction, happiness, energy, downtime and broken promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.model.quantity import TenantId
from equipoise.place.water import Floats, Records
from equipoise.sim.measure.energy import MS_PER_HOUR, Energy
from equipoise.sim.measure.promises import Breach
from equipoise.sim.measure.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Happiness:
    """How content the VMs of a pool were."""

    pool: str
    mean_pct: float
    """What they got of the CPU they deserved and wanted: the mean of the run ..."""
    happy_pct: float
    """... and the share of VMs that got at least 95 % of it."""
    final_mean_pct: float
    final_happy_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareClass:
    """VMs with the same shares of a resource, so that fairness between them can be seen."""

    resource: str
    shares: int
    vms: int
    payload_pct: float
    satisfied_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsatisfied:
    """What VMs wanted and did not get, whatever the reason; what is down wants as before."""

    cpu_mhz_h: float
    memory_mib_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The figures of a whole run."""

    payload_cpu_pct: float
    """Of all cycles that the cluster had, those that VMs made use of (equation 7 of the paper)."""
    payload_memory_pct: float
    satisfied_cpu_pct: float
    """Of what VMs wanted, what they got."""
    satisfied_memory_pct: float
    unsatisfied: Unsatisfied
    cpu_ready_pct: float
    """Of the time that VMs ran, the part they waited for a CPU."""
    share_classes: tuple[ShareClass, ...]
    happiness: tuple[Happiness, ...]
    imbalance_initial: float
    imbalance_final: float
    imbalance_target: float
    below_target_at_s: float | None
    energy: Energy
    downtime_s: float
    """VM-seconds in which a VM that should have run did not."""
    breaches: Mapping[TenantId, Breach]

    @property
    def energy_kwh(self) -> float:
        """What all hosts used."""
        return self.energy.kwh


def measure(
    vms: Records,
    hosts: Records,
    record: Record,
    target: float,
    energy: Energy,
    breaches: Mapping[TenantId, Breach],
) -> Measures:
    """Add everything up."""
    cpu, memory = float(hosts["cpu_sum"].sum()), float(hosts["memory_sum"].sum())
    at_s, unevenness = record.cluster["at_s"], record.cluster["imbalance"]
    below = np.nonzero(unevenness <= target)[0]
    return Measures(
        payload_cpu_pct=_percent(vms["cpu_got_sum"].sum(), cpu),
        payload_memory_pct=_percent(vms["memory_got_sum"].sum(), memory),
        satisfied_cpu_pct=_percent(vms["cpu_got_sum"].sum(), vms["cpu_want_sum"].sum(), 100.0),
        satisfied_memory_pct=_percent(
            vms["memory_got_sum"].sum(), vms["memory_want_sum"].sum(), 100.0
        ),
        unsatisfied=Unsatisfied(cpu_mhz_h=_missed(vms, "cpu"), memory_mib_h=_missed(vms, "memory")),
        cpu_ready_pct=_percent(vms["ready_sum"].sum(), vms["run_ms"].sum()),
        share_classes=(*_share_classes(vms, "cpu", cpu), *_share_classes(vms, "memory", memory)),
        happiness=_happiness(record),
        imbalance_initial=float(unevenness[0]),
        imbalance_final=float(unevenness[-1]),
        imbalance_target=target,
        below_target_at_s=float(at_s[below[0]]) if len(below) else None,
        energy=energy,
        downtime_s=float(vms["down_ms"].sum()) / 1000,
        breaches=breaches,
    )


def _percent(part: float, whole: float, of_nothing: float = 0.0) -> float:
    return 100 * float(part) / float(whole) if whole else of_nothing


def _missed(vms: Records, resource: str) -> float:
    """What was wanted and not got, in amounts times hours; one VM's plenty helps no other."""
    missed = vms[f"{resource}_want_sum"] - vms[f"{resource}_got_sum"]
    return float(np.maximum(missed, 0.0).sum()) / MS_PER_HOUR


def _share_classes(vms: Records, resource: str, capacity: float) -> tuple[ShareClass, ...]:
    found = []
    for shares in np.unique(vms[f"{resource}_shares"]):
        some = vms[vms[f"{resource}_shares"] == shares]
        got, want = some[f"{resource}_got_sum"].sum(), some[f"{resource}_want_sum"].sum()
        found.append(
            ShareClass(
                resource=resource,
                shares=int(shares),
                vms=len(some),
                payload_pct=_percent(got, capacity),
                satisfied_pct=_percent(got, want, 100.0),
            )
        )
    return tuple(found)


def _happiness(record: Record) -> tuple[Happiness, ...]:
    table = record.pools
    found = []
    for pool in dict.fromkeys(table["pool"]):
        rows = table["pool"] == pool
        mean, happy = table["happiness_pct"][rows], table["happy_pct"][rows]
        found.append(
            Happiness(
                pool=str(pool),
                mean_pct=_mean(mean),
                happy_pct=_mean(happy),
                final_mean_pct=float(mean[-1]),
                final_happy_pct=float(happy[-1]),
            )
        )
    return tuple(found)


def _mean(figures: Floats) -> float:
    return float(np.mean(figures))
