"""Compiles the kernels for this machine, so that the first large run does not wait for it."""

from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import MemoryJournal

# This scenario has pools and changing demands, so it calls every kernel of the simulation.
world = SimulatedWorld(builtin_scenario("nightly"))
world.next_event(3_600_000)
world.measures()
# This one calls the kernels of the deciders: hosts are evacuated, switched off and woken.
surge = builtin_scenario("dpm-testbed")
ScenarioRunner(surge.but(deciders=("balance", "power")), MemoryJournal()).run(2_400_000)
