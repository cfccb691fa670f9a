"""Evacuation: VMs leave hosts that would lose what they need while it changes.

A switch of one rack, or a storage without an alternative, takes its hosts out of service with it.
If nothing else makes progress, the VMs of these hosts move to hosts that do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.work import VertexId, VmMove
from equipoise.upgrade.giving_up import stuck_reason
from equipoise.upgrade.graph.host_partitions import scaling_areas
from equipoise.upgrade.graph.iteration_view import IterationView, affected_hosts, build_view
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.select_batch import BatchSelection, select_batch
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.consolidation import plans_for_order
from equipoise.upgrade.vms.gate import admit_moves
from equipoise.upgrade.vms.rounds import after_moves, can_finish, next_round
from equipoise.upgrade.vms.vm_batch import can_move_vms

DEPENDING = ("vms-depend",)
"""The codes of groups that wait because VMs run on hosts that go out with them."""


@dataclass(frozen=True, slots=True)
class Evacuation:
    """The next moves, or why VMs cannot leave the hosts of some groups."""

    moves: tuple[VmMove, ...] = ()
    reasons: tuple[tuple[VertexId, Reason], ...] = ()


def evacuate(view: IterationView, selection: BatchSelection) -> Evacuation:
    """Return the next moves that let a group change whose dependents run VMs.

    The group with the fewest such VMs comes first, so an evacuation that has started goes on.
    """
    state = view.state
    if selection.batch:
        return Evacuation()
    if not state.iteration.evacuated_from and can_move_vms(state, view.host_partitions):
        return Evacuation()
    waiting = [
        (vertex, _hosts_to_empty(view, vertex))
        for elimination in selection.eliminated
        if elimination.code in DEPENDING and elimination.rule in (0, 1)
        for vertex in elimination.vertices
        if vertex in view.control.groups
    ]
    waiting.sort(key=lambda pair: sum(len(state.cluster.residents.get(h, ())) for h in pair[1]))
    reasons: list[tuple[VertexId, Reason]] = []
    for vertex, hosts in waiting:
        reason = _obstacle(view, vertex, hosts)
        if reason is None:
            moves = _first_round(view, vertex, hosts)
            if moves:
                return Evacuation(moves)
            text = f"the VMs of {', '.join(hosts)} can only leave at the cost of a reserve"
            reason = Reason("not-evacuable", f"{text}; these hosts need {vertex}")
        reasons.append((vertex, reason))
    return Evacuation(reasons=tuple(reasons))


def _first_round(
    view: IterationView, vertex: VertexId, hosts: Sequence[HostId]
) -> tuple[VmMove, ...]:
    """Return the first moves of a plan after which a group can change, if there is one.

    A VM whose move the gate refuses stays, and the plan is computed again.
    """
    state, partitions = view.state, view.host_partitions
    pinned = _pinned(state)
    while True:
        plan = next(
            (
                moves
                for moves in _plans(view, hosts, pinned)
                if _lets_change(state, vertex, hosts, moves)
                and can_finish(state, partitions, moves)
            ),
            None,
        )
        if plan is None:
            return ()
        now = next_round(state, partitions, plan)
        admitted, _ = admit_moves(state, now)
        if len(admitted) == len(now):
            return admitted
        # Each round pins at least one VM, so the loop ends.
        pinned |= {move.vm: None for move in now if move not in admitted}


def _pinned(state: UpgradeState) -> dict[VmId, None]:
    moved = (*state.iteration.evacuated_from, *state.iteration.consolidated_from)
    stuck = (vm for vm in state.cluster.failed_moves if state.is_pinned(vm))
    return dict.fromkeys((*moved, *state.iteration.unmovable, *stuck))


def _plans(
    view: IterationView, hosts: Sequence[HostId], pinned: dict[VmId, None]
) -> Iterator[list[VmMove]]:
    """Yield plans that empty the hosts: with few moves, then with VMs on the fewest hosts."""
    state = view.state
    leaving = set(hosts)
    # In a divided cluster a VM stays in its partition.
    plans: list[list[list[VmMove]]] = []
    for area, tenants in scaling_areas(state, view.host_partitions):
        if leaving.isdisjoint(area):
            continue
        staying = [host for host in area if host not in leaving]
        of_area: list[list[VmMove]] = []
        for by_size in (False, True):
            staying.sort(key=lambda host: _target_rank(state, host, by_size=by_size))
            order = [*staying, *(host for host in area if host in leaving)]
            of_area += plans_for_order(view, order, tenants, pinned, first=len(staying))
        plans.append(of_area)
    for parts in product(*plans):
        yield [move for part in parts for move in part]


def _target_rank(state: UpgradeState, host: HostId, *, by_size: bool) -> tuple[int, int]:
    """Order used hosts first, or small ones: a large empty host can be the reserve."""
    used = -len(state.cluster.residents.get(host, ()))
    size = state.cluster.compute_hosts[host].vms_max
    return (size, used) if by_size else (used, size)


def _lets_change(
    state: UpgradeState, vertex: VertexId, hosts: Iterable[HostId], moves: Sequence[VmMove]
) -> bool:
    after = after_moves(state, moves)
    if any(after.cluster.residents.get(host) for host in hosts):
        return False
    return vertex in select_batch(build_view(after, with_vms=False)).batch


def _hosts_to_empty(view: IterationView, vertex: VertexId) -> tuple[HostId, ...]:
    hosts = {*view.control.groups[vertex].hosts, *affected_hosts(view, vertex)}
    return tuple(host for host in view.state.cluster.compute_hosts if host in hosts)


def _obstacle(view: IterationView, vertex: VertexId, hosts: Sequence[HostId]) -> Reason | None:
    """Return which VM cannot leave its host at all, or None."""
    state, partitions = view.state, view.host_partitions
    leaving = set(hosts)
    pinned = _pinned(state)
    for host in hosts:
        area = partitions.old if host in partitions.old else partitions.new
        targets = area if partitions.divided else (*partitions.new, *partitions.old)
        others = [target for target in targets if target not in leaving]
        for vm in state.cluster.residents.get(host, ()):
            if state.is_stuck(vm):
                return stuck_reason(state, host, vm)
            why = ""
            if vm in pinned:
                why = state.iteration.unmovable.get(vm, "it has moved already in this iteration")
            elif not others:
                why = "no host in service works without it"
            if why:
                text = f"VM {vm} cannot leave {host}, which needs {vertex}: {why}"
                return Reason("not-evacuable", text)
    return None


def with_reasons(selection: BatchSelection, evacuation: Evacuation) -> BatchSelection:
    """Return the selection with the reasons why VMs cannot leave, in place of the general ones."""
    reasons = dict(evacuation.reasons)
    eliminated = []
    for elimination in selection.eliminated:
        kept = tuple(vertex for vertex in elimination.vertices if vertex not in reasons)
        eliminated += [elimination.but(vertices=kept)] if kept else []
        eliminated += [
            elimination.but(
                reason=reasons[vertex].text, code=reasons[vertex].code, vertices=(vertex,)
            )
            for vertex in elimination.vertices
            if vertex in reasons
        ]
    return BatchSelection(selection.z, selection.batch, tuple(eliminated))
