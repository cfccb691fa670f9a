"""Levelling: the moves that even hosts out, are urgent enough and pass the gate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from equipoise.balance.advice import Advised, priority
from equipoise.balance.levelling.assess import Assessment
from equipoise.balance.levelling.climber import Climber, Move
from equipoise.balance.levelling.reasons import Reasons
from equipoise.balance.mending.mend import Mended
from equipoise.balance.wishes import Wishes, step_of
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Rejection
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.passing import Passing


@dataclass(frozen=True, slots=True)
class Levelled:
    """What is to be done, and what was given up."""

    moves: tuple[Advised, ...]
    rejected: tuple[Rejection, ...]


class Levelling:
    """Balances a cluster in mind, on top of what is done for the rules."""

    def __init__(
        self, snapshot: Snapshot, state: Assessment, climber: Climber, estimates: Estimates
    ) -> None:
        self._snapshot, self._state, self._climber = snapshot, state, climber
        self._estimates = estimates
        self._wishes = Wishes(snapshot, estimates)
        self._policy = snapshot.settings.balance
        self._rejected: list[Rejection] = []

    def run(self, mended: Mended, *, alternatives: bool) -> Levelled:
        """Climb, then leave out what is not urgent or does not pass."""
        moves = self._urgent(self._climber.climb(self._policy.moves_per_pass))
        moves = self._passing(moves, mended)
        reasons = Reasons(self._snapshot, self._state, self._climber, self.count)
        return Levelled(tuple(reasons.of(moves, alternatives=alternatives)), tuple(self._rejected))

    @property
    def count(self) -> int:
        """How many hosts are balanced with each other."""
        count = len(self._state.hosts)
        return count if count <= self._policy.sample_hosts else self._policy.sample_size

    def _urgent(self, moves: list[Move]) -> list[Move]:
        threshold = self._policy.threshold
        urgent = [one for one in moves if priority(one.before, self.count) <= threshold]
        detail = f"less urgent than the threshold {threshold}"
        for move in moves:
            if move not in urgent:
                self._give_up(move, "below_threshold", detail)
        return urgent

    def _passing(self, moves: list[Move], mended: Mended) -> list[Move]:
        """Those that the gate lets pass; a unit goes as a whole, and what it leaves counts."""
        passing = Passing(self._snapshot, mended.mends)
        while moves:
            wanted = [intent for move in moves for intent in self._intents(move)]
            passed = {intent.id for intent in passing.of(wanted, mended.intents)}
            kept = [move for move in moves if self._is_whole(move, passed)]
            if len(kept) == len(moves):
                break
            for move in moves:
                if move not in kept:
                    detail = "the gate refuses it: it breaks a rule or could not be carried out"
                    self._give_up(move, "gate", detail)
            moves = kept
        return moves

    def _is_whole(self, move: Move, passed: Collection[StepId]) -> bool:
        return all(step_of(vm) in passed for vm in self._state.members[move.unit])

    def _give_up(self, move: Move, code: str, detail: str) -> None:
        self._climber.take_back(move)
        source, target = (self._state.host_ids[row] for row in (move.source, move.target))
        subject = f"move {', '.join(self._state.members[move.unit])} from {source} to {target}"
        self._rejected.append(Rejection(subject=subject, code=code, detail=detail))

    def _intents(self, move: Move) -> list[Intent]:
        source, target = (self._state.host_ids[row] for row in (move.source, move.target))
        return [self._wishes.move(vm, source, target) for vm in self._state.members[move.unit]]
