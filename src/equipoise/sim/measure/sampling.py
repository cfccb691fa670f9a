"""Samples of the whole cluster at regular intervals, and the record of a run made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.capacity.entitlement import build_claim_tree, divide_capacity
from equipoise.capacity.imbalance import imbalance
from equipoise.capacity.pool_tree import ClaimBounds
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints, Records
from equipoise.model.host import HostState
from equipoise.sim.allocation.kernels import UNPLACED
from equipoise.sim.world.context import SimulationContext

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Columns by name, all of the same length."""

    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The samples: one row per sample in ``cluster``, per sample and host or pool in the others."""

    cluster: SampleTable
    """at_s, cpu_capacity_mhz, cpu_demand_mhz, cpu_used_mhz, memory_capacity_mib, memory_demand_mib,
    memory_used_mib, watts, watts_saved, imbalance, hosts_on, vms_running, migrations_running."""
    hosts: SampleTable
    """at_s, host, state, vms, cpu_capacity_mhz, cpu_demand_mhz, cpu_used_mhz, memory_capacity_mib,
    memory_demand_mib, memory_used_mib, ballooned_mib, swapped_mib, watts, watts_saved (what a
    host in standby would draw more if it were on and idle)."""
    pools: SampleTable
    """at_s, pool, vms, happiness_pct, happy_pct, cpu_demand_mhz, cpu_used_mhz."""


HAPPY_MIN: Final = 0.95
"""A VM is happy if it gets at least this share of the smaller of entitlement and demand."""
NO_POOL: Final = "(no pool)"

_HOST_FIGURES: Final = {
    "cpu_capacity_mhz": "cpu",
    "cpu_demand_mhz": "cpu_demand",
    "cpu_used_mhz": "cpu_used",
    "memory_capacity_mib": "memory",
    "memory_demand_mib": "memory_demand",
    "memory_used_mib": "memory_used",
    "ballooned_mib": "ballooned",
    "swapped_mib": "swapped",
    "watts": "watts",
    "watts_saved": "watts_saved",
}


class Entitlements(NamedTuple):
    """The entitlements of running VMs, and the imbalance of their sums over the hosts."""

    rows: Ints
    cpu: Floats
    memory: Floats
    imbalance: float


class _Sample(NamedTuple):
    """The whole cluster at one moment."""

    cluster: dict[str, float]
    hosts: dict[str, Any]
    pools: dict[str, Any]


class RunSampler:
    """Takes samples and makes the record of a run from them."""

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._samples: list[_Sample] = []

    def sample(self) -> None:
        """Take a sample now."""
        self._samples.append(self._take_sample())

    def record(self) -> RunRecord:
        """Return all samples as tables, with one of now."""
        samples = list(self._samples)
        if not samples or samples[-1].cluster["at_s"] != self._context.now_ms / 1000:
            samples.append(self._take_sample())
        rows = [sample.cluster for sample in samples]
        return RunRecord(
            cluster=SampleTable({name: np.array([row[name] for row in rows]) for name in rows[0]}),
            hosts=_concatenated([sample.hosts for sample in samples]),
            pools=_concatenated([sample.pools for sample in samples]),
        )

    def _take_sample(self) -> _Sample:
        context = self._context
        context.truth.allocator.reallocate()
        at_s = context.now_ms / 1000
        entitled = self._entitlements()
        hosts = self._host_sample(at_s)
        on = hosts["state"] == HostState.ON
        total = {name: float(hosts[name].sum()) for name in _HOST_FIGURES}
        for name in ("cpu_capacity_mhz", "memory_capacity_mib"):
            total[name] = float(hosts[name][on].sum())  # capacity that VMs can use

        cluster = (
            {"at_s": at_s}
            | {name: total[name] for name in total if name not in ("ballooned_mib", "swapped_mib")}
            | {
                "imbalance": entitled.imbalance,
                "hosts_on": float(on.sum()),
                "vms_running": float(len(entitled.rows)),
                "migrations_running": float(context.action_runner.migration_count),
            }
        )
        return _Sample(cluster, hosts, self._pool_sample(at_s, entitled))

    def _host_sample(self, at_s: float) -> dict[str, Any]:
        truth = self._context.truth
        names = list(truth.state.hosts)
        rows = np.array([truth.allocator.host_row[name] for name in names], dtype=np.int64)
        records = truth.allocator.hosts[rows]
        running = truth.allocator.vms["host"]
        counts = np.bincount(running[running > UNPLACED], minlength=len(truth.allocator.hosts))
        return {
            "at_s": np.full(len(names), at_s),
            "host": np.array(names, dtype=object),
            "state": np.array([host.state for host in truth.state.hosts.values()], dtype=object),
            "vms": counts[rows],
        } | {name: records[figure].copy() for name, figure in _HOST_FIGURES.items()}

    def _pool_sample(self, at_s: float, entitled: Entitlements) -> dict[str, Any]:
        allocator = self._context.truth.allocator
        vms = allocator.vms[entitled.rows]
        due = np.minimum(entitled.cpu, vms["cpu_demand"])
        happiness = np.ones(len(vms))
        np.divide(vms["cpu_allocated"], due, out=happiness, where=due > 0)
        happiness = np.minimum(happiness, 1.0)
        row = np.where(vms["pool"] == NO_INDEX, len(allocator.pools.ids), vms["pool"])
        names = np.array([*allocator.pools.ids, NO_POOL], dtype=object)
        count = np.bincount(row, minlength=len(names))
        is_used = count > 0
        divisor = np.maximum(count, 1)

        def total(figure: Floats) -> Floats:
            return np.bincount(row, weights=figure, minlength=len(names)).astype(np.float64)

        columns = {
            "pool": names,
            "vms": count,
            "happiness_pct": 100 * total(happiness) / divisor,
            "happy_pct": 100 * total((happiness >= HAPPY_MIN - 1e-9).astype(float)) / divisor,
            "cpu_demand_mhz": total(vms["cpu_demand"]),
            "cpu_used_mhz": total(vms["cpu_allocated"]),
        }
        return {"at_s": np.full(int(is_used.sum()), at_s)} | {
            name: column[is_used] for name, column in columns.items()
        }

    def _entitlements(self) -> Entitlements:
        allocator = self._context.truth.allocator
        rows = np.nonzero(allocator.vms["host"] > UNPLACED)[0]
        vms = allocator.vms[rows]
        hosts_on = np.nonzero(allocator.hosts["is_on"])[0]
        pools = allocator.pools
        tree = build_claim_tree(pools.parent, vms["pool"])
        entitlements, loads = [], []
        for name, bounds_of in (("cpu", pools.cpu), ("memory", pools.memory)):
            bounds = bounds_of(vms["pool"], vms[f"{name}_shares"])
            entitled = self._entitle(name, bounds, tree, vms)
            sums = np.bincount(vms["host"], weights=entitled, minlength=len(allocator.hosts))
            capacity = allocator.hosts[name][hosts_on]
            entitlements.append(entitled)
            # DRS: the normalised entitlement of a host is the sum of its VMs over its capacity.
            loads.append(sums[hosts_on] / np.maximum(capacity, 1.0))
        cpu, memory = entitlements
        return Entitlements(rows, cpu, memory, imbalance(np.stack(loads, axis=1)))

    def _entitle(self, name: str, bounds: ClaimBounds, tree: Records, vms: Records) -> Floats:
        allocator = self._context.truth.allocator
        capacity = float(allocator.hosts[name][allocator.hosts["is_on"] == 1].sum())
        return divide_capacity(
            capacity,
            tree,
            bounds,
            ClaimBounds(vms[f"{name}_shares"], vms[f"{name}_floor"], vms[f"{name}_ceiling"]),
            vms[f"{name}_demand"],
            fast=allocator.fast,
        )


def _concatenated(samples: list[dict[str, Any]]) -> SampleTable:
    return SampleTable(
        {name: np.concatenate([sample[name] for sample in samples]) for name in samples[0]}
    )
