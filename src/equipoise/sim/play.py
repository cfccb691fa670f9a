"""Playing a scenario: the same loop, gate and executor as on real hosts, on a simulated world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from equipoise.control import Loop
from equipoise.control.config import ControlConfig
from equipoise.control.ports import Decider
from equipoise.errors import InvalidInput, Problem
from equipoise.model.action import Action, Migrate, PowerOff, PowerOn
from equipoise.model.event import ActionFinished, ActionStarted, Event, PlanEnded
from equipoise.model.plan import Violation
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.plan import Refusal
from equipoise.sim.measures import Measures
from equipoise.sim.record import Record
from equipoise.sim.stand_ins import Restart, Shuffle
from equipoise.sim.world import SimulatedWorld
from equipoise.store import Journal

DECIDERS: Final[dict[str, Callable[[Scenario], Decider]]] = {
    "restart": lambda scenario: Restart(scenario.estimates),
    "shuffle": lambda scenario: Shuffle(scenario.estimates, scenario.seed),
}
COUNTED: Final = ("action_started", "action_finished", "plan_ended")
EXPECTED: Final = ("balance", "power")
"""Deciders that runs can do without; they are not part of this version."""


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
    plans: tuple[PlanEnded, ...]


class Play:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, journal: Journal, *, folder: Path | None = None) -> None:
        self.scenario = scenario
        self._journal = journal
        deciders = [decider(scenario, name) for name in scenario.deciders]
        self._world = SimulatedWorld(scenario, folder=folder)
        config = ControlConfig(pass_interval_ms=1000 * scenario.pass_s)
        self._loop = Loop(self._world, journal, deciders=deciders, config=config)
        self._violations: tuple[Violation, ...] = ()
        if scenario.plan is not None:
            plan = scenario.plan.but(base_version=self._loop.snapshot().version)
            verdict = self._loop.submit(plan)
            self._violations = verdict.violations if isinstance(verdict, Refusal) else ()

    @property
    def now_ms(self) -> int:
        """The time in the simulated world."""
        return self._loop.now_ms

    def run(self, until_ms: int) -> None:
        """Go on to the given time."""
        self._loop.run(until_ms)

    def result(self) -> Result:
        """What has come out so far."""
        finished, plans = _counts(self._journal.events(kinds=COUNTED))
        return Result(
            scenario=self.scenario,
            ended_ms=self.now_ms,
            snapshot=self._loop.snapshot(),
            truth=self._world.observe(),
            measures=self._world.measures(),
            record=self._world.record(),
            violations=self._violations,
            finished=finished,
            plans=plans,
        )


def decider(scenario: Scenario, name: str) -> Decider:
    """Make a decider by its name."""
    if name in DECIDERS:
        return DECIDERS[name](scenario)
    known = tuple(DECIDERS)
    close = get_close_matches(name, known, n=1)
    cure = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
    what = f"there is no decider {name!r}"
    if name in EXPECTED:
        what, cure = f"the decider {name!r} is not part of this version", "leave it out"
    raise InvalidInput(scenario.name, [Problem(key="deciders", what=what, cure=cure)])


def _counts(events: Iterable[Event]) -> tuple[Counter[type[Action]], tuple[PlanEnded, ...]]:
    kinds: dict[str, type[Action]] = {}
    finished: Counter[type[Action]] = Counter({Migrate: 0, PowerOn: 0, PowerOff: 0})
    plans = []
    for event in events:
        match event:
            case ActionStarted():
                kinds[event.step.id] = type(event.step.action)
            case ActionFinished():
                finished[kinds[event.step]] += 1
            case PlanEnded():
                plans.append(event)
            case _:
                pass
    return finished, tuple(plans)
