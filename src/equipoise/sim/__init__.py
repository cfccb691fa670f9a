"""Sim: a deterministic world with a virtual clock.

Enter by ``MemoryWorld``. Never reads a wall clock, never draws an unseeded number.
"""

from equipoise.sim.world import MemoryWorld, Script

__all__ = ["MemoryWorld", "Script"]
