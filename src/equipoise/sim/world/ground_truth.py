"""The true state of the simulated cluster, and which part of it an observer sees, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.capacity.waterfill import Floats, Ints, Records
from equipoise.model.action import PowerOn
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.load import Load
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm
from equipoise.sim.allocation.allocator import DEMAND_CHANGE_DTYPE, ResourceAllocator
from equipoise.sim.load import DemandChanges, LoadDemands
from equipoise.sim.measure.sla import SlaTracker

LOOKAHEAD_CHANGES: Final = 250_000
"""About how many changes of demand are computed ahead: many at once are cheaper per change."""


class GroundTruth:
    """The cluster, its demands, and the time up to which both are known."""

    def __init__(
        self, snapshot: Snapshot, allocator: ResourceAllocator, demands: LoadDemands, end_ms: int
    ) -> None:
        self.state = Draft(snapshot)
        self.allocator = allocator
        self.sla_tracker = SlaTracker(snapshot.settings.tenants, self.state)
        self._demands = demands
        self._loaded_rows: set[int] = set()
        self._end_ms = max(1, end_ms)
        self._ahead: Records = np.zeros(0, dtype=DEMAND_CHANGE_DTYPE)
        self._next = 0
        self._ahead_ms = 0
        self.names: list[VmId] = []
        """The VM of each row."""
        for host in snapshot.hosts.values():
            allocator.put_host(host)
        for vm in snapshot.vms.values():
            self._put_vm(vm)

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self.allocator.now_ms

    def attach_loads(self, loads: Mapping[VmId, Load]) -> None:
        """Let loads determine the demand of VMs from now on."""
        rows = []
        for name, load in loads.items():
            row = self.allocator.vm_row[name]
            self._demands.add(row, self.state.vms[name], load)
            self._loaded_rows.add(row)
            rows.append(row)
        if not rows:
            return
        loaded_rows = np.array(sorted(rows), dtype=np.int64)
        cpu, memory = self._demands.at(self.now_ms, loaded_rows)
        self.allocator.set_demand(loaded_rows, cpu, memory)
        if self._ahead_ms > self.now_ms:
            more = _records(self._demands.changes(self.now_ms, self._ahead_ms, loaded_rows))
            rest = self._ahead[self._next :]
            # New VMs have the highest rows. Changes of one instant are ordered by row, so the
            # changes of new VMs go behind those that are already there.
            places = np.searchsorted(rest["at_ms"], more["at_ms"], side="right")
            self._ahead, self._next = np.insert(rest, places, more), 0

    def advance(self, to_ms: int) -> None:
        """Advance the time, with all changes of demand on the way."""
        while self._ahead_ms < to_ms:
            self._apply_until(self._ahead_ms)
            self._look_ahead()
        self._apply_until(to_ms)
        self.allocator.advance(to_ms)
        self.state.at_ms = max(self.state.at_ms, to_ms)

    def apply_event(self, event: Event) -> None:
        """Apply an event now, to the discrete state and to the allocator."""
        transition.apply_to_draft(self.state, event)
        touched = self.state.pop_touched()
        # Before the allocator: the tracker closes the time span in which the old state held.
        self.sla_tracker.update(self.now_ms, touched.vms, self.state)
        for host in touched.hosts:
            if host in self.state.hosts:
                self._put_host(host)
        for name in touched.vms:
            vm = self.state.vms.get(name)
            if vm is not None:
                self._put_vm(vm)
            elif name in self.allocator.vm_row:
                self._drop_vm(name)
        # Hosts leave last: the VMs on them must have left their rows before.
        for host in touched.hosts:
            if host not in self.state.hosts:
                self.allocator.drop_host(host)

    def _put_host(self, host: HostId) -> None:
        running = self.state.actions_on_host(host)
        waking = any(isinstance(action.step.action, PowerOn) for action in running)
        self.allocator.put_host(self.state.hosts[host], waking=waking)

    def _put_vm(self, vm: Vm) -> None:
        row = self.allocator.put_vm(vm)
        if row == len(self.names):
            self.names.append(vm.id)

    def _drop_vm(self, vm: VmId) -> None:
        row = self.allocator.vm_row[vm]
        if row in self._loaded_rows:
            self._loaded_rows.remove(row)
            self._demands.remove(row)
        self.allocator.drop_vm(vm)

    def _apply_until(self, to_ms: int) -> None:
        last = self._next + int(
            np.searchsorted(self._ahead["at_ms"][self._next :], to_ms, side="right")
        )
        if last > self._next:
            self.allocator.apply_changes(self._ahead[self._next : last])
            self._next = last

    def _look_ahead(self) -> None:
        rate = self._demands.estimated_changes(self._end_ms) / self._end_ms
        far_ms = self._end_ms if rate == 0 else max(1000, int(LOOKAHEAD_CHANGES / rate))
        if self._ahead_ms < self._end_ms:  # most runs stop at the end, so do not look beyond it
            far_ms = min(far_ms, self._end_ms - self._ahead_ms)
        start_ms, self._ahead_ms = self._ahead_ms, self._ahead_ms + far_ms
        self._ahead = _records(self._demands.changes(start_ms, self._ahead_ms))
        self._next = 0


def _records(changes: DemandChanges) -> Records:
    records = np.zeros(len(changes.at_ms), dtype=DEMAND_CHANGE_DTYPE)
    for name in ("at_ms", "row", "resource", "value"):
        records[name] = getattr(changes, name)
    return records


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
