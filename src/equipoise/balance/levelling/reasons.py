"""Reasons for moves: what each gains, costs and risks, and what else could have been done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from equipoise.balance.advice import Advised, Code, priority
from equipoise.balance.levelling import worth
from equipoise.balance.levelling.assess import Assessment
from equipoise.balance.levelling.climber import Climber, Move
from equipoise.balance.levelling.field import (
    APART,
    CLOSED,
    COSTLY,
    CROWDED,
    FINE,
    FORBIDDEN,
    FULL,
    SMALL,
    UNLIKE,
)
from equipoise.model.plan import Rejection
from equipoise.model.snapshot import Snapshot

NAMES: Final = {
    FINE: ("second_best", "it gains less"),
    CLOSED: ("closed", "nobody may come to it"),
    FORBIDDEN: ("rule", "a rule keeps it off"),
    SMALL: ("too_few_cores", "it has fewer cores than the VM"),
    FULL: ("no_room", "its reservation does not fit"),
    APART: ("keep_apart", "it must stay apart from somebody there"),
    UNLIKE: ("ft_incompatible", "it does not fit the host of the other half"),
    CROWDED: ("crowded", "it would then have more to give than it has"),
    COSTLY: ("not_worth_it", "it costs more than it gains"),
}
SHOWN: Final = 3


class Reasons:
    """Goes through the moves once more, in their order, and looks at each as it was chosen."""

    def __init__(
        self, snapshot: Snapshot, state: Assessment, climber: Climber, together: int
    ) -> None:
        self._snapshot, self._state, self._climber = snapshot, state, climber
        self._together = together

    def of(self, moves: Sequence[Move], *, alternatives: bool) -> list[Advised]:
        """Say why each move is made.

        With ``alternatives``, also what it is worth, and where else it could have gone.
        """
        found: list[Advised] = []
        said = self._loads(moves)
        for move in reversed(moves) if alternatives else ():
            self._climber.take_back(move)
        for move, loads in zip(moves, said, strict=True):
            found += self._advised(move, loads, alternatives)
            if alternatives:
                self._climber.take_again(move)
        return found

    def _advised(self, move: Move, loads: str, alternatives: bool) -> Iterator[Advised]:
        state = self._state
        gain, cost = {"imbalance": move.gain}, {"seconds": float(state.field.move_s[move.unit])}
        risk: dict[str, float] = {}
        considered: tuple[Rejection, ...] = ()
        if alternatives:
            considered = tuple(self._considered(move))
            gain, cost, risk = self._figures(move)
        source, target = state.host_ids[move.source], state.host_ids[move.target]
        names = state.members[move.unit]
        for number, vm in enumerate(names):
            if number == 1:  # what the unit gains and costs as a whole stands at its first member
                gain, cost, risk = dict.fromkeys(gain, 0.0), dict.fromkeys(cost, 0.0), {}
            others = [name for name in names if name != vm]
            with_ = f" together with {', '.join(others)}" if others else ""
            yield Advised(
                vm=vm,
                source=source,
                target=target,
                code=Code.BALANCE,
                priority=priority(move.before, self._together),
                reason=f"{loads}: it evens them out{with_}",
                gain=gain,
                cost=cost,
                risk=risk,
                considered=considered,
            )

    def _loads(self, moves: Sequence[Move]) -> list[str]:
        """How full the two hosts of each move were before it, found from the end backwards."""
        field, found = self._state.field, []
        rows = sorted({row for move in moves for row in (move.source, move.target)})
        load = dict(zip(rows, field.host_load[rows, :2].tolist(), strict=True))
        full = dict(zip(rows, field.capacity[rows, :2].tolist(), strict=True))
        for move in reversed(moves):
            for resource, part in enumerate(field.load[move.unit, :2].tolist()):
                load[move.source][resource] += part
                load[move.target][resource] -= part
            said = [
                f"{self._state.host_ids[row]} {load[row][0] / full[row][0]:.0%} CPU, "
                f"{load[row][1] / full[row][1]:.0%} memory"
                for row in (move.source, move.target)
            ]
            found.append("; ".join(said))
        return found[::-1]

    def _figures(self, move: Move) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """What is gained while things stay as they are, what it costs, and what may come of it."""
        field = self._state.field
        units = ("cpu_mhz_s", "memory_mib_s", *self._state.resources[2:])
        stable_s = worth.stable(field, move.unit, move.target)
        relieved = worth.reliefs(field, move.unit)
        gain = {"imbalance": move.gain}
        cost = {"seconds": float(field.move_s[move.unit])}
        cost["cpu_mhz_s"] = worth.expense(field, move.unit, 0)
        cost["memory_mib"] = float(
            sum(self._snapshot.vms[vm].memory_mib for vm in self._state.members[move.unit])
        )
        risk = {"stable_s": float(stable_s)}
        for resource, unit in enumerate(units):
            now, worst = worth.burden(field, move.unit, move.target, resource)
            rest_s = field.weighing.horizon_s - stable_s
            gain[unit] = _zeroed((relieved[resource, 0] - now) * stable_s)
            risk[unit] = _zeroed((relieved[resource, 1] - worst) * rest_s)
        return gain, cost, risk

    def _considered(self, move: Move) -> Iterator[Rejection]:
        """The other hosts that would have gained most, and why it is not one of them."""
        verdicts = self._climber.verdicts(move.unit, self._climber.measure())
        others = [one for one in verdicts if one.host != move.target and one.gain > 0]
        for one in [one for one in others if one.code in NAMES][:SHOWN]:
            code, why = NAMES[one.code]
            detail = f"imbalance {-one.gain:+.4f}; {why}"
            yield Rejection(subject=str(self._state.host_ids[one.host]), code=code, detail=detail)


def _zeroed(figure: float) -> float:
    """A figure without dust."""
    return round(float(figure), 3) + 0.0
