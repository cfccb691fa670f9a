"""Playing a scenario: the same loop, gate and executor as on real hosts, on a simulated world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.control import Loop
from equipoise.control.config import ControlConfig
from equipoise.control.ports import Decider
from equipoise.model.action import Action, Migrate, PowerOff, PowerOn
from equipoise.model.event import ActionFinished, ActionStarted, Event, PlanAccepted, PlanEnded
from equipoise.model.plan import Violation
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import ControllerLost
from equipoise.plan import Refusal
from equipoise.sim.deciders import decider
from equipoise.sim.measure.measures import Measures
from equipoise.sim.measure.record import Record
from equipoise.sim.world import SimulatedWorld
from equipoise.store import Journal

COUNTED: Final = ("plan_accepted", "action_started", "action_finished", "plan_ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of a run."""

    scenario: Scenario
    ended_ms: int
    snapshot: Snapshot
    """What the loop believes in the end."""
    truth: Snapshot
    """How things really are in the end."""
    measures: Measures
    record: Record
    violations: tuple[Violation, ...]
    finished: Counter[type[Action]]
    """How many actions of each kind were carried out."""
    migrations_per_pass: tuple[int, ...]
    """How many migrations each accepted plan had."""
    plans: tuple[PlanEnded, ...]


class Play:
    """One run of a scenario, with the deciders it names and those that are given.

    ``folder`` is where the traces of the scenario are.
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
        self._given = deciders
        named = [decider(name, scenario) for name in scenario.deciders]
        self._world = SimulatedWorld(scenario, folder=folder)
        self._loop = self._new_loop(named)
        self._absences = sorted(
            (one for one in scenario.happenings if isinstance(one, ControllerLost)),
            key=lambda one: one.at_ms,
        )
        self._violations: tuple[Violation, ...] = ()
        if scenario.plan is not None:
            plan = scenario.plan.but(base_version=self._loop.snapshot().version)
            verdict = self._loop.submit(plan)
            self._violations = verdict.violations if isinstance(verdict, Refusal) else ()

    @property
    def now_ms(self) -> int:
        """The time in the simulated world."""
        return self._loop.now_ms

    def snapshot(self) -> Snapshot:
        """What the loop believes."""
        return self._loop.snapshot()

    def run(self, until_ms: int) -> None:
        """Go on to the given time; where the controller is lost, with a new one."""
        while self._absences and self._absences[0].at_ms <= until_ms:
            absence = self._absences.pop(0)
            if absence.at_ms >= self.now_ms:
                self._loop.run(absence.at_ms)
            back_ms = absence.at_ms + absence.for_ms
            while self._world.next_event(back_ms) is not None:
                pass  # nobody listens
            self._loop = self._new_loop(
                [decider(name, self.scenario) for name in self.scenario.deciders]
            )
        self._loop.run(until_ms)

    def _new_loop(self, named: Sequence[Decider]) -> Loop:
        config = ControlConfig(pass_interval_ms=1000 * self.scenario.pass_s)
        deciders = (*named, *self._given)
        return Loop(self._world, self._journal, deciders=deciders, config=config)

    def result(self) -> Result:
        """What has come out so far."""
        finished, migrations, plans = _counts(self._journal.events(kinds=COUNTED))
        return Result(
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
