"""Greedy search: rebalances all hosts at once or, in large clusters, random samples of hosts.

A sample of hosts has about the load distribution of the cluster. Rebalancing new samples in each
round therefore balances the cluster, at a cost linear in the number of hosts. Samples are
stratified by load and drawn from the seed. A unit that moved in one round may move again in the
next; it then migrates directly from its first host to its last.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.rebalance import greedy_kernels
from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.cluster_arrays import LoadTotals
from equipoise.balance.rebalance.greedy_kernels import GreedyTask
from equipoise.capacity.imbalance import FULL_LOAD
from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints
from equipoise.model.policy.balance import BalancePolicy

KERNELS: Final = KernelSet(
    *greedy_kernels.GREEDY_FUNCTIONS,
    inline=greedy_kernels.INLINE_FUNCTIONS,
    entry_points=greedy_kernels.ENTRY_FUNCTIONS,
)
EXACT_PAIRS_MAX: Final = 4096
"""Up to this number of pairs of a unit and a host, all pairs are rated after each move."""
HOSTS_TRIED_MAX: Final = 24
"""With more pairs, the cost-benefit analysis of a unit covers this many hosts."""
SAMPLE_ROUNDS: Final = 4
"""How often samples are drawn in one pass."""


class UnitMove(NamedTuple):
    """A unit that should be on another host, as rows of the assessment."""

    unit: int
    source: int
    target: int
    gain: float
    """The fall of the imbalance of the hosts that were rebalanced together."""
    before: float
    """The imbalance of these hosts before the move."""
    relief: tuple[float, float] | None = None
    """For a move that relieves overload: the MHz and MiB by which the overload of a host falls.

    Zero for a move that only makes room for the next one.
    """
    relieved: int = NO_INDEX
    """The host that a relief move is made for."""


class HostRating(NamedTuple):
    """The obstacle of a unit on a host (``NO_OBSTACLE`` if none), and the gain there."""

    host: int
    code: int
    gain: float


class GreedySearch:
    """Moves units in the arrays of an assessment."""

    def __init__(self, state: Assessment, policy: BalancePolicy, weight: Floats, seed: int) -> None:
        self._state, self._policy, self._seed = state, policy, seed
        self._kernels = KERNELS.at(fast=state.fast)
        sums, squares, hosts, capacity_min, capacity_max = np.zeros((5, len(state.resources)))
        scarce = np.asarray((state.loads() > FULL_LOAD).any(axis=0), dtype=np.int64)
        self.totals = LoadTotals(sums, squares, hosts, weight, scarce, capacity_min, capacity_max)

    def on(self, state: Assessment) -> GreedySearch:
        """Return the same search on another assessment, such as a copy."""
        return GreedySearch(state, self._policy, self.totals.weight, self._seed)

    @property
    def moves_max(self) -> int:
        """The most moves of one pass."""
        # A limit per host as well: a small cluster must not receive the moves that a large one may
        # have.
        per_host = self._policy.moves_per_host * len(self._state.hosts)
        return min(self._policy.moves_per_pass, per_host)

    def find_moves(self, moves_max: int) -> list[UnitMove]:
        """Return the best moves, at most so many; a unit moves at most once."""
        moves = self._find_moves(moves_max)
        if self._allow_returns():
            moved = {move.unit for move in moves}
            again = self._find_moves(moves_max - len(moves))
            moves += [move for move in again if move.unit not in moved]
        return moves

    def _allow_returns(self) -> bool:
        """Let units return to the hosts that they left lately, if their present host is overloaded.

        This is the last resort: no move to another host has relieved it.
        """
        arrays = self._state.arrays
        over = np.asarray((arrays.host_demand > arrays.capacity * FULL_LOAD).any(axis=1))
        units = np.nonzero((arrays.left != NO_INDEX) & over[arrays.unit_host])[0]
        arrays.left[units] = NO_INDEX
        return len(units) > 0

    def _find_moves(self, moves_max: int) -> list[UnitMove]:
        hosts, moves_max = self._state.hosts, min(moves_max, self.moves_max)
        if len(hosts) <= self._policy.sample_hosts:
            return self._search_on(hosts, self._units_on(hosts), moves_max)
        moves_by_unit: dict[int, UnitMove] = {}
        rng = np.random.default_rng(self._seed)
        for _ in range(SAMPLE_ROUNDS):
            if self.measure_imbalance() <= self._policy.imbalance_target:
                break
            # The kernel pins what it moves. Within a round that prevents two moves of a unit; the
            # next round, with other samples, may find a better host.
            movable = self._state.arrays.movable.copy()
            moves = self._round(rng, moves_max - len(moves_by_unit))
            self._state.arrays.movable[:] = movable
            for move in moves:
                _chain_move(moves_by_unit, move)
            if not moves:
                break
        self._state.arrays.movable[list(moves_by_unit)] = 0
        return list(moves_by_unit.values())

    def _round(self, rng: np.random.Generator, moves_max: int) -> list[UnitMove]:
        """Search each sample once; the allowed moves are shared out over the samples."""
        moves: list[UnitMove] = []
        samples = self._samples(rng)
        for number, (sample, units) in enumerate(samples):
            # Recomputed for each sample, so that moves that one sample does not use are left for
            # the next ones.
            part = -(-(moves_max - len(moves)) // (len(samples) - number))
            moves += self._search_on(sample, units, part)
        return moves

    def undo(self, move: UnitMove) -> None:
        """Move a unit back to its source, and make it movable."""
        self._state.arrays.movable[move.unit] = 1
        # The plain Python function: the call of a compiled one costs more for a single move.
        greedy_kernels.move_unit(self._state.arrays, move.unit, move.source)

    def pin(self, move: UnitMove) -> None:
        """Make a unit immovable."""
        self._state.arrays.movable[move.unit] = 0

    def redo(self, move: UnitMove) -> None:
        """Move a unit to its target, and make it immovable."""
        self._state.arrays.movable[move.unit] = 0
        greedy_kernels.move_unit(self._state.arrays, move.unit, move.target)

    def measure_imbalance(self) -> float:
        """Return the imbalance of all rebalanced hosts, and refresh ``totals``."""
        result: float = self._kernels.measure_imbalance(
            self._state.arrays, self.totals, self._state.hosts
        )
        return result

    def ratings(self, unit: int, before: float) -> list[HostRating]:
        """Return the rating of each rebalanced host for a unit, largest gain first."""
        state = self._state
        gains = np.zeros(len(state.hosts))
        codes = self._kernels.ratings(state.arrays, self.totals, unit, state.hosts, before, gains)
        columns = (state.hosts.tolist(), codes.tolist(), gains.tolist())
        ratings = [HostRating(*row) for row in zip(*columns, strict=True)]
        return sorted(ratings, key=lambda rating: (-rating.gain, rating.host))

    def gains(self, unit: int, hosts: Ints) -> Floats:
        """Return the fall of the imbalance if a unit moves to each host, up to a constant.

        ``totals`` must be those of the present placement.
        """
        gains = np.zeros(len(hosts))
        if len(hosts):
            # ``ratings`` is an entry point of the compiled kernels; its codes are not needed.
            self._kernels.ratings(self._state.arrays, self.totals, unit, hosts, 0.0, gains)
        return gains

    def _search_on(self, hosts: Ints, units: Ints, moves_allowed: int) -> list[UnitMove]:
        """Run the kernel on some hosts and their units."""
        policy = self._policy
        moves_max = max(0, min(moves_allowed, policy.moves_per_host * len(hosts)))
        exact = len(hosts) * len(units) <= EXACT_PAIRS_MAX
        task = GreedyTask(
            hosts=hosts,
            units=units,
            target=policy.imbalance_target,
            goodness=policy.goodness,
            gain_min=policy.gain_min,
            relaxed_above=policy.relaxed_above,
            exact=exact,
            tries=len(hosts) if exact else HOSTS_TRIED_MAX,
            unit=np.zeros(moves_max, dtype=np.int64),
            source=np.zeros(moves_max, dtype=np.int64),
            host=np.zeros(moves_max, dtype=np.int64),
            gain=np.zeros(moves_max),
            before=np.zeros(moves_max),
        )
        count = self._kernels.run(self._state.arrays, self.totals, task)
        columns = (task.unit, task.source, task.host, task.gain, task.before)
        return [
            UnitMove(*row)
            for row in zip(*(column[:count].tolist() for column in columns), strict=True)
        ]

    def _units_on(self, hosts: Ints) -> Ints:
        arrays = self._state.arrays
        selected = np.zeros(len(arrays.open), dtype=bool)
        selected[hosts] = True
        return np.nonzero(selected[arrays.unit_host] & (arrays.movable == 1))[0]

    def _samples(self, rng: np.random.Generator) -> list[tuple[Ints, Ints]]:
        """Return the samples: all hosts in random groups of about equal size and load."""
        # The permutation and the stable sort below put hosts of equal load in a random order.
        arrays, hosts = self._state.arrays, rng.permutation(self._state.hosts)
        count = max(1, round(len(hosts) / self._policy.sample_size))
        load = (arrays.host_load[hosts] * arrays.inverse[hosts]).sum(axis=1)
        hosts = hosts[np.argsort(-load, kind="stable")]
        # Stratified: of every ``count`` hosts with about equal load, each sample gets one.
        rounds = -(-len(hosts) // count)
        dealt = rng.permuted(np.tile(np.arange(count), (rounds, 1)), axis=1).ravel()
        sample_of = np.full(len(arrays.open), -1)
        sample_of[hosts] = dealt[: len(hosts)]
        movable = np.nonzero(arrays.movable == 1)[0]
        order = movable[np.argsort(sample_of[arrays.unit_host[movable]], kind="stable")]
        numbers = sample_of[arrays.unit_host[order]]
        bounds = np.searchsorted(numbers, np.arange(count + 1))
        return [
            (
                np.nonzero(sample_of == number)[0],
                np.sort(order[bounds[number] : bounds[number + 1]]),
            )
            for number in range(count)
        ]


def _chain_move(moves_by_unit: dict[int, UnitMove], move: UnitMove) -> None:
    """Add a move; two moves of a unit become one from its first host to its last."""
    first = moves_by_unit.pop(move.unit, None)
    if first is None:
        moves_by_unit[move.unit] = move
    # A unit that returns to its first host does not move at all.
    elif first.source != move.target:
        gain = first.gain + move.gain
        moves_by_unit[move.unit] = UnitMove(
            move.unit, first.source, move.target, gain, first.before
        )
