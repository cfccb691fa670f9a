"""Relief: moves that end the overload of hosts, before the imbalance is looked at.

A host is overloaded while the demand of its VMs exceeds its capacity. A relief move takes demand
off such a host; its target has capacity for all of it. Where no single move helps, a VM of the
target makes room first. No host is overloaded more than before. The search is greedy and the most
overloaded host comes first; where it ends, no single move relieves any host and is worth its cost.

Demand that was lower within the last ``stable_s_min`` counts with the lower figure: a short peak is
the work of rebalancing, which weighs its risk. The demand that becomes met is certain, so a relief
move need only be worth its migration: the worst case and the expected spread of the demand, which
often forbid a move for evenness, do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.balance.rebalance import cost_benefit, greedy_kernels
from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.cluster_arrays import NO_OBSTACLE
from equipoise.balance.rebalance.greedy import GreedySearch, UnitMove
from equipoise.capacity.arrays import sum_per_row
from equipoise.capacity.imbalance import FULL_LOAD
from equipoise.capacity.overload import DEMANDED, overload
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints

PAIRS_MAX: Final = 20_000_000
"""The budget of a search for single moves: pairs of a unit and a host that are looked at."""
CHAINS_MAX: Final = 400
"""The budget of a search for chains of two moves: chains that are tried."""


COMPARED_PAIRS_MAX: Final = 512
"""Units that relieve as much are compared by the imbalance, up to so many pairs with a host."""


class _Step(NamedTuple):
    """A unit and its target; the last step of a chain is the one that relieves a host."""

    unit: int
    target: int


class OverloadRelief:
    """Finds relief moves in the arrays of an assessment, and makes them there."""

    def __init__(self, state: Assessment, search: GreedySearch, lasting_s: int) -> None:
        self._lasting_s = lasting_s
        self._state, self._arrays, self._search = state, state.arrays, search
        self._capacity = state.arrays.capacity[:, : len(DEMANDED)]
        self._pairs_left, self._chains_left = PAIRS_MAX, CHAINS_MAX

    def find_moves(self, moves_max: int) -> list[UnitMove]:
        """Return moves that relieve overloaded hosts, at most so many; they are made already."""
        moves: list[UnitMove] = []
        self._search.measure_imbalance()
        while len(moves) < moves_max:
            count = len(moves)
            # One step per host and turn: the links of all overloaded hosts then carry migrations at
            # the same time, also if the limit ends the search.
            rows = self._overloaded_rows()
            while rows:
                rows = [row for row in rows if self._relieve(row, moves, moves_max)]
            # The relief of one host can make room for that of another.
            if len(moves) == count:
                break
        return moves

    def _overloaded_rows(self) -> list[int]:
        """Return the overloaded hosts, the most overloaded first."""
        state = self._state
        share = (state.overload() / self._capacity[state.hosts]).max(axis=1, initial=0.0)
        order = np.argsort(-share, kind="stable")
        return [int(state.hosts[index]) for index in order if share[index] > 0.0]

    def _relieve(self, row: int, moves: list[UnitMove], moves_max: int) -> bool:
        """Add one move, or a chain of moves, if a host is overloaded; return whether that helps."""
        if not self._excess(row).any():
            return False
        chain = self._single_move(row) or self._chain(row)
        if not chain or len(moves) + len(chain) > moves_max:
            return False
        moves += [self._make(step, row) for step in chain]
        return True

    @cached_property
    def _lasting(self) -> Floats:
        """The part of the demand on each host that has lasted, of CPU and memory."""
        state, hosts = self._state, len(self._capacity)
        frames = state.history.recent(self._lasting_s)
        if len(frames) == 1:
            return np.ones_like(self._capacity)
        place = self._arrays.unit_host
        sums = [sum_per_row(state.units(frame)[:, :2], place, hosts) for frame in frames]
        now = sums[-1]
        parts: Floats = np.where(now > 0.0, np.min(sums, axis=0) / np.maximum(now, 1.0), 1.0)
        return np.minimum(parts, 1.0)

    def _excess(self, row: int) -> Floats:
        """Return by how much the demand that has lasted exceeds the capacity of a host."""
        lasting = self._arrays.host_usable[row] * self._lasting[row]
        return overload(lasting, self._capacity[row])

    def _make(self, step: _Step, row: int) -> UnitMove:
        """Make a move; ``row`` is the host that it is made for."""
        unit, target = step
        source = int(self._arrays.unit_host[unit])
        before, excess = self._search.measure_imbalance(), self._excess(row)
        greedy_kernels.move_unit(self._arrays, unit, target)
        self._arrays.movable[unit] = 0
        cpu_mhz, memory_mib = (excess - self._excess(row)).tolist()
        gain = float(before - self._search.measure_imbalance())
        return UnitMove(unit, source, target, gain, before, (cpu_mhz, memory_mib), row)

    def _single_move(self, row: int) -> list[_Step]:
        """Return the move of the cheapest VM that ends the overload, or else of the largest."""
        most = np.maximum(0.0, self._free()).max(axis=0, initial=0.0)
        for _, group in groupby(self._leavers(row), key=itemgetter(1)):
            found: list[tuple[float, _Step]] = []
            for unit, _ in group:
                # No search of a host for a unit that is larger than the free capacity of any host.
                target, gain = NO_INDEX, 0.0
                if not (self._arrays.usable[unit] > most).any():
                    target, gain = self._target(unit)
                if target != NO_INDEX:
                    found.append((gain, _Step(unit, target)))
                if len(found) * len(self._state.hosts) >= COMPARED_PAIRS_MAX:
                    break
            if found:
                return [max(found, key=itemgetter(0))[1]]
        return []

    def _free(self) -> Floats:
        """Return the capacity without demand of the hosts that accept units."""
        arrays = self._arrays
        rows = self._state.hosts[arrays.open[self._state.hosts] == 1]
        free: Floats = self._capacity[rows] * FULL_LOAD - arrays.host_usable[rows]
        return free

    def _leavers(self, row: int) -> list[tuple[int, tuple[bool, float]]]:
        """Return the units whose leaving relieves a host, in the order in which they are tried.

        Units with equal keys relieve it as well.
        """
        arrays, excess = self._arrays, self._excess(row)
        units = np.nonzero((arrays.unit_host == row) & (arrays.movable == 1))[0]
        usable = arrays.usable[units]
        falls = (np.minimum(usable, excess) / self._capacity[row]).sum(axis=1)
        falls = np.where(self._is_worth(falls, row, units), falls, 0.0)
        ends: NDArray[np.bool_] = np.asarray((usable >= excess).all(axis=1))
        # A short move of a small VM that is enough comes before that of a larger one.
        cost = np.where(ends, arrays.move_s[units], 0.0)
        size = (usable / self._capacity[row]).sum(axis=1)
        keys = np.where(ends, cost, -np.round(falls, 6))
        order = np.lexsort((units, size, keys, ~ends))
        return [
            (int(units[index]), (bool(ends[index]), float(keys[index])))
            for index in order
            if falls[index] > 0.0
        ]

    def _target(self, unit: int) -> tuple[int, float]:
        """Return the host on which a unit is best for the imbalance, and the gain; or none.

        The host is not overloaded with the unit.
        """
        rows = self._open_rows(unit)
        fits, _ = self._with_unit(unit, rows)
        source = int(self._arrays.unit_host[unit])
        fall = np.minimum(self._arrays.usable[unit], self._excess(source)) / self._capacity[source]
        fits &= self._is_worth(np.full(len(rows), fall.sum()), source, np.array([unit]), rows)
        rows = rows[fits]
        gains = self._search.gains(unit, rows)
        for index in np.argsort(-gains, kind="stable"):
            row = int(rows[index])
            if greedy_kernels.find_obstacle(self._arrays, unit, row) == NO_OBSTACLE:
                return row, float(gains[index])
        return NO_INDEX, 0.0

    def _is_worth(
        self, falls: Floats, source: int, units: Ints, targets: Ints | None = None
    ) -> NDArray[np.bool_]:
        """Return whether the demand that becomes met exceeds the CPU that migrations take.

        One answer per unit; with ``targets``, for one unit per target. Without, the demand on the
        target is assumed to stay as long as that on the source: a bound.
        """
        arrays, model = self._arrays, self._arrays.cost_model
        if not model.cost_benefit:
            return np.ones(len(falls), dtype=np.bool_)
        stable_s = min(arrays.stable_s[source], model.horizon_s)
        met = falls * (
            stable_s if targets is None else np.minimum(stable_s, arrays.stable_s[targets])
        )
        costs = [cost_benefit.migration_cost(arrays, unit, 0) for unit in units.tolist()]
        worth: NDArray[np.bool_] = met > np.array(costs) / self._capacity[source, 0]
        return worth

    def _open_rows(self, unit: int) -> Ints:
        """Return the hosts that accept units and that the rules allow for a unit."""
        arrays, hosts = self._arrays, self._state.hosts
        self._pairs_left -= len(hosts)
        if self._pairs_left < 0:
            return hosts[:0]
        allowed = arrays.allowed[arrays.allowed_row[unit], hosts] & arrays.open[hosts]
        rows: Ints = hosts[allowed == 1]
        return rows

    def _with_unit(self, unit: int, rows: Ints) -> tuple[NDArray[np.bool_], Floats]:
        """Return for each host whether it has capacity for a unit, and its highest load then."""
        usable, capacity = self._arrays.usable[unit], self._capacity[rows]
        demand = self._arrays.host_usable[rows] + usable
        # A resource of which the unit uses nothing may be overloaded: that does not get worse.
        fits = ((demand <= capacity * FULL_LOAD) | (usable == 0.0)).all(axis=1)
        return fits, (demand / capacity).max(axis=1)

    # Chains of two moves: a unit of the target makes room first.

    def _chain(self, row: int) -> list[_Step]:
        """Return two moves that relieve a host together, if no single one does."""
        free = np.maximum(0.0, self._free()).sum(axis=0)
        if ((free <= 0.0) & (self._excess(row) > 0.0)).any():
            return []
        for unit, _ in self._leavers(row):
            if self._chains_left <= 0:
                return []
            rows = self._open_rows(unit)
            _, full = self._with_unit(unit, rows)
            for target in rows[np.argsort(full, kind="stable")].tolist():
                if target == row or self._chains_left <= 0:
                    continue
                self._chains_left -= 1
                for other in self._makes_room(unit, target):
                    self._chains_left -= 1
                    for third in self._thirds(unit, other, target, row):
                        if self._chains_left <= 0:
                            return []
                        self._chains_left -= 1
                        if self._is_chain(unit, other, target, third, row):
                            return [_Step(other, third), _Step(unit, target)]
        return []

    def _makes_room(self, unit: int, target: int) -> list[int]:
        """Return the units on a host after whose leaving it has capacity for a unit."""
        arrays = self._arrays
        units = np.nonzero((arrays.unit_host == target) & (arrays.movable == 1))[0]
        usable, capacity = arrays.usable[unit], self._capacity[target]
        demand = arrays.host_usable[target] + usable - arrays.usable[units]
        fits = ((demand <= capacity * FULL_LOAD) | (usable == 0.0)).all(axis=1)
        # The unit with the least demand first: it finds another host most easily.
        order = np.argsort((arrays.usable[units] / capacity).sum(axis=1), kind="stable")
        return [int(units[index]) for index in order if fits[index]]

    def _thirds(self, unit: int, other: int, target: int, row: int) -> Iterator[int]:
        """Yield the hosts to which a unit can give way: not overloaded, or the relieved one."""
        rows = self._open_rows(other)
        fits, full = self._with_unit(other, rows)
        for index in np.argsort(full, kind="stable"):
            third = int(rows[index])
            if third == row:  # the two units change places
                fall = self._chain_fall(unit, other, row, swap=True)
                if (fall >= 0.0).all() and (fall > 0.0).any():
                    yield third
            elif third != target and fits[index]:
                yield third

    def _chain_fall(self, unit: int, other: int, row: int, *, swap: bool) -> Floats:
        """Return by how much the overload of a host falls if a unit leaves, or is exchanged."""
        demand = self._arrays.host_usable[row] - self._arrays.usable[unit]
        if swap:
            demand = demand + self._arrays.usable[other]
        fall: Floats = self._excess(row) - overload(demand, self._capacity[row])
        return fall

    def _is_chain(self, unit: int, other: int, target: int, third: int, row: int) -> bool:
        """Return whether two moves can follow each other and are worth both migrations."""
        fall = self._chain_fall(unit, other, row, swap=third == row) / self._capacity[row]
        arrays, model = self._arrays, self._arrays.cost_model
        cost = sum(cost_benefit.migration_cost(arrays, moved, 0) for moved in (unit, other))
        stable_s = min(arrays.stable_s[[row, target, third]].min(), model.horizon_s)
        is_worth = fall.sum() * stable_s > cost / self._capacity[row, 0]
        return bool(is_worth or not model.cost_benefit) and self._can_follow(
            unit, other, target, third
        )

    def _can_follow(self, unit: int, other: int, target: int, third: int) -> bool:
        """Return whether a unit can move to ``target`` once another one has left it."""
        arrays = self._arrays
        if greedy_kernels.find_obstacle(arrays, other, third) != NO_OBSTACLE:
            return False
        greedy_kernels.move_unit(arrays, other, third)
        possible = greedy_kernels.find_obstacle(arrays, unit, target) == NO_OBSTACLE
        greedy_kernels.move_unit(arrays, other, target)
        return possible
