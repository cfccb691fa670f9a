"""Assessing a cluster for balance: what deserves how much where, who may move, and who may not.

What moves is a *unit*: a VM, or the VMs of a rule that keeps them together. All figures are arrays,
with CPU in the first and memory in the second column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.place.deserve import entitled
from equipoise.place.water import Floats, Ints, Records

WORTH_COMPILING: Final = 500
"""From about so many pairs of a VM and a host, machine code is the quicker way."""

NOTABLE: Final = 0.05
"""A change of a host's demand by this part of its capacity counts as one."""

UNIT: Final = np.dtype(
    [
        ("host", "i8"),
        ("movable", "i8"),
        ("allowed", "i8"),  # row of the table of allowed hosts
        ("load", "f8", (2,)),  # what it deserves
        ("want", "f8", (2,)),  # what it asks for: now,
        ("least", "f8", (2,)),  # at the least, and
        ("most", "f8", (2,)),  # at the most, within the last hour
        ("reserved", "f8", (2,)),
        ("move_s", "f8"),  # how long it is expected to be on its way
    ]
)

HOST: Final = np.dtype(
    [
        ("open", "i8"),  # 1 if VMs may come
        ("capacity", "f8", (2,)),
        ("load", "f8", (2,)),
        ("want", "f8", (2,)),
        ("least", "f8", (2,)),
        ("most", "f8", (2,)),
        ("reserved", "f8", (2,)),
        ("stable_s", "f8"),  # how long its demand has stayed about the same
    ]
)


@dataclass(frozen=True, slots=True)
class Groups:
    """Units that must not share a host: the groups of each unit, and who is where."""

    of_unit: Ints
    """Groups of all units, one after the other; ..."""
    first: Ints
    """... those of unit u from ``first[u]`` to ``first[u + 1]``."""
    there: NDArray[np.int64]
    """How many units of a group are on a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A cluster as the climber sees it. The arrays change while it climbs."""

    units: Records
    members: tuple[tuple[VmId, ...], ...]
    hosts: Records
    host_ids: tuple[HostId, ...]
    allowed: NDArray[np.int64]
    """Which hosts the rules allow: one row per set of rules, the first allows all."""
    groups: Groups
    fast: bool


def assess(snapshot: Snapshot, move_s: Callable[[Vm], float], stable_s_min: float) -> Assessment:
    """Put a cluster into arrays."""
    vms = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
    host_ids = tuple(snapshot.hosts)
    row_of = {host: row for row, host in enumerate(host_ids)}
    fast = len(vms) * len(host_ids) > WORTH_COMPILING
    members = _members(snapshot, vms)
    place = {vm.id: row for row, vm in enumerate(vms)}
    unit_of = np.zeros(len(vms), dtype=np.int64)
    for unit, names in enumerate(members):
        for name in names:
            unit_of[place[name]] = unit
    units = np.zeros(len(members), dtype=UNIT)
    history = _History(snapshot, vms)
    for field, figures in (
        ("load", entitled(snapshot, vms, fast=fast)),
        ("want", history.now),
        ("least", history.least),
        ("most", history.most),
        ("reserved", _reserved(vms)),
    ):
        for column in (0, 1):
            units[field][:, column] = np.bincount(
                unit_of, weights=figures[:, column], minlength=len(members)
            )
    first = [vms[place[names[0]]] for names in members]
    units["host"] = [row_of[_host(vm)] for vm in first]
    units["move_s"] = [max(move_s(vms[place[name]]) for name in names) for names in members]
    stuck = _stuck(snapshot, vms)
    units["movable"] = [stuck.isdisjoint(names) for names in members]
    hosts = _hosts(snapshot, units)
    hosts["stable_s"] = history.stable_s(
        np.array([row_of[_host(vm)] for vm in vms], dtype=np.int64), hosts, stable_s_min
    )
    rules = _Rules(snapshot, members, units["host"], row_of)
    units["allowed"] = rules.allowed_row
    return Assessment(
        units=units,
        members=members,
        hosts=hosts,
        host_ids=host_ids,
        allowed=rules.allowed,
        groups=rules.groups,
        fast=fast,
    )


def _host(vm: Vm) -> HostId:
    assert vm.host is not None, "a running VM has a host"
    return vm.host


def _members(snapshot: Snapshot, vms: list[Vm]) -> tuple[tuple[VmId, ...], ...]:
    """VMs that a rule keeps together and that are together now move as one."""
    host_of = {vm.id: vm.host for vm in vms}
    together = {vm.id: [vm.id] for vm in vms}
    for rule in snapshot.settings.rules:
        if isinstance(rule, KeepTogether) and rule.hard:
            here: dict[HostId | None, VmId] = {}
            for name in filter(host_of.__contains__, rule.vms):
                first = together[here.setdefault(host_of[name], name)]
                if together[name] is not first:
                    first += together[name]
                    together |= dict.fromkeys(together[name], first)
    # Each list stands under all its members; the first of them stands for it.
    return tuple(tuple(names) for vm, names in together.items() if names[0] == vm)


def _stuck(snapshot: Snapshot, vms: list[Vm]) -> set[VmId]:
    """The VMs that nobody may move now: agents, and those with whom something is being done."""
    busy = {running.step.footprint.vm for running in snapshot.in_flight.values()}
    on = {host.id for host in snapshot.hosts.values() if host.state is HostState.ON}
    return {vm.id for vm in vms if vm.agent or vm.id in busy or vm.host not in on}


def _reserved(vms: list[Vm]) -> Floats:
    figures = [(vm.cpu.reservation_mhz, vm.memory.reservation_mib) for vm in vms]
    return np.array(figures, dtype=np.float64).reshape(-1, 2)


def _hosts(snapshot: Snapshot, units: Records) -> Records:
    hosts = np.zeros(len(snapshot.hosts), dtype=HOST)
    for row, host in enumerate(snapshot.hosts.values()):
        hosts[row]["open"] = host.state is HostState.ON
        hosts[row]["capacity"] = (max(1, host.usable_cpu_mhz), max(1, host.usable_memory_mib))
    for field in ("load", "want", "least", "most", "reserved"):
        for column in (0, 1):
            hosts[field][:, column] = np.bincount(
                units["host"], weights=units[field][:, column], minlength=len(hosts)
            )
    return hosts


class _History:
    """What VMs have asked for within the last hour."""

    def __init__(self, snapshot: Snapshot, vms: list[Vm]) -> None:
        self.now = _demand([vm.demand for vm in vms])
        # Who was not there yet is taken to have been as now.
        frames = [
            _demand([past.demand.get(vm.id, vm.demand) for vm in vms]) for past in snapshot.history
        ]
        self._frames = frames or [self.now]
        self._span_s = 0.0
        if snapshot.history:
            self._span_s = (snapshot.at_ms - snapshot.history[0].at_ms) / 1000
        stacked = np.stack([*frames, self.now])
        self.least, self.most = stacked.min(axis=0), stacked.max(axis=0)

    def stable_s(self, host: Ints, hosts: Records, least_s: float) -> Floats:
        """How long, on average, the demand on each host stayed about the same."""
        sums = np.stack(
            [
                np.bincount(host, weights=frame[:, 0], minlength=len(hosts))
                / hosts["capacity"][:, 0]
                for frame in self._frames
            ]
        )
        changes = (np.abs(np.diff(sums, axis=0)) > NOTABLE).sum(axis=0)
        found: Floats = np.maximum(least_s, self._span_s / (1 + changes))
        return found


def _demand(demands: Iterable[Demand]) -> Floats:
    figures = [(one.cpu_mhz, one.memory_mib) for one in demands]
    return np.array(figures, dtype=np.float64).reshape(-1, 2)


class _Rules:
    """What the plain rules say about who may be where; the gate knows what else is demanded."""

    def __init__(
        self,
        snapshot: Snapshot,
        members: tuple[tuple[VmId, ...], ...],
        host: Ints,
        row_of: dict[HostId, int],
    ) -> None:
        self._unit = {vm: unit for unit, names in enumerate(members) for vm in names}
        rules = [rule for rule in snapshot.settings.rules if getattr(rule, "hard", True)]
        sets = [np.ones(len(row_of), dtype=np.int64) for _ in members] if rules else []
        for rule in rules:
            if isinstance(rule, StayWithin | StayOff):
                named = np.zeros(len(row_of), dtype=np.int64)
                named[[row_of[name] for name in rule.hosts if name in row_of]] = 1
                for unit in {self._unit[vm] for vm in rule.vms if vm in self._unit}:
                    sets[unit] &= named if isinstance(rule, StayWithin) else 1 - named
        rows = {b"": 0}
        table = [np.ones(len(row_of), dtype=np.int64)]
        self.allowed_row = np.zeros(len(members), dtype=np.int64)
        for unit, one in enumerate(sets):
            key = one.tobytes()
            if not one.all():
                if key not in rows:
                    rows[key] = len(table)
                    table.append(one)
                self.allowed_row[unit] = rows[key]
        self.allowed = np.stack(table)
        self.groups = self._apart(snapshot, members, host, len(row_of))

    def _apart(
        self, snapshot: Snapshot, members: tuple[tuple[VmId, ...], ...], host: Ints, hosts: int
    ) -> Groups:
        apart = [
            {self._unit[vm] for vm in rule.vms if vm in self._unit}
            for rule in snapshot.settings.rules
            if isinstance(rule, KeepApart) and rule.hard
        ]
        apart += [
            {self._unit[vm.id], self._unit[vm.ft_pair]}
            for vm in snapshot.vms.values()
            if vm.ft_pair in self._unit and vm.id in self._unit
        ]
        of_unit: list[list[int]] = [[] for _ in members]
        there = np.zeros((max(1, len(apart)), hosts), dtype=np.int64)
        for group, units in enumerate(apart):
            for unit in units:
                of_unit[unit].append(group)
                there[group, host[unit]] += 1
        first = np.concatenate([[0], np.cumsum([len(one) for one in of_unit])]).astype(np.int64)
        flat = np.array([group for one in of_unit for group in one], dtype=np.int64)
        return Groups(flat, first, there)
