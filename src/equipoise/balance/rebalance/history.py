"""Observed history: the demand of VMs in the last hour, and how stable hosts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.capacity.waterfill import Floats, Ints
from equipoise.model.quantity import ResourceName, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm

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
        self._now_ms = snapshot.at_ms
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

    def recent(self, window_s: int) -> list[Floats]:
        """Return the demands observed within some seconds before now, and the current one."""
        if self._span_s is None:
            return [self.now]
        return [*self.since(self._now_ms - 1000 * window_s - 1), self.now]

    def stable_s(self, host: Ints, cpu_mhz: Floats, least_s: float, most_s: float) -> Floats:
        """Return the mean time between changes of the CPU demand on each host.

        Without observations, as in an inventory file, demand is assumed to stay.
        """
        if self._span_s is None:
            return np.full(len(cpu_mhz), most_s)
        changes = np.zeros(len(cpu_mhz))
        before = None
        for frame in self._frames:
            # VMs are counted on their present host also in the past, so that a migration is no
            # change of demand.
            load = np.bincount(host, weights=frame[:, 0], minlength=len(cpu_mhz)) / cpu_mhz
            if before is not None:
                changes += np.abs(load - before) > LOAD_CHANGE_MIN
            before = load
        # Changes divide the span into one more interval than there are changes.
        result: Floats = np.maximum(least_s, self._span_s / (1 + changes))
        return result

    def last_changes_ms(self, host: Ints, capacity: Floats, on: Ints) -> Floats:
        """Return per host when the demand on it was last observed to differ from that of now.

        A difference counts from ``LOAD_CHANGE_MIN`` of the host; or half of it, of all hosts
        together, because then other hosts have become the better or the worse ones. Without a
        difference within the last hour, it is before all times.
        """
        last = np.full(len(capacity), -np.inf)
        whole = np.maximum(1.0, capacity[on].sum(axis=0))
        now = self._per_host(self.now, host, len(capacity))
        frames = {id(frame): frame for frame in self._frames}
        changed = {
            key: self._changed_hosts(frame, host, now, capacity, whole)
            for key, frame in frames.items()
        }
        for at_ms, frame in zip(self._at_ms, self._frames, strict=True):
            last[changed[id(frame)]] = at_ms
        return last

    def _changed_hosts(
        self, frame: Floats, host: Ints, now: Floats, capacity: Floats, whole: Floats
    ) -> NDArray[np.bool_]:
        """Return which hosts had another demand in a frame."""
        change = self._per_host(frame, host, len(capacity)) - now
        if (np.abs(change.sum(axis=0) / whole) > LOAD_CHANGE_MIN / 2).any():
            return np.ones(len(capacity), dtype=bool)
        return np.asarray((np.abs(change / capacity) > LOAD_CHANGE_MIN).any(axis=1))

    @staticmethod
    def _per_host(frame: Floats, host: Ints, count: int) -> Floats:
        columns = [np.bincount(host, weights=frame[:, n], minlength=count) for n in range(2)]
        return np.stack(columns, axis=1)

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
