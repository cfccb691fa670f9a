"""How far to look, nearest first. The last is the whole, unless that is beyond what fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from equipoise.model.quantity import VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan.exact.near.misplaced import as_wished, misplaced
from equipoise.plan.exact.near.region import regions
from equipoise.plan.exact.near.sketch import Sketcher
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.reach import Reach

SMALL: Final = 2_000
"""How many places, VMs times hosts, are looked at all at once."""
TINY: Final = 50
"""How many places are looked at all at once by whoever wants the best."""
LARGEST: Final = 500_000
"""Of how many places the whole is looked at if nothing nearer will do."""
CHOICES: Final = 4_000
"""How many places a large problem is narrowed to at first."""


def reaches(task: Task, *, repair: bool, optimise: bool) -> Iterator[Reach]:
    """The reaches to look within, one after the other."""
    most = task.problem.moves_max
    is_small = len(task.snapshot.vms) * len(task.snapshot.hosts) <= SMALL
    if repair or not is_small:
        wished = as_wished(task)
        movers = misplaced(task, wished)
        if is_small:
            yield Reach(moves=most, movable=movers)
        else:
            yield from _near(task, wished, movers)
    if is_too_large(task):
        return
    if not task.problem.network and not (optimise and is_tiny(task)):
        yield Reach(moves=1, in_parallel=True)
    if most > 1 and not (optimise and is_tiny(task)):
        yield Reach(moves=1)
    yield Reach(moves=most)


def is_tiny(task: Task) -> bool:
    """Whether the whole is looked at faster than anything nearer and then the whole."""
    return len(task.snapshot.vms) * len(task.snapshot.hosts) <= TINY


def is_too_large(task: Task) -> bool:
    """Whether the whole cannot be looked at all at once."""
    return len(task.snapshot.vms) * len(task.snapshot.hosts) > LARGEST


def _near(task: Task, wished: Snapshot, movers: frozenset[VmId]) -> Iterator[Reach]:
    """First whom a sketch names, all at the same time; then all who may be misplaced, then others.

    Of a problem that will be looked at whole in the end, there are no others before that.
    """
    comers = [vm for vm in task.vm_goals if _comes(task, vm)]
    most = task.problem.moves_max
    sketcher = Sketcher(task, wished)
    few = [*sketcher.evicted(movers), *comers]
    count = _count(len(few))
    hosts = sketcher.sketch(few, count)
    for parallel in (False,) if task.problem.network else (True, False):  # links are waited for
        yield Reach(moves=1, movable=frozenset(few), hosts=hosts, in_parallel=parallel)
    every = [*sorted(movers), *comers]
    for factor in (1, 4, 16):
        hosts = Sketcher(task, wished).sketch(every, factor * _count(len(every)))
        yield Reach(moves=most, movable=movers, hosts=hosts)
    if is_too_large(task):
        yield from regions(task, wished, every, LARGEST)


def _count(movers: int) -> int:
    return max(3, min(16, CHOICES // max(1, movers)))


def _comes(task: Task, vm: VmId) -> bool:
    """Whether a VM that does not run is to."""
    runs = task.snapshot.vms[vm].state is VmState.RUNNING
    return not runs and task.vm_goals[vm][0].state is VmState.RUNNING
