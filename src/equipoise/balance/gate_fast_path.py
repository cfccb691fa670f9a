"""Fast path of the gate check: moves that pass the gate in any order.

If every moved VM fits on its target and conflicts with no VM there while no VM has left yet, every
order of the moves is valid. That holds for most passes and costs a hundredth of a rehearsal. The
gate still judges the plan before it is executed.
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.balance.repair.placement_state import PlacementState
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.rules import broken_rules


def passes_in_any_order(
    placement_state: PlacementState, moves: Sequence[tuple[VmId, HostId]]
) -> bool:
    """Return whether the moves certainly pass the gate in any order; ``False`` if unknown.

    ``placement_state`` is the state before the moves, without problems.
    """
    rules = placement_state.rules
    if (
        rules.gate_only_rules
        or rules.ft_labels
        or placement_state.problems
        or placement_state.snapshot.in_flight
    ):
        return False
    reserves = {rule for rule, _ in rules.failover_counts}
    if reserves and any(broken_rules(placement_state.snapshot, reserves)):
        return False  # no move repairs the reserve, and the gate refuses moves until it holds
    moving = {vm for vm, _ in moves}
    if any(not moving.isdisjoint(group.vms) for group in rules.together):
        return False  # VMs that must be together are apart while they migrate
    committed: list[tuple[VmId, HostId]] = []
    try:
        for vm, host in moves:
            if not placement_state.fits(vm, host) or placement_state.conflicts(vm, host):
                return False
            placement_state.commit(vm, host)
            committed.append((vm, host))
        return True
    finally:
        for vm, host in committed:
            placement_state.release(vm, host)
