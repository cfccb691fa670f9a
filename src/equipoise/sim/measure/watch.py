"""Watching a run: a sample of the whole cluster every few minutes, for the series of the report."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.model.host import HostState
from equipoise.place.deserve import deserve, pool_tree
from equipoise.place.imbalance import imbalance
from equipoise.place.pools import Bounds
from equipoise.place.water import NOBODY, Floats, Ints, Records
from equipoise.sim.fluid.rows import LIMBO
from equipoise.sim.measure.record import Record, Table
from equipoise.sim.stage import Stage

HAPPY: Final = 0.95
"""A VM that gets at least this part of what it deserves and wants is happy."""
NO_POOL: Final = "(no pool)"

_HOST_FIGURES: Final = {
    "cpu_capacity_mhz": "cpu",
    "cpu_demand_mhz": "cpu_want",
    "cpu_used_mhz": "cpu_used",
    "memory_capacity_mib": "memory",
    "memory_demand_mib": "memory_want",
    "memory_used_mib": "memory_used",
    "ballooned_mib": "ballooned",
    "swapped_mib": "swapped",
    "watts": "watts",
    "watts_saved": "watts_saved",
}


class Deserved(NamedTuple):
    """What running VMs deserve, and how unevenly it lies on the hosts."""

    rows: Ints
    cpu: Floats
    memory: Floats
    imbalance: float


class _Sample(NamedTuple):
    """The whole cluster at one moment."""

    cluster: dict[str, float]
    hosts: dict[str, Any]
    pools: dict[str, Any]


class Watch:
    """Takes the samples, and makes the record of them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._samples: list[_Sample] = []

    def sample(self) -> None:
        """Note how things are now."""
        self._samples.append(self._look())

    def record(self) -> Record:
        """All samples as tables, and how things are now."""
        samples = list(self._samples)
        if not samples or samples[-1].cluster["at_s"] != self._stage.now_ms / 1000:
            samples.append(self._look())
        rows = [one.cluster for one in samples]
        return Record(
            cluster=Table({name: np.array([row[name] for row in rows]) for name in rows[0]}),
            hosts=_stacked([one.hosts for one in samples]),
            pools=_stacked([one.pools for one in samples]),
        )

    def _look(self) -> _Sample:
        stage = self._stage
        stage.truth.fluid.settle()
        at_s = stage.now_ms / 1000
        deserved = self._deserved()
        hosts = self._host_sample(at_s)
        on = hosts["state"] == HostState.ON
        total = {name: float(hosts[name].sum()) for name in _HOST_FIGURES}
        for name in ("cpu_capacity_mhz", "memory_capacity_mib"):
            total[name] = float(hosts[name][on].sum())  # what is off helps nobody
        copying = stage.doing.copying
        cluster = (
            {"at_s": at_s}
            | {name: total[name] for name in total if name not in ("ballooned_mib", "swapped_mib")}
            | {
                "imbalance": deserved.imbalance,
                "hosts_on": float(on.sum()),
                "vms_running": float(len(deserved.rows)),
                "migrations_running": 0.0 if copying is None else float(copying.count),
            }
        )
        return _Sample(cluster, hosts, self._pool_sample(at_s, deserved))

    def _host_sample(self, at_s: float) -> dict[str, Any]:
        truth = self._stage.truth
        names = list(truth.state.hosts)
        rows = np.array([truth.fluid.host_row[name] for name in names], dtype=np.int64)
        found = truth.fluid.hosts[rows]
        running = truth.fluid.vms["host"]
        counts = np.bincount(running[running > LIMBO], minlength=len(truth.fluid.hosts))
        return {
            "at_s": np.full(len(names), at_s),
            "host": np.array(names, dtype=object),
            "state": np.array([host.state for host in truth.state.hosts.values()], dtype=object),
            "vms": counts[rows],
        } | {name: found[figure].copy() for name, figure in _HOST_FIGURES.items()}

    def _pool_sample(self, at_s: float, deserved: Deserved) -> dict[str, Any]:
        fluid = self._stage.truth.fluid
        vms = fluid.vms[deserved.rows]
        due = np.minimum(deserved.cpu, vms["cpu_want"])
        happiness = np.ones(len(vms))
        np.divide(vms["cpu_got"], due, out=happiness, where=due > 0)
        happiness = np.minimum(happiness, 1.0)
        row = np.where(vms["pool"] == NOBODY, len(fluid.pools.ids), vms["pool"])
        names = np.array([*fluid.pools.ids, NO_POOL], dtype=object)
        count = np.bincount(row, minlength=len(names))
        there = count > 0
        each = np.maximum(count, 1)

        def total(figure: Floats) -> Floats:
            return np.bincount(row, weights=figure, minlength=len(names)).astype(np.float64)

        columns = {
            "pool": names,
            "vms": count,
            "happiness_pct": 100 * total(happiness) / each,
            "happy_pct": 100 * total((happiness >= HAPPY - 1e-9).astype(float)) / each,
            "cpu_demand_mhz": total(vms["cpu_want"]),
            "cpu_used_mhz": total(vms["cpu_got"]),
        }
        return {"at_s": np.full(int(there.sum()), at_s)} | {
            name: column[there] for name, column in columns.items()
        }

    def _deserved(self) -> Deserved:
        fluid = self._stage.truth.fluid
        rows = np.nonzero(fluid.vms["host"] > LIMBO)[0]
        vms = fluid.vms[rows]
        awake = np.nonzero(fluid.hosts["awake"])[0]
        pools = fluid.pools
        tree = pool_tree(pools.parent, vms["pool"])
        found, loads = [], []
        for name, bounds_of in (("cpu", pools.cpu), ("memory", pools.memory)):
            bounds = bounds_of(vms["pool"], vms[f"{name}_shares"])
            got = self._divide(name, bounds, tree, vms)
            capacity = fluid.hosts[name][awake]
            on_host = np.bincount(vms["host"], weights=got, minlength=len(fluid.hosts))[awake]
            found.append(got)
            loads.append(on_host / np.maximum(capacity, 1.0))
        return Deserved(rows, found[0], found[1], imbalance(np.stack(loads, axis=1)))

    def _divide(self, name: str, bounds: Bounds, tree: Records, vms: Records) -> Floats:
        fluid = self._stage.truth.fluid
        capacity = float(fluid.hosts[name][fluid.hosts["awake"] == 1].sum())
        return deserve(
            capacity,
            tree,
            bounds,
            Bounds(vms[f"{name}_shares"], vms[f"{name}_floor"], vms[f"{name}_ceiling"]),
            vms[f"{name}_want"],
            fast=fluid.fast,
        )


def _stacked(samples: list[dict[str, Any]]) -> Table:
    return Table({name: np.concatenate([one[name] for one in samples]) for name in samples[0]})
