"""Looking ahead: the cluster with the demand that is foretold, where the forecast was right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equipoise.balance.levelling.forecast import Ahead
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap


def foreseen(snapshot: Snapshot, ahead: Ahead) -> tuple[Snapshot, int]:
    """The cluster as if VMs asked now for the most they are foretold to, and how many of them do.

    Nobody asks for less than now: room that is needed is not given away before it is free.
    """
    rows = np.nonzero(ahead.credible.any(axis=1))[0]
    changed = {}
    for row in rows.tolist():
        vm = snapshot.vms[ahead.vm_ids[row]]
        cpu_mhz, memory_mib = (round(figure) for figure in ahead.most[row].tolist())
        demand = vm.demand.but(cpu_mhz=cpu_mhz, memory_mib=min(memory_mib, vm.memory_mib))
        if demand != vm.demand:
            changed[vm.id] = vm.but(demand=demand)
    if not changed:
        return snapshot, 0
    return replace(snapshot, vms=FrozenMap({**snapshot.vms, **changed})), len(changed)
