"""``equipoise wake``: wakes real hosts, or puts them to sleep, and says what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from equipoise.cli.answer import console, fitted, patience, plain, print_json, table
from equipoise.cli.read import read_text
from equipoise.errors import InvalidInput, Problem
from equipoise.hosts.wake.access import parse_access
from equipoise.hosts.wake.port import Clock, Refusal, Seen, Waker
from equipoise.hosts.wake.waking import POLL_S, TIMEOUT_S, Missed, Reached, asleep, woken
from equipoise.hosts.wake.ways import Surroundings, wakers

FINE, WORLD_FAILED = 0, 3
AT_ONCE: Final = 16
"""How many hosts are attended to at the same time; each is a process while it is asked."""

REAL: Final = Clock(now=time.monotonic, pause=time.sleep)

Outcome = Reached | Missed | Seen | Refusal


class Task(StrEnum):
    """What is to be done with the hosts."""

    WAKE = "wake"
    SLEEP = "sleep"
    STATE = "state"


def task_of(*, state: bool, sleep: bool) -> Task:
    """The task that two options ask for."""
    if state and sleep:
        what = "this does not go together with --sleep"
        raise InvalidInput("--state", [Problem(key="", what=what, cure="give one of them")])
    return Task.STATE if state else Task.SLEEP if sleep else Task.WAKE


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Which hosts, what for, and for how long."""

    hosts: tuple[str, ...] = ()
    """All of the file if empty."""
    task: Task = Task.WAKE
    timeout_s: float = TIMEOUT_S
    poll_s: float = POLL_S


def run(path: Path, wishes: Wishes, *, as_json: bool) -> int:
    """Do it and print for each host what happened; 3 if one of them is not as it was wanted."""
    access = parse_access(read_text(path).encode(), str(path))
    around = Surroundings(source=str(path), folder=path.parent, environ=os.environ)
    made = wakers(access, wishes.hosts, around, REAL)
    with patience(f"{wishes.task}: {', '.join(made)}"):
        found = _all_at_once([_job(waker, wishes) for waker in made.values()])
    rows = list(zip(made, found, strict=True))
    if as_json:
        print_json({"task": wishes.task, "hosts": [_document(*row) for row in rows]})
    else:
        _show(rows)
    failed = any(isinstance(outcome, Missed | Refusal) for _, outcome in rows)
    return WORLD_FAILED if failed else FINE


def _job(waker: Waker, wishes: Wishes) -> Callable[[], Outcome]:
    def work() -> Outcome:
        if wishes.task is Task.STATE:
            return waker.state()
        bring = woken if wishes.task is Task.WAKE else asleep
        return bring(waker, REAL, wishes.timeout_s, wishes.poll_s)

    return work


def _all_at_once(jobs: list[Callable[[], Outcome]]) -> list[Outcome]:
    """Do the jobs side by side, and give what came of them in their order.

    Not with a pool: that one waits for its threads even when somebody has interrupted us.
    """
    todo: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, Outcome | Exception]] = SimpleQueue()
    for place in range(len(jobs)):
        todo.put(place)

    def work() -> None:
        with suppress(Empty):
            while True:
                place = todo.get_nowait()
                try:
                    done.put((place, jobs[place]()))
                except Exception as error:  # a bug: it is raised where somebody sees it
                    done.put((place, error))

    for _ in range(min(AT_ONCE, len(jobs))):
        Thread(target=work, daemon=True).start()
    found: dict[int, Outcome] = {}
    while len(found) < len(jobs):
        place, outcome = done.get()
        if isinstance(outcome, Exception):
            raise outcome
        found[place] = outcome
    return [found[place] for place in range(len(jobs))]


def _document(host: str, outcome: Outcome) -> dict[str, object]:
    match outcome:
        case Reached():
            return {
                "host": host,
                "ok": True,
                "power": outcome.power,
                "by": outcome.by,
                "took_s": round(outcome.took_s, 1),
                "already": outcome.already,
                "note": outcome.note,
                "tried": _tried(outcome.tried),
            }
        case Seen():
            return {
                "host": host,
                "ok": True,
                "power": outcome.power,
                "by": outcome.by,
                "note": outcome.note,
                "tried": _tried(outcome.tried),
            }
        case Missed():
            refused = _document(host, outcome.refusal)
            return refused | {"took_s": round(outcome.took_s, 1)}
        case Refusal():
            return {
                "host": host,
                "ok": False,
                "power": None,
                "by": outcome.by,
                "cause": outcome.cause,
                "reason": outcome.sentence,
                "tried": _tried(outcome.tried),
            }


def _tried(refusals: Iterable[Refusal]) -> list[dict[str, str]]:
    return [{"by": one.by, "cause": one.cause, "reason": one.sentence} for one in refusals]


def _show(rows: Sequence[tuple[str, Outcome]]) -> None:
    made = table("host", "power", "took", "by", "what happened", right=("took",))
    for host, outcome in rows:
        power, took, by, said = _row(outcome)
        made.add_row(plain(host), power, took, by, plain(said))
    console().print(fitted(made))


def _row(outcome: Outcome) -> tuple[str, str, str, str]:
    match outcome:
        case Reached():
            said = [f"was {outcome.power} already" if outcome.already else f"is {outcome.power}"]
            took = "" if outcome.already else f"{outcome.took_s:.1f} s"
            return outcome.power, took, outcome.by, _said(said, outcome.note, outcome.tried)
        case Seen():
            return outcome.power, "", outcome.by, _said([], outcome.note, outcome.tried)
        case Missed(refusal=refusal):
            return "?", f"{outcome.took_s:.1f} s", *_row(refusal)[2:]
        case Refusal(tried=()):
            return "?", "", outcome.by, outcome.sentence
        case Refusal():
            return "?", "", "", str(outcome)


def _said(said: list[str], note: str, tried: tuple[Refusal, ...]) -> str:
    notes = [note] if note else []
    return "; ".join([*said, *notes, *(f"{one.by} failed: {one.sentence}" for one in tried)])
