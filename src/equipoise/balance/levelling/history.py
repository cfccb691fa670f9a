"""What VMs have asked for within the last hour, and how long hosts have stayed the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from equipoise.model.quantity import ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm
from equipoise.place.water import Floats, Ints

NOTABLE: Final = 0.05
"""A change of a host's demand by this part of its capacity counts as one."""


class History:
    """The demand of VMs, now and within the last hour; a column for each resource."""

    def __init__(
        self, snapshot: Snapshot, vms: Sequence[Vm], named: Sequence[ResourceName]
    ) -> None:
        self._names, self._vms = tuple(named), vms
        self.now = self._frame({})
        # An hour in which nothing changed has one map many times. Who was not there yet is
        # taken to have been as now.
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
        """The VMs, one for each row."""
        return self._vms

    def since(self, at_ms: int) -> list[Floats]:
        """What was asked for after some time, in the order of the observations; now, if none."""
        pairs = zip(self._at_ms, self._frames, strict=True)
        return [frame for at, frame in pairs if at > at_ms] or [self.now]

    def stable_s(self, host: Ints, cpu_mhz: Floats, least_s: float, most_s: float) -> Floats:
        """How long, on average, the CPU demand on each host stayed about the same.

        Where nothing was ever observed, as in a file, it is taken to stay.
        """
        if self._span_s is None:
            return np.full(len(cpu_mhz), most_s)
        changes = np.zeros(len(cpu_mhz))
        before = None
        for frame in self._frames:
            load = np.bincount(host, weights=frame[:, 0], minlength=len(cpu_mhz)) / cpu_mhz
            if before is not None:
                changes += np.abs(load - before) > NOTABLE
            before = load
        found: Floats = np.maximum(least_s, self._span_s / (1 + changes))
        return found

    def _frame(self, past: Mapping[VmId, Demand]) -> Floats:
        """What all VMs asked for then; a resource that is not measured is asked for as taken."""
        if past:
            demands = [past.get(vm.id, vm.demand) for vm in self._vms]
        else:
            demands = [vm.demand for vm in self._vms]
        frame = np.empty((len(demands), 2 + len(self._names)))
        frame[:, 0] = [one.cpu_mhz for one in demands]
        frame[:, 1] = [one.memory_mib for one in demands]
        for column, name in enumerate(self._names, start=2):
            frame[:, column] = [
                one.named.get(name, vm.consumption.get(name, 0))
                for one, vm in zip(demands, self._vms, strict=True)
            ]
        return frame
