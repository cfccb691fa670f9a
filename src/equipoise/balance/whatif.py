"""What-if: the same balance pass on a cluster with hosts removed, failed or VMs added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.balance.run_pass import PassResult, run_balance_pass
from equipoise.model.estimate import Estimates
from equipoise.model.event import HostFailed
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfResult:
    """The pass after the change, and the restarts of the VMs that were lost."""

    done: PassResult
    restarts: PlacementAdvice
    unplaced: tuple[VmId, ...]
    """The VMs without a host, and the VMs that cannot leave a removed host."""


def run_whatif(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    remove: Sequence[HostId] = (),
    fail: Sequence[HostId] = (),
    new: Sequence[VmId] = (),
    seed: int = 0,
) -> WhatIfResult:
    """Remove and fail hosts, start lost and new VMs, then run a balance pass."""
    lost_vms = [
        vm
        for host in fail
        for vm in snapshot.residents[host]
        if snapshot.vms[vm].state is VmState.RUNNING and not snapshot.vms[vm].agent
    ]
    for host in fail:
        snapshot = transition.apply(snapshot, HostFailed(at_ms=snapshot.at_ms, host=host))
    removed = {
        host: snapshot.hosts[host].but(requested=RequestedHostState.MAINTENANCE)
        for host in remove
        if snapshot.hosts[host].state is HostState.ON
    }
    snapshot = replace(snapshot, hosts=FrozenMap({**snapshot.hosts, **removed}))
    restarts = place_vms(snapshot, lost_vms, estimates, known=True)
    after = _after_placement(snapshot, restarts)
    starts = place_vms(after, new, estimates)
    after = _after_placement(after, starts)
    result = run_balance_pass(after, estimates, seed=seed, alternatives=True)
    leaving = {move.vm for move in result.advice.moves}
    staying = [
        vm
        for host in remove
        for vm in after.residents[host]
        if vm not in leaving and not after.vms[vm].agent
    ]
    unplaced = [vm for vm in (*lost_vms, *new) if after.vms[vm].host is None]
    return WhatIfResult(
        done=result, restarts=_joined(restarts, starts), unplaced=(*unplaced, *staying)
    )


def _after_placement(snapshot: Snapshot, placement: PlacementAdvice) -> Snapshot:
    """Return the snapshot after the moves, power-ons and starts of a placement."""
    vms = {move.vm: snapshot.vms[move.vm].but(host=move.target) for move in placement.moves}
    for start in placement.placed:
        vms[start.vm] = snapshot.vms[start.vm].but(state=VmState.RUNNING, host=start.host)
    hosts = {host: snapshot.hosts[host].but(state=HostState.ON) for host in placement.wakes}
    return replace(
        snapshot,
        hosts=FrozenMap({**snapshot.hosts, **hosts}),
        vms=FrozenMap({**snapshot.vms, **vms}),
    )


def _joined(first: PlacementAdvice, second: PlacementAdvice) -> PlacementAdvice:
    """Return both advices as one."""
    return PlacementAdvice(
        placed=first.placed + second.placed,
        moves=first.moves + second.moves,
        wakes=first.wakes + second.wakes,
        faults=first.faults + second.faults,
        intents=first.intents + second.intents,
    )
