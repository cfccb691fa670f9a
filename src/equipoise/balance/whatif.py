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
    new: Sequence[VmId] = (),
    seed: int = 0,
) -> Imagined:
    """Let hosts go and fail, start what was lost and what is new, and let a pass follow."""
    lost = [
        vm
        for host in fail
        for vm in snapshot.residents[host]
        if snapshot.vms[vm].state is VmState.RUNNING and not snapshot.vms[vm].agent
    ]
    for host in fail:
        snapshot = transition.apply(snapshot, HostFailed(at_ms=snapshot.at_ms, host=host))
    going = {
        host: snapshot.hosts[host].but(requested=HostWish.MAINTENANCE)
        for host in remove
        if snapshot.hosts[host].state is HostState.ON
    }
    snapshot = replace(snapshot, hosts=FrozenMap({**snapshot.hosts, **going}))
    restarts = place(snapshot, lost, estimates, known=True)
    after = _carried_out(snapshot, restarts)
    starts = place(after, new, estimates)
    after = _carried_out(after, starts)
    done = advise(after, estimates, seed=seed, alternatives=True)
    leaving = {move.vm for move in done.advice.moves}
    held = [
        vm
        for host in remove
        for vm in after.residents[host]
        if vm not in leaving and not after.vms[vm].agent
    ]
    nowhere = [vm for vm in (*lost, *new) if after.vms[vm].host is None]
    return Imagined(done=done, restarts=_both(restarts, starts), unplaced=(*nowhere, *held))


def _carried_out(snapshot: Snapshot, placement: Placement) -> Snapshot:
    """The cluster once VMs have started, and hosts been woken for them."""
    vms = {move.vm: snapshot.vms[move.vm].but(host=move.target) for move in placement.moves}
    for one in placement.placed:
        vms[one.vm] = snapshot.vms[one.vm].but(state=VmState.RUNNING, host=one.host)
    hosts = {host: snapshot.hosts[host].but(state=HostState.ON) for host in placement.wakes}
    return replace(
        snapshot,
        hosts=FrozenMap({**snapshot.hosts, **hosts}),
        vms=FrozenMap({**snapshot.vms, **vms}),
    )


def _both(one: Placement, other: Placement) -> Placement:
    return Placement(
        placed=one.placed + other.placed,
        moves=one.moves + other.moves,
        wakes=one.wakes + other.wakes,
        faults=one.faults + other.faults,
        intents=one.intents + other.intents,
    )
