"""How fast VMs have been seen to migrate lately."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot


def observed_speeds(snapshot: Snapshot) -> dict[VmId, float]:
    """MiB per second of the VM itself or, if it has not moved yet, of others on its host."""
    by_host: dict[HostId, list[float]] = defaultdict(list)
    for move in snapshot.moves.values():
        by_host[move.source].append(move.mib_per_s)
        by_host[move.target].append(move.mib_per_s)
    usual = {host: median(speeds) for host, speeds in by_host.items()}
    found = {
        vm.id: usual[vm.host]
        for vm in (snapshot.vms.values() if usual else ())
        if vm.host is not None and vm.host in usual
    }
    return found | {vm: move.mib_per_s for vm, move in snapshot.moves.items()}
