"""The scopes of a search, the narrowest first. The last one is the whole problem, if it fits.

A region is a scope for problems in which well-placed VMs must make way: some hosts and all VMs on
them, each region larger than the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan.exact.narrowing.candidates import CandidateFinder
from equipoise.plan.exact.narrowing.misplaced import as_desired, misplaced_vms
from equipoise.plan.exact.task import PlanningTask, SearchScope

REGION_HOSTS: Final = (16, 64, 256)
"""Hosts in a region, besides those that VMs have to leave."""


def regions(
    task: PlanningTask, desired: Snapshot, vms: Sequence[VmId], most: int
) -> Iterator[SearchScope]:
    """Yield scopes in which some VMs find a host, and the VMs of these hosts may move as well.

    None of them has more than ``most`` placements.
    """
    finder = CandidateFinder(task, desired)
    source_hosts = {host for vm in vms if (host := task.snapshot.vms[vm].host) is not None}
    for size in REGION_HOSTS:
        if len(vms) > size:
            continue
        hosts = sorted(source_hosts | set(_nearest(finder, vms, size)))
        movable_vms = sorted({*vms, *_movable(task, hosts)})
        if len(movable_vms) * len(hosts) > most:
            return
        yield SearchScope(
            moves=task.problem.moves_max,
            movable=frozenset(movable_vms),
            hosts=dict.fromkeys(movable_vms, hosts),
        )


def _nearest(finder: CandidateFinder, vms: Sequence[VmId], size: int) -> Iterator[HostId]:
    """Yield for each VM its share of the hosts that lack the least capacity for it."""
    # Rounded up, so that the shares together fill the region.
    share = -(-size // max(1, len(vms)))
    for vm in vms:
        yield from finder.closest_fit(vm, share)


def _movable(task: PlanningTask, hosts: Sequence[HostId]) -> Iterator[VmId]:
    for host in hosts:
        for name in task.snapshot.residents[host]:
            vm = task.snapshot.vms[name]
            if vm.state is VmState.RUNNING and not vm.agent:
                yield name


SMALL_MAX: Final = 2_000
"""Placements, VMs times hosts, up to which the whole problem is searched at once."""
TINY_MAX: Final = 50
"""Placements up to which an optimising search takes the whole problem at once."""
WHOLE_MAX: Final = 500_000
"""Placements up to which the whole problem is searched if no narrower scope has a plan."""
CANDIDATES_MAX: Final = 4_000
"""Placements to which a large problem is narrowed at first."""


def search_scopes(task: PlanningTask, *, repair: bool, optimise: bool) -> Iterator[SearchScope]:
    """Yield the scopes to search, one after the other."""
    most = task.problem.moves_max
    is_small = len(task.snapshot.vms) * len(task.snapshot.hosts) <= SMALL_MAX
    if repair or not is_small:
        desired = as_desired(task)
        movers = misplaced_vms(task, desired)
        if is_small:
            yield SearchScope(moves=most, movable=movers)
        else:
            yield from _narrow_scopes(task, desired, movers)
    if is_too_large(task):
        return
    if not task.problem.network and not (optimise and is_tiny(task)):
        yield SearchScope(moves=1, in_parallel=True)
    if most > 1 and not (optimise and is_tiny(task)):
        yield SearchScope(moves=1)
    yield SearchScope(moves=most)


def is_tiny(task: PlanningTask) -> bool:
    """Whether the whole is searched faster than a narrow scope and then the whole."""
    return len(task.snapshot.vms) * len(task.snapshot.hosts) <= TINY_MAX


def is_too_large(task: PlanningTask) -> bool:
    """Whether the whole problem is too large for one model."""
    return len(task.snapshot.vms) * len(task.snapshot.hosts) > WHOLE_MAX


def _narrow_scopes(
    task: PlanningTask, desired: Snapshot, movers: frozenset[VmId]
) -> Iterator[SearchScope]:
    """Yield narrow scopes: first the VMs of the greedy guess, then all that may be misplaced.

    Wider regions follow only for a problem that is too large to be searched as a whole.
    """
    arriving = [vm for vm in task.vm_conditions if _is_to_start(task, vm)]
    most = task.problem.moves_max
    finder = CandidateFinder(task, desired)
    few = [*finder.evicted(movers), *arriving]
    count = _count(len(few))
    hosts = finder.find_hosts(few, count)
    # On shared links migrations wait for each other, so nothing ends as early as in parallel.
    for parallel in (False,) if task.problem.network else (True, False):
        yield SearchScope(moves=1, movable=frozenset(few), hosts=hosts, in_parallel=parallel)
    every = [*sorted(movers), *arriving]
    for factor in (1, 4, 16):
        hosts = CandidateFinder(task, desired).find_hosts(every, factor * _count(len(every)))
        yield SearchScope(moves=most, movable=movers, hosts=hosts)
    if is_too_large(task):
        yield from regions(task, desired, every, WHOLE_MAX)


def _count(movers: int) -> int:
    return max(3, min(16, CANDIDATES_MAX // max(1, movers)))


def _is_to_start(task: PlanningTask, vm: VmId) -> bool:
    """Whether a VM does not run and a condition starts it."""
    runs = task.snapshot.vms[vm].state is VmState.RUNNING
    return not runs and task.vm_conditions[vm][0].state is VmState.RUNNING
