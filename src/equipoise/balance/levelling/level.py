"""Levelling: the moves that even hosts out, are urgent enough and pass the gate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from equipoise.balance.advice import Advised, priority
from equipoise.balance.levelling.assess import Assessment
from equipoise.balance.levelling.climber import Climber, Move
from equipoise.balance.levelling.reasons import Reasons
from equipoise.balance.mending.mend import Mended
from equipoise.balance.surely import surely_pass
from equipoise.balance.wishes import Wishes, step_of
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Rejection
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.passing import Passing

TRIES: Final = 6
"""How often all is climbed again without what the gate has refused."""


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
        """Climb, and leave out what is not urgent or does not pass."""
        moves = self._settled(mended)
        reasons = Reasons(self._snapshot, self._state, self._climber, self.count)
        return Levelled(tuple(reasons.of(moves, alternatives=alternatives)), tuple(self._rejected))

    def _settled(self, mended: Mended) -> list[Move]:
        """Climb until all that is urgent passes.

        A move was chosen to go with those before it. Without one that the gate refuses, the others
        may do harm: so they are taken back, and chosen anew while the refused one stays.
        """
        before = self._climber.measure()
        for _ in range(TRIES):
            self._rejected = [one for one in self._rejected if one.code == "gate"]
            wanted = self._urgent(self._climber.climb(self._policy.moves_per_pass))
            moves = self._passing(wanted, mended)
            if len(moves) == len(wanted):
                return moves
            after = self._climber.measure()
            for move in reversed(moves):
                self._climber.take_back(move)
        if after >= before:
            return []
        for move in moves:
            self._climber.take_again(move)
        return moves

    @property
    def count(self) -> int:
        """How many hosts are balanced with each other."""
        count = len(self._state.hosts)
        return count if count <= self._policy.sample_hosts else self._policy.sample_size

    def _urgent(self, moves: list[Move]) -> list[Move]:
        threshold = self._policy.threshold
        detail = f"less urgent than the threshold {threshold}"
        urgent = []
        for move in moves:
            if priority(move.before, self.count) <= threshold:
                urgent.append(move)
            else:
                self._give_up(move, "below_threshold", detail)
        return urgent

    def _passing(self, moves: list[Move], mended: Mended) -> list[Move]:
        """Those that the gate lets pass; a unit goes as a whole, and what it leaves counts."""
        names, hosts = self._state.members, self._state.host_ids
        going = [(vm, hosts[move.target]) for move in moves for vm in names[move.unit]]
        if not mended.moves and not mended.faults and surely_pass(mended.standing, going):
            return moves
        passing = Passing(self._snapshot, mended.mends)
        while moves:
            wanted = [intent for move in moves for intent in self._intents(move)]
            passed = {intent.id for intent in passing.of(wanted, mended.intents)}
            kept = []
            for move in moves:
                if self._is_whole(move, passed):
                    kept.append(move)
                else:
                    detail = "the gate refuses it: it breaks a rule or could not be carried out"
                    self._give_up(move, "gate", detail)
                    self._climber.hold(move)
            if len(kept) == len(moves):
                break
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
