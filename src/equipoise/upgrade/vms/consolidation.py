"""Consolidation: VMs are packed on fewer hosts where no other change is possible.

Several host orders are tried. The sizes of groups and hosts give the number of hosts needed (Gale
and Ryser: a host takes at most one VM of a group). VMs make room for each other along shortest
chains. The batch selection then evaluates the resulting cluster.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.graph.host_partitions import (
    HostPartitions,
    scaling_areas,
    used_hosts,
)
from equipoise.upgrade.graph.iteration_view import IterationView, build_view
from equipoise.upgrade.parallel_universe import hosts_of_replaced_storage
from equipoise.upgrade.rules import batch_candidates
from equipoise.upgrade.select_batch import BatchSelection, longest_change_s, select_batch
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.cluster import ONE_VM, VM_CAPACITY
from equipoise.upgrade.vms.gate import admit_moves
from equipoise.upgrade.vms.reserves import expected_growth, scaling_group, vms_left_to_scale
from equipoise.upgrade.vms.rounds import after_moves, can_finish, next_round
from equipoise.upgrade.vms.vm_batch import can_move_vms, failover_reserve, vm_limit_of


def anti_affinity_key(state: UpgradeState, vm: VmId) -> str:
    """Return the first group of a VM, by which VMs are counted."""
    return state.cluster.placements[vm].group or vm


def anti_affinity_keys(state: UpgradeState, vm: VmId) -> tuple[str, ...]:
    """Return all groups of a VM; a VM without a group is a group of its own."""
    return state.cluster.placements[vm].groups or (vm,)


def hosts_needed(groups: Iterable[int], capacities: Sequence[int]) -> int | None:
    """Return how many hosts, from the first, can run groups of these sizes, or None.

    It is possible if and only if, for every k, the k largest groups have no more VMs than the hosts
    can run of k groups. Beyond the largest host only the total counts.
    """
    sizes = sorted(groups, reverse=True)
    largest = max(capacities, default=0)
    # ``needed[k]`` are the VMs of the k + 1 largest groups, the last entry those of all groups.
    needed = [sum(sizes[:size_index]) for size_index in range(1, largest)] + [sum(sizes)]
    taken = [0] * len(needed)
    for count, capacity in enumerate([0, *capacities]):
        for size_index in range(len(taken)):
            taken[size_index] += min(capacity, size_index + 1)
        if all(need <= supply for need, supply in zip(needed, taken, strict=True)):
            return count
    return None


class VmPacking:
    """A hypothetical placement of VMs on hosts."""

    def __init__(
        self, state: UpgradeState, hosts: Iterable[HostId], pinned: Mapping[VmId, object]
    ) -> None:
        """Start with the current VMs of these hosts; pinned VMs do not move."""
        self._state = state
        self._expected: dict[VmId, str] = {}
        self._pinned = dict.fromkeys(pinned)
        self._on: dict[HostId, dict[str, VmId]] = {}
        for host in hosts:
            here = self._on[host] = {}
            for vm in state.cluster.residents.get(host, ()):
                for key in anti_affinity_keys(state, vm):
                    if here.setdefault(key, vm) != vm:
                        # Two VMs of a group already share the host: both stay.
                        here[vm] = vm
                        self._pinned[vm] = None
                if len(state.cluster.block_of(vm)) > 1:
                    self._pinned[vm] = None  # it never makes room alone
        self._capacity = state.cluster.capacity.excerpt(self._on)
        self._with_space = [host for host in self._on if not self._is_full(host)]
        self.target: dict[VmId, HostId] = {}
        """The targets of the VMs that move."""

    def expect(self, group: str, number: int) -> bool:
        """Place VMs of a group that do not exist yet. Return whether all fit."""
        vms = [VmId(f"{group} {count}") for count in range(number)]
        self._expected |= dict.fromkeys(vms, group)
        return all(self.add(vm) for vm in vms)

    def _kin(self, vm: VmId) -> tuple[str, ...]:
        expected = self._expected.get(vm)
        return anti_affinity_keys(self._state, vm) if expected is None else (expected,)

    def add_all(self, vms: Sequence[VmId]) -> bool:
        """Place VMs of other hosts, affinity groups on one host each. Return whether all fit."""
        done: dict[VmId, None] = {}
        for vm in vms:
            block = self._state.cluster.block_of(vm)
            if vm in done:
                continue
            done |= dict.fromkeys(block)
            if not (self.add(vm) if len(block) == 1 else self._add_block(block)):
                return False
        return True

    def _add_block(self, block: Sequence[VmId]) -> bool:
        """Place VMs together. No other VM makes room for them."""
        if any(vm in self._pinned for vm in block):
            return False
        kin = [key for vm in block for key in self._kin(vm)]
        for host in self._with_space:
            free = self._capacity.free(host, VM_CAPACITY)
            if free >= len(block) and len(set(kin)) == len(kin) and self._accepts(host, kin):
                for vm in block:
                    self._put(vm, host)
                    self._pinned[vm] = None
                if self._is_full(host):
                    self._with_space.remove(host)
                return True
        return False

    def _accepts(self, host: HostId, kin: Sequence[str]) -> bool:
        """Return whether no VM of these groups is on a host."""
        return self._on[host].keys().isdisjoint(kin)

    def add(self, vm: VmId) -> bool:
        """Place a VM of another host, directly or by a chain of moves. Return whether it fits."""
        if vm in self._pinned:
            return False
        kin = self._kin(vm)
        for host in self._with_space:
            if self._accepts(host, kin):
                self._put(vm, host)
                if self._is_full(host):
                    self._with_space.remove(host)
                return True
        return bool(self._with_space) and self._make_room(vm)

    def _is_full(self, host: HostId) -> bool:
        return not self._capacity.fits(ONE_VM, host)

    def _put(self, vm: VmId, host: HostId) -> None:
        self._on[host] |= dict.fromkeys(self._kin(vm), vm)
        self._capacity.commit(ONE_VM, host)
        if vm not in self._expected:
            self.target[vm] = host

    def _make_room(self, vm: VmId) -> bool:
        """Find the shortest chain of moves that frees capacity for a VM (breadth-first search)."""
        # Each host is visited once, from the VM nearest to the beginning of the chain.
        unseen = dict.fromkeys(self._on)
        incoming: dict[HostId, VmId] = {}
        source_of: dict[VmId, HostId] = {}
        queue = deque([vm])
        queued = {self._kin(vm)}
        while queue:
            current = queue.popleft()
            kin = self._kin(current)
            for host in [host for host in unseen if self._accepts(host, kin)]:
                del unseen[host]
                incoming[host] = current
                if not self._is_full(host):
                    self._move_chain(host, incoming, source_of)
                    return True
                for resident in dict.fromkeys(self._on[host].values()):
                    resident_kin = self._kin(resident)
                    if resident_kin not in queued and resident not in self._pinned:
                        queued.add(resident_kin)
                        source_of[resident] = host
                        queue.append(resident)
        return False

    def _move_chain(
        self, end: HostId, incoming: dict[HostId, VmId], source_of: dict[VmId, HostId]
    ) -> None:
        """Move the VMs of a chain, from the free end to its beginning."""
        host: HostId | None = end
        while host is not None:
            vm = incoming[host]
            source = source_of.get(vm)
            if source is not None:
                for key in self._kin(vm):
                    del self._on[source][key]
                self._capacity.release(ONE_VM, source)
            self._put(vm, host)
            host = source
        if self._is_full(end):
            self._with_space.remove(end)


def consolidate(view: IterationView, selection: BatchSelection) -> tuple[VmMove, ...]:
    """Return the next moves that empty hosts, if nothing else is possible.

    A consolidation that has started is continued to its end. A VM whose move the gate refuses
    stays.
    """
    state, host_partitions = view.state, view.host_partitions
    if not state.iteration.consolidated_from and (
        selection.batch or can_move_vms(state, host_partitions)
    ):
        return ()
    # A VM moves once per iteration for consolidation.
    pinned = dict.fromkeys([*state.iteration.unmovable, *state.iteration.consolidated_from])
    pinned |= {vm: None for vm in state.cluster.failed_moves if state.is_stuck(vm)}
    while True:
        plan = _best_plan(view, pinned, len(selection.batch))
        moves = next_round(state, host_partitions, plan)
        admitted, _ = admit_moves(state, moves)
        # A refused move changes the whole plan, so it is computed again with that VM pinned. Each
        # round pins at least one VM, so the loop ends.
        if len(admitted) == len(moves):
            return admitted
        pinned |= {move.vm: None for move in moves if move not in admitted}


def _best_plan(view: IterationView, pinned: dict[VmId, None], batch: int) -> list[VmMove]:
    """Return the moves after which the most groups can change; of equal plans the shortest."""
    state, host_partitions = view.state, view.host_partitions
    best: list[VmMove] = []
    # A plan must beat the batch that is possible without any move.
    best_result = (batch, False)
    for area, tenants in scaling_areas(state, host_partitions):
        for order in _host_orders(state, host_partitions, area, pinned) if area else ():
            for moves in plans_for_order(view, order, tenants, pinned):
                after = build_view(after_moves(state, moves), with_vms=False)
                possible = len(select_batch(after).batch)
                can_continue = not batch and not possible and _can_empty_a_host(after)
                better = (possible, can_continue) > best_result or (
                    best and (possible, can_continue) == best_result and len(moves) < len(best)
                )
                # The check is expensive, so it comes last.
                if better and can_finish(state, host_partitions, moves):
                    best, best_result = moves, (possible, can_continue)
                    # Candidate plans of one order come from few moves to many: the first that helps
                    # is enough.
                    if possible > batch:
                        break
    return best


def _can_empty_a_host(view: IterationView) -> bool:
    """Return whether enough VMs can move to the new partition to empty a host."""
    state, host_partitions = view.state, view.host_partitions
    fewest = min(
        (len(state.cluster.residents[host]) for host in used_hosts(state, host_partitions.old)),
        default=0,
    )
    return (
        host_partitions.divided
        and 0 < fewest <= vm_limit_of(state, host_partitions)
        and can_move_vms(state, host_partitions)
    )


def _host_orders(
    state: UpgradeState,
    host_partitions: HostPartitions,
    hosts: list[HostId],
    pinned: dict[VmId, None],
) -> list[list[HostId]]:
    """Return orders in which hosts stay in use.

    The fewest VMs move if the fullest hosts stay in use. The fewest hosts are needed if the largest
    stay in use. A reserve for failures needs the largest to be empty. The order does not change
    between rounds: VMs count where they were at the beginning.
    """
    began = Counter(state.iteration.consolidated_from.values())
    began.update(
        placement.host
        for placement in state.cluster.placements.values()
        if placement.host is not None and placement.vm not in state.iteration.consolidated_from
    )
    built_on = hosts_of_replaced_storage(state)

    # A host with a pinned VM cannot become empty, so it stays in use before all others. A VM that
    # an earlier round of this iteration moved is pinned only by that round.
    def keep_rank(host: HostId) -> tuple[bool, bool, bool]:
        here = state.cluster.residents.get(host, ())
        held = any(vm in pinned and vm not in state.iteration.consolidated_from for vm in here)
        return not held, host in built_on, host in host_partitions.old

    def capacity(host: HostId) -> int:
        return state.cluster.compute_hosts[host].vms_max

    by_use = sorted(hosts, key=lambda host: (*keep_rank(host), -began[host]))
    # Between hosts of one size the order by size decides nothing.
    if len({capacity(host) for host in hosts}) <= 1:
        return [by_use]
    by_size = sorted(hosts, key=lambda host: (*keep_rank(host), -capacity(host), -began[host]))
    largest = [host for host in by_size if keep_rank(host)[0]]
    largest = largest[: failover_reserve(state, host_partitions)]
    kept = dict.fromkeys(largest)
    large_last = (
        [*(host for host in order if host not in kept), *kept] for order in (by_use, by_size)
    )
    return [by_use, by_size, *(large_last if kept else ())]


def plans_for_order(
    view: IterationView,
    order: list[HostId],
    tenants: tuple[TenantId, ...],
    pinned: dict[VmId, None],
    first: int | None = None,
) -> Iterator[list[VmMove]]:
    """Yield moves after which only the first hosts of an order are in use.

    Plans with and without capacity for scaling are tried, because empty hosts may serve for scaling
    too. So are the number of hosts that leaves enough others for all VMs that still have to move,
    or ``first``, and the smallest possible number.
    """
    state = view.state
    capacities = [state.cluster.compute_hosts[host].vms_max for host in order]
    sizes = Counter(
        anti_affinity_key(state, vm)
        for host in order
        for vm in state.cluster.residents.get(host, ())
    )
    expected = _expected_vms(view, tenants)
    enough = _hosts_in_use_max(state, view.host_partitions, order) if first is None else first
    seen: set[frozenset[tuple[VmId, HostId]]] = set()
    for growth in (expected, Counter[str]()) if expected else (expected,):
        least = hosts_needed((sizes + growth).values(), capacities)
        if least is None:
            continue
        for count in dict.fromkeys((max(least, enough), least)):
            moves = _pack_onto(state, order, count, growth, pinned)
            targets = frozenset((move.vm, move.target) for move in moves)
            if moves and targets not in seen:
                seen.add(targets)
                yield moves


def _expected_vms(view: IterationView, tenants: tuple[TenantId, ...]) -> Counter[str]:
    """Return the VMs that tenants may request while a host changes, by group."""
    state = view.state
    duration_s = longest_change_s(view, batch_candidates(view))
    expected: Counter[str] = Counter()
    for tenant, more in expected_growth(state, tenants, duration_s).items():
        group = scaling_group(state, tenant)
        if group is not None:
            expected[group] += more
        else:  # without anti-affinity each VM is a group of its own
            expected.update(f"{tenant} {number}" for number in range(more))
    return expected


def _hosts_in_use_max(
    state: UpgradeState, host_partitions: HostPartitions, order: list[HostId]
) -> int:
    """Return how many hosts may stay in use without slowing down the upgrade.

    The other hosts, once changed, can take every VM that has to move, beside the reserves. Emptying
    more hosts would gain nothing.
    """
    capacities = [state.cluster.compute_hosts[host].vms_max for host in order]
    needed = sum(len(state.cluster.residents.get(host, ())) for host in host_partitions.old)
    needed += sum(vms_left_to_scale(state, tenant) for tenant in state.cluster.tenants)
    needed += sum(sorted(capacities, reverse=True)[: failover_reserve(state, host_partitions)])
    for count in range(len(order) - 1, 0, -1):
        needed -= capacities[count]
        if needed <= 0:
            return count
    return 0


def _pack_onto(
    state: UpgradeState,
    order: list[HostId],
    count: int,
    growth: Mapping[str, int],
    pinned: dict[VmId, None],
) -> list[VmMove]:
    """Return moves onto the first hosts of an order, or a few more if pinned VMs are in the way."""
    low, high = count, len(order)
    best: list[VmMove] = []
    while low < high:
        # The smallest number is tried first, because it mostly works; then binary search.
        middle = low if low == count else (low + high) // 2
        packing = VmPacking(state, order[:middle], pinned)
        leaving = [vm for host in order[middle:] for vm in state.cluster.residents.get(host, ())]
        group_sizes = Counter(anti_affinity_key(state, vm) for vm in leaving)
        # Large groups are the hardest to place: they come first.
        leaving.sort(key=lambda vm: -group_sizes[anti_affinity_key(state, vm)])
        if packing.add_all(leaving) and all(
            packing.expect(group, more) for group, more in growth.items()
        ):
            high, best = middle, _ordered_moves(state, packing.target)
        else:
            low = middle + 1
    return best


def _ordered_moves(state: UpgradeState, target: Mapping[VmId, HostId]) -> list[VmMove]:
    """Order the moves of a packing: moves that make room, then by source, the emptiest first."""
    sources = {vm: host for vm in target if (host := state.cluster.placements[vm].host) is not None}
    vms_leaving = Counter(sources.values())
    position = {host: rank for rank, host in enumerate(state.cluster.compute_hosts)}
    moves = [VmMove(vm=vm, source=source, target=target[vm]) for vm, source in sources.items()
            if target[vm] != source]  # fmt: skip
    waited_for = set(target.values())
    return sorted(
        moves,
        key=lambda move: (
            move.source not in waited_for,
            vms_leaving[move.source],
            -position[move.source],
        ),
    )
