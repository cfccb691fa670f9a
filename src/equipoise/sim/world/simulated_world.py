"""The simulated world: hosts and VMs that behave as the scenario says, in virtual time.

Time advances from event to event. Demand and usage change between events, without an event of their
own. An observer sees what a monitoring system would show, and receives events as they come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from equipoise.capacity.pool_tree import PoolTree
from equipoise.control.ports import Instruction
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.event import Event
from equipoise.model.scenario.load import TraceLoad
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.sim.allocation.allocator import ResourceAllocator
from equipoise.sim.expand import expand
from equipoise.sim.load import LoadDemands, TraceReader
from equipoise.sim.measure.measures import Measures, compute_energy, compute_measures
from equipoise.sim.measure.sampling import RunRecord, RunSampler
from equipoise.sim.world.arrivals import Arrivals
from equipoise.sim.world.context import SimulationContext
from equipoise.sim.world.event_queue import EventPriority
from equipoise.sim.world.fault_injection import FaultInjector
from equipoise.sim.world.ground_truth import GroundTruth

COMPILE_FROM_CHANGES: Final = 20_000
"""From about so many changes, each times the VMs on a host, compiled kernels are faster."""
CHANGES_MAX: Final = 10**9
"""A run with more changes of demand would take days."""


class SimulatedWorld:
    """A cluster in virtual time, with the three methods of a world."""

    def __init__(self, scenario: Scenario, *, folder: Path | None = None) -> None:
        self._scenario = scenario
        expanded = expand(scenario)
        traces = TraceReader(folder)
        _check_traces(scenario, traces)
        demands = LoadDemands(scenario.seed, traces=traces)
        allocator = ResourceAllocator(PoolTree(expanded.inventory.pools), scenario.physics)
        truth = GroundTruth(
            Snapshot.of(expanded.inventory), allocator, demands, 1000 * scenario.duration_s
        )
        truth.attach_loads(expanded.loads)
        if self._estimated_work(demands, allocator) > COMPILE_FROM_CHANGES:
            allocator.compile()
        self._demands = demands
        self._context = SimulationContext(scenario, truth)
        self._sampler = RunSampler(self._context)
        FaultInjector(self._context, Arrivals(self._context, expanded))
        self._sample()

    def observe(self) -> Snapshot:
        """Return the current state, as monitoring shows it."""
        return self._context.monitor.observe()

    def perform(self, instruction: Instruction) -> None:
        """Start an action, or cancel it."""
        self._context.action_runner.perform(instruction)

    def next_event(self, until_ms: int) -> Event | None:
        """Advance to the next event and return it; ``None`` if there is none by ``until_ms``."""
        context = self._context
        event = context.action_runner.next_repeated_answer()
        while event is None:
            next_ms = context.event_queue.next_at
            if next_ms is None or next_ms > until_ms:
                context.truth.advance(max(context.now_ms, until_ms))
                return None
            at_ms, callback = context.event_queue.pop()
            context.truth.advance(max(context.now_ms, at_ms))
            event = callback()
        return event

    def truth(self) -> Snapshot:
        """Return the true state; demands are those of the last measurement."""
        return self._context.truth.state.freeze()

    def record(self) -> RunRecord:
        """Return the samples of the run so far, with one of now."""
        return self._sampler.record()

    def measures(self) -> Measures:
        """Return the figures of the run so far."""
        truth = self._context.truth
        truth.allocator.update_totals()
        truth.sla_tracker.advance(truth.now_ms)
        vms, hosts = truth.allocator.vms, truth.allocator.hosts
        energy = compute_energy(hosts, self._scenario.cluster.power.tariff)
        target = self._scenario.measuring.imbalance_target
        return compute_measures(
            vms, hosts, self.record(), target, energy, truth.sla_tracker.breaches
        )

    def _estimated_work(self, demands: LoadDemands, allocator: ResourceAllocator) -> float:
        """Estimate how often the share of a VM is computed in the run."""
        changes = demands.estimated_changes(1000 * self._scenario.duration_s)
        if changes > CHANGES_MAX:
            raise InvalidInput.of(
                self._scenario.name,
                f"demand changes {changes:,} times, and the limit is {CHANGES_MAX:,}",
                key="loads",
                cure="use longer periods, fewer VMs or a shorter run",
                code="too-many-changes",
            )
        samples = self._scenario.duration_s / self._scenario.measuring.sample_s
        vms, hosts = len(allocator.vm_row), max(1, len(allocator.host_row))
        return changes * vms / hosts + samples * vms

    def _sample(self) -> None:
        self._sampler.sample()
        allocator = self._context.truth.allocator
        allocator.refresh_pools()
        if (
            not allocator.fast
            and self._estimated_work(self._demands, allocator) > COMPILE_FROM_CHANGES
        ):
            allocator.compile()  # the cluster has grown since the start
        at_ms = self._context.now_ms + 1000 * self._scenario.measuring.sample_s
        self._context.schedule(at_ms, EventPriority.SAMPLE, self._sample)


def _check_traces(scenario: Scenario, traces: TraceReader) -> None:
    """Read every trace before the run; raise ``InvalidInput`` with the problems of all."""
    problems: list[InputProblem] = []
    for name, load in scenario.loads.items():
        for key in ("cpu_mhz", "memory_mib", "memory_pct"):
            for index, part in enumerate(getattr(load, key)):
                if isinstance(part, TraceLoad):
                    try:
                        traces.read(part)
                    except InvalidInput as error:
                        path = f"loads.{name}.{key}[{index}]"
                        problems += (
                            InputProblem(
                                key=path, what=f"{error.source}: {problem}", code=problem.code
                            )
                            for problem in error.problems
                        )
    if problems:
        raise InvalidInput(scenario.name, problems)
