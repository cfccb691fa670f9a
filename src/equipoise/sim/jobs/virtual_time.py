"""Virtual time of jobs: timers and parallel tasks, and the steps from one instant to the next.

Times are seconds in floating point, because the duration of a task is a quotient of its work and
a rate. ``SteppedTime`` adds up the steps as SimGrid does, so that its rounding, and with it the
grouping of events into instants, is the same. ``QueuedTime`` holds absolute times in the event
queue of the simulator, which is faster and exact for delays.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from operator import itemgetter
from typing import Final, Protocol

from equipoise.sim.jobs.fluid import Task, share
from equipoise.sim.world.event_queue import EventPriority, EventQueue

TIME_PRECISION: Final = 1e-9
"""Timers that are closer than this end in one step (SimGrid's value)."""

_PAIR: Final = 2
_PASSED_MAX: Final = 100

Callback = Callable[[], None]


class Activity:
    """A timer or a task that is under way."""

    __slots__ = ("callback", "number", "task")

    def __init__(self, callback: Callback, task: Task | None = None) -> None:
        self.callback: Callback | None = callback
        self.task = task
        self.number = 0
        """The place in the order of creation; ``SteppedTime`` sets it."""

    def fire(self) -> None:
        """Call back, unless the activity was cancelled."""
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class _Tasks:
    """The running tasks, with rates that are computed when they are needed."""

    def __init__(self, rates_changed: Callable[[], None] | None) -> None:
        self.running: dict[Activity, Task] = {}
        self.current = True
        """False if the rates must be computed again before time goes on."""
        self._rates_changed = rates_changed

    def add(self, activity: Activity, task: Task) -> None:
        self.running[activity] = task
        self.current = False

    def remove(self, activity: Activity) -> None:
        if self.running.pop(activity, None) is not None:
            self.current = False

    def refresh(self) -> None:
        """Recompute the rates if the set of tasks or a speed has changed."""
        if not self.current:
            share(list(self.running.values()))
            self.current = True
            if self._rates_changed:
                self._rates_changed()

    def invalidate(self) -> None:
        self.current = False

    def next_s(self) -> float:
        return min((task.time_left_s for task in self.running.values()), default=inf)

    def advance(self, delta_s: float) -> None:
        for task in self.running.values():
            had_latency = task.latency_s > 0
            task.advance(delta_s)
            if had_latency and task.latency_s <= 0:
                self.current = False


class VirtualTime(Protocol):
    """What the engine of jobs needs of time: timers, tasks, and the step to the next instant."""

    now_s: float

    def after(self, seconds: float, callback: Callback) -> Activity:
        """Call back after a time."""
        ...

    def at(self, at_s: float, callback: Callback) -> None:
        """Call back at a time that is not in the past."""
        ...

    def run_task(self, task: Task, callback: Callback) -> Activity:
        """Start a task and call back at its end."""
        ...

    def cancel(self, activity: Activity) -> None:
        """End a timer or a task without its callback."""
        ...

    def speeds_changed(self) -> None:
        """Recompute the rates of tasks before time goes on."""
        ...

    def running_tasks(self) -> Iterable[Task]:
        """Return the tasks that are under way."""
        ...

    def step(self) -> bool:
        """Go to the next instant and run all that is due then; False if nothing is left."""
        ...


class QueuedTimers:
    """Timers at absolute times in the event queue."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._queue: EventQueue[float] = EventQueue()

    def after(self, seconds: float, callback: Callback) -> Activity:
        """Call back after a time."""
        activity = Activity(callback)
        self._queue.schedule(self.now_s + seconds, EventPriority.END, activity.fire)
        return activity

    def at(self, at_s: float, callback: Callback) -> None:
        """Call back at a time that is not in the past."""
        self._queue.schedule(at_s, EventPriority.CHANGE, callback)


class QueuedTime(QueuedTimers):
    """Timers and tasks. Activities of one instant end in the order of creation."""

    def __init__(self, rates_changed: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._tasks = _Tasks(rates_changed)

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
        # After the last task the loads of hosts fall, so its end counts too.
        if self._tasks.running or not self._tasks.current:
            return self._step_with_tasks(inf if next_s is None else next_s)
        if next_s is None:
            return False
        self.now_s = next_s
        queue.run_instant(next_s)
        return True

    def _step_with_tasks(self, next_timer_s: float) -> bool:
        self._tasks.refresh()
        delta_s = self._tasks.next_s()
        next_s = min(next_timer_s, self.now_s + delta_s)
        if next_s == inf:
            return False
        # The rest of a task may be too short to change the time, but the task must go on.
        self._tasks.advance(min(delta_s, next_timer_s - self.now_s))
        self.now_s = next_s
        # A task that ends at the instant of its walltime has succeeded, so tasks come first.
        for activity, task in list(self._tasks.running.items()):
            # A rest that is too short for the precision of the clock would never pass.
            is_over = task.remaining <= 0 or next_s + task.time_left_s == next_s
            if is_over and activity in self._tasks.running:
                self._tasks.remove(activity)
                activity.fire()
        while self._queue.next_at == next_s:
            self._queue.pop()[1]()
        return True


class SteppedTime:
    """Timers and tasks; each step shortens all of them, as SimGrid does."""

    def __init__(self, rates_changed: Callable[[], None] | None = None) -> None:
        self.now_s = 0.0
        self._timers: list[Activity] = []
        self._left_s: list[float] = []
        """The time to each timer, the first one first, before the steps of ``_passed_s``; a list is
        shortened at the speed of C."""
        self._passed_s: list[float] = []
        """Steps by which the times to timers are still to be shortened, each in turn."""
        self._first_s = inf
        """The time to the first timer."""
        self._instant: list[tuple[int, Callback]] = []
        """What the next step calls back, with its place in the order of creation."""
        self._count = 0
        self._tasks = _Tasks(rates_changed)

    def after(self, seconds: float, callback: Callback) -> Activity:
        """Call back after a time."""
        left_s = max(seconds, 0.0)
        activity = Activity(callback)
        self._count = activity.number = self._count + 1
        others_s = self._shortened()
        place = bisect_right(others_s, left_s)
        others_s.insert(place, left_s)
        self._timers.insert(place, activity)
        self._first_s = others_s[0]
        return activity

    def at(self, at_s: float, callback: Callback) -> None:
        """Call back at a time that is not in the past."""
        self.after(at_s - self.now_s, callback)

    def call_next(self, callback: Callback) -> None:
        """Call back in the next step, at the present time, like the end of a task without work."""
        self._count += 1
        self._instant.append((self._count, callback))

    def run_task(self, task: Task, callback: Callback) -> Activity:
        """Start a task and call back at its end."""
        activity = self._number(Activity(callback, task=task))
        self._tasks.add(activity, task)
        return activity

    def _number(self, activity: Activity) -> Activity:
        self._count += 1
        activity.number = self._count
        return activity

    def cancel(self, activity: Activity) -> None:
        """End a timer or a task without its callback."""
        activity.callback = None
        if activity.task is not None:
            self._tasks.remove(activity)
        elif activity in self._timers:
            index = self._timers.index(activity)
            del self._timers[index]
            left_s = self._shortened()
            del left_s[index]
            self._first_s = left_s[0] if left_s else inf

    def speeds_changed(self) -> None:
        """Recompute the rates of tasks before time goes on."""
        self._tasks.invalidate()

    def running_tasks(self) -> Iterable[Task]:
        """Return the tasks that are under way."""
        return self._tasks.running.values()

    def is_still_for(self, seconds: float) -> bool:
        """True if nothing that is under way ends now, or within a time if that is not zero."""
        tasks = self._tasks
        if self._first_s < seconds + 2 * TIME_PRECISION or self._instant:
            return False
        return tasks.current and not (seconds > 0 and tasks.running)

    def pass_still(self, seconds: float) -> None:
        """Let a time pass, in which nothing ends, as the step to the end of a timer does."""
        self.now_s += seconds
        due = self._advance_timers(seconds)
        assert not due, "the time is still"

    def step(self) -> bool:
        """Go to the next instant and run all that is due then."""
        instant, self._instant = self._instant, []
        # A step that takes no time changes no timer and no task that had a step already.
        if instant and self._tasks.current and self._first_s >= TIME_PRECISION:
            for _, callback in instant:
                callback()
            return True
        self._tasks.refresh()
        tasks = self._tasks.running
        delta_s = 0.0 if instant else min(self._first_s, self._tasks.next_s() if tasks else inf)
        if delta_s == inf:
            return False
        self.now_s += delta_s
        due = self._advance_timers(delta_s)
        if tasks:
            self._tasks.advance(delta_s)
            due += [task_id for task_id, task in tasks.items() if task.remaining <= 0]
        if instant:
            self._fire_in_order(instant, due)
            return True
        if len(due) > 1:
            due.sort(key=_creation)
        for activity in due:
            self._fire(activity)
        return True

    def _fire_in_order(self, instant: list[tuple[int, Callback]], due: list[Activity]) -> None:
        numbered = list(instant)
        numbered += [(activity.number, partial(self._fire, activity)) for activity in due]
        for _, callback in sorted(numbered, key=itemgetter(0)):
            callback()

    def _fire(self, activity: Activity) -> None:
        callback = activity.callback
        if callback is not None:  # an earlier callback may have cancelled it
            activity.callback = None
            if activity.task is not None:
                self._tasks.remove(activity)
            callback()

    def _advance_timers(self, delta_s: float) -> list[Activity]:
        """Shorten all timers; return those that are due.

        A rounded difference keeps the order of two numbers. So the first timer stays the first one,
        and the others are shortened when one of them is needed.
        """
        self._passed_s.append(delta_s)
        first_s = self._first_s - delta_s
        if first_s >= TIME_PRECISION:
            self._first_s = first_s
            if len(self._passed_s) > _PASSED_MAX:
                self._shortened()
            return []
        left_s = self._shortened()
        count = bisect_left(left_s, TIME_PRECISION)
        due = self._timers[:count]
        del self._timers[:count], left_s[:count]
        self._first_s = left_s[0] if left_s else inf
        return due

    def _shortened(self) -> list[float]:
        """Return the times to all timers after the steps that have passed."""
        passed_s = self._passed_s
        if passed_s:
            left_s = self._left_s
            if len(passed_s) == _PAIR:  # a reply and the time up to the next event, most often
                first_s, second_s = passed_s
                left_s = [timer_s - first_s - second_s for timer_s in left_s]
            else:
                for delta_s in passed_s:
                    left_s = [timer_s - delta_s for timer_s in left_s]
            passed_s.clear()
            self._left_s = left_s
        return self._left_s


def _creation(activity: Activity) -> int:
    return activity.number
