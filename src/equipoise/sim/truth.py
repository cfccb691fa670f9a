"""The truth: how the simulated cluster really is, at this moment.

What is discrete follows from the same ``transition`` as everything else; what flows is in the
arrays of ``Fluid``. Both have the same time, and a change of the one is told to the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from equipoise.model.action import PowerOn
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.load import Load
from equipoise.model.vm import Vm
from equipoise.place.water import Records
from equipoise.sim.fluid.fluid import CHANGE, Fluid
from equipoise.sim.load import Changes, Demands
from equipoise.sim.measure.promises import Promises

AHEAD: Final = 250_000
"""About so many changes of demand are looked up ahead of time."""


class Truth:
    """The cluster, its demands, and the time up to which both are known."""

    def __init__(self, snapshot: Snapshot, fluid: Fluid, demands: Demands, end_ms: int) -> None:
        self.state = Draft(snapshot)
        self.fluid = fluid
        self.promises = Promises(snapshot.settings.tenants, self.state)
        self._demands = demands
        self._driven: set[int] = set()
        self._end_ms = max(1, end_ms)
        self._ahead: Records = np.zeros(0, dtype=CHANGE)
        self._next = 0
        self._ahead_ms = 0
        self.names: list[VmId] = []
        """Who has which row."""
        for host in snapshot.hosts.values():
            fluid.put_host(host)
        for vm in snapshot.vms.values():
            self._put_vm(vm)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.fluid.now_ms

    def drive(self, loads: Mapping[VmId, Load]) -> None:
        """Let loads drive VMs from now on."""
        rows = []
        for name, load in loads.items():
            row = self.fluid.vm_row[name]
            self._demands.add(row, self.state.vms[name], load)
            self._driven.add(row)
            rows.append(row)
        if not rows:
            return
        driven = np.array(sorted(rows), dtype=np.int64)
        cpu, memory = self._demands.at(self.now_ms, driven)
        self.fluid.set_demand(driven, cpu, memory)
        if self._ahead_ms > self.now_ms:
            more = _records(self._demands.changes(self.now_ms, self._ahead_ms, driven))
            left = self._ahead[self._next :]
            # Newcomers have the highest rows, so at any instant theirs come last, as they should.
            places = np.searchsorted(left["at_ms"], more["at_ms"], side="right")
            self._ahead, self._next = np.insert(left, places, more), 0

    def advance(self, to_ms: int) -> None:
        """Let time pass, and demands change."""
        while self._ahead_ms < to_ms:
            self._pass(self._ahead_ms)
            self._look_ahead()
        self._pass(to_ms)
        self.fluid.advance(to_ms)
        self.state.at_ms = max(self.state.at_ms, to_ms)

    def happen(self, event: Event) -> None:
        """Something has happened, now."""
        transition.change(self.state, event)
        touched = self.state.take_touched()
        self.promises.update(self.now_ms, touched.vms, self.state)
        for host in touched.hosts:
            if host in self.state.hosts:
                self._put_host(host)
        for vm in touched.vms:
            found = self.state.vms.get(vm)
            if found is not None:
                self._put_vm(found)
            elif vm in self.fluid.vm_row:
                self._drop_vm(vm)
        for host in touched.hosts:
            if host not in self.state.hosts:
                self.fluid.drop_host(host)

    def _put_host(self, host: HostId) -> None:
        running = self.state.running_at(host)
        waking = any(isinstance(one.step.action, PowerOn) for one in running)
        self.fluid.put_host(self.state.hosts[host], waking=waking)

    def _put_vm(self, vm: Vm) -> None:
        row = self.fluid.put_vm(vm)
        if row == len(self.names):
            self.names.append(vm.id)

    def _drop_vm(self, vm: VmId) -> None:
        row = self.fluid.vm_row[vm]
        if row in self._driven:
            self._driven.remove(row)
            self._demands.remove(row)
        self.fluid.drop_vm(vm)

    def _pass(self, to_ms: int) -> None:
        last = self._next + int(
            np.searchsorted(self._ahead["at_ms"][self._next :], to_ms, side="right")
        )
        if last > self._next:
            self.fluid.pass_changes(self._ahead[self._next : last])
            self._next = last

    def _look_ahead(self) -> None:
        rate = self._demands.estimated_changes(self._end_ms) / self._end_ms
        far_ms = self._end_ms if rate == 0 else max(1000, int(AHEAD / rate))
        if self._ahead_ms < self._end_ms:  # what comes after the end is mostly not worth knowing
            far_ms = min(far_ms, self._end_ms - self._ahead_ms)
        start_ms, self._ahead_ms = self._ahead_ms, self._ahead_ms + far_ms
        self._ahead = _records(self._demands.changes(start_ms, self._ahead_ms))
        self._next = 0


def _records(changes: Changes) -> Records:
    records = np.zeros(len(changes.at_ms), dtype=CHANGE)
    for name in ("at_ms", "row", "resource", "value"):
        records[name] = getattr(changes, name)
    return records
