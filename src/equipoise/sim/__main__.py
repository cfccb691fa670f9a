"""Compile the kernels for this machine, so that the first large run need not wait for it."""

from equipoise.sim.builtin import builtin
from equipoise.sim.play import Play
from equipoise.sim.world import SimulatedWorld
from equipoise.store import MemoryJournal

world = SimulatedWorld(builtin("nightly"))  # which has pools and changes: it takes every way
world.next_event(3_600_000)
world.measures()
surge = builtin("dpm-testbed")  # and the deciders: hosts are emptied, and woken again
Play(surge.but(deciders=("balance", "power")), MemoryJournal()).run(2_400_000)
