"""Runs a scenario: the same loop, gate and executor as on real hosts, on a simulated world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.control import ControlLoop
from equipoise.control.config import ControlConfig
from equipoise.control.ports import Decider
from equipoise.model.action import Action, Migrate, PowerOff, PowerOn
from equipoise.model.event import ActionFinished, ActionStarted, Event, PlanAccepted, PlanEnded
from equipoise.model.plan import Violation
from equipoise.model.scenario.faults import ControllerLost
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal
from equipoise.sim.measure.measures import Measures
from equipoise.sim.measure.sampling import RunRecord
from equipoise.sim.plugins import load_decider
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import Journal

COUNTED_KINDS: Final = ("plan_accepted", "action_started", "action_finished", "plan_ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """The final state and the figures of a run."""

    scenario: Scenario
    ended_ms: int
    snapshot: Snapshot
    """The final state as the control loop knows it."""
    truth: Snapshot
    """The final state of the simulated cluster."""
    measures: Measures
    record: RunRecord
    violations: tuple[Violation, ...]
    finished: Counter[type[Action]]
    """The number of finished actions, by kind."""
    migrations_per_pass: tuple[int, ...]
    """The number of migrations in each accepted plan."""
    plans: tuple[PlanEnded, ...]


class ScenarioRunner:
    """One run of a scenario, with the deciders that it names and ``deciders`` besides.

    ``folder`` holds the traces of the scenario.
    """

    def __init__(
        self,
        scenario: Scenario,
        journal: Journal,
        *,
        folder: Path | None = None,
        deciders: Sequence[Decider] = (),
    ) -> None:
        self.scenario = scenario
        self._journal = journal
        self._extra_deciders = deciders
        named = [load_decider(name, scenario) for name in scenario.deciders]
        self._world = SimulatedWorld(scenario, folder=folder)
        self._loop = self._new_loop(named)
        self._controller_outages = sorted(
            (event for event in scenario.events if isinstance(event, ControllerLost)),
            key=lambda outage: outage.at_ms,
        )
        self._violations: tuple[Violation, ...] = ()
        if scenario.plan is not None:
            plan = scenario.plan.but(base_version=self._loop.snapshot().version)
            verdict = self._loop.submit(plan)
            self._violations = verdict.violations if isinstance(verdict, Refusal) else ()

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self._loop.now_ms

    def snapshot(self) -> Snapshot:
        """Return the state as the control loop knows it."""
        return self._loop.snapshot()

    def run(self, until_ms: int) -> None:
        """Run to the given time; after an outage of the controller, a new loop continues."""
        while self._controller_outages and self._controller_outages[0].at_ms <= until_ms:
            outage = self._controller_outages.pop(0)
            if outage.at_ms >= self.now_ms:
                self._loop.run(outage.at_ms)
            back_ms = outage.at_ms + outage.for_ms
            while self._world.next_event(back_ms) is not None:
                pass  # no controller receives the events of an outage
            self._loop = self._new_loop(
                [load_decider(name, self.scenario) for name in self.scenario.deciders]
            )
        self._loop.run(until_ms)

    def _new_loop(self, named: Sequence[Decider]) -> ControlLoop:
        config = ControlConfig(
            pass_interval_ms=1000 * self.scenario.pass_s,
            pass_delay_ms=1000 * self.scenario.pass_delay_s,
        )
        deciders = (*named, *self._extra_deciders)
        return ControlLoop(self._world, self._journal, deciders=deciders, config=config)

    def result(self) -> SimulationResult:
        """Return the figures of the run so far."""
        finished, migrations, plans = _counts(self._journal.events(kinds=COUNTED_KINDS))
        return SimulationResult(
            scenario=self.scenario,
            ended_ms=self.now_ms,
            snapshot=self._loop.snapshot(),
            truth=self._world.truth(),
            measures=self._world.measures(),
            record=self._world.record(),
            violations=self._violations,
            finished=finished,
            migrations_per_pass=migrations,
            plans=plans,
        )


def _counts(
    events: Iterable[Event],
) -> tuple[Counter[type[Action]], tuple[int, ...], tuple[PlanEnded, ...]]:
    kinds: dict[str, type[Action]] = {}
    finished: Counter[type[Action]] = Counter({Migrate: 0, PowerOn: 0, PowerOff: 0})
    migrations, plans = [], []
    for event in events:
        match event:
            case PlanAccepted():
                migrations.append(sum(isinstance(s.action, Migrate) for s in event.plan.steps))
            case ActionStarted():
                kinds[event.step.id] = type(event.step.action)
            case ActionFinished():
                finished[kinds[event.step]] += 1
            case PlanEnded():
                plans.append(event)
            case _:
                pass
    return finished, tuple(migrations), tuple(plans)
