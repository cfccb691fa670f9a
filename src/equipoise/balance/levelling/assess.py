"""Assessing a cluster for balance: what deserves how much where, who may move, and who may not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.balance.levelling.field import Field, Weighing
from equipoise.balance.levelling.history import History
from equipoise.balance.levelling.units import (
    added,
    arriving_at,
    flat,
    grouped,
    largest,
    members_of,
)
from equipoise.balance.rules import Rules
from equipoise.balance.speed import observed_speeds
from equipoise.balance.stuck import stuck_vms
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.policy import BalancePolicy, HostOverride
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.place.deserve import entitled
from equipoise.place.imbalance import imbalance
from equipoise.place.water import NOBODY, Floats, Ints

WORTH_COMPILING: Final = 500
"""From about so many pairs of a VM and a host, machine code is the quicker way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A cluster as the climber sees it. The arrays change while it climbs."""

    field: Field
    members: tuple[tuple[VmId, ...], ...]
    """The VMs of each unit. A VM that is on its way is a second unit, where it goes to."""
    host_ids: tuple[HostId, ...]
    hosts: Ints
    """The rows of the hosts that take part: on, with something to give, and not left alone."""
    resources: tuple[str, ...]
    fast: bool
    history: History
    unit_of: Ints
    """The unit of each VM of the history."""
    guests: tuple[int, ...]
    """For the units that are on their way: their VM, or nobody if it does not run yet."""

    def units(self, figures: Floats) -> Floats:
        """Figures of the VMs of the history, added up for each unit."""
        units = len(self.members) - len(self.guests)
        running = [place for place in self.guests if place != NOBODY]
        sums = grouped(figures, self.unit_of, units, running)
        if len(running) == len(self.guests):
            return sums
        found = np.zeros((len(self.members), sums.shape[1]))
        found[:units] = sums[:units]
        found[units:][np.array(self.guests) != NOBODY] = sums[units:]
        return found

    def loads(self) -> Floats:
        """What is deserved on each host that takes part, as a part of what it has."""
        capacity = self.field.capacity[self.hosts]
        loads: Floats = self.field.host_load[self.hosts] / capacity
        loads[np.isinf(capacity)] = np.nan
        return loads

    def imbalance(self, weight: Floats | None = None) -> float:
        """How unevenly hosts are loaded; by given weights, or by what is scarce."""
        return imbalance(self.loads(), weight)


def assess(snapshot: Snapshot, rules: Rules, estimates: Estimates) -> Assessment:
    """Put a cluster into arrays."""
    return _Assessor(snapshot, rules, estimates).assess()


class _Assessor:
    def __init__(self, snapshot: Snapshot, rules: Rules, estimates: Estimates) -> None:
        self._snapshot, self._rules, self._estimates = snapshot, rules, estimates
        self._policy = snapshot.settings.balance
        self._vms = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
        self._host_ids = tuple(snapshot.hosts)
        self._row = {host: row for row, host in enumerate(self._host_ids)}
        self._place = {vm.id: place for place, vm in enumerate(self._vms)}
        self._named = _named(snapshot)
        self._speeds = observed_speeds(snapshot)

    def assess(self) -> Assessment:
        snapshot, policy = self._snapshot, self._policy
        fast = len(self._vms) * len(self._host_ids) > WORTH_COMPILING
        members = members_of(self._vms, self._rules)
        arriving = arriving_at(snapshot)
        everyone = (*members, *((vm,) for vm, _ in arriving))
        guests = [snapshot.vms[vm] for vm, _ in arriving]
        vm_host = np.array([self._row[_host(vm)] for vm in self._vms], dtype=np.int64)
        unit_of = self._unit_of(members)
        goes_to = [self._row[host] for _, host in arriving]
        home = largest(vm_host, unit_of, len(members), goes_to)  # a unit is on one host
        history = History(snapshot, self._vms, self._named)
        rows = self._rows(history, unit_of, len(members), arriving, fast=fast)
        room, capacity = self._capacities()
        sums = {name: added(one, home, len(room)) for name, one in rows.items()}
        open_, hosts = self._openness()
        allowed, allowed_row = self._allowed(everyone)
        of_unit = {vm: unit for unit, names in enumerate(members) for vm in names}
        groups = self._groups(everyone)
        field = Field(
            home=home,
            movable=self._movable(members, len(everyone)),
            allowed_row=allowed_row,
            vcpus=largest(
                np.array([vm.vcpus for vm in self._vms], dtype=np.int64),
                unit_of,
                len(members),
                [vm.vcpus for vm in guests],
            ),
            partner=self._partners(everyone, of_unit),
            move_s=largest(self._move_s(self._vms), unit_of, len(members), self._move_s(guests)),
            **rows,
            open=open_,
            cores=np.array([host.cores for host in snapshot.hosts.values()], dtype=np.int64),
            kind=self._kinds(),
            stable_s=history.stable_s(
                vm_host, capacity[:, 0], policy.stable_s_min, policy.horizon_s
            ),
            room=room,
            capacity=capacity,
            inverse=1.0 / capacity,
            **{f"host_{name}": one for name, one in sums.items()},
            allowed=allowed,
            group_of=groups[0],
            group_first=groups[1],
            member=groups[2],
            member_first=groups[3],
            weighing=_weighing(policy),
        )
        return Assessment(
            field=field,
            members=everyone,
            host_ids=self._host_ids,
            hosts=hosts,
            resources=("cpu", "memory", *self._named),
            fast=fast,
            history=history,
            unit_of=unit_of,
            guests=tuple(self._place.get(vm, NOBODY) for vm, _ in arriving),
        )

    def _rows(
        self,
        history: History,
        unit_of: Ints,
        units: int,
        arriving: Sequence[tuple[VmId, HostId]],
        *,
        fast: bool,
    ) -> dict[str, Floats]:
        """The figures of all units."""
        figures = {
            "load": self._deserved(history, fast=fast),
            "want": history.now,
            "least": history.least,
            "most": history.most,
            "reserved": self._reserved(self._vms),
        }
        guests = [self._place[vm] for vm, _ in arriving if vm in self._place]
        rows = {name: grouped(one, unit_of, units, guests) for name, one in figures.items()}
        if len(guests) < len(arriving):  # those that start hold their reservation, no more
            rows |= self._starting(rows, units, arriving)
        return rows

    def _unit_of(self, members: Sequence[tuple[VmId, ...]]) -> Ints:
        if len(members) == len(self._vms):
            return np.arange(len(members))
        unit_of = np.zeros(len(self._vms), dtype=np.int64)
        for unit, names in enumerate(members):
            for name in names:
                unit_of[self._place[name]] = unit
        return unit_of

    def _deserved(self, history: History, *, fast: bool) -> Floats:
        """The entitlement of CPU and memory; of other resources, what is asked for."""
        found = history.now.copy()
        found[:, :2] = entitled(self._snapshot, self._vms, fast=fast)
        return found

    def _reserved(self, vms: Sequence[Vm]) -> Floats:
        found = np.empty((len(vms), 2 + len(self._named)))
        found[:, 0] = [vm.cpu.reservation_mhz for vm in vms]
        found[:, 1] = [vm.memory.reservation_mib for vm in vms]
        for column, name in enumerate(self._named, start=2):
            found[:, column] = [vm.consumption.get(name, 0) for vm in vms]
        return found

    def _starting(
        self,
        rows: dict[str, Floats],
        units: int,
        arriving: Sequence[tuple[VmId, HostId]],
    ) -> dict[str, Floats]:
        """Rows for all who arrive, in their order; of who does not run yet only what is held."""
        held = self._reserved([self._snapshot.vms[vm] for vm, _ in arriving])
        found = {}
        running = [vm in self._place for vm, _ in arriving]
        for name, one in rows.items():
            more = held.copy() if name == "reserved" else np.zeros_like(held)
            more[running] = one[units:]
            found[name] = np.concatenate([one[:units], more])
        return found

    def _capacities(self) -> tuple[Floats, Floats]:
        room = np.zeros((len(self._host_ids), 2 + len(self._named)))
        for row, host in enumerate(self._snapshot.hosts.values()):
            room[row, :2] = host.usable_cpu_mhz, host.usable_memory_mib
            room[row, 2:] = [host.capacity.get(name, 0) for name in self._named]
        capacity = np.maximum(room, 1.0)
        capacity[:, 2:][room[:, 2:] == 0] = np.inf
        return room, capacity

    def _openness(self) -> tuple[Ints, Ints]:
        """Which hosts accept units, and which take part."""
        overrides, idle = self._policy.hosts, self._kept_free()
        open_ = np.zeros(len(self._host_ids), dtype=np.int64)
        hosts = []
        for row, host in enumerate(self._snapshot.hosts.values()):
            alone = overrides.get(host.id) is HostOverride.OFF or host.id in idle
            empty = min(host.usable_cpu_mhz, host.usable_memory_mib) <= 0
            if host.state is HostState.ON and host.requested is None and not (alone or empty):
                hosts.append(row)
                open_[row] = host.id not in overrides
        return open_, np.array(hosts, dtype=np.int64)

    def _kept_free(self) -> frozenset[HostId]:
        """Hosts from which all are barred, such as those kept for failover."""
        if not self._rules.bars:
            return frozenset()
        everybody = frozenset(vm.id for vm in self._vms if not vm.agent)
        free = [bar.hosts for bar in self._rules.bars if everybody and bar.vms >= everybody]
        return frozenset().union(*free)

    def _movable(self, members: Sequence[tuple[VmId, ...]], count: int) -> Ints:
        stuck = stuck_vms(self._snapshot).keys()
        movable = np.zeros(count, dtype=np.int64)
        movable[: len(members)] = [stuck.isdisjoint(names) for names in members] if stuck else 1
        return movable

    def _move_s(self, vms: Sequence[Vm]) -> Floats:
        speeds, move_ms = self._speeds, self._estimates.move_ms
        if speeds:
            found = [move_ms(vm, speeds.get(vm.id)) for vm in vms]
        else:
            found = [move_ms(vm) for vm in vms]
        return np.array(found, dtype=np.float64) / 1000

    def _kinds(self) -> Ints:
        """Hosts that agree in the labels that matter for fault-tolerant pairs have one number."""
        kinds: dict[tuple[str, ...], int] = {}
        found = [
            kinds.setdefault(
                tuple(host.labels.get(key, "") for key in self._rules.like), len(kinds)
            )
            for host in self._snapshot.hosts.values()
        ]
        return np.array(found, dtype=np.int64)

    def _partners(self, everyone: Sequence[tuple[VmId, ...]], of_unit: dict[VmId, int]) -> Ints:
        vms = self._snapshot.vms
        found = np.full(len(everyone), NOBODY, dtype=np.int64)
        for unit, names in enumerate(everyone) if self._rules.like else ():
            for name in names:
                pair = vms[name].ft_pair
                if pair in of_unit:
                    found[unit] = of_unit[pair]
        return found

    def _allowed(self, everyone: Sequence[tuple[VmId, ...]]) -> tuple[Ints, Ints]:
        """The table of allowed hosts, and each unit's row of it."""
        barred: dict[VmId, list[int]] = defaultdict(list)
        for number, bar in enumerate(self._rules.bars):
            for vm in bar.vms:
                barred[vm].append(number)
        rows: dict[tuple[int, ...], int] = {(): 0}
        table = [np.ones(len(self._host_ids), dtype=np.int64)]
        allowed_row = np.zeros(len(everyone), dtype=np.int64)
        for unit, names in enumerate(everyone) if barred else ():
            bars = tuple(sorted({number for name in names for number in barred.get(name, ())}))
            if bars not in rows:
                rows[bars] = len(table)
                one = table[0].copy()
                for number in bars:
                    one[[self._row[host] for host in self._rules.bars[number].hosts]] = 0
                table.append(one)
            allowed_row[unit] = rows[bars]
        return np.stack(table), allowed_row

    def _groups(self, everyone: Sequence[tuple[VmId, ...]]) -> tuple[Ints, Ints, Ints, Ints]:
        """The groups of each unit, and the units of each group."""
        if not self._rules.apart:
            nobody = np.zeros(0, dtype=np.int64)
            return nobody, np.zeros(len(everyone) + 1, dtype=np.int64), nobody, np.zeros(1, int)
        units_of: dict[VmId, list[int]] = defaultdict(list)
        for unit, names in enumerate(everyone):
            for name in names:
                units_of[name].append(unit)
        members = [
            sorted({unit for vm in group.vms for unit in units_of.get(vm, ())})
            for group in self._rules.apart
        ]
        of_unit: list[list[int]] = [[] for _ in everyone]
        for number, units in enumerate(members):
            for unit in units:
                of_unit[unit].append(number)
        return (*flat(of_unit), *flat(members))


def _host(vm: Vm) -> HostId:
    assert vm.host is not None, "a running VM has a host"
    return vm.host


def _named(snapshot: Snapshot) -> tuple[ResourceName, ...]:
    """The shareable resources that some host offers and some VM uses."""
    offered = {name for host in snapshot.hosts.values() for name in host.capacity}
    if not offered:
        return ()
    used = {
        name
        for vm in snapshot.vms.values()
        for name in (*vm.consumption, *vm.demand.named)
        if name in offered
    }
    return tuple(sorted(used))


def _weighing(policy: BalancePolicy) -> Weighing:
    return Weighing(
        policy.cost_benefit,
        policy.spread,
        policy.evenness,
        float(policy.horizon_s),
        float(policy.migration_cpu_mhz),
        policy.slowdown,
    )
