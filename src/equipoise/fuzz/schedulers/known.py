"""Every scheduler that can be put to the test, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from equipoise.fuzz.schedulers.faulty import FAULTY
from equipoise.fuzz.schedulers.mutants import find_mutant
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.schedulers.scheduler import Scheduler


class Known(NamedTuple):
    """A scheduler's name, and what it is."""

    name: str
    about: str


def known_schedulers() -> Iterator[Known]:
    """All of them, ours first; of the mutants, how they are called."""
    yield Known("planner", "our exact planner, with the plan imposed on it")
    for name, make in FAULTY.items():
        yield Known(name, (make.__doc__ or "").strip().split("\n")[0].rstrip("."))
    yield Known("mutant-NAME-RULE", "our planner, with that constraint altered by that rule")


def find_scheduler(name: str) -> Scheduler | None:
    """The scheduler of a name, if there is one."""
    if name == "planner":
        return Planner()
    if name in FAULTY:
        return FAULTY[name]()
    return find_mutant(name)
