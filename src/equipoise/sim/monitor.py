"""Monitoring: what of the truth an observer gets to know, and when.

Demand is told as the mean of a while, in whole MHz and MiB, as statistics of hypervisors are. While
there is a gap the last figures stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand
from equipoise.place.water import Floats, Ints
from equipoise.sim.truth import Truth


@dataclass(frozen=True, slots=True)
class _Look:
    """The sums of all VMs at some time."""

    at_ms: int
    seen_ms: Floats
    cpu: Floats
    memory: Floats


class Monitor:
    """Measures the demand of VMs."""

    def __init__(self, truth: Truth, window_ms: int) -> None:
        self._truth = truth
        self._window_ms = window_ms
        self._looks: list[_Look] = []
        self._told: Ints = np.zeros((0, 2), dtype=np.int64)
        self.blind_until_ms = 0

    def look(self) -> Snapshot:
        """Say how the cluster is, with the demands that were measured."""
        if self._truth.now_ms >= self.blind_until_ms:
            self._measure()
        return self._truth.state.freeze()

    def _measure(self) -> None:
        truth = self._truth
        truth.fluid.add_up()
        vms = truth.fluid.vms
        now = _Look(
            truth.now_ms,
            vms["seen_ms"].copy(),
            vms["cpu_want_sum"].copy(),
            vms["memory_want_sum"].copy(),
        )
        before = self._before(now)
        self._looks.append(now)
        means = np.empty((len(vms), 2))
        sums = ((now.cpu, before.cpu, "cpu_want"), (now.memory, before.memory, "memory_want"))
        for column, (after, earlier, figure) in enumerate(sums):
            means[:, column] = _means(now, before, after, earlier, vms[figure])
        self._tell(np.rint(means).astype(np.int64))

    def _before(self, now: _Look) -> _Look:
        """The last look that is long enough ago; those before it are no longer needed."""
        while len(self._looks) > 1 and self._looks[1].at_ms <= now.at_ms - self._window_ms:
            del self._looks[0]
        return self._looks[0] if self._looks else now

    def _tell(self, demands: Ints) -> None:
        """Write down the demands that have changed."""
        told = np.full(demands.shape, -1, dtype=np.int64)
        told[: len(self._told)] = self._told
        self._told = demands
        state, names = self._truth.state, self._truth.names
        changed = np.nonzero((told != demands).any(axis=1))[0]
        # Of two with one name, one after the other, only the later one is still there.
        rows = self._truth.fluid.vm_row
        vms, figures = state.vms, demands[changed].T.tolist()
        state.put_demands(
            {
                name: Demand(cpu_mhz=cpu, memory_mib=memory, named=vms[name].demand.named)
                for row, cpu, memory in zip(changed.tolist(), *figures, strict=True)
                if (name := names[row]) in vms and rows[name] == row
            }
        )


def _means(now: _Look, before: _Look, after: Floats, earlier: Floats, current: Floats) -> Floats:
    """The mean of a figure between two looks; what it is now, for who was not seen in between."""
    past = len(before.seen_ms)
    seen, total = now.seen_ms.copy(), after.copy()
    seen[:past] -= before.seen_ms
    total[:past] -= earlier
    result: Floats = np.where(seen > 0, total / np.where(seen > 0, seen, 1.0), current)
    return result
