"""The stage: what everybody in the simulated world shares. The truth, the time and what comes."""

from __future__ import annotations

from functools import partial

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
        self._slow: list[float] = []

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

    def slow_links(self, speed: float, for_ms: int) -> None:
        """All migration links become slower for a while; the slowest of such times counts."""
        self._slow.append(speed)
        self._set_link_speed()
        self.later(self.now_ms + for_ms, Rank.FAULT, partial(self._free_links, speed))

    def _free_links(self, speed: float) -> None:
        self._slow.remove(speed)
        self._set_link_speed()

    def _set_link_speed(self) -> None:
        if self.doing.copying is not None:
            self.doing.copying.set_speed(min(self._slow, default=1.0))
