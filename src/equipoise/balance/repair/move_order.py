"""The order of moves: whether moves can run one after the other, and which move waits for which.

Two VMs on full hosts cannot swap: each waits until the other has left. The gate refuses such moves,
so a repair search avoids them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from equipoise.balance.advice import MoveAdvice
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.model.quantity import HostId, VmId


class VmAssignment(NamedTuple):
    """A VM, the host it is assigned to, and its host before."""

    vm: VmId
    host: HostId
    before: HostId | None


def can_run_in_sequence(
    placement_state: PlacementState, assignments: Sequence[VmAssignment]
) -> bool:
    """Return whether the assignments can run one after the other, in some order.

    ``placement_state`` is the state after all of them.
    """
    pending = [move for move in assignments if move.before is not None]
    if len(pending) <= 1:
        return True
    replay = _MoveReplay(placement_state, assignments)
    while pending:
        waiting = [move for move in pending if not replay.try_move(*move)]
        if len(waiting) == len(pending):
            return False
        pending = waiting
    return True


class _MoveReplay:
    """The hosts of VMs and the free capacity, starting from before the assignments."""

    def __init__(
        self, placement_state: PlacementState, assignments: Sequence[VmAssignment]
    ) -> None:
        self._placement_state = placement_state
        self._host_of = {vm: before for vm, _, before in assignments}
        hosts = {host for move in assignments for host in move[1:] if host is not None}
        self._capacity = placement_state.capacity.excerpt(hosts)
        for vm, host, before in assignments:
            self._capacity.release(placement_state.claims[vm], host)
            if before is not None:
                self._capacity.commit(placement_state.claims[vm], before)

    def try_move(self, vm: VmId, host: HostId, before: HostId | None) -> bool:
        """Move a VM if its target has capacity now; return whether it moved."""
        placement_state, pair = self._placement_state, self._placement_state.vms[vm].ft_pair
        claim = placement_state.claims[vm]
        if not self._capacity.fits(claim, host):
            return False
        if pair is not None and self._host_of.get(pair, placement_state.host_of.get(pair)) == host:
            return False
        self._capacity.commit(claim, host)
        if before is not None:
            self._capacity.release(claim, before)
        self._host_of[vm] = host
        return True


Fits = Callable[[MoveAdvice], bool]


def order_moves(
    placement_state: PlacementState, moves: Sequence[MoveAdvice]
) -> tuple[MoveAdvice, ...]:
    """Return the moves in an order in which each finds free capacity, with what each waits for.

    ``placement_state`` is the state before all moves. A migrating VM holds capacity on its target
    from the start and on its source until the end.
    """
    return tuple(_MoveSequencer(placement_state, moves).run())


class _MoveSequencer:
    """Takes moves one by one; a move that does not fit waits until a VM leaves its target."""

    def __init__(self, placement_state: PlacementState, moves: Sequence[MoveAdvice]) -> None:
        self._placement_state = placement_state
        """The state after the moves that were taken so far."""
        self._queue = deque(moves)
        self._parked: dict[HostId, list[MoveAdvice]] = defaultdict(list)
        """By target host, the moves that wait until a VM leaves it."""
        self._departed: dict[HostId, list[VmId]] = defaultdict(list)

    def run(self) -> Iterator[MoveAdvice]:
        while self._queue or any(self._parked.values()):
            if not self._queue:
                yield self._force_next()
                continue
            move = self._queue.popleft()
            if self._fits(move):
                yield self._take(move, self._fits)
            else:
                self._parked[move.target].append(move)

    def _force_next(self) -> MoveAdvice:
        """Take a move that does not fit; prefer one that has capacity and only breaks a rule."""
        waiting = [move for moves in self._parked.values() for move in moves]
        move = next(filter(self._has_capacity, waiting), waiting[0])
        self._parked[move.target].remove(move)
        return self._take(move, self._has_capacity if self._has_capacity(move) else lambda _: True)

    def _take(self, move: MoveAdvice, fits: Fits) -> MoveAdvice:
        needed = self._needed(move, fits)
        self._placement_state.commit(move.vm, move.target)
        self._placement_state.release(move.vm, move.source)
        self._departed[move.source].append(move.vm)
        self._queue.extendleft(reversed(self._parked.pop(move.source, [])))
        return replace(move, after=tuple(needed)) if needed else move

    def _needed(self, move: MoveAdvice, fits: Fits) -> list[VmId]:
        """Return the departed VMs whose departure the move needs; as few as possible."""
        placement_state, host, departed = (
            self._placement_state,
            move.target,
            self._departed[move.target],
        )
        for other in departed:
            placement_state.commit(other, host)
        for other in departed:
            if fits(move):
                break
            placement_state.release(other, host)
        needed = []
        for other in departed:
            if other in placement_state.residents[host]:
                continue
            placement_state.commit(other, host)
            if not fits(move):
                placement_state.release(other, host)
                needed.append(other)
        for other in departed:
            if other not in needed:
                placement_state.release(other, host)
        return needed

    def _fits(self, move: MoveAdvice) -> bool:
        return self._has_capacity(move) and not self._placement_state.conflicts(
            move.vm, move.target
        )

    def _has_capacity(self, move: MoveAdvice) -> bool:
        return self._placement_state.fits(move.vm, move.target)
