"""The client of the SimGrid worker: virtual time whose tasks SimGrid runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.line_process import LineProcess
from equipoise.errors import WorldError
from equipoise.sim.jobs.engine import JobEngine
from equipoise.sim.jobs.fluid import Task, share
from equipoise.sim.jobs.virtual_time import Activity, Callback, QueuedTimers

PYTHON_SETTING: Final = "EQUIPOISE_SIMGRID_PYTHON"
"""The environment variable that names an interpreter with SimGrid."""
_SYSTEM_PYTHON: Final = "/usr/bin/python3"
_WORKER: Final = Path(__file__).parent / "worker.py"


def find_python() -> str:
    """Return an interpreter that has SimGrid; ``WorldError`` names what to install."""
    python = os.environ.get(PYTHON_SETTING, _SYSTEM_PYTHON)
    try:
        done = subprocess.run([python, "-c", "import simgrid"], capture_output=True, check=False)
        found = done.returncode == 0
    except OSError:
        found = False
    if not found:
        cure = f"install the Debian package python3-simgrid, or name a Python in {PYTHON_SETTING}"
        raise WorldError(f"{python} has no module simgrid: {cure}", code="missing-extra")
    return python


class SimGridWorker(LineProcess):
    """A process with SimGrid that answers in JSON lines."""

    def __init__(self) -> None:
        super().__init__([find_python(), _WORKER], name="SimGrid")


class SimGridTime(QueuedTimers):
    """Virtual time whose tasks run in SimGrid; timers are absolute times, as in ``QueuedTime``.

    The rates of our own model are followed too, because the power of hosts depends on them.
    """

    def __init__(self, engine: JobEngine, worker: SimGridWorker, platform: Path) -> None:
        super().__init__()
        self._engine = engine
        self._worker = worker
        self._tasks: dict[int, Activity] = {}
        self._numbers: dict[Activity, int] = {}
        self._next_number = 0
        self._start: list[dict[str, Any]] = []
        self._stop: list[int] = []
        self._states = [host.initial_state for host in engine.platform.hosts]
        self._changed = False
        self._worker.exchange({"do": "load", "platform": str(platform)})

    def run_task(self, task: Task, callback: Callback) -> Activity:
        """Start a task in SimGrid and call back at its end."""
        activity = Activity(callback, task=task)
        number = self._next_number
        self._next_number += 1
        self._tasks[number] = activity
        self._numbers[activity] = number
        platform = self._engine.platform
        entry = {
            "id": number,
            "hosts": [platform.host(host).name for host in task.hosts],
            "flops": list(task.flops),
            "bytes": list(task.sent),
        }
        self._start.append(entry)
        self._changed = True
        return activity

    def cancel(self, activity: Activity) -> None:
        """End a timer or a task without its callback."""
        activity.callback = None
        number = self._numbers.pop(activity, None)
        if number is None:
            return
        del self._tasks[number]
        self._changed = True
        waiting = [entry for entry in self._start if entry["id"] == number]
        if waiting:
            self._start.remove(waiting[0])
        else:
            self._stop.append(number)

    def speeds_changed(self) -> None:
        """Tell SimGrid the power states before time goes on."""
        self._changed = True

    def running_tasks(self) -> Iterable[Task]:
        """Return the tasks that are under way."""
        return [entry.task for entry in self._tasks.values() if entry.task is not None]

    def step(self) -> bool:
        """Go to the next instant and run all that is due then."""
        self._refresh()
        timer_s = self._queue.next_at
        if timer_s is None and not self._tasks:
            return False
        latency_s = min(
            (task.latency_s for task in self.running_tasks() if task.latency_s > 0), default=inf
        )
        until_s = min(inf if timer_s is None else timer_s, self.now_s + latency_s)
        answer = self._advance(until_s)
        ended = [self._tasks[number] for number in answer["ended"]]
        next_s = until_s if answer["now"] >= until_s or not ended else answer["now"]
        for task in self.running_tasks():
            task.advance(next_s - self.now_s)
        self.now_s = next_s
        self._changed = True
        # A task that ends at the instant of its walltime has succeeded, so tasks come first.
        for activity in ended:
            callback = activity.callback
            number = self._numbers.pop(activity, None)
            if number is not None and callback is not None:
                del self._tasks[number]
                callback()
        while self._queue.next_at == next_s:
            self._queue.pop()[1]()
        return True

    def _refresh(self) -> None:
        if self._changed:
            share(list(self.running_tasks()))
            self._changed = False
            self._engine.time_changed()

    def _advance(self, until_s: float) -> dict[str, Any]:
        hosts, states = self._engine.platform.hosts, self._engine.hosts.power_state
        changed = [
            (host.name, now)
            for host, before, now in zip(hosts, self._states, states, strict=True)
            if before != now
        ]
        self._states = list(states)
        start, self._start = self._start, []
        stop, self._stop = self._stop, []
        limit = None if until_s == inf else until_s
        return self._worker.exchange(
            {"do": "advance", "until": limit, "start": start, "stop": stop, "states": changed}
        )
