"""Simulation: a deterministic cluster with a virtual clock.

The entry point is ``SimulatedWorld``. The package never reads a wall clock and never draws a number
without a seed.
"""

from equipoise.sim.world.simulated_world import SimulatedWorld

__all__ = ["SimulatedWorld"]
