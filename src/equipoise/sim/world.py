"""The simulated world: hosts and VMs that behave as the scenario says, in virtual time.

It goes from event to event. In between demands change and resources flow, which nobody is told; an
observer sees what a monitoring would show, and learns of events as they come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from equipoise.control.ports import Instruction
from equipoise.errors import InvalidInput, Problem
from equipoise.model.event import Event
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.load import Trace
from equipoise.model.story.scenario import Scenario
from equipoise.place.pools import PoolTree
from equipoise.sim.calendar import Rank
from equipoise.sim.fluid.fluid import Fluid
from equipoise.sim.load import Demands, TraceReader
from equipoise.sim.measure.energy import energy_of
from equipoise.sim.measure.measures import Measures, measure
from equipoise.sim.measure.record import Record
from equipoise.sim.measure.watch import Watch
from equipoise.sim.newcomers import Newcomers
from equipoise.sim.stage import Stage
from equipoise.sim.truth import Truth
from equipoise.sim.turmoil import Turmoil
from equipoise.sim.unfold import unfold

WORTH_COMPILING: Final = 20_000
"""From about so many changes, each times the VMs on a host, machine code is the quicker way."""
CHANGES_MOST: Final = 10**9


class SimulatedWorld:
    """A cluster in virtual time, behind the three verbs of a world."""

    def __init__(self, scenario: Scenario, *, folder: Path | None = None) -> None:
        self._scenario = scenario
        cast = unfold(scenario)
        traces = TraceReader(folder)
        _check_traces(scenario, traces)
        demands = Demands(scenario.seed, traces=traces)
        fluid = Fluid(PoolTree(cast.inventory.pools), scenario.physics)
        truth = Truth(Snapshot.of(cast.inventory), fluid, demands, 1000 * scenario.duration_s)
        truth.drive(cast.loads)
        if self._work(demands, fluid) > WORTH_COMPILING:
            fluid.compile()
        self._demands = demands
        self._stage = Stage(scenario, truth)
        self._watch = Watch(self._stage)
        Turmoil(self._stage, Newcomers(self._stage, cast))
        self._sample()

    def observe(self) -> Snapshot:
        """Say how things are now, as far as monitoring can tell."""
        return self._stage.monitor.look()

    def perform(self, instruction: Instruction) -> None:
        """Begin an action, or break it off."""
        self._stage.doing.perform(instruction)

    def next_event(self, until_ms: int) -> Event | None:
        """Go to the next event, but not beyond ``until_ms``."""
        stage = self._stage
        event = stage.doing.answer_again()
        while event is None:
            next_ms = stage.calendar.next_ms
            if next_ms is None or next_ms > until_ms:
                stage.truth.advance(max(stage.now_ms, until_ms))
                return None
            at_ms, act = stage.calendar.pop()
            stage.truth.advance(max(stage.now_ms, at_ms))
            event = act()
        return event

    def truth(self) -> Snapshot:
        """How things really are; demands are those that were measured last."""
        return self._stage.truth.state.freeze()

    def record(self) -> Record:
        """The series of the run so far, and how things are now."""
        return self._watch.record()

    def measures(self) -> Measures:
        """What the run so far amounts to."""
        truth = self._stage.truth
        truth.fluid.add_up()
        truth.promises.advance(truth.now_ms)
        vms, hosts = truth.fluid.vms, truth.fluid.hosts
        energy = energy_of(hosts, self._scenario.cluster.power.tariff)
        target = self._scenario.measuring.imbalance_target
        return measure(vms, hosts, self.record(), target, energy, truth.promises.breaches)

    def _work(self, demands: Demands, fluid: Fluid) -> float:
        """About how often a VM's share will be worked out."""
        changes = demands.estimated_changes(1000 * self._scenario.duration_s)
        if changes > CHANGES_MOST:
            cure = "longer periods, fewer VMs or a shorter run"
            what = f"demand would change {changes:,} times, which would never end"
            raise InvalidInput(self._scenario.name, [Problem(key="loads", what=what, cure=cure)])
        samples = self._scenario.duration_s / self._scenario.measuring.sample_s
        vms, hosts = len(fluid.vm_row), max(1, len(fluid.host_row))
        return changes * vms / hosts + samples * vms

    def _sample(self) -> None:
        self._watch.sample()
        fluid = self._stage.truth.fluid
        fluid.refresh_pools()
        if not fluid.fast and self._work(self._demands, fluid) > WORTH_COMPILING:
            fluid.compile()  # it has grown
        at_ms = self._stage.now_ms + 1000 * self._scenario.measuring.sample_s
        self._stage.later(at_ms, Rank.SAMPLE, self._sample)


def _check_traces(scenario: Scenario, traces: TraceReader) -> None:
    """Read every trace before the run, so that all that is wrong with them is said at once."""
    found: list[Problem] = []
    for name, load in scenario.loads.items():
        for key in ("cpu_mhz", "memory_mib", "memory_pct"):
            for place, part in enumerate(getattr(load, key)):
                if isinstance(part, Trace):
                    try:
                        traces.read(part)
                    except InvalidInput as error:
                        where = f"loads.{name}.{key}[{place}]"
                        found += [Problem(key=where, what=one) for one in _sentences(error)]
    if found:
        raise InvalidInput(scenario.name, found)


def _sentences(error: InvalidInput) -> list[str]:
    return [f"{error.source}: {problem}" for problem in error.problems]
