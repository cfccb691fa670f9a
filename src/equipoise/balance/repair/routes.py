"""Routes: the moves by which VMs reach their targets where no order of single moves exists.

Two VMs on full hosts cannot swap: each waits until the other has left. One of them is parked on a
third host, and moves on once its target has room. The exact planner finds such routes too, but its
proof that there is none takes longer than a pass may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from equipoise.balance.advice import Transfer
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.model.quantity import HostId, VmId

TRIALS_MAX: Final = 500
"""So many VMs are parked on trial in one search."""


def find_routes(
    placement_state: PlacementState, targets: Mapping[VmId, HostId]
) -> tuple[Transfer, ...]:
    """Return the moves to the targets in an order in which they have capacity; empty if unknown.

    ``placement_state`` is the state before all moves; it is used up. A VM is parked once at most.
    """
    search = _RouteSearch(placement_state, targets)
    return tuple(search.legs) if search.run() else ()


class _RouteSearch:
    """Moves what can move, and parks a VM whenever nothing can."""

    def __init__(self, placement_state: PlacementState, targets: Mapping[VmId, HostId]) -> None:
        self._state, self._targets = placement_state, targets
        self._pending = dict.fromkeys(targets)
        self._parked: set[VmId] = set()
        self._trials = 0
        self.legs: list[Transfer] = []

    def run(self) -> bool:
        """Find the legs; on failure, restore the state before the call."""
        taken = self._advance()
        if not self._pending:
            return True
        for vm, host in self._parkings():
            self._trials += 1
            if self._trials > TRIALS_MAX:
                break
            self._take(vm, host, parking=True)
            # A parking that lets no other VM move is of no use.
            useful = any(other != vm and self._can_move(other) for other in self._pending)
            if useful and self.run():
                return True
            self._undo(1)
        self._undo(taken)
        return False

    def _advance(self) -> int:
        """Move all VMs that can reach their targets now, one after the other; return how many."""
        taken, before = 0, -1
        while taken > before:
            before = taken
            for vm in [vm for vm in self._pending if self._can_move(vm)]:
                if self._can_move(vm):  # an earlier one may have taken the capacity
                    self._take(vm, self._targets[vm], parking=False)
                    taken += 1
        return taken

    def _can_move(self, vm: VmId) -> bool:
        target = self._targets[vm]
        return self._state.fits(vm, target) and not self._state.conflicts(vm, target)

    def _parkings(self) -> Iterator[tuple[VmId, HostId]]:
        """Yield what could be parked where: small VMs first, on hosts with little demand."""
        state = self._state
        vms = [vm for vm in self._pending if vm not in self._parked]
        vms.sort(key=lambda vm: (state.vms[vm].memory_mib, vm))
        hosts = sorted(state.open_hosts(), key=lambda host: (state.pressure(host), host))
        for vm in vms:
            source = state.host_of[vm]
            assert source is not None, "only running VMs migrate"
            # A rule that the VM breaks where it is now stays broken, but gets no worse.
            broken = set(state.banning_rules(vm, source))
            for host in hosts:
                if (
                    host not in {source, self._targets[vm]}
                    and state.vms[vm].vcpus <= state.snapshot.hosts[host].cores
                    and broken.issuperset(state.banning_rules(vm, host))
                    and not state.conflicts(vm, host)
                    and state.fits(vm, host)
                ):
                    yield vm, host

    def _take(self, vm: VmId, host: HostId, *, parking: bool) -> None:
        source = self._state.host_of[vm]
        assert source is not None, "only running VMs migrate"
        # A leg waits for the VM itself, and for those that have left its target.
        before = [leg for leg in self.legs if leg.vm == vm or leg.source == host]
        leg = Transfer(
            vm,
            source,
            host,
            parking,
            after=tuple(dict.fromkeys(known.vm for known in before if not known.parking)),
            after_parking=tuple(dict.fromkeys(known.vm for known in before if known.parking)),
        )
        self.legs.append(leg)
        self._state.place(vm, host)
        if parking:
            self._parked.add(vm)
        else:
            del self._pending[vm]

    def _undo(self, count: int) -> None:
        for _ in range(count):
            leg = self.legs.pop()
            self._state.place(leg.vm, leg.source)
            if leg.parking:
                self._parked.discard(leg.vm)
            else:
                self._pending[leg.vm] = None
