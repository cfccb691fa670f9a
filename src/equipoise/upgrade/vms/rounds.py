"""Rounds: which moves of a plan can start side by side now, within limits and reserves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from equipoise.model.quantity import GroupId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.graph.host_partitions import HostPartitions, scaling_areas
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.gate import whole_blocks
from equipoise.upgrade.vms.reserves import FreeCapacity, ceil_div, expected_growth, reserve_hosts
from equipoise.upgrade.vms.vm_batch import failover_reserve, vm_batch_risk_s


def within_disturbance(state: UpgradeState, moves: list[VmMove]) -> tuple[VmMove, ...]:
    """Return the moves that may disturb their anti-affinity groups at the same time."""
    disturbed: Counter[GroupId] = Counter()
    now: list[VmMove] = []
    for move in moves:
        groups = state.cluster.placements[move.vm].groups
        if any(disturbed[group] >= state.cluster.disturbed_max[group] for group in groups):
            continue
        disturbed.update(groups)
        now.append(move)
    return tuple(now)


def with_free_target(state: UpgradeState, moves: Sequence[VmMove]) -> list[VmMove]:
    """Return the moves whose target has free capacity now. The others wait."""
    capacity = FreeCapacity(state, dict.fromkeys(move.target for move in moves))
    now: list[VmMove] = []
    for move in moves:
        groups = state.cluster.placements[move.vm].groups
        vm = state.cluster.vms[move.vm]
        if capacity.fits(move.target, groups, vm):
            capacity.commit(move.target, groups, vm)
            now.append(move)
    return now


def within_reserves(
    state: UpgradeState, host_partitions: HostPartitions, moves: tuple[VmMove, ...]
) -> tuple[VmMove, ...]:
    """Return the longest prefix of the moves that keeps the reserves for scaling and failures.

    A moving VM takes capacity on two hosts, but only the failure of its source affects it. So the
    reserve for failures is computed with the VMs at their targets.
    """
    # Moves are measured against the present shortage: reserves that are short already must not
    # block the moves that could restore them.
    missing, short = _reserve_shortage(state, host_partitions, ())

    def is_safe(prefix: tuple[VmMove, ...]) -> bool:
        moving, _ = _reserve_shortage(state, host_partitions, prefix)
        arrived, short_after = _reserve_shortage(after_moves(state, prefix), host_partitions, ())
        return max(moving, arrived) <= missing and short_after <= short

    if is_safe(moves):  # the usual case needs no search
        return moves
    # Binary search: fewer moves never need more reserve.
    low, high = 0, len(moves) - 1
    while low < high:
        middle = ceil_div(low + high, 2)
        low, high = (middle, high) if is_safe(moves[:middle]) else (low, middle - 1)
    return moves[:low]


def next_round(
    state: UpgradeState, host_partitions: HostPartitions, moves: Sequence[VmMove]
) -> tuple[VmMove, ...]:
    """Return the moves of a plan that can start side by side now."""
    now = within_reserves(
        state, host_partitions, within_disturbance(state, with_free_target(state, moves))
    )
    return whole_blocks(state, now)


def can_finish(
    state: UpgradeState, host_partitions: HostPartitions, moves: Sequence[VmMove]
) -> bool:
    """Return whether a plan can finish round by round if no other event happens."""
    remaining = list(moves)
    while remaining:
        now = next_round(state, host_partitions, remaining)
        if not now:
            return False
        state = after_moves(state, now)
        remaining = [move for move in remaining if move not in set(now)]
    return True


def _reserve_shortage(
    state: UpgradeState, host_partitions: HostPartitions, moves: tuple[VmMove, ...]
) -> tuple[int, bool]:
    """Return how many VMs of scaling find no host, and whether any reserve is short."""
    missing, short = 0, False
    for hosts, tenants in scaling_areas(state, host_partitions):
        capacity = FreeCapacity(state, hosts)
        for move in moves:
            if move.target in capacity:
                capacity.commit(move.target, state.cluster.placements[move.vm].groups)
        busy, empty = capacity.by_use(hosts)
        reservation = reserve_hosts(
            state,
            capacity,
            expected_growth(state, tenants, vm_batch_risk_s(state, host_partitions)),
            busy=busy,
            empty=empty,
            failover=failover_reserve(state, host_partitions),
        )
        missing += sum(reservation.missing.values())
        short = short or reservation.short
    return missing, short


def after_moves(state: UpgradeState, moves: Iterable[VmMove]) -> UpgradeState:
    """Return a copy of the state in which the VMs have moved."""
    return replace(state, cluster=state.cluster.after_moves(moves))
