"""Sim: a deterministic world with a virtual clock.

Enter by ``SimulatedWorld``. Never reads a wall clock, never draws an unseeded number.
"""

from equipoise.sim.world import SimulatedWorld

__all__ = ["SimulatedWorld"]
