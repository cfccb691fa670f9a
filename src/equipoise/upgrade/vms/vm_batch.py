"""Step 4: which VMs move to changed hosts, in sub-iterations (V, equation 6)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.graph.host_partitions import (
    HostPartitions,
    growing_tenants,
    tenants_with_new,
    unused_hosts,
    used_hosts,
)
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.gate import admit_moves
from equipoise.upgrade.vms.reserves import (
    FreeCapacity,
    ceil_div,
    expected_growth,
    reserve_hosts,
    scaling_reservation,
)


def vm_candidates(
    state: UpgradeState,
    host_partitions: HostPartitions,
    number: int | None = None,
    of_groups: Collection[GroupId | VmId] | None = None,
) -> list[VmId]:
    """Return the VMs of each group that may move at once, in the order in which they should move.

    By default, hosts with the fewest VMs are emptied one after the other: they can change soon, and
    no VM has to make room for another. With a number, only VMs of hosts that together run no more
    VMs are listed. The thesis takes tenants with the most VMs still to move, on hosts with the most
    of the groups in question: ``of_groups``, or all.
    """
    literal = state.settings.readings.drop_last_only
    residents: list[tuple[int, int, VmId]] = []
    for rank, host in enumerate(host_partitions.old):
        movable = [
            vm
            for vm in state.cluster.residents.get(host, ())
            if not state.is_pinned(vm) and (of_groups is None or _group_of(state, vm) in of_groups)
        ]
        order = -len({state.cluster.placements[vm].group or vm for vm in movable})
        if not literal:  # a host with an unmovable VM cannot be emptied: it comes last
            order = (
                len(movable)
                if len(movable) == len(state.cluster.residents.get(host, ()))
                else sys.maxsize
            )
        residents += [(order, rank, vm) for vm in movable]
    # Stable: VMs of one host keep their order.
    residents.sort(key=lambda candidate: candidate[:2])
    if number is not None:
        residents = _on_whole_hosts(state, residents, number)
    taken: Counter[GroupId] = Counter()
    picked: list[tuple[int, VmId]] = []
    for _, rank, vm in residents:
        groups = state.cluster.placements[vm].groups
        if any(taken[group] >= state.cluster.disturbed_max[group] for group in groups):
            continue
        taken.update(groups)
        picked.append((rank, vm))
    return _by_tenant(state, picked, residents) if literal else [vm for _, vm in picked]


def _on_whole_hosts(
    state: UpgradeState, residents: list[tuple[int, int, VmId]], number: int
) -> list[tuple[int, int, VmId]]:
    """Return the VMs of hosts that together run no more than a number, but of one host at least.

    Hosts on which no group exceeds its share come first: VMs of one group move one after the other,
    so the largest group decides how many rounds are needed.
    """
    by_host: dict[int, list[tuple[int, int, VmId]]] = {}
    for candidate in residents:
        by_host.setdefault(candidate[1], []).append(candidate)
    groups = {group for *_, vm in residents for group in state.cluster.placements[vm].groups}
    # Each group gets an equal share of the moves of this iteration.
    share = ceil_div(number, max(1, len(groups)))
    taken: Counter[GroupId] = Counter()
    fair: list[list[tuple[int, int, VmId]]] = []
    others: list[list[tuple[int, int, VmId]]] = []
    for on_host in by_host.values():
        groups_here = [group for *_, vm in on_host for group in state.cluster.placements[vm].groups]
        if all(taken[group] < share for group in groups_here):
            taken.update(groups_here)
            fair.append(on_host)
        else:
            others.append(on_host)
    selected: list[tuple[int, int, VmId]] = []
    for on_host in (*fair, *others):
        if selected and len(selected) + len(on_host) > number:
            break
        selected += on_host
    return sorted(selected, key=lambda candidate: candidate[:2])


def _by_tenant(
    state: UpgradeState, picked: list[tuple[int, VmId]], residents: list[tuple[int, int, VmId]]
) -> list[VmId]:
    """Return VMs of tenants with the most VMs still to move first, then by host and tenant."""
    waiting = Counter(state.cluster.placements[vm].tenant for _, _, vm in residents)
    positions = {tenant: position for position, tenant in enumerate(state.cluster.tenants)}

    def order(candidate: tuple[int, VmId]) -> tuple[int, int, int]:
        tenant = state.cluster.placements[candidate[1]].tenant
        return -waiting[tenant], candidate[0], -1 if tenant is None else positions[tenant]

    return [vm for _, vm in sorted(picked, key=order)]


TARGETS_TRIED_MAX: Final = 32
"""After so many refused hosts a VM stays on its host in this sub-iteration."""
REASONS_MAX: Final = 3
"""How many reasons of the gate are reported."""


@dataclass(frozen=True, slots=True)
class VmBatchSelection:
    """The result of one sub-iteration."""

    wanted: int
    """How many VMs could move if only their groups limited them."""
    moves: tuple[VmMove, ...]
    reason: str = ""
    code: str = ""


def vm_batch_risk_s(state: UpgradeState, host_partitions: HostPartitions) -> int:
    """Return the duration of the VM moves of an iteration, recovery from failures included."""
    if state.settings.vm_risk_s is not None:
        return state.settings.vm_risk_s
    counts: dict[GroupId, int] = {}
    for host in host_partitions.old:
        for vm in state.cluster.residents.get(host, ()):
            for group in state.cluster.placements[vm].groups:
                counts[group] = counts.get(group, 0) + 1
    # Each round moves at most ``disturbed_max`` VMs of a group.
    rounds = max(
        (ceil_div(count, state.cluster.disturbed_max[group]) for group, count in counts.items()),
        default=1,
    )
    # Twice: a move that fails at its end is moved back.
    return 2 * state.settings.vm_move_s * rounds


def failover_reserve(state: UpgradeState, host_partitions: HostPartitions) -> int:
    """Return how many hosts are reserved for failures. An undo may use them."""
    return 0 if host_partitions.undoing else state.settings.failover_hosts


def vm_limit_of(state: UpgradeState, host_partitions: HostPartitions) -> int:
    """Return V: how many VMs may move to the new partition in this iteration (equation 6)."""
    risk_s = vm_batch_risk_s(state, host_partitions)
    new = list(host_partitions.new)
    if state.settings.readings.reserve_whole_hosts:
        if not new:
            return 0
        reserved = scaling_reservation(
            state, new, len(tenants_with_new(state, host_partitions)), risk_s
        )
        empty = len(unused_hosts(state, new)) - reserved - failover_reserve(state, host_partitions)
        return max(0, empty) * min(state.cluster.compute_hosts[host].vms_max for host in new)
    tenants = (
        tenants_with_new(state, host_partitions)
        if host_partitions.divided
        else growing_tenants(state)
    )
    # Without a division tenants may scale on all hosts.
    hosts = new if host_partitions.divided else [*host_partitions.old, *new]
    growth = sum(expected_growth(state, tenants, risk_s).values())
    capacity = sum(state.cluster.vms_free(host) for host in hosts)
    largest = sorted(
        (state.cluster.compute_hosts[host].vms_max for host in unused_hosts(state, hosts)),
        reverse=True,
    )
    capacity -= growth + sum(largest[: failover_reserve(state, host_partitions)])
    # Clamped at 0, as equation 6 (design, section 7).
    return max(0, min(capacity, sum(state.cluster.vms_free(host) for host in new)))


def can_move_vms(state: UpgradeState, host_partitions: HostPartitions) -> bool:
    """Return whether VMs could move to changed hosts now."""
    if not host_partitions.new or not used_hosts(state, host_partitions.old):
        return False
    return bool(select_vm_batch(state, host_partitions, vm_limit_of(state, host_partitions)).moves)


def select_vm_batch(
    state: UpgradeState, host_partitions: HostPartitions, v: int
) -> VmBatchSelection:
    """Select the VMs of the next sub-iteration with their targets. The gate admits all moves."""
    refused = RefusedMoves()
    while True:
        selection = _select(state, host_partitions, v, refused)
        admitted, why = admit_moves(state, selection.moves)
        if len(admitted) == len(selection.moves):
            gate_reasons = refused.reasons()
            texts = (*gate_reasons, *([selection.reason] if selection.reason else ()))
            code = "moves-refused" if gate_reasons else selection.code
            return replace(selection, reason="; ".join(texts), code=code)
        kept = set(admitted)
        refused.add([move for move in selection.moves if move not in kept], why)


class RefusedMoves:
    """Moves that the gate has refused, and why. A VM may still find another host."""

    def __init__(self) -> None:
        self._hosts: dict[VmId, dict[HostId, str]] = {}

    def add(self, moves: Iterable[VmMove], why: str) -> None:
        """Record refused moves."""
        for move in moves:
            self._hosts.setdefault(move.vm, {})[move.target] = why

    def is_allowed(self, vm: VmId, host: HostId) -> bool:
        """Return whether the gate has not refused a VM on a host."""
        return host not in self._hosts.get(vm, ())

    def has_target_left(
        self, state: UpgradeState, host_partitions: HostPartitions, vm: VmId
    ) -> bool:
        """Return whether a VM has a host left to try."""
        refused = self._hosts.get(vm)
        if refused is None:
            return True
        capacity = FreeCapacity(state, host_partitions.new)
        groups = state.cluster.placements[vm].groups
        targets = (
            host
            for host in host_partitions.new
            if host not in refused and capacity.fits(host, groups, state.cluster.vms[vm])
        )
        return len(refused) < TARGETS_TRIED_MAX and next(targets, None) is not None

    def reasons(self) -> list[str]:
        """Return the last reason of each refused VM, each once, at most ``REASONS_MAX``."""
        texts = list(dict.fromkeys(list(hosts.values())[-1] for hosts in self._hosts.values()))
        more = [f"and {len(texts) - REASONS_MAX} more"] if len(texts) > REASONS_MAX else []
        return texts[:REASONS_MAX] + more


def _select(
    state: UpgradeState, host_partitions: HostPartitions, v: int, refused: RefusedMoves
) -> VmBatchSelection:
    remaining = max(0, v - state.iteration.vms_moved)
    if not state.settings.readings.drop_last_only:
        on_whole_hosts = vm_candidates(state, host_partitions, remaining)
        selection = _select_among(state, host_partitions, on_whole_hosts, remaining, refused)
        # Whole hosts first. If none can be emptied, single VMs still make progress.
        if selection.moves:
            return selection
    candidates = vm_candidates(state, host_partitions)
    return _select_among(state, host_partitions, candidates, remaining, refused)


def _select_among(
    state: UpgradeState,
    host_partitions: HostPartitions,
    candidates: list[VmId],
    remaining: int,
    refused: RefusedMoves,
) -> VmBatchSelection:
    """Select as many of the candidates as may move, at most the remaining number."""
    movable = [vm for vm in candidates if refused.has_target_left(state, host_partitions, vm)]
    wanted = movable[:remaining]
    if state.settings.readings.reserve_whole_hosts:
        # W of the thesis: what equation 6 leaves now; if it leaves nothing, all are refused below.
        wanted = wanted[: vm_limit_of(state, host_partitions) or None]
    if not movable:
        return VmBatchSelection(0, (), "no VM is left to move", "no-vm-left")
    if not wanted:
        text = "the limit of VM moves in this iteration is reached"
        return VmBatchSelection(len(movable), (), text, "vm-limit-reached")

    def choose(number: int) -> Sequence[VmId]:
        if not state.settings.readings.drop_last_only or number == len(movable):
            return wanted[:number]
        # Criterion 2 counts the VMs of the selected groups, so fewer groups mean other hosts.
        groups = {_group_of(state, vm) for vm in wanted[:number]}
        chosen = vm_candidates(state, host_partitions, of_groups=groups)
        return [vm for vm in chosen if refused.has_target_left(state, host_partitions, vm)][:number]

    moves = _largest_fit(state, host_partitions, len(wanted), choose, refused)
    if len(moves) < len(wanted) and not state.settings.readings.drop_last_only:
        moves = _best_partial(state, host_partitions, wanted, moves, refused)
    if len(moves) == len(wanted):
        return VmBatchSelection(len(wanted), moves)
    reason = _shortage_reason(state, host_partitions)
    return VmBatchSelection(len(wanted), moves, reason, "reserve-needed")


def _best_partial(
    state: UpgradeState,
    host_partitions: HostPartitions,
    wanted: Sequence[VmId],
    moves: tuple[VmMove, ...],
    refused: RefusedMoves,
) -> tuple[VmMove, ...]:
    """Return the best moves if not all VMs can move.

    First the moves that empty whole hosts, then VMs of tenants that need no further reservation in
    the new partition, then as many as possible.
    """
    settled = set(tenants_with_new(state, host_partitions))
    easy = [vm for vm in wanted if _needs_no_reservation(state, vm, settled)]
    without_more = _largest_fit(state, host_partitions, len(easy), lambda n: easy[:n], refused)
    options = (
        _emptying_moves(state, moves),
        _emptying_moves(state, without_more),
        moves,
        without_more,
    )
    return next((option for option in options if option), ())


def _emptying_moves(state: UpgradeState, moves: tuple[VmMove, ...]) -> tuple[VmMove, ...]:
    """Return the moves that leave their source empty."""
    leaving: dict[HostId, int] = {}
    for move in moves:
        leaving[move.source] = leaving.get(move.source, 0) + 1
    return tuple(
        move for move in moves if leaving[move.source] == len(state.cluster.residents[move.source])
    )


def _shortage_reason(state: UpgradeState, host_partitions: HostPartitions) -> str:
    reserved = state.settings.failover_hosts
    return (
        f"{len(unused_hosts(state, host_partitions.new))} changed hosts are empty; "
        f"they are reserved for tenants that scale and for {reserved} failing hosts"
    )


def _needs_no_reservation(state: UpgradeState, vm: VmId, settled: set[TenantId]) -> bool:
    """Return whether the move of a VM adds no reservation for its tenant."""
    tenant = state.cluster.placements[vm].tenant
    if tenant is None or tenant in settled:
        return True
    return state.cluster.vm_counts[tenant] >= state.cluster.tenants[tenant].sla.vms_max


def _group_of(state: UpgradeState, vm: VmId) -> GroupId | VmId:
    """Return the group of a VM; a VM without one is a group of its own."""
    return state.cluster.placements[vm].group or vm


def _host_of(state: UpgradeState, vm: VmId) -> HostId:
    host = state.cluster.placements[vm].host
    assert host is not None, "the VM is a resident of a host"
    return host


def _largest_fit(
    state: UpgradeState,
    host_partitions: HostPartitions,
    number: int,
    choose: Callable[[int], Sequence[VmId]],
    refused: RefusedMoves,
) -> tuple[VmMove, ...]:
    """Return the moves of the most VMs that fit; ``choose`` returns so many of them.

    Binary search is valid: more VMs never need less capacity.
    """
    low, high = 0, number
    best: tuple[VmMove, ...] = ()
    while low < high:
        middle = ceil_div(low + high, 2)
        moves = _place(state, host_partitions, choose(middle), refused)
        if moves is None:
            high = middle - 1
        else:
            low, best = middle, moves
    return best


def _place(
    state: UpgradeState, host_partitions: HostPartitions, vms: Sequence[VmId], refused: RefusedMoves
) -> tuple[VmMove, ...] | None:
    """Return moves for these VMs that keep the reserves, or None."""
    literal = state.settings.readings.reserve_whole_hosts
    if literal and not _whole_hosts_left(state, host_partitions, vms):
        return None
    for order in _target_orders(
        state, list(host_partitions.new), empty_only=literal and host_partitions.divided
    ):
        capacity = FreeCapacity(state, host_partitions.new)
        moves = _place_in_order(state, host_partitions, vms, capacity, order, refused)
        if moves is not None and (
            literal or _keeps_reserves(state, host_partitions, capacity, vms)
        ):
            return moves
    return None


def _place_in_order(
    state: UpgradeState,
    host_partitions: HostPartitions,
    vms: Sequence[VmId],
    capacity: FreeCapacity,
    order: list[HostId],
    refused: RefusedMoves,
) -> tuple[VmMove, ...] | None:
    """Place each VM on the first host that fits, or return None if one VM fits nowhere."""
    moves: list[VmMove] = []
    wanted, done = set(vms), set[VmId]()
    for vm in vms:
        block = state.cluster.block_of(vm)
        # It moves with the first VM of its block, or not now if one of them cannot move.
        if vm in done or not wanted.issuperset(block):
            continue
        done.update(block)
        fitting = (
            host
            for host in untried_first(state, vm, order)
            if capacity.fits_block(host, block)
            and all(refused.is_allowed(member, host) for member in block)
        )
        target = next(fitting, None)
        if target is None:
            return None
        for member in block:
            capacity.commit_vm(target, member)
            source = _host_of(state, member)
            moves.append(
                VmMove(vm=member, source=source, target=target, converted=host_partitions.divided)
            )
        if capacity.free(target) == 0:
            # Full hosts leave the list: this keeps the search linear.
            order.remove(target)
    return tuple(moves)


def untried_first(state: UpgradeState, vm: VmId, hosts: Sequence[HostId]) -> Sequence[HostId]:
    """Return target hosts in their order, those to which the VM failed to move at the end."""
    if vm not in state.cluster.failed_moves:
        return hosts
    return sorted(hosts, key=lambda host: state.cluster.moves_failed(vm, host))


def _target_orders(
    state: UpgradeState, new: list[HostId], *, empty_only: bool
) -> list[list[HostId]]:
    """Return the orders of target hosts that are worth trying.

    Used hosts come first, the fullest first, then empty hosts from the end. If sizes differ, small
    empty hosts first is tried too: this keeps large hosts for failures.
    """
    empty = list(reversed(unused_hosts(state, new)))
    if empty_only:
        return [empty]
    busy = [
        host
        for host in sorted(used_hosts(state, new), key=state.cluster.vms_free)
        if state.cluster.vms_free(host) > 0
    ]
    orders = [[*busy, *empty]]
    if len({state.cluster.compute_hosts[host].vms_max for host in new}) > 1:
        orders.append(
            [*sorted(empty, key=lambda host: state.cluster.compute_hosts[host].vms_max), *busy]
        )
    return orders


def _whole_hosts_left(
    state: UpgradeState, host_partitions: HostPartitions, vms: Sequence[VmId]
) -> bool:
    """Return whether enough whole hosts remain for every tenant in the new partition."""
    new = list(host_partitions.new)
    if not new:
        return False
    arriving = {state.cluster.placements[vm].tenant for vm in vms}
    risk_s = vm_batch_risk_s(state, host_partitions)
    if host_partitions.divided:
        growing = set(growing_tenants(state))
        tenants = set(tenants_with_new(state, host_partitions)) | {
            tenant for tenant in arriving if tenant in growing
        }
        hosts = new
    else:
        tenants, hosts = set(growing_tenants(state)), [*host_partitions.old, *new]
    reserved = scaling_reservation(state, hosts, len(tenants), risk_s) + failover_reserve(
        state, host_partitions
    )
    smallest = min(state.cluster.compute_hosts[host].vms_max for host in new)
    return ceil_div(len(vms), smallest) <= len(unused_hosts(state, hosts)) - reserved


def _keeps_reserves(
    state: UpgradeState,
    host_partitions: HostPartitions,
    capacity: FreeCapacity,
    vms: Sequence[VmId],
) -> bool:
    """Return whether tenants can scale and hosts can fail after these VMs have moved."""
    new = list(host_partitions.new)
    growing = set(growing_tenants(state))
    settled = set(tenants_with_new(state, host_partitions)) | {
        tenant for vm in vms if (tenant := state.cluster.placements[vm].tenant) in growing
    }
    tenants: list[TenantId] = [tenant for tenant in state.cluster.tenants if tenant in settled]
    if not host_partitions.divided:
        capacity.add(host_partitions.old)
        new += host_partitions.old
        tenants = list(growing_tenants(state))
    wanted = expected_growth(state, tenants, vm_batch_risk_s(state, host_partitions))
    busy, empty = capacity.by_use(new)
    reservation = reserve_hosts(
        state,
        capacity,
        wanted,
        busy=busy,
        empty=empty,
        failover=failover_reserve(state, host_partitions),
    )
    return not reservation.short
