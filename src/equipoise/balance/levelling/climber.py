"""The climber: balances all hosts at once or, if they are very many, in samples of them.

A sample of hosts looks much like the whole, so balancing samples drawn anew each round balances
the whole, at a cost that grows with the number of hosts and no faster. It looks the more like it
because busy and idle hosts are dealt out evenly. What a sample cannot know, because its own mean is
not that of the whole, the next round puts right: who has moved in mind may move on, and in the end
goes from where it is to where it came to, at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.levelling import climb
from equipoise.balance.levelling.assess import Assessment
from equipoise.balance.levelling.climb import Climb
from equipoise.balance.levelling.field import Scale
from equipoise.model.policy import BalancePolicy
from equipoise.place.compiled import Kernels
from equipoise.place.imbalance import FULL
from equipoise.place.water import Floats, Ints

KERNELS: Final = Kernels(*climb.FUNCTIONS, inline=climb.INNER, doors=climb.DOORS)
EXACT_UP_TO: Final = 4096
"""Of so many pairs of a unit and a host, all are looked at again after each move."""
TRIES: Final = 24
"""Of more pairs, so many hosts are asked for each unit whether a move is worth it."""
ROUNDS: Final = 4
"""How often samples are drawn in one pass."""


class Move(NamedTuple):
    """A unit that should be on another host; rows of the assessment."""

    unit: int
    source: int
    target: int
    gain: float
    """By how much it lowers the imbalance of the hosts it was balanced with."""
    before: float
    """How uneven those were before."""


class Verdict(NamedTuple):
    """What speaks against a host for a unit (``FINE`` if nothing), and what it would gain there."""

    host: int
    code: int
    gain: float


class Climber:
    """Moves units in mind, in the arrays of an assessment."""

    def __init__(self, state: Assessment, policy: BalancePolicy, weight: Floats, seed: int) -> None:
        self._state, self._policy, self._seed = state, policy, seed
        self._kernels = KERNELS.at(fast=state.fast)
        sums, squares, there, small, large = np.zeros((5, len(state.resources)))
        tight = np.asarray((state.loads() > FULL).any(axis=0), dtype=np.int64)
        self.scale = Scale(sums, squares, there, weight, tight, small, large)

    def climb(self, left: int) -> list[Move]:
        """Take the best move, again and again, at most so many; nobody moves twice."""
        hosts = self._state.hosts
        left = min(left, self._policy.moves_per_host * len(hosts))
        if len(hosts) <= self._policy.sample_hosts:
            return self._climb_on(hosts, self._units_on(hosts), left)
        found: dict[int, Move] = {}
        chance = np.random.default_rng(self._seed)
        for _ in range(ROUNDS):
            if self.measure() <= self._policy.imbalance_target:
                break
            movable = self._state.field.movable.copy()
            moves = self._round(chance, left - len(found))
            self._state.field.movable[:] = movable
            for move in moves:
                _go_on(found, move)
            if not moves:
                break
        self._state.field.movable[list(found)] = 0
        return list(found.values())

    def _round(self, chance: np.random.Generator, left: int) -> list[Move]:
        """Climb on each sample once; none takes what the others may need of the moves left."""
        found: list[Move] = []
        samples = self._samples(chance)
        for number, (sample, units) in enumerate(samples):
            part = -(-(left - len(found)) // (len(samples) - number))
            found += self._climb_on(sample, units, part)
        return found

    def take_back(self, move: Move) -> None:
        """Let a unit be where it was, and free to move."""
        self._state.field.movable[move.unit] = 1
        climb.move(self._state.field, move.unit, move.source)

    def hold(self, move: Move) -> None:
        """Let a unit stay where it is."""
        self._state.field.movable[move.unit] = 0

    def take_again(self, move: Move) -> None:
        """Let a unit be where it is to go, and stay there."""
        self._state.field.movable[move.unit] = 0
        climb.move(self._state.field, move.unit, move.target)

    def measure(self) -> float:
        """The imbalance of all that take part, which the scale then stands for."""
        found: float = self._kernels.measure(self._state.field, self.scale, self._state.hosts)
        return found

    def verdicts(self, unit: int, before: float) -> list[Verdict]:
        """What speaks against each host that takes part, the most gainful one first."""
        state = self._state
        gains = np.zeros(len(state.hosts))
        codes = self._kernels.verdicts(state.field, self.scale, unit, state.hosts, before, gains)
        columns = (state.hosts.tolist(), codes.tolist(), gains.tolist())
        found = [Verdict(*one) for one in zip(*columns, strict=True)]
        return sorted(found, key=lambda one: (-one.gain, one.host))

    def _climb_on(self, hosts: Ints, units: Ints, left: int) -> list[Move]:
        policy = self._policy
        room = max(0, min(left, policy.moves_per_host * len(hosts)))
        exact = len(hosts) * len(units) <= EXACT_UP_TO
        order = Climb(
            hosts=hosts,
            units=units,
            target=policy.imbalance_target,
            goodness=policy.goodness,
            relaxed_above=policy.relaxed_above,
            exact=exact,
            tries=len(hosts) if exact else TRIES,
            unit=np.zeros(room, dtype=np.int64),
            source=np.zeros(room, dtype=np.int64),
            host=np.zeros(room, dtype=np.int64),
            gain=np.zeros(room),
            before=np.zeros(room),
        )
        count = self._kernels.run(self._state.field, self.scale, order)
        columns = (order.unit, order.source, order.host, order.gain, order.before)
        return [Move(*one) for one in zip(*(one[:count].tolist() for one in columns), strict=True)]

    def _units_on(self, hosts: Ints) -> Ints:
        field = self._state.field
        there = np.zeros(len(field.open), dtype=bool)
        there[hosts] = True
        return np.nonzero(there[field.home] & (field.movable == 1))[0]

    def _samples(self, chance: np.random.Generator) -> list[tuple[Ints, Ints]]:
        """All hosts, dealt out by chance into samples of about equal size and load, with units."""
        field, hosts = self._state.field, chance.permutation(self._state.hosts)
        count = max(1, round(len(hosts) / self._policy.sample_size))
        load = (field.host_load[hosts] * field.inverse[hosts]).sum(axis=1)
        hosts = hosts[np.argsort(-load, kind="stable")]
        # Of as many hosts as there are samples, which are about equally busy, each gets one.
        rounds = -(-len(hosts) // count)
        dealt = chance.permuted(np.tile(np.arange(count), (rounds, 1)), axis=1).ravel()
        sample_of = np.full(len(field.open), -1)
        sample_of[hosts] = dealt[: len(hosts)]
        movable = np.nonzero(field.movable == 1)[0]
        order = movable[np.argsort(sample_of[field.home[movable]], kind="stable")]
        numbers = sample_of[field.home[order]]
        bounds = np.searchsorted(numbers, np.arange(count + 1))
        return [
            (
                np.nonzero(sample_of == number)[0],
                np.sort(order[bounds[number] : bounds[number + 1]]),
            )
            for number in range(count)
        ]


def _go_on(found: dict[int, Move], move: Move) -> None:
    """Note a move; of who has moved before, the way from the first host to the last."""
    first = found.pop(move.unit, None)
    if first is None:
        found[move.unit] = move
    elif first.source != move.target:
        gain = first.gain + move.gain
        found[move.unit] = Move(move.unit, first.source, move.target, gain, first.before)
