"""The record of a run: what is left of it for reports, as tables over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length, by name."""

    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row per sample in ``cluster``; one per sample and host or pool in the other two."""

    cluster: Table
    """at_s, cpu_capacity_mhz, cpu_demand_mhz, cpu_used_mhz, memory_capacity_mib, memory_demand_mib,
    memory_used_mib, watts, watts_saved, imbalance, hosts_on, vms_running, migrations_running."""
    hosts: Table
    """at_s, host, state, vms, cpu_capacity_mhz, cpu_demand_mhz, cpu_used_mhz, memory_capacity_mib,
    memory_demand_mib, memory_used_mib, ballooned_mib, swapped_mib, watts, watts_saved (what a
    host that sleeps would draw on top, were it on and idle)."""
    pools: Table
    """at_s, pool, vms, happiness_pct, happy_pct, cpu_demand_mhz, cpu_used_mhz."""
