"""The rebalancer: moves that relieve overload or reduce the imbalance, each with its reasons.

Relief comes first, also while the imbalance is within its target. Every move passes the gate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.balance.advice import (
    RELIEF_PRIORITY,
    BalanceCode,
    IntentBuilder,
    MoveAdvice,
    Transfer,
    move_priority,
    move_step_id,
)
from equipoise.balance.rebalance import cost_benefit
from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.cluster_arrays import (
    COST_EXCEEDS_BENEFIT,
    FT_INCOMPATIBLE,
    HOST_CLOSED,
    LEFT_LATELY,
    MAKES_SCARCE,
    MUST_BE_APART,
    NO_CAPACITY,
    NO_OBSTACLE,
    RULE_FORBIDS,
    TOO_FEW_CORES,
)
from equipoise.balance.rebalance.greedy import GreedySearch, UnitMove
from equipoise.balance.rebalance.relief import OverloadRelief
from equipoise.balance.repair.move_order import passes_in_any_order
from equipoise.balance.repair.rule_repair import RepairResult
from equipoise.capacity.waterfill import Floats
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Intent, Rejection
from equipoise.model.quantity import StepId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.order import GateFilter

OBSTACLE_CODES: Final = {
    NO_OBSTACLE: ("second-best", "the gain is smaller"),
    HOST_CLOSED: ("host-closed", "the host accepts no VMs"),
    RULE_FORBIDS: ("rule-forbids", "a rule forbids the host"),
    TOO_FEW_CORES: ("too-few-cores", "the host has fewer cores than the VM has vCPUs"),
    NO_CAPACITY: ("no-capacity", "the reservation does not fit"),
    MUST_BE_APART: ("keep-apart", "a rule keeps it apart from a VM there"),
    FT_INCOMPATIBLE: ("ft-incompatible", "the host is not compatible with that of the FT partner"),
    MAKES_SCARCE: ("makes-scarce", "the load would exceed the capacity of the host"),
    LEFT_LATELY: ("left-lately", "it left the host a short time ago"),
    COST_EXCEEDS_BENEFIT: ("cost-exceeds-benefit", "the cost exceeds the benefit"),
}
"""Code and sentence of each obstacle."""
ALTERNATIVES_MAX: Final = 3


class MoveReasons:
    """Replays the moves in their order, and describes each in the state in which it was chosen."""

    def __init__(
        self, snapshot: Snapshot, state: Assessment, search: GreedySearch, together: int
    ) -> None:
        self._snapshot, self._state, self._search = snapshot, state, search
        self._together = together

    def of(self, moves: Sequence[UnitMove], *, alternatives: bool) -> list[MoveAdvice]:
        """Return the advice for each move, with its reason.

        With ``alternatives``, also gain, cost and risk in full, and the other targets.
        """
        advice: list[MoveAdvice] = []
        phrases = self._loads(moves)
        # Backwards, because a unit may need the capacity that an earlier move has freed.
        for move in reversed(moves) if alternatives else ():
            self._search.undo(move)
        for move, loads in zip(moves, phrases, strict=True):
            advice += self._move_advice(move, loads, alternatives)
            if alternatives:
                self._search.redo(move)
        return advice

    def _move_advice(self, move: UnitMove, loads: str, alternatives: bool) -> Iterator[MoveAdvice]:
        state = self._state
        gain, cost = {"imbalance": move.gain}, {"seconds": float(state.arrays.move_s[move.unit])}
        risk: dict[str, float] = {}
        considered: tuple[Rejection, ...] = ()
        if alternatives:
            considered = () if move.relief else tuple(self._considered(move))
            gain, cost, risk = self._figures(move)
        if move.relief is not None:
            gain |= dict(zip(_RELIEF_GAINS, move.relief, strict=True))
        source, target = state.host_ids[move.source], state.host_ids[move.target]
        names = state.members[move.unit]
        for number, vm in enumerate(names):
            if number == 1:  # the first member carries the figures of the whole unit
                gain, cost, risk = dict.fromkeys(gain, 0.0), dict.fromkeys(cost, 0.0), {}
            others = [name for name in names if name != vm]
            with_ = f" together with {', '.join(others)}" if others else ""
            yield MoveAdvice(
                vm=vm,
                source=source,
                target=target,
                code=self._code(move),
                priority=_priority(move, self._together),
                reason=f"{loads}: {self._purpose(move)}{with_}",
                gain=gain,
                cost=cost,
                risk=risk,
                considered=considered,
            )

    def _code(self, move: UnitMove) -> BalanceCode:
        if move.relief is None:
            return BalanceCode.BALANCE
        return BalanceCode.RELIEF if move.source == move.relieved else BalanceCode.FREE_CAPACITY

    def _purpose(self, move: UnitMove) -> str:
        """Return what the move is for, in words."""
        if move.relief is None:
            return "the move reduces the imbalance"
        host = self._state.host_ids[move.relieved]
        if move.source == move.relieved:
            return f"the move relieves {host}"
        return f"the move makes room for a VM of {host}, which is overloaded"

    def _loads(self, moves: Sequence[UnitMove]) -> list[str]:
        """Return the loads of both hosts before each move.

        A relief move shows the demand, because an entitlement hides what is missing.
        """
        arrays = self._state.arrays
        phrases = self._phrases(moves, arrays.host_load, arrays.load)
        if not any(move.relief for move in moves):
            return phrases
        demands = self._phrases(moves, arrays.host_usable, arrays.usable)
        return [
            phrase if move.relief is None else demand
            for move, phrase, demand in zip(moves, phrases, demands, strict=True)
        ]

    def _phrases(self, moves: Sequence[UnitMove], on_host: Floats, of_unit: Floats) -> list[str]:
        """Return the shares of both hosts before each move; computed backwards from the end."""
        arrays, phrases = self._state.arrays, []
        rows = sorted({row for move in moves for row in (move.source, move.target)})
        load = dict(zip(rows, on_host[rows, :2].tolist(), strict=True))
        capacity = dict(zip(rows, arrays.capacity[rows, :2].tolist(), strict=True))
        for move in reversed(moves):
            for resource, amount in enumerate(of_unit[move.unit, :2].tolist()):
                load[move.source][resource] += amount
                load[move.target][resource] -= amount
            hosts = [
                f"{self._state.host_ids[row]} {load[row][0] / capacity[row][0]:.0%} CPU, "
                f"{load[row][1] / capacity[row][1]:.0%} memory"
                for row in (move.source, move.target)
            ]
            phrases.append("; ".join(hosts))
        return phrases[::-1]

    def _figures(
        self, move: UnitMove
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Return gain while demand stays, cost, and risk of a move."""
        arrays = self._state.arrays
        units = ("cpu_mhz_s", "memory_mib_s", *self._state.resources[2:])
        stable_s = cost_benefit.stable_duration_s(arrays, move.unit, move.target)
        relieved = cost_benefit.source_relief(arrays, move.unit)
        evenness, demand, price = cost_benefit.move_worth(
            arrays, self._search.totals, move.unit, move.target, move.gain, relieved
        )
        gain = {
            "imbalance": move.gain,
            "host_s": _rounded(evenness + demand),
            "evenness_host_s": _rounded(evenness),
            "demand_host_s": _rounded(demand),
        }
        cost = {"seconds": float(arrays.move_s[move.unit])}
        cost["host_s"] = _rounded(price)
        cost["cpu_mhz_s"] = cost_benefit.migration_cost(arrays, move.unit, 0)
        cost["memory_mib"] = float(
            sum(self._snapshot.vms[vm].memory_mib for vm in self._state.members[move.unit])
        )
        risk = {"stable_s": float(stable_s)}
        for resource, unit in enumerate(units):
            now, worst = cost_benefit.target_burden(arrays, move.unit, move.target, resource)
            rest_s = arrays.cost_model.horizon_s - stable_s
            gain[unit] = _rounded((relieved[resource, 0] - now) * stable_s)
            risk[unit] = _rounded((relieved[resource, 1] - worst) * rest_s)
        return gain, cost, risk

    def _considered(self, move: UnitMove) -> Iterator[Rejection]:
        """Yield the other hosts with the largest gains, and why they were not chosen."""
        ratings = self._search.ratings(move.unit, self._search.measure_imbalance())
        others = [rating for rating in ratings if rating.host != move.target and rating.gain > 0]
        for rating in [rating for rating in others if rating.code in OBSTACLE_CODES][
            :ALTERNATIVES_MAX
        ]:
            code, why = OBSTACLE_CODES[rating.code]
            detail = f"imbalance {-rating.gain:+.4f}; {why}"
            yield Rejection(
                subject=str(self._state.host_ids[rating.host]), code=code, detail=detail
            )


_RELIEF_GAINS: Final = ("cpu_overload_mhz", "memory_overload_mib")
"""The keys of the overload that a relief move takes away."""


def _priority(move: UnitMove, together: int) -> int:
    """Return the priority of a move among so many hosts."""
    return move_priority(move.before, together) if move.relief is None else RELIEF_PRIORITY


def _rounded(figure: float) -> float:
    """Return a figure rounded to 3 digits, without a negative zero."""
    return round(float(figure), 3) + 0.0


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
        self._relief = OverloadRelief(state, search, snapshot.settings.balance.stable_s_min)
        self._estimates = estimates
        self._builder = IntentBuilder(snapshot, estimates)
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
        before, overload_before = self._search.measure_imbalance(), self._state.overload()
        for _ in range(GATE_ATTEMPTS_MAX):
            # Moves below the threshold are found again in each attempt; refused ones are pinned and
            # are not.
            self._rejected = [
                rejection for rejection in self._rejected if rejection.code == "gate-refuses"
            ]
            urgent = self._urgent(self._find_moves())
            moves = self._filter_by_gate(urgent, repair)
            if len(moves) == len(urgent):
                return moves
            # The imbalance with only the accepted moves, before they are undone for the next
            # attempt.
            after, overload = self._search.measure_imbalance(), self._state.overload()
            for move in reversed(moves):
                self._search.undo(move)
        # The attempts are used up. What is left was chosen together with refused moves and is kept
        # only if it helps by itself: some host is less overloaded and none more, or all are more
        # even.
        relieves = bool((overload < overload_before).any())
        if (overload > overload_before).any() or not (relieves or after < before):
            return []
        for move in moves:
            self._search.redo(move)
        return moves

    def _find_moves(self) -> list[UnitMove]:
        """Return relief moves, then moves that reduce the imbalance."""
        limit = self._search.moves_max
        relief = self._relief.find_moves(limit)
        return relief + self._search.find_moves(limit - len(relief))

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
            if _priority(move, self.count) <= threshold:
                urgent.append(move)
            else:
                self._reject(move, "below-threshold", detail)
        return urgent

    def _filter_by_gate(self, moves: list[UnitMove], repair: RepairResult) -> list[UnitMove]:
        """Return the moves that pass the gate; a unit moves as a whole or not at all."""
        members, hosts = self._state.members, self._state.host_ids
        targets = [(vm, hosts[move.target]) for move in moves for vm in members[move.unit]]
        if (
            # ``repair.placement_state`` is the state before the moves only if the repair has moved
            # nothing.
            not repair.moves
            and not repair.faults
            and passes_in_any_order(repair.placement_state, targets)
        ):
            return moves
        passing = GateFilter(self._snapshot, repair.repairs)
        # Without one VM of a unit the rest is dropped too, which can change what the gate says of
        # the other units. It ends, because each round drops at least one move.
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
        return [
            self._builder.move(Transfer(vm, source, target))
            for vm in self._state.members[move.unit]
        ]
