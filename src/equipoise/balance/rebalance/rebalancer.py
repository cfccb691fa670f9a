"""The rebalancer: the moves that reduce the imbalance, are urgent enough and pass the gate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from equipoise.balance.advice import BalanceIntentBuilder, MoveAdvice, move_priority, move_step_id
from equipoise.balance.gate_fast_path import passes_in_any_order
from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.greedy import GreedySearch, UnitMove
from equipoise.balance.rebalance.move_reasons import MoveReasons
from equipoise.balance.repair.rule_repair import RepairResult
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Rejection
from equipoise.model.quantity import StepId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.order import GateFilter

GATE_ATTEMPTS_MAX: Final = 6
"""How often the search runs again without the moves that the gate has refused."""


@dataclass(frozen=True, slots=True)
class RebalanceResult:
    """The recommended moves, and the rejected ones."""

    moves: tuple[MoveAdvice, ...]
    rejected: tuple[Rejection, ...]


class Rebalancer:
    """Rebalances a cluster after the repairs of the rules."""

    def __init__(
        self, snapshot: Snapshot, state: Assessment, search: GreedySearch, estimates: Estimates
    ) -> None:
        self._snapshot, self._state, self._search = snapshot, state, search
        self._estimates = estimates
        self._builder = BalanceIntentBuilder(snapshot, estimates)
        self._policy = snapshot.settings.balance
        self._rejected: list[Rejection] = []

    def run(self, repair: RepairResult, *, alternatives: bool) -> RebalanceResult:
        """Search moves, and drop those that are below the threshold or do not pass the gate."""
        moves = self._find_passing_moves(repair)
        reasons = MoveReasons(self._snapshot, self._state, self._search, self.count)
        return RebalanceResult(
            tuple(reasons.of(moves, alternatives=alternatives)), tuple(self._rejected)
        )

    def _find_passing_moves(self, repair: RepairResult) -> list[UnitMove]:
        """Search until all urgent moves pass the gate.

        Each move was chosen together with those before it. If the gate refuses one, the others may
        do harm. They are therefore undone, and the search runs again with the refused unit pinned.
        """
        before = self._search.measure_imbalance()
        for _ in range(GATE_ATTEMPTS_MAX):
            self._rejected = [
                rejection for rejection in self._rejected if rejection.code == "gate-refuses"
            ]
            urgent = self._urgent(self._search.find_moves(self._policy.moves_per_pass))
            moves = self._filter_by_gate(urgent, repair)
            if len(moves) == len(urgent):
                return moves
            after = self._search.measure_imbalance()
            for move in reversed(moves):
                self._search.undo(move)
        if after >= before:
            return []
        for move in moves:
            self._search.redo(move)
        return moves

    @property
    def count(self) -> int:
        """The number of hosts that are rebalanced together."""
        count = len(self._state.hosts)
        return count if count <= self._policy.sample_hosts else self._policy.sample_size

    def _urgent(self, moves: list[UnitMove]) -> list[UnitMove]:
        """Return the moves within the threshold; reject the others."""
        threshold = self._policy.threshold
        detail = f"its priority is below the threshold {threshold}"
        urgent = []
        for move in moves:
            if move_priority(move.before, self.count) <= threshold:
                urgent.append(move)
            else:
                self._reject(move, "below-threshold", detail)
        return urgent

    def _filter_by_gate(self, moves: list[UnitMove], repair: RepairResult) -> list[UnitMove]:
        """Return the moves that pass the gate; a unit moves as a whole or not at all."""
        members, hosts = self._state.members, self._state.host_ids
        targets = [(vm, hosts[move.target]) for move in moves for vm in members[move.unit]]
        if (
            not repair.moves
            and not repair.faults
            and passes_in_any_order(repair.placement_state, targets)
        ):
            return moves
        passing = GateFilter(self._snapshot, repair.repairs)
        while moves:
            intents = [intent for move in moves for intent in self._intents(move)]
            passed = {intent.id for intent in passing.of(intents, repair.intents)}
            kept = []
            for move in moves:
                if self._is_whole(move, passed):
                    kept.append(move)
                else:
                    detail = "the gate refuses the move: it breaks a rule or cannot be executed"
                    self._reject(move, "gate-refuses", detail)
                    self._search.pin(move)
            if len(kept) == len(moves):
                break
            moves = kept
        return moves

    def _is_whole(self, move: UnitMove, passed: Collection[StepId]) -> bool:
        return all(move_step_id(vm) in passed for vm in self._state.members[move.unit])

    def _reject(self, move: UnitMove, code: str, detail: str) -> None:
        self._search.undo(move)
        source, target = (self._state.host_ids[row] for row in (move.source, move.target))
        subject = f"move {', '.join(self._state.members[move.unit])} from {source} to {target}"
        self._rejected.append(Rejection(subject=subject, code=code, detail=detail))

    def _intents(self, move: UnitMove) -> list[Intent]:
        source, target = (self._state.host_ids[row] for row in (move.source, move.target))
        return [self._builder.move(vm, source, target) for vm in self._state.members[move.unit]]
