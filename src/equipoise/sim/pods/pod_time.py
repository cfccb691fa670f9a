"""The virtual time of a cluster of pods: whole milliseconds, and timers that can be cancelled."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.sim.world.event_queue import Callback, EventPriority, EventQueue


class PodTimer:
    """An entry of the queue that can be cancelled."""

    __slots__ = ("_action", "at_ms")

    def __init__(self, at_ms: int, action: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self._action: Callable[[], None] | None = action

    def __call__(self) -> None:
        """Run the action, unless the timer was cancelled."""
        action, self._action = self._action, None
        if action is not None:
            action()

    def cancel(self) -> None:
        """Never run the action."""
        self._action = None

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled or has run."""
        return self._action is None


def _is_cancelled(callback: Callback) -> bool:
    return isinstance(callback, PodTimer) and callback.is_cancelled


class PodTime:
    """Now, and what is due later. Calling it gives the present time in milliseconds."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._queue: EventQueue[int] = EventQueue()

    def __call__(self) -> int:
        """Return the present time."""
        return self.now_ms

    def at(
        self,
        at_ms: int,
        action: Callable[[], None],
        priority: EventPriority = EventPriority.CHANGE,
    ) -> PodTimer:
        """Run an action at a time that is not in the past."""
        assert at_ms >= self.now_ms, "time does not go back"
        timer = PodTimer(at_ms, action)
        self._queue.schedule(at_ms, priority, timer)
        return timer

    def next_ms(self) -> int | None:
        """Return the time of the next action; None if there is none."""
        self._queue.drop_leading(_is_cancelled)
        return self._queue.next_at

    def advance(self, to_ms: int, settle: Callable[[], None] | None = None) -> None:
        """Run all actions up to a time, and those of that time, in their order.

        ``settle`` is called when the actions of an instant have run; it may add more of them.
        """
        assert to_ms >= self.now_ms, "time does not go back"
        while (at_ms := self.next_ms()) is not None and at_ms <= to_ms:
            self.now_ms = at_ms
            self._queue.run_instant(at_ms)
            if settle is not None:
                settle()
        self.now_ms = to_ms

    def step(self) -> None:
        """Run the next action only, at its time."""
        at_ms = self.next_ms()
        assert at_ms is not None, "there is a next action"
        self.now_ms = at_ms
        self._queue.pop()[1]()

    def pass_to(self, to_ms: int) -> None:
        """Let time pass in which nothing happens."""
        at_ms = self.next_ms()
        assert at_ms is None or at_ms >= to_ms, "something happens before"
        self.now_ms = max(to_ms, self.now_ms)
