"""Compile the kernels for this machine, so that the first large run need not wait for it."""

from equipoise.sim.builtin import builtin
from equipoise.sim.world import SimulatedWorld

world = SimulatedWorld(builtin("nightly"))  # which has pools and changes: it takes every way
world.next_event(3_600_000)
world.measures()
