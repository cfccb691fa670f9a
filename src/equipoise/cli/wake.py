"""``equipoise wake``: wakes real hosts or shuts them down, and reports the result per host."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from equipoise.adapters.access_file import FileContext
from equipoise.adapters.bmc.access import parse_access, power_controls
from equipoise.adapters.bmc.host_power import (
    POLL_S,
    TIMEOUT_S,
    HostPower,
    PowerControl,
    PowerNotReached,
    PowerReached,
    PowerReading,
    PowerRefusal,
    WaitClock,
    switch_and_wait,
)
from equipoise.cli.file_io import read_text
from equipoise.cli.output import (
    EXIT_OK,
    EXIT_WORLD_FAILED,
    console,
    print_document,
    show_spinner,
    text_table,
)
from equipoise.documents.cluster import AttemptRow, HostPowerRow, WakeDocument
from equipoise.errors import InvalidInput

HOSTS_IN_PARALLEL: Final = 16
"""Hosts in parallel; each needs a process while its controller is called."""

REAL_CLOCK: Final = WaitClock(now=time.monotonic, pause=time.sleep)

WakeOutcome = PowerReached | PowerNotReached | PowerReading | PowerRefusal


class PowerTask(StrEnum):
    """The task for the hosts."""

    WAKE = "wake"
    SLEEP = "sleep"
    STATE = "state"


def power_task(*, state: bool, sleep: bool) -> PowerTask:
    """Return the task of the two options."""
    if state and sleep:
        what = "cannot be used together with --sleep"
        raise InvalidInput.of("--state", what, cure="use one of them", code="option-conflict")
    return PowerTask.STATE if state else PowerTask.SLEEP if sleep else PowerTask.WAKE


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeOptions:
    """The hosts, the task and the time limits."""

    hosts: tuple[str, ...] = ()
    """Empty for all hosts of the file."""
    task: PowerTask = PowerTask.WAKE
    timeout_s: float = TIMEOUT_S
    poll_s: float = POLL_S


def run(path: Path, options: WakeOptions, *, as_json: bool) -> int:
    """Run the task and print the result per host; 3 if a host misses the requested state."""
    access = parse_access(read_text(path).encode(), str(path))
    context = FileContext(source=str(path), folder=path.parent, environ=os.environ)
    controls = power_controls(access, options.hosts, context, REAL_CLOCK)
    with show_spinner(f"{options.task}: {', '.join(controls)}"):
        outcomes = _run_in_threads([_job(control, options) for control in controls.values()])
    rows = list(zip(controls, outcomes, strict=True))
    if as_json:
        hosts = tuple(_host_row(*row) for row in rows)
        print_document(WakeDocument(task=options.task, hosts=hosts))
    else:
        _show(rows)
    failed = any(isinstance(outcome, PowerNotReached | PowerRefusal) for _, outcome in rows)
    return EXIT_WORLD_FAILED if failed else EXIT_OK


def _job(control: PowerControl, options: WakeOptions) -> Callable[[], WakeOutcome]:
    def work() -> WakeOutcome:
        if options.task is PowerTask.STATE:
            return control.state()
        wanted = HostPower.ON if options.task is PowerTask.WAKE else HostPower.OFF
        return switch_and_wait(control, wanted, REAL_CLOCK, options.timeout_s, options.poll_s)

    return work


def _run_in_threads(jobs: list[Callable[[], WakeOutcome]]) -> list[WakeOutcome]:
    """Run the jobs in threads; return the outcomes in the order of the jobs.

    A ``ThreadPoolExecutor`` would wait for its threads even after an interrupt.
    """
    todo: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, WakeOutcome | Exception]] = SimpleQueue()
    for index in range(len(jobs)):
        todo.put(index)

    def work() -> None:
        with suppress(Empty):
            while True:
                index = todo.get_nowait()
                try:
                    done.put((index, jobs[index]()))
                except Exception as error:  # a bug: the main thread raises it
                    done.put((index, error))

    for _ in range(min(HOSTS_IN_PARALLEL, len(jobs))):
        Thread(target=work, daemon=True).start()
    outcomes: dict[int, WakeOutcome] = {}
    while len(outcomes) < len(jobs):
        index, outcome = done.get()
        if isinstance(outcome, Exception):
            raise outcome
        outcomes[index] = outcome
    return [outcomes[index] for index in range(len(jobs))]


def _host_row(host: str, outcome: WakeOutcome) -> HostPowerRow:
    match outcome:
        case PowerReached() | PowerReading():
            row = HostPowerRow(
                host=host, ok=True, power=outcome.power, by=outcome.by, note=outcome.note,
                tried=tuple(map(_attempt_row, outcome.tried)),
            )  # fmt: skip
            if isinstance(outcome, PowerReached):
                row = row.but(took_s=round(outcome.took_s, 1), already=outcome.already)
            return row
        case PowerNotReached():
            return _host_row(host, outcome.refusal).but(took_s=round(outcome.took_s, 1))
        case PowerRefusal():
            return HostPowerRow(
                host=host, ok=False, power=None, by=outcome.by, cause=outcome.cause,
                code=outcome.cause.code, reason=outcome.reason,
                tried=tuple(map(_attempt_row, outcome.tried)),
            )  # fmt: skip


def _attempt_row(refusal: PowerRefusal) -> AttemptRow:
    return AttemptRow.of(refusal, code=refusal.cause.code)


def _show(rows: Sequence[tuple[str, WakeOutcome]]) -> None:
    columns = ("host", "power", "took", "by", "result")
    lines = ((host, *_row(outcome)) for host, outcome in rows)
    console().print(text_table(columns, lines, right=("took",)))


def _row(outcome: WakeOutcome) -> tuple[str, str, str, str]:
    match outcome:
        case PowerReached():
            state = [f"was {outcome.power} already" if outcome.already else f"is {outcome.power}"]
            took = "" if outcome.already else f"{outcome.took_s:.1f} s"
            return outcome.power, took, outcome.by, _join_notes(state, outcome.note, outcome.tried)
        case PowerReading():
            return outcome.power, "", outcome.by, _join_notes([], outcome.note, outcome.tried)
        case PowerNotReached(refusal=refusal):
            return "?", f"{outcome.took_s:.1f} s", *_row(refusal)[2:]
        case PowerRefusal(tried=()):
            return "?", "", outcome.by, outcome.reason
        case PowerRefusal():
            return "?", "", "", str(outcome)


def _join_notes(state: list[str], note: str, tried: tuple[PowerRefusal, ...]) -> str:
    notes = [note] if note else []
    failed = (f"{refusal.by} failed: {refusal.reason}" for refusal in tried)
    return "; ".join([*state, *notes, *failed])
