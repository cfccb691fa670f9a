"""What all parts of a simulated world share: the ground truth, the clock, the event queue."""

from __future__ import annotations

from functools import partial

from equipoise.model.event import Event
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.world.action_runner import ActionRunner
from equipoise.sim.world.event_queue import Callback, EventPriority, EventQueue
from equipoise.sim.world.ground_truth import GroundTruth, Monitor


class SimulationContext:
    """The parts of one simulated world, which share one clock."""

    def __init__(self, scenario: Scenario, truth: GroundTruth) -> None:
        self.scenario = scenario
        self.truth = truth
        self.event_queue: EventQueue[int] = EventQueue()
        self.action_runner = ActionRunner(scenario, truth, self.event_queue)
        self.monitor = Monitor(truth, 1000 * scenario.measuring.window_s)
        self._link_speeds: list[float] = []

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self.truth.now_ms

    def schedule(self, at_ms: int, priority: EventPriority, callback: Callback) -> None:
        """Call ``callback`` at a time."""
        self.event_queue.schedule(at_ms, priority, callback)

    def apply_event(self, event: Event) -> Event:
        """Apply an event now, and drop the migrations that it ends."""
        self.truth.apply_event(event)
        self.action_runner.drop_ended()
        return event

    def start_monitoring_gap(self, for_ms: int) -> None:
        """Stop measuring for a while; overlapping gaps end with the last of them."""
        until_ms = self.now_ms + for_ms
        self.monitor.gap_until_ms = max(self.monitor.gap_until_ms, until_ms)

    def slow_links(self, speed: float, for_ms: int) -> None:
        """Slow all migration links for a while; of overlapping periods the slowest counts."""
        self._link_speeds.append(speed)
        self._set_link_speed()
        self.schedule(
            self.now_ms + for_ms, EventPriority.FAULT, partial(self._restore_links, speed)
        )

    def _restore_links(self, speed: float) -> None:
        # One entry per period: equal speeds of overlapping periods are removed one by one.
        self._link_speeds.remove(speed)
        self._set_link_speed()

    def _set_link_speed(self) -> None:
        self.action_runner.set_link_speed(min(self._link_speeds, default=1.0))
