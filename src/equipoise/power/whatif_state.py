"""The what-if state: the cluster after balance, as arrays on which hosts are switched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from equipoise.balance.advice import BalanceAdvice, HostSwitchAdvice, snapshot_after_moves
from equipoise.balance.rebalance.assess import Assessment, assess
from equipoise.balance.rebalance.rest import Resting, find_resting
from equipoise.balance.rules import PinReason, pinned_vms, read_rules
from equipoise.balance.run_pass import PassResult, run_balance_pass
from equipoise.capacity.waterfill import Floats, Ints
from equipoise.model.action import PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState, watts_at
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.power.packing import KERNELS, UnitPacking
from equipoise.power.utilisation import (
    DemandWindow,
    UtilisationScores,
    expected_demand,
    observe_demand,
    score_utilisation,
)

VmTarget = tuple[VmId, HostId]


class WhatIfState:
    """Units and hosts as arrays, on which hosts are switched and units moved as a trial."""

    def __init__(
        self,
        snapshot: Snapshot,
        state: Assessment,
        advice: BalanceAdvice | None = None,
        ahead: Floats | None = None,
    ) -> None:
        self.snapshot, self.state = snapshot, state
        moves = () if advice is None else advice.moves
        self.moves: tuple[VmTarget, ...] = tuple((move.vm, move.target) for move in moves)
        """The moves of balance in this pass."""
        self.moves_to_approve: tuple[VmTarget, ...] = ()
        """The moves that balance recommends and that wait for an approval."""
        self.switches: tuple[HostSwitchAdvice, ...] = () if advice is None else advice.switches
        """The hosts that balance switches, because the operator requests it."""
        self.repairs: tuple[RuleId, ...] = () if advice is None else advice.repairs
        """The broken rules that balance repairs."""
        self.policy = snapshot.settings.power
        self.faults = None if advice is None else [fault.detail for fault in advice.faults]
        """The faults that remain after balance; ``None`` if no balance pass was run."""
        self.row = {host: row for row, host in enumerate(self.state.host_ids)}
        speed_mhz = max((host.mhz_per_core for host in snapshot.hosts.values()), default=0)
        self.observed = observe_demand(self.state, self.policy, snapshot.at_ms, ahead, speed_mhz)
        self._kernels = KERNELS.at(fast=self.state.fast)
        self.pinned: dict[VmId, PinReason] = pinned_vms(snapshot)
        moves_max = snapshot.settings.balance.moves_per_day
        self.resting: Resting = find_resting(snapshot, state, moves_max)
        """The VMs that no standby moves, as balance leaves them where they are."""
        self.waking = _hosts_being_woken(snapshot)
        closed = snapshot.settings.balance.hosts
        self._accepts_vms = [int(host not in closed) for host in self.state.host_ids]
        self.closed: set[HostId] = set()
        """The hosts in standby in this state."""
        self.on = np.zeros(len(self.state.host_ids), dtype=bool)
        self.on[self.state.hosts] = True
        for host in self.waking:
            self.open(self.row[host])
        self._by_host = self._residents()
        self._movable = np.zeros(len(self.state.members), dtype=bool)
        for units in self._by_host:
            for unit in units:
                self._movable[unit] = self.pinned.keys().isdisjoint(self.state.members[unit])

    @property
    def count_on(self) -> int:
        """The number of hosts that are on or waking in the snapshot, without a requested state."""
        hosts = self.snapshot.hosts.values()
        on = sum(host.state is HostState.ON and host.requested is None for host in hosts)
        return on + len(self.waking)

    @property
    def rows(self) -> Ints:
        """The rows of the hosts that are on in this state."""
        return np.nonzero(self.on)[0]

    def open(self, row: int) -> None:
        """Switch a host on in this state."""
        self.on[row] = True
        self.state.arrays.open[row] = self._accepts_vms[row]
        self.closed.discard(self.state.host_ids[row])

    def close(self, row: int) -> None:
        """Put a host into standby in this state."""
        self.on[row] = False
        self.state.arrays.open[row] = 0
        self.closed.add(self.state.host_ids[row])

    def units_on(self, row: int) -> Ints:
        """Return the units on a host except agents, largest first."""
        arrays = self.state.arrays
        units = np.array(
            # ``_by_host`` only grows: a unit that left is still listed. This keeps ``what_if`` free
            # of bookkeeping.
            [unit for unit in self._by_host[row] if arrays.unit_host[unit] == row],
            dtype=np.int64,
        )
        return units[np.argsort(-self._size(units, row), kind="stable")]

    def utilisation(self, window: DemandWindow) -> Floats:
        """Return the expected utilisation of each host that is on, in a window or the forecast.

        The larger of both counts.
        """
        need = np.maximum(
            expected_demand(self.observed, window),
            expected_demand(self.observed, DemandWindow.AHEAD),
        )
        parts: Floats = (need / self.state.arrays.capacity[:, :2])[self.on]
        return parts

    def watts(self) -> float:
        """Return what the hosts draw with the mean demand of the wake window, spread evenly.

        Evenly, because evacuated VMs are spread over the hosts that stay on.
        """
        window = slice(
            self.observed.first[DemandWindow.ON], self.observed.first[DemandWindow.ON + 1]
        )
        demand = float(self.observed.hosts[window, :, 0].mean(axis=0)[self.on].sum())
        capacity = float(self.state.arrays.capacity[self.on, 0].sum())
        load = min(1.0, demand / max(1.0, capacity))
        powers = [self.snapshot.hosts[self.state.host_ids[row]].power for row in self.rows.tolist()]
        asleep = sum(self.snapshot.hosts[host].power.standby_watts for host in self.closed)
        return asleep + sum(watts_at(power.curve, load) for power in powers)

    def scores(self) -> UtilisationScores:
        """Return how far hosts are from the target utilisation."""
        policy = self.policy
        return score_utilisation(
            self.utilisation(DemandWindow.ON),
            self.utilisation(DemandWindow.OFF),
            policy.high,
            policy.low,
        )

    def unmet(self, window: DemandWindow) -> Floats:
        """Return the unmet demand of CPU and of memory on hosts that are on, in a window."""
        over = expected_demand(self.observed, window) - self.state.arrays.capacity[:, :2]
        amounts: Floats = np.maximum(0.0, over)[self.on].sum(axis=0)
        return amounts

    def evacuate(self, row: int, units: Ints, others: Ints) -> UnitPacking:
        """Move units from a host to the first of ``others`` that can carry each; see ``target``."""
        others = others[self.on[others] & (others != row)]
        packing = self._packing(units, others, self._lasting_windows())
        self._kernels.pack(self.state.arrays, self.observed, packing)
        return packing

    def spread(self, units: Ints) -> UnitPacking:
        """Move units to hosts that are on, each to the least utilised one."""
        packing = self._packing(units, self.rows, self._lasting_windows())
        self._kernels.spread(self.state.arrays, self.observed, packing)
        return packing

    def relieve(self, helpers: Ints) -> UnitPacking:
        """Move units from hosts above the target to the helpers; see ``target``."""
        # Without a forecast there are three windows, and AHEAD is cut off.
        windows = [DemandWindow.ON, DemandWindow.AHEAD][: len(self.observed.deviations) - 2]
        packing = self._packing(self._units_to_relieve(), helpers, windows)
        self._kernels.relieve(self.state.arrays, self.observed, packing)
        return packing

    def _units_to_relieve(self) -> Ints:
        """Return the movable units on hosts above the target:

        busiest host and largest unit first.
        """
        unit_host, excess = self.state.arrays.unit_host, np.zeros(len(self.on))
        excess[self.on] = self.utilisation(DemandWindow.ON).max(axis=1) - self.policy.high
        units = np.nonzero((excess[unit_host] > 0) & self._movable)[0]
        window = slice(
            self.observed.first[DemandWindow.ON], self.observed.first[DemandWindow.ON + 1]
        )
        need = self.observed.units[window][:, units].mean(axis=0)
        size = (need * self.state.arrays.inverse[unit_host[units], :2]).max(axis=1)
        # ``lexsort`` sorts by its last key first.
        return units[np.lexsort((-size, unit_host[units], -excess[unit_host[units]]))]

    def move_units(self, units: Ints, homes: Ints) -> None:
        """Move units to other hosts."""
        self.restore(units, homes)
        self.record_hosts(units)

    def restore(self, units: Ints, homes: Ints) -> None:
        """Move units back to the given hosts."""
        self._kernels.restore_units(self.state.arrays, self.observed, units, homes)

    def record_hosts(self, units: Ints) -> None:
        """Record the current hosts of units."""
        for unit in units.tolist():
            self._by_host[int(self.state.arrays.unit_host[unit])].setdefault(unit)

    @contextmanager
    def what_if(self) -> Iterator[None]:
        """Undo everything that is tried within."""
        unit_host, on = self.state.arrays.unit_host.copy(), self.on.copy()
        yield
        units = np.nonzero(self.state.arrays.unit_host != unit_host)[0]
        self.restore(units, unit_host[units])
        for row in np.nonzero(on != self.on)[0].tolist():
            self.open(row) if on[row] else self.close(row)

    def pinned_member(self, unit: int) -> tuple[VmId, PinReason] | None:
        """Return the pinned VM of a unit and the reason, or ``None``."""
        for vm in self.state.members[unit]:
            if vm in self.pinned:
                return vm, self.pinned[vm]
        return None

    def _lasting_windows(self) -> list[DemandWindow]:
        """Return the windows in which hosts must carry VMs that come to stay."""
        return [DemandWindow.OFF, DemandWindow.ON, DemandWindow.AHEAD][
            : len(self.observed.deviations) - 1
        ]

    def _packing(self, units: Ints, hosts: Ints, windows: Sequence[DemandWindow]) -> UnitPacking:
        return UnitPacking(
            units=units,
            hosts=hosts,
            part=self.policy.high,
            windows=np.array(windows, dtype=np.int64),
            target=np.full(len(units), -1, dtype=np.int64),
        )

    def _size(self, units: Ints, row: int) -> Floats:
        """Return the demand of units as a part of a host, CPU or memory, the larger one."""
        off = slice(self.observed.first[DemandWindow.OFF], self.observed.first[DemandWindow.ON])
        need = self.observed.units[off][:, units].mean(axis=0)
        sizes: Floats = (need / self.state.arrays.capacity[row, :2]).max(axis=1)
        return sizes

    def _residents(self) -> list[dict[int, None]]:
        """Return the units on each host without agents, which follow the state of their host."""
        units_by_host: list[dict[int, None]] = [{} for _ in self.state.host_ids]
        agents = {vm.id for vm in self.snapshot.vms.values() if vm.agent}
        # Incoming units are at the end. They have no place of their own to leave from.
        members = len(self.state.members) - len(self.state.incoming)
        for unit, unit_host in enumerate(self.state.arrays.unit_host[:members].tolist()):
            if not agents.issuperset(self.state.members[unit]):
                units_by_host[unit_host][unit] = None
        return units_by_host


def build_whatif_state(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    seed: int,
    balanced: bool,
    ahead: Floats | None,
    balance_pass: PassResult | None = None,
) -> WhatIfState:
    """Return the state after the automatic moves of balance, if a decider balances the cluster.

    ``balance_pass`` is used if it has the same input; otherwise a new pass is run.
    """
    if not balanced:
        return WhatIfState(snapshot, assess(snapshot, read_rules(snapshot), estimates), None, ahead)
    if balance_pass is not None and balance_pass.fits(snapshot, estimates, seed):
        result = balance_pass
    else:
        result = run_balance_pass(snapshot, estimates, seed=seed, powered=True)
    advice = _automatic_advice(result.advice)
    if len(advice.moves) == len(result.advice.moves):
        return WhatIfState(snapshot, result.assessment.copy(), advice, ahead)
    # Moves that need approval may never happen, so the arrays are built again without them.
    moved = snapshot_after_moves(snapshot, ((move.vm, move.target) for move in advice.moves))
    whatif = WhatIfState(snapshot, assess(moved, read_rules(snapshot), estimates), advice, ahead)
    automatic = {move.vm for move in advice.moves}
    whatif.moves_to_approve = tuple(
        (move.vm, move.target) for move in result.advice.moves if move.vm not in automatic
    )
    return whatif


def _automatic_advice(advice: BalanceAdvice) -> BalanceAdvice:
    """Return the advice without moves and switches that need approval or wait for such a move."""
    # A VM that is parked on the way counts where it ends.
    moves = [move for move in advice.moves if move.automatic and not move.parking]
    moved = {move.vm for move in moves}
    while not all(moved.issuperset(move.after) for move in moves):
        moves = [move for move in moves if moved.issuperset(move.after)]
        moved = {move.vm for move in moves}
    switches = [
        switch for switch in advice.switches if switch.automatic and moved.issuperset(switch.after)
    ]
    return replace(advice, moves=tuple(moves), switches=tuple(switches))


def _hosts_being_woken(snapshot: Snapshot) -> Collection[HostId]:
    """Return the hosts that a running action powers on."""
    steps = (running.step.action for running in snapshot.in_flight.values())
    standby = {host.id for host in snapshot.hosts.values() if host.state is HostState.STANDBY}
    return [
        action.host for action in steps if isinstance(action, PowerOn) and action.host in standby
    ]
