"""Moves before the gate: an upgrade moves no VM against a rule of the cluster.

The moves of a sub-iteration are a plan of migrations, judged by ``plan.verify`` as any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.snapshot import Snapshot
from equipoise.model.upgrade.work import VmMove
from equipoise.model.vm import Vm, VmState
from equipoise.plan import Refusal, verify
from equipoise.upgrade.state import Seat, State


def admitted(state: State, moves: Sequence[VmMove]) -> tuple[tuple[VmMove, ...], str]:
    """The moves that break no rule, and why the others do."""
    cluster = state.campaign.cluster
    if not moves or not cluster.rules:
        return tuple(moves), ""
    return _admitted(_snapshot(state), tuple(moves), state.settings.vm_move_s)


def _admitted(
    snapshot: Snapshot, moves: tuple[VmMove, ...], move_s: int
) -> tuple[tuple[VmMove, ...], str]:
    """Halve what is refused until the culprits are found; then what is left must pass together."""
    why = _refused(snapshot, moves, move_s)
    if not why or len(moves) == 1:
        return ((), why) if why else (moves, "")
    middle = len(moves) // 2
    first, _ = _admitted(snapshot, moves[:middle], move_s)
    second, _ = _admitted(snapshot, moves[middle:], move_s)
    both = (*first, *second)
    return (both if not _refused(snapshot, both, move_s) else first), why


def _refused(snapshot: Snapshot, moves: tuple[VmMove, ...], move_s: int) -> str:
    """Say why the gate does not let moves pass; nothing if it does."""
    steps = tuple(
        Step(
            id=StepId(f"move-{move.vm}"),
            action=Migrate(vm=move.vm, source=move.source, target=move.target),
            end_ms=max(1, move_s * 1000),
        )
        for move in moves
    )
    verdict = verify(snapshot, Plan(id=PlanId("vms"), steps=steps)) if steps else None
    return verdict.violations[0].detail if isinstance(verdict, Refusal) else ""


def _snapshot(state: State) -> Snapshot:
    """The cluster as the upgrade knows it. VMs that came by scaling are as their tenant's first."""
    cluster = state.campaign.cluster
    known = {vm.id: vm for vm in cluster.vms}
    likeness = {vm.tenant: vm for vm in reversed(cluster.vms)}
    hosts = tuple(
        host.but(state=HostState.ON if state.places[host.id].up else HostState.FAILED)
        for host in cluster.hosts
    )
    vms = (_vm(seat, known.get(seat.vm) or likeness.get(seat.tenant)) for seat in _seats(state))
    return Snapshot.of(cluster.but(hosts=hosts, vms=tuple(vm for vm in vms if vm is not None)))


def _seats(state: State) -> list[Seat]:
    return [seat for seat in state.seats.values() if seat.host is not None]


def _vm(seat: Seat, like: Vm | None) -> Vm | None:
    if like is None:
        return None
    return like.but(id=seat.vm, host=seat.host, state=VmState.RUNNING)
