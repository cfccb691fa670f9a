"""The stage: what everybody in the simulated world shares. The truth, the time and what comes."""

from __future__ import annotations

from equipoise.model.event import Event
from equipoise.model.story.scenario import Scenario
from equipoise.sim.calendar import Act, Calendar, Rank
from equipoise.sim.doing import Doing
from equipoise.sim.monitor import Monitor
from equipoise.sim.truth import Truth


class Stage:
    """One world with one clock."""

    def __init__(self, scenario: Scenario, truth: Truth) -> None:
        self.scenario = scenario
        self.truth = truth
        self.calendar = Calendar()
        self.doing = Doing(scenario, truth, self.calendar)
        self.monitor = Monitor(truth, 1000 * scenario.measuring.window_s)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.truth.now_ms

    def later(self, at_ms: int, rank: Rank, act: Act) -> None:
        """Let something happen at its time."""
        self.calendar.write(at_ms, rank, act)

    def happen(self, event: Event) -> Event:
        """Something happens now; whatever it ends is forgotten."""
        self.truth.happen(event)
        self.doing.forget_lost()
        return event

    def go_blind(self, for_ms: int) -> None:
        """Nobody measures for a while."""
        until_ms = self.now_ms + for_ms
        self.monitor.blind_until_ms = max(self.monitor.blind_until_ms, until_ms)

    def set_link_speed(self, speed: float) -> None:
        """All migration links become slower or faster."""
        if self.doing.copying is not None:
            self.doing.copying.set_speed(speed)
