"""Samples of the whole cluster at regular intervals, and the record of a run made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.balance.rebalance.assess import hosts_kept_free, is_rebalanced, named_resources
from equipoise.balance.rules import PlacementRules, read_rules
from equipoise.capacity.entitlement import build_claim_tree, divide_capacity
from equipoise.capacity.imbalance import (
    contended_lately,
    contended_resources,
    imbalance,
    resource_weights,
)
from equipoise.capacity.pool_tree import ClaimBounds
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints, Records
from equipoise.model.host import HostState
from equipoise.model.vm import Vm, VmState
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
    contended: tuple[str, ...]
    """The resources of which some host has too little."""


class _Sample(NamedTuple):
    """The whole cluster at one moment."""

    cluster: dict[str, float]
    hosts: dict[str, Any]
    pools: dict[str, Any]
    contended: tuple[str, ...]


class RunSampler:
    """Takes samples and makes the record of a run from them."""

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._samples: list[_Sample] = []
        self._rules = PlacementRules()
        self._rules_key: tuple[object, ...] = ()
        self._contended_ms: dict[str, int] = {}
        """When a sample last found too little of a resource on some host."""

    def sample(self) -> None:
        """Take a sample now."""
        sample = self._take_sample()
        self._samples.append(sample)
        # Only samples of the run count: to read the record changes nothing.
        self._contended_ms.update(dict.fromkeys(sample.contended, self._context.now_ms))

    def record(self) -> RunRecord:
        """Return all samples as tables, with one of now."""
        samples = list(self._samples)
        # A run that ends between two samples still has a row of its last state.
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
        # Allocation is lazy: without this the sample would show the division before the last
        # change.
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
        pools = self._pool_sample(at_s, entitled)
        return _Sample(cluster, hosts, pools, entitled.contended)

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
        # A VM that wants less than its entitlement is happy with what it wants.
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
            # The margin keeps a VM happy that gets exactly the minimum, after rounding.
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
        compared = self._compared_hosts()
        pools = allocator.pools
        tree = build_claim_tree(pools.parent, vms["pool"])
        entitlements, loads = [], []
        for name, bounds_of in (("cpu", pools.cpu), ("memory", pools.memory)):
            bounds = bounds_of(vms["pool"], vms[f"{name}_shares"])
            entitled = self._entitle(name, bounds, tree, vms)
            sums = np.bincount(vms["host"], weights=entitled, minlength=len(allocator.hosts))
            capacity = allocator.hosts[name][compared]
            entitlements.append(entitled)
            # DRS: the normalised entitlement of a host is the sum of its VMs over its capacity.
            loads.append(sums[compared] / np.maximum(capacity, 1.0))
        named = self._named_loads(compared)
        table = np.stack([*loads, *named.values()], axis=1)
        names = ("cpu", "memory", *named)
        # As in a balance pass, a resource keeps its weight for a while after a contention.
        lately = contended_lately(self._contended_ms, names, self._context.now_ms)
        contended = compress(names, contended_resources(table).tolist())
        cpu, memory = entitlements
        figure = imbalance(table, resource_weights(table, lately))
        return Entitlements(rows, cpu, memory, figure, tuple(contended))

    def _compared_hosts(self) -> Ints:
        """Return the rows of the hosts that take part in the imbalance, as in a balance pass."""
        state = self._context.truth.state
        idle = hosts_kept_free(self._placement_rules(), self._running_vms())
        policy, row_of = state.settings.balance, self._context.truth.allocator.host_row
        rows = [
            row_of[host.id]
            for host in state.hosts.values()
            if is_rebalanced(host, policy) and host.id not in idle
        ]
        return np.array(rows, dtype=np.int64)

    def _running_vms(self) -> Iterator[Vm]:
        vms = self._context.truth.state.vms.values()
        return (vm for vm in vms if vm.state is VmState.RUNNING)

    def _placement_rules(self) -> PlacementRules:
        """Return the rules as a balance pass reads them, soft rules about hosts included."""
        state = self._context.truth.state
        if not state.settings.rules:
            return PlacementRules()
        # A reserve for failover may be used after a failure, so failures change the rules.
        failed = sum(host.state is HostState.FAILED for host in state.hosts.values())
        key = (state.settings, state.membership_version, failed)
        if key != self._rules_key:
            self._rules, self._rules_key = read_rules(state.freeze(), with_soft=True), key
        return self._rules

    def _named_loads(self, compared: Ints) -> dict[str, Floats]:
        """Return the loads of each named resource of hosts."""
        truth, loads = self._context.truth, {}
        row_of = truth.allocator.host_row
        for name in named_resources(truth.state):
            used = np.zeros(len(truth.allocator.hosts))
            offered = np.zeros(len(truth.allocator.hosts))
            for host in truth.state.hosts.values():
                offered[row_of[host.id]] = host.capacity.get(name, 0)
            for vm in self._running_vms():
                assert vm.host is not None, "a running VM has a host"
                used[row_of[vm.host]] += vm.demand.named.get(name, vm.consumption.get(name, 0))
            # A host that lacks the resource is left out of its column.
            load = np.full(len(compared), np.nan)
            np.divide(used[compared], offered[compared], out=load, where=offered[compared] > 0)
            loads[str(name)] = load
        return loads

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
