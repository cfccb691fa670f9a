"""A resource pool: claims held by a group of VMs and sub-pools together."""

from __future__ import annotations

from equipoise.model.quantity import PoolKey
from equipoise.model.value import Value
from equipoise.model.vm import CpuSettings, MemorySettings


class Pool(Value):
    """A node of the pool tree. A pool without a parent hangs under the cluster itself."""

    id: PoolKey
    parent: PoolKey | None = None
    cpu: CpuSettings = CpuSettings()
    memory: MemorySettings = MemorySettings()
    cpu_expandable: bool = True
    """Whether children may claim more CPU than reserved here, from the parent's free part."""
    memory_expandable: bool = True
