"""The proposal: which moves, why, what they promise, and why not more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.balance import climb
from equipoise.balance.assess import Assessment, assess
from equipoise.balance.climb import Field, Weighing
from equipoise.balance.config import BalanceConfig
from equipoise.model.action import Migrate
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.place.compiled import Kernels
from equipoise.place.imbalance import imbalance, weights
from equipoise.place.water import NOBODY, Floats, Ints
from equipoise.plan.passing import passing

KERNELS: Final = Kernels(*climb.FUNCTIONS)
LOOKED_AT: Final = 64
"""Of so many hosts, every pair is tried; of more, only the most and the least loaded ones."""


def for_scenario(scenario: Scenario) -> Balance:
    """The decider for a simulated run."""
    target = scenario.measuring.imbalance_target
    return Balance(BalanceConfig(imbalance_target=target), scenario.estimates)


@dataclass(frozen=True, slots=True)
class Move:
    """A unit that should be elsewhere."""

    unit: int
    source: int
    target: int
    gain: float


class Balance:
    """Wants VMs spread so that all hosts are about equally loaded by what their VMs deserve."""

    def __init__(self, config: BalanceConfig, estimates: Estimates) -> None:
        self._config = config
        self._estimates = estimates

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Say which VMs should move, or why none should."""
        move_ms = self._estimates.move_ms
        state = assess(snapshot, lambda vm: move_ms(vm) / 1000, self._config.stable_s_min)
        climber = _Climber(state, self._config)
        before = climber.imbalance()
        if before <= self._config.imbalance_target:
            return self._nothing(f"the imbalance is {before:.3f}, the target is not exceeded")
        intents = self._allowed(snapshot, state, climber)
        after = climber.imbalance()
        if not intents or after >= before:
            return self._nothing(f"the imbalance is {before:.3f}, and no move is worth its cost")
        return Proposal(
            decider="balance",
            purpose=Purpose.BALANCE,
            intents=tuple(intents),
            reason=f"the imbalance is {before:.3f} and would be {after:.3f}",
            gain={"imbalance": before - after},
        )

    def _nothing(self, reason: str) -> Proposal:
        return Proposal(decider="balance", purpose=Purpose.BALANCE, reason=reason)

    def _allowed(self, snapshot: Snapshot, state: Assessment, climber: _Climber) -> list[Intent]:
        """The moves that the gate lets pass; the others are taken back and promise nothing."""
        moves = climber.climb()
        while True:
            wanted = self._intents(snapshot, state, moves)
            passed = {intent.id for intent in passing(snapshot, wanted)}
            kept = [
                move for move in moves if passed.issuperset(map(_step, state.members[move.unit]))
            ]
            if len(kept) == len(moves):
                return wanted
            for move in moves:
                if move not in kept:
                    climber.take_back(move)
            moves = kept

    def _intents(self, snapshot: Snapshot, state: Assessment, moves: list[Move]) -> list[Intent]:
        return [
            self._intent(
                snapshot, vm, state.host_ids[move.source], state.host_ids[move.target], move.gain
            )
            for move in moves
            for vm in state.members[move.unit]
        ]

    def _intent(
        self, snapshot: Snapshot, vm: VmId, source: HostId, target: HostId, gain: float
    ) -> Intent:
        action = Migrate(vm=vm, source=source, target=target)
        return Intent(
            id=_step(vm),
            action=action,
            duration_ms=self._estimates.duration_ms(action, snapshot),
            reason=f"{source} is loaded more than {target}; imbalance falls by {gain:.4f}",
        )


def _step(vm: VmId) -> StepId:
    return StepId(f"move-{vm}")


class _Climber:
    """Takes the best move there is, until none is good enough."""

    def __init__(self, state: Assessment, config: BalanceConfig) -> None:
        self._state, self._config = state, config
        self._kernels = KERNELS.at(fast=state.fast)
        self._open = np.nonzero(state.hosts["open"])[0]
        self._field = Field(
            state.units,
            state.hosts,
            state.allowed,
            state.groups.of_unit,
            state.groups.first,
            state.groups.there,
            Weighing(
                config.cost_benefit,
                config.spread,
                config.evenness,
                float(config.horizon_s),
                float(config.migration_cpu_mhz),
                config.slowdown,
            ),
        )

        loads = self._loads()
        self._sums = np.array([*loads.sum(axis=0), float(len(loads))])
        self._squares = (loads**2).sum(axis=0)

    def imbalance(self) -> float:
        """How uneven the hosts that are on are loaded."""
        loads = self._loads()
        return imbalance(loads[:, 0], loads[:, 1])

    def climb(self) -> list[Move]:
        """Move in mind, and say what was moved; nobody twice."""
        found: list[Move] = []
        while len(found) < self._config.moves_per_host * len(self._open):
            weight = np.array(weights(*self._loads().T))
            left = self.imbalance() - self._config.imbalance_target
            if left <= 0:
                break
            sources, targets = self._candidates(weight)
            unit, host, gain = self._kernels.best_move(
                self._field, sources, targets, self._sums, self._squares, weight
            )
            if unit == NOBODY or gain < self._least_gain(left):
                break
            source = int(self._state.units[unit]["host"])
            self._kernels.move(self._field, unit, host, self._sums, self._squares)
            self._state.units[unit]["movable"] = 0
            found.append(Move(unit, source, host, gain))
        return found

    def take_back(self, move: Move) -> None:
        """Let a unit be where it was."""
        self._kernels.move(self._field, move.unit, move.source, self._sums, self._squares)

    def _loads(self) -> Floats:
        hosts = self._state.hosts[self._open]
        loads: Floats = hosts["load"] / hosts["capacity"]
        return loads

    def _least_gain(self, left: float) -> float:
        config = self._config
        least = config.goodness * left / max(1, len(self._open))
        relaxed = left > (config.relaxed_above - 1) * config.imbalance_target
        return least / 10 if relaxed else least

    def _candidates(self, weight: Floats) -> tuple[Ints, Ints]:
        """Whose units may go, and where to."""
        sources = np.zeros(len(self._state.hosts), dtype=np.int64)
        if len(self._open) <= LOOKED_AT:
            sources[self._open] = 1
            return sources, self._open
        pressure = self._loads() @ weight
        order = np.argsort(pressure, kind="stable")
        sources[self._open[order[-LOOKED_AT:]]] = 1
        return sources, self._open[order[:LOOKED_AT]]
