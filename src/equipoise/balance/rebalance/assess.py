"""Assesses a cluster for rebalancing: builds the arrays of units, hosts, rules and loads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from equipoise.balance.rebalance.cluster_arrays import WRITTEN_ARRAYS, ClusterArrays, MoveCostModel
from equipoise.balance.rebalance.history import DemandHistory
from equipoise.balance.rules import PlacementRules, pinned_vms
from equipoise.capacity.arrays import CapacityArrays, capacity_arrays, sum_per_row
from equipoise.capacity.entitlement import VmClaims
from equipoise.capacity.imbalance import imbalance
from equipoise.capacity.ledger import claimed_resources
from equipoise.capacity.overload import DEMANDED, overload
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints
from equipoise.model.action import Boot, Migrate, Resume
from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.policy.balance import BalancePolicy, HostOverride
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


def group_into_units(vms: Sequence[Vm], rules: PlacementRules) -> tuple[tuple[VmId, ...], ...]:
    """Return the units: VMs that a rule keeps together and that share a host move as one."""
    if not rules.together:
        return tuple((vm.id,) for vm in vms)
    host_of = {vm.id: vm.host for vm in vms}
    unit_of = {vm.id: [vm.id] for vm in vms}
    for group in rules.together:
        first_on_host: dict[HostId | None, VmId] = {}
        # VMs of a group on different hosts are separate units: the repair search brings them
        # together, and until then each moves alone.
        for name in filter(host_of.__contains__, group.vms):
            unit = unit_of[first_on_host.setdefault(host_of[name], name)]
            if unit_of[name] is not unit:
                unit += unit_of[name]
                unit_of |= dict.fromkeys(unit_of[name], unit)
    # All members of a unit map to the same list; the first member represents it.
    return tuple(tuple(names) for vm, names in unit_of.items() if names[0] == vm)


def is_rebalanced(host: Host, policy: BalancePolicy) -> bool:
    """Return whether a host takes part in the imbalance, unless the rules keep it free."""
    return (
        host.state is HostState.ON
        and host.requested is None
        and policy.hosts.get(host.id) is not HostOverride.OFF
        and min(host.usable_cpu_mhz, host.usable_memory_mib) > 0
    )


def hosts_kept_free(rules: PlacementRules, running: Iterable[Vm]) -> frozenset[HostId]:
    """Return the hosts from which rules ban all running VMs, such as failover hosts."""
    if not rules.bans:
        return frozenset()
    # A host that no VM may use would pull the mean load down, and the search would never reach
    # the target.
    movable_vms = frozenset(vm.id for vm in running if not vm.agent)
    banned = [ban.hosts for ban in rules.bans if movable_vms and ban.vms >= movable_vms]
    return frozenset().union(*banned)


def incoming_vms(snapshot: Snapshot) -> list[tuple[VmId, HostId]]:
    """Return the VMs that an action brings to a host; until its end they count on both hosts."""
    incoming = []
    for running in snapshot.in_flight.values():
        action = running.step.action
        if isinstance(action, Migrate | Boot | Resume):
            vm = snapshot.vms.get(action.vm)
            # A VM that is already on the target is counted there once.
            if vm is not None and vm.host != action.target:
                incoming.append((vm.id, action.target))
    return incoming


def max_per_unit(
    figures: NDArray[Any], unit_of: Ints, units: int, incoming: NDArray[Any] | list[int]
) -> NDArray[Any]:
    """Return the largest figure of the VMs of each unit, followed by the incoming figures."""
    largest = figures
    if units < len(figures):
        largest = np.zeros(units, dtype=figures.dtype)
        np.maximum.at(largest, unit_of, figures)
    return np.concatenate([largest, np.asarray(incoming, dtype=figures.dtype)])


def sum_per_unit(figures: Floats, unit_of: Ints, units: int, incoming: list[int]) -> Floats:
    """Return the sum over the VMs of each unit, followed by the figures of incoming VMs."""
    sums = figures if units == len(figures) else sum_per_row(figures, unit_of, units)
    return np.ascontiguousarray(np.concatenate([sums, figures[incoming]]))


def flatten(lists: Iterable[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return the lists joined into one array, and the index at which each list begins."""
    items = list(lists)
    first = np.concatenate([[0], np.cumsum([len(item) for item in items])]).astype(np.int64)
    return np.array([value for item in items for value in item], dtype=np.int64), first


COMPILED_PAIRS_MIN: Final = 500
"""With more pairs of a VM and a host than this, compiled kernels are faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A cluster as arrays, with the names of their rows. A search writes to the arrays."""

    arrays: ClusterArrays
    members: tuple[tuple[VmId, ...], ...]
    """The VMs of each unit. An incoming VM is a second unit, on its target host."""
    host_ids: tuple[HostId, ...]
    hosts: Ints
    """The rows of the hosts that are rebalanced: on, with capacity, not excluded by the policy."""
    resources: tuple[str, ...]
    claimed: tuple[str, ...]
    """The resources of the ledger."""
    fast: bool
    history: DemandHistory
    unit_of: Ints
    """The unit of each VM of the history."""
    incoming: tuple[int, ...]
    """The history row of each incoming unit; ``NO_INDEX`` if the VM does not run yet."""

    def copy(self) -> Assessment:
        """Return an assessment with its own copy of every array that a search writes."""
        arrays = self.arrays
        written = {name: getattr(arrays, name).copy() for name in WRITTEN_ARRAYS}
        ledger = arrays.ledger._replace(committed=arrays.ledger.committed.copy())
        return replace(self, arrays=arrays._replace(**written, ledger=ledger))

    def without_evenness(self) -> Assessment:
        """Return the assessment for a search in which an even load is worth nothing by itself."""
        cost_model = self.arrays.cost_model._replace(evenness=0.0)
        return replace(self, arrays=self.arrays._replace(cost_model=cost_model))

    def units(self, figures: Floats) -> Floats:
        """Return figures per VM of the history as sums per unit."""
        units = len(self.members) - len(self.incoming)
        running = [row for row in self.incoming if row != NO_INDEX]
        sums = sum_per_unit(figures, self.unit_of, units, running)
        if len(running) == len(self.incoming):
            return sums
        padded = np.zeros((len(self.members), sums.shape[1]))
        padded[:units] = sums[:units]
        padded[units:][np.array(self.incoming) != NO_INDEX] = sums[units:]
        return padded

    def loads(self) -> Floats:
        """Return entitlement divided by capacity, per rebalanced host and resource."""
        capacity = self.arrays.capacity[self.hosts]
        loads: Floats = self.arrays.host_load[self.hosts] / capacity
        loads[np.isinf(capacity)] = np.nan
        return loads

    def overload(self) -> Floats:
        """Return the demand above the capacity, per rebalanced host, of CPU and memory."""
        arrays, hosts = self.arrays, self.hosts
        return overload(arrays.host_usable[hosts], arrays.capacity[hosts, : len(DEMANDED)])

    def imbalance(self, weight: Floats | None = None) -> float:
        """Return the imbalance, with the given weights or those of the current loads."""
        return imbalance(self.loads(), weight)


def assess(snapshot: Snapshot, rules: PlacementRules, estimates: Estimates) -> Assessment:
    """Return the arrays of a snapshot."""
    return _Assessor(snapshot, rules, estimates).assess()


class _Assessor:
    """Builds the arrays of one snapshot."""

    def __init__(self, snapshot: Snapshot, rules: PlacementRules, estimates: Estimates) -> None:
        self._snapshot, self._rules, self._estimates = snapshot, rules, estimates
        self._policy = snapshot.settings.balance
        self._vms = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
        self._host_ids = tuple(snapshot.hosts)
        self._row = {host: row for row, host in enumerate(self._host_ids)}
        self._place = {vm.id: place for place, vm in enumerate(self._vms)}
        self._named = named_resources(snapshot)
        self._claimed = claimed_resources(snapshot)

    def assess(self) -> Assessment:
        snapshot, policy = self._snapshot, self._policy
        fast = len(self._vms) * len(self._host_ids) > COMPILED_PAIRS_MIN
        members = group_into_units(self._vms, self._rules)
        arriving = incoming_vms(snapshot)
        unit_vms = (*members, *((vm,) for vm, _ in arriving))
        incoming = [snapshot.vms[vm] for vm, _ in arriving]
        vm_host = np.array([self._row[_host(vm)] for vm in self._vms], dtype=np.int64)
        unit_of = self._unit_of(members)
        goes_to = [self._row[host] for _, host in arriving]
        # All VMs of a unit are on one host, so the maximum is that host.
        unit_host = max_per_unit(vm_host, unit_of, len(members), goes_to)
        history = DemandHistory(snapshot, self._vms, self._named)
        rows = self._rows(history, unit_of, len(members), arriving, fast=fast)
        capacity = self._capacities()
        sums = {
            name: sum_per_row(column, unit_host, len(capacity)) for name, column in rows.items()
        }
        open_, hosts = self._open_hosts()
        allowed, allowed_row = self._allowed(unit_vms)
        groups = self._groups(unit_vms)
        arrays = ClusterArrays(
            unit_host=unit_host,
            movable=self._movable(members, len(unit_vms)),
            allowed_row=allowed_row,
            vcpus=max_per_unit(_vcpus(self._vms), unit_of, len(members), _vcpus(incoming)),
            partner=self._partners(unit_vms, members),
            left=self._left(unit_vms),
            move_s=max_per_unit(
                self._move_s(self._vms), unit_of, len(members), self._move_s(incoming)
            ),
            **rows,
            open=open_,
            cores=np.array([host.cores for host in snapshot.hosts.values()], dtype=np.int64),
            kind=self._kinds(),
            stable_s=self._stable_s(history, vm_host, capacity),
            capacity=capacity,
            inverse=1.0 / capacity,
            **{f"host_{name}": column for name, column in sums.items()},
            ledger=self._ledger(unit_of, len(members), incoming),
            allowed=allowed,
            group_of=groups[0],
            group_first=groups[1],
            member=groups[2],
            member_first=groups[3],
            cost_model=_cost_model(policy),
        )
        return Assessment(
            arrays=arrays,
            members=unit_vms,
            host_ids=self._host_ids,
            hosts=hosts,
            resources=("cpu", "memory", *self._named),
            claimed=self._claimed,
            fast=fast,
            history=history,
            unit_of=unit_of,
            incoming=tuple(self._place.get(vm, NO_INDEX) for vm, _ in arriving),
        )

    def _rows(
        self,
        history: DemandHistory,
        unit_of: Ints,
        units: int,
        arriving: Sequence[tuple[VmId, HostId]],
        *,
        fast: bool,
    ) -> dict[str, Floats]:
        """Return the columns of all units, by name."""
        claims = VmClaims.of(self._snapshot, self._vms)
        # Entitlement to CPU and memory, and the demand of other resources.
        load = history.now.copy()
        load[:, :2] = claims.entitlements(self._snapshot, fast=fast)
        figures = {
            "load": load,
            "demand": history.now,
            "demand_min": history.least,
            "demand_max": history.most,
            "usable": claims.usable_demands(fast=fast),
        }
        incoming = [self._place[vm] for vm, _ in arriving if vm in self._place]
        rows = {
            name: sum_per_unit(column, unit_of, units, incoming) for name, column in figures.items()
        }
        if len(incoming) < len(arriving):  # VMs that start have no history
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

    def _ledger(self, unit_of: Ints, units: int, incoming: list[Vm]) -> CapacityArrays:
        """Return the committed capacity; the claim of a unit is the sum over its VMs."""
        ledger = capacity_arrays(self._snapshot, [*self._vms, *incoming], self._claimed)
        running, coming = np.split(ledger.claim, [len(self._vms)])
        claim = np.concatenate([sum_per_unit(running, unit_of, units, []), coming])
        return ledger._replace(claim=claim)

    def _starting(
        self,
        rows: dict[str, Floats],
        units: int,
        arriving: Sequence[tuple[VmId, HostId]],
    ) -> dict[str, Floats]:
        """Return the columns with rows for all incoming VMs, in their order.

        A VM that does not run yet has neither load nor demand.
        """
        extended = {}
        running = [vm in self._place for vm, _ in arriving]
        for name, column in rows.items():
            added = np.zeros((len(arriving), column.shape[1]))
            added[running] = column[units:]
            extended[name] = np.concatenate([column[:units], added])
        return extended

    def _capacities(self) -> Floats:
        """Return the capacity of each host, by which loads are divided."""
        offered = np.zeros((len(self._host_ids), 2 + len(self._named)))
        for row, host in enumerate(self._snapshot.hosts.values()):
            offered[row, :2] = host.usable_cpu_mhz, host.usable_memory_mib
            offered[row, 2:] = [host.capacity.get(name, 0) for name in self._named]
        # At least 1, so that a host without capacity divides by something; such a host is never
        # open.
        capacity = np.maximum(offered, 1.0)
        # Infinite capacity makes the load zero, so that a resource a host lacks never matters.
        capacity[:, 2:][offered[:, 2:] == 0] = np.inf
        return capacity

    def _open_hosts(self) -> tuple[Ints, Ints]:
        """Return which hosts accept units, and the rows of the hosts that are rebalanced."""
        overrides, idle = self._policy.hosts, hosts_kept_free(self._rules, self._vms)
        open_ = np.zeros(len(self._host_ids), dtype=np.int64)
        hosts = []
        for row, host in enumerate(self._snapshot.hosts.values()):
            if is_rebalanced(host, self._policy) and host.id not in idle:
                hosts.append(row)
                # A closed host still gives VMs away, so it is rebalanced but not open.
                open_[row] = host.id not in overrides
        return open_, np.array(hosts, dtype=np.int64)

    def _movable(self, members: Sequence[tuple[VmId, ...]], count: int) -> Ints:
        pinned = pinned_vms(self._snapshot).keys()
        # Incoming VMs are at the end and stay immovable: only their load on the target counts.
        movable = np.zeros(count, dtype=np.int64)
        movable[: len(members)] = [pinned.isdisjoint(names) for names in members] if pinned else 1
        return movable

    def _stable_s(self, history: DemandHistory, vm_host: Ints, capacity: Floats) -> Floats:
        policy = self._policy
        return history.stable_s(vm_host, capacity[:, 0], policy.stable_s_min, policy.horizon_s)

    def _left(self, unit_vms: Sequence[tuple[VmId, ...]]) -> Ints:
        """Return the host that each unit left less than ``return_s`` ago."""
        left = np.full(len(unit_vms), NO_INDEX, dtype=np.int64)
        since_ms = self._snapshot.at_ms - 1000 * self._policy.return_s
        moves = self._snapshot.moves.items()
        recent = {vm: move.source for vm, move in moves if move.ended_ms > since_ms}
        for unit, names in enumerate(unit_vms) if recent else ():
            for vm in names:
                if vm in recent:
                    left[unit] = self._row.get(recent[vm], NO_INDEX)
        return left

    def _move_s(self, vms: Sequence[Vm]) -> Floats:
        estimates, snapshot = self._estimates, self._snapshot
        if snapshot.move_speeds:
            durations_ms = [estimates.migration_of(vm, snapshot) for vm in vms]
        else:  # without a lookup per VM
            durations_ms = estimates.unmeasured_moves_ms(vms)
        return np.array(durations_ms, dtype=np.float64) / 1000

    def _kinds(self) -> Ints:
        """Return a number per host; hosts with equal labels for fault-tolerant pairs share one."""
        kinds: dict[tuple[str, ...], int] = {}
        numbers = [
            kinds.setdefault(
                tuple(host.labels.get(key, "") for key in self._rules.ft_labels), len(kinds)
            )
            for host in self._snapshot.hosts.values()
        ]
        return np.array(numbers, dtype=np.int64)

    def _partners(
        self, unit_vms: Sequence[tuple[VmId, ...]], members: Sequence[tuple[VmId, ...]]
    ) -> Ints:
        """Return the unit of the fault-tolerant partner of each unit."""
        vms = self._snapshot.vms
        # Partners point to the unit on the present host, not to the incoming one: the gate judges
        # where the VM runs now.
        of_unit = {vm: unit for unit, names in enumerate(members) for vm in names}
        partners = np.full(len(unit_vms), NO_INDEX, dtype=np.int64)
        for unit, names in enumerate(unit_vms) if self._rules.ft_labels else ():
            for name in names:
                pair = vms[name].ft_pair
                if pair in of_unit:
                    partners[unit] = of_unit[pair]
        return partners

    def _allowed(self, unit_vms: Sequence[tuple[VmId, ...]]) -> tuple[Ints, Ints]:
        """Return the table of allowed hosts, and the row of each unit in it."""
        banned: dict[VmId, list[int]] = defaultdict(list)
        for number, ban in enumerate(self._rules.bans):
            for vm in ban.vms:
                banned[vm].append(number)
        # One row per distinct set of bans, not per unit: 300,000 units times 10,000 hosts would not
        # fit in memory.
        rows: dict[tuple[int, ...], int] = {(): 0}
        table = [np.ones(len(self._host_ids), dtype=np.int64)]
        allowed_row = np.zeros(len(unit_vms), dtype=np.int64)
        for unit, names in enumerate(unit_vms) if banned else ():
            bans = tuple(sorted({number for name in names for number in banned.get(name, ())}))
            if bans not in rows:
                rows[bans] = len(table)
                row_allowed = table[0].copy()
                for number in bans:
                    row_allowed[[self._row[host] for host in self._rules.bans[number].hosts]] = 0
                table.append(row_allowed)
            allowed_row[unit] = rows[bans]
        return np.stack(table), allowed_row

    def _groups(self, unit_vms: Sequence[tuple[VmId, ...]]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the groups of each unit and the units of each group, both flattened."""
        if not self._rules.apart:
            no_units = np.zeros(0, dtype=np.int64)
            return no_units, np.zeros(len(unit_vms) + 1, dtype=np.int64), no_units, np.zeros(1, int)
        units_of: dict[VmId, list[int]] = defaultdict(list)
        for unit, names in enumerate(unit_vms):
            for name in names:
                units_of[name].append(unit)
        # Incoming units are members too: a VM in flight occupies its target for the rules as well.
        members = [
            sorted({unit for vm in group.vms for unit in units_of.get(vm, ())})
            for group in self._rules.apart
        ]
        of_unit: list[list[int]] = [[] for _ in unit_vms]
        for number, units in enumerate(members):
            for unit in units:
                of_unit[unit].append(number)
        return (*flatten(of_unit), *flatten(members))


def _host(vm: Vm) -> HostId:
    assert vm.host is not None, "a running VM has a host"
    return vm.host


def named_resources(snapshot: Snapshot | Draft) -> tuple[ResourceName, ...]:
    """Return the named resources that some host offers and some VM uses."""
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


def _cost_model(policy: BalancePolicy) -> MoveCostModel:
    return MoveCostModel(
        policy.cost_benefit,
        policy.spread,
        policy.evenness,
        float(policy.horizon_s),
        float(policy.migration_cpu_mhz),
        policy.slowdown,
    )


def _vcpus(vms: Sequence[Vm]) -> NDArray[np.int64]:
    return np.array([vm.vcpus for vm in vms], dtype=np.int64)
