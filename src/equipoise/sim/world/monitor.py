"""Monitoring: which part of the ground truth an observer sees, and when.

Demand is the mean over a window, in whole MHz and MiB, as in the statistics of hypervisors. During
a monitoring gap the last figures stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.capacity.waterfill import Floats, Ints
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand
from equipoise.sim.world.ground_truth import GroundTruth


@dataclass(frozen=True, slots=True)
class _Reading:
    """The totals of all VMs at one time."""

    at_ms: int
    seen_ms: Floats
    cpu: Floats
    memory: Floats


class Monitor:
    """Measures the demand of VMs and keeps the last readings of a window."""

    def __init__(self, truth: GroundTruth, window_ms: int) -> None:
        self._truth = truth
        self._window_ms = window_ms
        self._readings: list[_Reading] = []
        self._reported: Ints = np.zeros((0, 2), dtype=np.int64)
        self.gap_until_ms = 0

    def observe(self) -> Snapshot:
        """Return the state of the cluster with the measured demands."""
        if self._truth.now_ms >= self.gap_until_ms:
            self._measure()
        return self._truth.state.freeze()

    def _measure(self) -> None:
        truth = self._truth
        truth.allocator.update_totals()
        vms = truth.allocator.vms
        now = _Reading(
            truth.now_ms,
            vms["seen_ms"].copy(),
            vms["cpu_demand_sum"].copy(),
            vms["memory_demand_sum"].copy(),
        )
        before = self._reading_before(now)
        self._readings.append(now)
        means = np.empty((len(vms), 2))
        sums = ((now.cpu, before.cpu, "cpu_demand"), (now.memory, before.memory, "memory_demand"))
        for column, (after, earlier, figure) in enumerate(sums):
            means[:, column] = _means(now, before, after, earlier, vms[figure])
        self._report(np.rint(means).astype(np.int64))

    def _reading_before(self, now: _Reading) -> _Reading:
        """Return the latest reading that is at least a window old, and drop older ones."""
        while len(self._readings) > 1 and self._readings[1].at_ms <= now.at_ms - self._window_ms:
            del self._readings[0]
        return self._readings[0] if self._readings else now

    def _report(self, demands: Ints) -> None:
        """Write the demands that have changed into the state."""
        reported = np.full(demands.shape, -1, dtype=np.int64)
        reported[: len(self._reported)] = self._reported
        self._reported = demands
        state, names = self._truth.state, self._truth.names
        changed = np.nonzero((reported != demands).any(axis=1))[0]
        # A VM that left and came back has two rows; only the row in ``vm_row`` is current.
        rows = self._truth.allocator.vm_row
        vms, figures = state.vms, demands[changed].T.tolist()
        state.put_demands(
            {
                name: Demand(cpu_mhz=cpu, memory_mib=memory, named=vms[name].demand.named)
                for row, cpu, memory in zip(changed.tolist(), *figures, strict=True)
                if (name := names[row]) in vms and rows[name] == row
            }
        )


def _means(
    now: _Reading, before: _Reading, after: Floats, earlier: Floats, current: Floats
) -> Floats:
    """Return the mean of a figure between two readings.

    A VM that was not there in between has its current figure.
    """
    known = len(before.seen_ms)  # rows are only ever added
    seen, total = now.seen_ms.copy(), after.copy()
    seen[:known] -= before.seen_ms
    total[:known] -= earlier
    result: Floats = np.where(seen > 0, total / np.where(seen > 0, seen, 1.0), current)
    return result
