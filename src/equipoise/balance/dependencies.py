"""Which moves must wait for which: those that take a place which another one leaves."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from equipoise.balance.advice import Advised
from equipoise.balance.mending.standing import Standing
from equipoise.model.quantity import HostId, VmId

Fits = Callable[[Advised], bool]


def dependencies(standing: Standing, moves: Sequence[Advised]) -> tuple[Advised, ...]:
    """Put moves into an order in which each finds its place free, and note what each waits for.

    ``standing`` is how things stand before any of them. Whoever comes counts from the start of the
    move on, and whoever goes until its end.
    """
    return tuple(_Sequence(standing, moves).run())


class _Sequence:
    def __init__(self, standing: Standing, moves: Sequence[Advised]) -> None:
        self._standing = standing
        """How things stand once those that were put into order are done."""
        self._queue = deque(moves)
        self._parked: dict[HostId, list[Advised]] = defaultdict(list)
        """Moves that wait until somebody leaves their target."""
        self._left: dict[HostId, list[VmId]] = defaultdict(list)

    def run(self) -> Iterator[Advised]:
        while self._queue or any(self._parked.values()):
            if not self._queue:
                yield self._forced()
                continue
            move = self._queue.popleft()
            if self._fits(move):
                yield self._taken(move, self._fits)
            else:
                self._parked[move.target].append(move)

    def _forced(self) -> Advised:
        """One that comes too early in any case; best if it has room, and is only too close."""
        waiting = [move for moves in self._parked.values() for move in moves]
        move = next(filter(self._has_room, waiting), waiting[0])
        self._parked[move.target].remove(move)
        return self._taken(move, self._has_room if self._has_room(move) else lambda _: True)

    def _taken(self, move: Advised, fits: Fits) -> Advised:
        needed = self._needed(move, fits)
        self._standing.hold(move.vm, move.target)
        self._standing.release(move.vm, move.source)
        self._left[move.source].append(move.vm)
        self._queue.extendleft(reversed(self._parked.pop(move.source, [])))
        return replace(move, after=tuple(needed)) if needed else move

    def _needed(self, move: Advised, fits: Fits) -> list[VmId]:
        """Of those that have left, the few that must have left for a VM to come."""
        standing, host, gone = self._standing, move.target, self._left[move.target]
        for other in gone:
            standing.hold(other, host)
        for other in gone:
            if fits(move):
                break
            standing.release(other, host)
        needed = []
        for other in gone:
            if other in standing.residents[host]:
                continue
            standing.hold(other, host)
            if not fits(move):
                standing.release(other, host)
                needed.append(other)
        for other in gone:
            if other not in needed:
                standing.release(other, host)
        return needed

    def _fits(self, move: Advised) -> bool:
        return self._has_room(move) and not self._standing.clashes(move.vm, move.target)

    def _has_room(self, move: Advised) -> bool:
        return not self._standing.lacks(move.vm, move.target)
