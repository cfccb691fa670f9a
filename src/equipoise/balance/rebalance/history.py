"""Observed history: the demand of VMs in the last hour, how stable hosts are, migration speeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import numpy as np

from equipoise.capacity.waterfill import Floats, Ints
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm


def observed_migration_speeds(snapshot: Snapshot) -> dict[VmId, float]:
    """Return MiB/s per VM: of its last migration, or the median of migrations on its host."""
    by_host: dict[HostId, list[float]] = defaultdict(list)
    for move in snapshot.moves.values():
        by_host[move.source].append(move.mib_per_s)
        by_host[move.target].append(move.mib_per_s)
    usual = {host: median(observed) for host, observed in by_host.items()}
    speeds = {
        vm.id: usual[vm.host]
        for vm in (snapshot.vms.values() if usual else ())
        if vm.host is not None and vm.host in usual
    }
    return speeds | {vm: move.mib_per_s for vm, move in snapshot.moves.items()}


LOAD_CHANGE_MIN: Final = 0.05
"""A change of the demand on a host by this part of its capacity counts as a change."""


class DemandHistory:
    """The demand of VMs, now and in the last hour; one column per resource."""

    def __init__(
        self, snapshot: Snapshot, vms: Sequence[Vm], named: Sequence[ResourceName]
    ) -> None:
        self._names, self._vms = tuple(named), vms
        self.now = self._frame({})
        # Samples without changes share one map, so each map is read once. A VM that did not exist
        # yet counts with its current demand.
        maps = {id(past.demand): past.demand for past in snapshot.history}
        frames = {key: self._frame(demand) for key, demand in maps.items()}
        self._frames = [frames[id(past.demand)] for past in snapshot.history] or [self.now]
        self._at_ms = [past.at_ms for past in snapshot.history] or [snapshot.at_ms]
        self._span_s: float | None = None
        if snapshot.history:
            self._span_s = (snapshot.at_ms - snapshot.history[0].at_ms) / 1000
        self.least, self.most = self.now.copy(), self.now.copy()
        for frame in frames.values():
            np.minimum(self.least, frame, out=self.least)
            np.maximum(self.most, frame, out=self.most)

    @property
    def vms(self) -> Sequence[Vm]:
        """The VMs, one per row."""
        return self._vms

    def since(self, at_ms: int) -> list[Floats]:
        """Return the demands observed after a time, in order; the current one if there is none."""
        pairs = zip(self._at_ms, self._frames, strict=True)
        return [frame for at, frame in pairs if at > at_ms] or [self.now]

    def stable_s(self, host: Ints, cpu_mhz: Floats, least_s: float, most_s: float) -> Floats:
        """Return the mean time between changes of the CPU demand on each host.

        Without observations, as in an inventory file, demand is assumed to stay.
        """
        if self._span_s is None:
            return np.full(len(cpu_mhz), most_s)
        changes = np.zeros(len(cpu_mhz))
        before = None
        for frame in self._frames:
            load = np.bincount(host, weights=frame[:, 0], minlength=len(cpu_mhz)) / cpu_mhz
            if before is not None:
                changes += np.abs(load - before) > LOAD_CHANGE_MIN
            before = load
        result: Floats = np.maximum(least_s, self._span_s / (1 + changes))
        return result

    def _frame(self, past: Mapping[VmId, Demand]) -> Floats:
        """Return the demands of all VMs; a resource that is not measured counts as consumed."""
        if past:
            demands = [past.get(vm.id, vm.demand) for vm in self._vms]
        else:
            demands = [vm.demand for vm in self._vms]
        frame = np.empty((len(demands), 2 + len(self._names)))
        frame[:, 0] = [demand.cpu_mhz for demand in demands]
        frame[:, 1] = [demand.memory_mib for demand in demands]
        for column, name in enumerate(self._names, start=2):
            frame[:, column] = [
                demand.named.get(name, vm.consumption.get(name, 0))
                for demand, vm in zip(demands, self._vms, strict=True)
            ]
        return frame
