"""Reasons for moves: gain, cost and risk of each move, and the alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from equipoise.balance.advice import BalanceCode, MoveAdvice, move_priority
from equipoise.balance.rebalance import cost_benefit
from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.cluster_arrays import (
    COST_EXCEEDS_BENEFIT,
    FT_INCOMPATIBLE,
    HOST_CLOSED,
    MAKES_SCARCE,
    MUST_BE_APART,
    NO_CAPACITY,
    NO_OBSTACLE,
    RULE_FORBIDS,
    TOO_FEW_CORES,
)
from equipoise.balance.rebalance.greedy import GreedySearch, UnitMove
from equipoise.model.plan import Rejection
from equipoise.model.state.snapshot import Snapshot

OBSTACLE_CODES: Final = {
    NO_OBSTACLE: ("second-best", "the gain is smaller"),
    HOST_CLOSED: ("host-closed", "the host accepts no VMs"),
    RULE_FORBIDS: ("rule-forbids", "a rule forbids the host"),
    TOO_FEW_CORES: ("too-few-cores", "the host has fewer cores than the VM has vCPUs"),
    NO_CAPACITY: ("no-capacity", "the reservation does not fit"),
    MUST_BE_APART: ("keep-apart", "a rule keeps it apart from a VM there"),
    FT_INCOMPATIBLE: ("ft-incompatible", "the host is not compatible with that of the FT partner"),
    MAKES_SCARCE: ("makes-scarce", "the load would exceed the capacity of the host"),
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
            considered = tuple(self._considered(move))
            gain, cost, risk = self._figures(move)
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
                code=BalanceCode.BALANCE,
                priority=move_priority(move.before, self._together),
                reason=f"{loads}: the move reduces the imbalance{with_}",
                gain=gain,
                cost=cost,
                risk=risk,
                considered=considered,
            )

    def _loads(self, moves: Sequence[UnitMove]) -> list[str]:
        """Return the loads of both hosts before each move; computed backwards from the end."""
        arrays, phrases = self._state.arrays, []
        rows = sorted({row for move in moves for row in (move.source, move.target)})
        load = dict(zip(rows, arrays.host_load[rows, :2].tolist(), strict=True))
        capacity = dict(zip(rows, arrays.capacity[rows, :2].tolist(), strict=True))
        for move in reversed(moves):
            for resource, amount in enumerate(arrays.load[move.unit, :2].tolist()):
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
        gain = {"imbalance": move.gain}
        cost = {"seconds": float(arrays.move_s[move.unit])}
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


def _rounded(figure: float) -> float:
    """Return a figure rounded to 3 digits, without a negative zero."""
    return round(float(figure), 3) + 0.0
