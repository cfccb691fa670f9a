"""A resource pool: claims held by a group of VMs and sub-pools together."""

from __future__ import annotations

from typing import Final

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
    scalable: bool = False
    """Its shares are for each VM in it, 1000 being the VM's own, rather than for all together."""


_NEUTRAL: Final = 1000
"""The shares of a scalable pool that change nothing: its VMs weigh what they would without it."""
_LEAST: Final = 1e-30
_MOST: Final = 1e30


def scaled_shares(shares: float, inside: float) -> float:
    """The shares that a scalable pool has beside its siblings, by those of who runs in it.

    Without anybody in it, it has none. Deep trees of extreme shares are held to a range that
    floats can be multiplied in.
    """
    return min(max(shares * inside / _NEUTRAL, _LEAST), _MOST) if inside else 0.0
