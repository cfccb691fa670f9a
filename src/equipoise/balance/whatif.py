"""What if: the same pass on a cluster from which hosts are taken, by and by or all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.balance.advise import Pass, advise
from equipoise.balance.placement import Placement, place
from equipoise.model.change import transition
from equipoise.model.estimate import Estimates
from equipoise.model.event import HostFailed
from equipoise.model.host import HostState, HostWish
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """What a pass would do then, after everything that was lost has been started elsewhere."""

    done: Pass
    restarts: Placement
    unplaced: tuple[VmId, ...]
    """The VMs that would run nowhere, or could not leave."""


def imagine(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    remove: Sequence[HostId] = (),
    fail: Sequence[HostId] = (),
    seed: int = 0,
) -> Imagined:
    """Let hosts go and fail, start elsewhere what was lost, and let a pass follow."""
    lost = [
        vm
        for host in fail
        for vm in snapshot.residents[host]
        if snapshot.vms[vm].state is VmState.RUNNING and not snapshot.vms[vm].agent
    ]
    for host in fail:
        snapshot = transition.apply(snapshot, HostFailed(at_ms=snapshot.at_ms, host=host))
    restarts = place(snapshot, lost, estimates, known=True)
    started = {
        one.vm: snapshot.vms[one.vm].but(state=VmState.RUNNING, host=one.host)
        for one in restarts.placed
    }
    for move in restarts.moves:
        started[move.vm] = snapshot.vms[move.vm].but(host=move.target)
    hosts = {
        host: snapshot.hosts[host].but(requested=HostWish.MAINTENANCE)
        for host in remove
        if snapshot.hosts[host].state is HostState.ON
    }
    hosts |= {host: snapshot.hosts[host].but(state=HostState.ON) for host in restarts.wakes}
    after = replace(
        snapshot,
        hosts=FrozenMap({**snapshot.hosts, **hosts}),
        vms=FrozenMap({**snapshot.vms, **started}),
    )
    done = advise(after, estimates, seed=seed, alternatives=True)
    going = {move.vm for move in done.advice.moves}
    held = [
        vm
        for host in remove
        for vm in after.residents[host]
        if vm not in going and not after.vms[vm].agent
    ]
    nowhere = [vm for vm in lost if vm not in started]
    return Imagined(done=done, restarts=restarts, unplaced=(*nowhere, *held))
