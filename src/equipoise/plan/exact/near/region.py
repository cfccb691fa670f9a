"""Regions: some hosts and everybody on them, for problems in which others have to make way.

Each is larger than the one before, as long as all of it can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan.exact.near.sketch import Sketcher
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.reach import Reach

SIZES: Final = (16, 64, 256)
"""How many hosts are looked at, besides those that somebody has to leave."""


def regions(task: Task, wished: Snapshot, vms: Sequence[VmId], most: int) -> Iterator[Reach]:
    """Reaches in which some VMs find a place, and whoever is there may go elsewhere.

    None of them has more than ``most`` places.
    """
    sketcher = Sketcher(task, wished)
    homes = {host for vm in vms if (host := task.snapshot.vms[vm].host) is not None}
    for size in SIZES:
        if len(vms) > size:
            continue
        hosts = sorted(homes | set(_nearest(sketcher, vms, size)))
        everybody = sorted({*vms, *_movable(task, hosts)})
        if len(everybody) * len(hosts) > most:
            return
        yield Reach(
            moves=task.problem.moves_max,
            movable=frozenset(everybody),
            hosts=dict.fromkeys(everybody, hosts),
        )


def _nearest(sketcher: Sketcher, vms: Sequence[VmId], size: int) -> Iterator[HostId]:
    """For each VM, its share of the hosts on which the least is missing for it."""
    share = -(-size // max(1, len(vms)))
    for vm in vms:
        yield from sketcher.least_short(vm, share)


def _movable(task: Task, hosts: Sequence[HostId]) -> Iterator[VmId]:
    for host in hosts:
        for name in task.snapshot.residents[host]:
            vm = task.snapshot.vms[name]
            if vm.state is VmState.RUNNING and not vm.agent:
                yield name
