"""Letting virtual time pass: as fast as it goes or at a pace, with a bar for whoever watches."""

from __future__ import annotations

import sys
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Final

from equipoise.cli.answer import clock, progress_console
from equipoise.sim.play import Play

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

STAGES: Final = 200
"""Into how many pieces a run is cut, so that somebody can watch it come on."""
BEAT_S: Final = 0.1
"""How often a paced run moves."""


def run_to_end(play: Play, *, pace: float | None) -> None:
    """Run a play to its end; ``pace`` virtual seconds per real one, if it is to be watched."""
    end_ms = 1000 * play.scenario.duration_s
    stage_ms = max(1, end_ms // STAGES if pace is None else round(1000 * pace * BEAT_S))
    bar = _Bar(end_ms) if sys.stderr.isatty() else None
    began, start_ms = perf_counter(), play.now_ms
    try:
        while play.now_ms < end_ms:
            play.run(min(end_ms, play.now_ms + stage_ms))
            if pace is not None:
                due_s = (play.now_ms - start_ms) / 1000 / pace
                sleep(max(0.0, due_s - (perf_counter() - began)))
            if bar is not None:
                bar.show(play.now_ms, (play.now_ms - start_ms) / 1000 / (perf_counter() - began))
    finally:
        if bar is not None:
            bar.close()


class _Bar:
    """Simulated time, how many times faster than real time, and when it will be done."""

    def __init__(self, end_ms: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._end = clock(end_ms)
        self._progress: Progress = Progress(
            TextColumn("simulating"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=progress_console(),
            transient=True,
        )
        self._progress.start()
        self._task: TaskID = self._progress.add_task("", total=end_ms)

    def show(self, now_ms: int, factor: float) -> None:
        """Move the bar."""
        seconds = now_ms // 1000 * 1000
        text = f"{clock(seconds)} of {self._end}, {factor:,.0f} times real time"
        self._progress.update(self._task, completed=now_ms, description=text)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()
