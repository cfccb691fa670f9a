"""Virtual time of jobs: timers and parallel tasks, and the steps from one instant to the next.

Times are seconds in floating point, because the duration of a task is a quotient of its work and
a rate. ``SteppedTime`` adds up the steps as SimGrid does, so that its rounding, and with it the
grouping of events into instants, is the same. ``QueuedTime`` holds absolute times in the event
queue of the simulator, which is faster and exact for delays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from equipoise.sim.jobs.fluid import Task, share
from equipoise.sim.world.event_queue import EventPriority, EventQueue

_TIME_PRECISION: Final = 1e-9
"""Timers that are closer than this end in one step (SimGrid's value)."""

Callback = Callable[[], None]


class Activity:
    """A timer or a task that is under way."""

    __slots__ = ("callback", "left_s", "task")

    def __init__(self, callback: Callback, left_s: float = inf, task: Task | None = None) -> None:
        self.callback: Callback | None = callback
        self.left_s = left_s
        self.task = task

    def fire(self) -> None:
        """Call back, unless the activity was cancelled."""
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class _Tasks:
    """The running tasks, with rates that are computed when they are needed."""

    def __init__(self, rates_changed: Callable[[], None] | None) -> None:
        self.running: dict[Activity, Task] = {}
        self._current = True
        self._rates_changed = rates_changed

    def add(self, activity: Activity, task: Task) -> None:
        self.running[activity] = task
        self._current = False

    def remove(self, activity: Activity) -> None:
        if self.running.pop(activity, None) is not None:
            self._current = False

    def refresh(self) -> None:
        """Recompute the rates if the set of tasks or a speed has changed."""
        if not self._current:
            share(list(self.running.values()))
            self._current = True
            if self._rates_changed:
                self._rates_changed()

    def invalidate(self) -> None:
        self._current = False

    def next_s(self) -> float:
        return min((task.time_left_s for task in self.running.values()), default=inf)

    def advance(self, delta_s: float) -> None:
        for task in self.running.values():
            had_latency = task.latency_s > 0
            task.advance(delta_s)
            if had_latency and task.latency_s <= 0:
                self._current = False


class QueuedTime:
    """Absolute times in the event queue. Activities of one instant end in the order of creation."""

    def __init__(self, rates_changed: Callable[[], None] | None = None) -> None:
        self.now_s = 0.0
        self._queue: EventQueue[float] = EventQueue()
        self._tasks = _Tasks(rates_changed)

    def after(self, seconds: float, callback: Callback) -> Activity:
        """Call back after a time."""
        activity = Activity(callback)
        self._queue.schedule(self.now_s + seconds, EventPriority.END, activity.fire)
        return activity

    def at(self, at_s: float, callback: Callback) -> None:
        """Call back at a time that is not in the past."""
        self._queue.schedule(at_s, EventPriority.CHANGE, callback)

    def run_task(self, task: Task, callback: Callback) -> Activity:
        """Start a task and call back at its end."""
        activity = Activity(callback, task=task)
        self._tasks.add(activity, task)
        return activity

    def cancel(self, activity: Activity) -> None:
        """End a timer or a task without its callback."""
        activity.callback = None
        if activity.task is not None:
            self._tasks.remove(activity)

    def speeds_changed(self) -> None:
        """Recompute the rates of tasks before time goes on."""
        self._tasks.invalidate()

    def running_tasks(self) -> Iterable[Task]:
        """Return the tasks that are under way."""
        return self._tasks.running.values()

    def step(self) -> bool:
        """Go to the next instant and run all that is due then."""
        queue = self._queue
        next_s = queue.next_at
        if self._tasks.running:
            return self._step_with_tasks(inf if next_s is None else next_s)
        if next_s is None:
            return False
        self.now_s = next_s
        while queue.next_at == next_s:
            queue.pop()[1]()
        return True

    def _step_with_tasks(self, next_timer_s: float) -> bool:
        self._tasks.refresh()
        next_s = min(next_timer_s, self.now_s + self._tasks.next_s())
        if next_s == inf:
            return False
        self._tasks.advance(next_s - self.now_s)
        self.now_s = next_s
        # A task that ends at the instant of its walltime has succeeded, so tasks come first.
        for activity, task in list(self._tasks.running.items()):
            if task.remaining <= 0 and activity in self._tasks.running:
                self._tasks.remove(activity)
                activity.fire()
        while self._queue.next_at == next_s:
            self._queue.pop()[1]()
        return True


class SteppedTime:
    """All activities in one list, in the order of creation; each step shortens all of them."""

    def __init__(self, rates_changed: Callable[[], None] | None = None) -> None:
        self.now_s = 0.0
        self._activities: dict[Activity, None] = {}
        self._tasks = _Tasks(rates_changed)

    def after(self, seconds: float, callback: Callback) -> Activity:
        """Call back after a time."""
        activity = Activity(callback, max(seconds, 0.0))
        self._activities[activity] = None
        return activity

    def at(self, at_s: float, callback: Callback) -> None:
        """Call back at a time that is not in the past."""
        self.after(at_s - self.now_s, callback)

    def run_task(self, task: Task, callback: Callback) -> Activity:
        """Start a task and call back at its end."""
        activity = Activity(callback, task=task)
        self._activities[activity] = None
        self._tasks.add(activity, task)
        return activity

    def cancel(self, activity: Activity) -> None:
        """End a timer or a task without its callback."""
        activity.callback = None
        self._activities.pop(activity, None)
        self._tasks.remove(activity)

    def speeds_changed(self) -> None:
        """Recompute the rates of tasks before time goes on."""
        self._tasks.invalidate()

    def running_tasks(self) -> Iterable[Task]:
        """Return the tasks that are under way."""
        return self._tasks.running.values()

    def step(self) -> bool:
        """Go to the next instant and run all that is due then."""
        self._tasks.refresh()
        delta_s = min((each.left_s for each in self._activities), default=inf)
        delta_s = min(delta_s, self._tasks.next_s())
        if delta_s == inf:
            return False
        self.now_s += delta_s
        self._tasks.advance(delta_s)
        due = []
        for activity in self._activities:
            if activity.task is None:
                left = activity.left_s - delta_s
                activity.left_s = left if left >= _TIME_PRECISION else 0.0
                if activity.left_s <= 0:
                    due.append(activity)
            elif activity.task.remaining <= 0:
                due.append(activity)
        for activity in due:
            callback = activity.callback
            if callback is not None:  # an earlier callback may have cancelled it
                self.cancel(activity)
                callback()
        return True
