"""The order of moves: whether moves can run one after the other, and which move waits for which.

Two VMs on full hosts cannot swap: each waits until the other has left. The gate refuses such moves,
so a repair search avoids them.

``passes_in_any_order`` is a fast path of the gate check. If every moved VM fits on its target and
conflicts with no VM there while no VM has left yet, every order of the moves is valid. That holds
for most passes and costs a hundredth of a rehearsal. The gate still judges the plan before it is
executed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from equipoise.balance.advice import MoveAdvice
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.rules import rules_about_placement


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
    # The state after the moves is valid, so a single move cannot wait for another.
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
        # The state is the one after the moves; the replay starts from the one before.
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
        # The rule of pairs holds at every moment. Other rules may be broken on the way; the gate
        # judges them.
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
        # A cycle: no order is free of conflicts. A broken keep-apart rule for the time of a move
        # can pass the gate; a lack of capacity cannot.
        move = next(filter(self._has_capacity, waiting), waiting[0])
        self._parked[move.target].remove(move)
        return self._take(move, self._has_capacity if self._has_capacity(move) else lambda _: True)

    def _take(self, move: MoveAdvice, fits: Fits) -> MoveAdvice:
        needed = self._needed(move, fits)
        self._placement_state.commit(move.vm, move.target)
        self._placement_state.release(move.vm, move.source)
        self._departed[move.source].append(move.vm)
        # Moves that waited for this host come next, in their order, before the departure is used by
        # a later move.
        self._queue.extendleft(reversed(self._parked.pop(move.source, [])))
        return replace(move, after=tuple(needed)) if needed else move

    def _needed(self, move: MoveAdvice, fits: Fits) -> list[VmId]:
        """Return the departed VMs whose departure the move needs; as few as possible."""
        placement_state, host, departed = (
            self._placement_state,
            move.target,
            self._departed[move.target],
        )
        # First the shortest run of departures after which the move fits, then without each
        # departure of it that proves unnecessary: the move starts the earlier, the fewer it waits
        # for.
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


def passes_in_any_order(
    placement_state: PlacementState, moves: Sequence[tuple[VmId, HostId]]
) -> bool:
    """Return whether the moves certainly pass the gate in any order; ``False`` if unknown.

    ``placement_state`` is the state before the moves, without problems.
    """
    rules = placement_state.rules
    if (
        # The placement state cannot judge these: rules that only the specification understands,
        # labels of pairs, old problems and capacity that running actions are about to change.
        rules_about_placement(placement_state.snapshot, rules.gate_only_rules)
        or rules.ft_labels
        or placement_state.problems
        or placement_state.snapshot.in_flight
    ):
        return False
    moving = {vm for vm, _ in moves}
    if any(not moving.isdisjoint(group.vms) for group in rules.together):
        return False  # VMs that must be together are apart while they migrate
    committed: list[tuple[VmId, HostId]] = []
    try:
        # Targets fill up while no source is freed. If each move fits in this worst state, it fits
        # in every order.
        for vm, host in moves:
            if not placement_state.fits(vm, host) or placement_state.conflicts(vm, host):
                return False
            placement_state.commit(vm, host)
            committed.append((vm, host))
        return True
    finally:
        # The caller goes on with the same placement state.
        for vm, host in committed:
            placement_state.release(vm, host)
