"""Stepped time gives the same instants and order as a plain scan of all activities."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from equipoise.sim.jobs.fluid import SharedResource, Task, share
from equipoise.sim.jobs.virtual_time import SteppedTime

PRECISION = 1e-9


class PlainTime:
    """All activities in one list; each step shortens all of them and fires those that are due."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.entries: list[dict[str, Any]] = []

    def after(self, seconds: float, callback: Callable[[], None]) -> dict[str, Any]:
        return self._add(callback, max(seconds, 0.0), None)

    def call_next(self, callback: Callable[[], None]) -> None:
        self._add(callback, inf, Task({}))

    def run_task(self, task: Task, callback: Callable[[], None]) -> dict[str, Any]:
        return self._add(callback, inf, task)

    def _add(self, callback: Any, left_s: float, task: Task | None) -> dict[str, Any]:
        entry = {"callback": callback, "left_s": left_s, "task": task}
        self.entries.append(entry)
        return entry

    def cancel(self, entry: dict[str, Any]) -> None:
        self.entries = [each for each in self.entries if each is not entry]
        entry["callback"] = None

    def step(self) -> bool:
        tasks = [each["task"] for each in self.entries if each["task"] is not None]
        share(tasks)
        delta_s = min((each["left_s"] for each in self.entries), default=inf)
        delta_s = min([delta_s, *(task.time_left_s for task in tasks)])
        if delta_s == inf:
            return False
        self.now_s += delta_s
        for task in tasks:
            task.advance(delta_s)
        due = []
        for entry in self.entries:
            if entry["task"] is None:
                left = entry["left_s"] - delta_s
                entry["left_s"] = left if left >= PRECISION else 0.0
            if entry["left_s"] <= 0 or (entry["task"] and entry["task"].remaining <= 0):
                due.append(entry)
        for entry in due:
            callback = entry["callback"]
            if callback is not None:
                self.cancel(entry)
                callback()
        return True


DELAYS = st.sampled_from([0.0, 1e-10, 1e-10, 1e-9, 0.1, 0.2, 0.3, 0.7, 1 / 3, 1e6])
ACTIONS = st.one_of(
    st.tuples(st.just("timer"), DELAYS),
    st.tuples(st.just("next"), st.just(0.0)),
    st.tuples(st.just("task"), st.floats(0.1, 30)),
    st.tuples(st.just("late task"), st.sampled_from([1e-9, 1e-5, 0.1])),
    st.tuples(st.just("cancel"), st.sampled_from([0.0, 0.5, 1.0])),
)


def play(time: Any, script: list[list[tuple[str, float]]]) -> list[tuple[float, int]]:
    """Execute a list of actions at the start and after each callback; return what was fired."""
    fired: list[tuple[float, int]] = []
    open_ones: list[Any] = []
    resource = SharedResource(3.0)
    steps = iter(script)
    numbers = iter(range(1_000_000))

    def act() -> None:
        for kind, value in next(steps, []):
            if kind == "cancel":
                if open_ones:
                    time.cancel(open_ones.pop(int(value * (len(open_ones) - 1))))
                continue
            number = next(numbers)

            def fire(number: int = number) -> None:
                fired.append((time.now_s, number))
                act()

            if kind == "timer":
                open_ones.append(time.after(value, fire))
            elif kind == "next":
                time.call_next(fire)
            elif kind == "task":
                open_ones.append(time.run_task(Task({resource: value}), fire))
            else:
                open_ones.append(time.run_task(Task({resource: 1.0}, value), fire))

    act()
    act()
    while time.step():
        pass
    return fired


@given(st.lists(st.lists(ACTIONS, max_size=4), min_size=2, max_size=25))
def test_the_same_activities_end_at_the_same_bits_in_the_same_order(
    script: list[list[tuple[str, float]]],
) -> None:
    assert play(SteppedTime(), script) == play(PlainTime(), script)
