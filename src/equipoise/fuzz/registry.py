"""The schedulers that a campaign can test, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Final

from equipoise.adapters.btrplace import scheduler
from equipoise.adapters.nova.scheduler import NOVA, NOVA_PIPELINE
from equipoise.adapters.proxlb.scheduler import PROXLB
from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry
from equipoise.adapters.watcher.scheduler import WATCHER
from equipoise.fuzz.schedulers.deciders import BALANCE, POWER
from equipoise.fuzz.schedulers.faulty import FAULTY, FAULTY_NETWORK, NETWORK_TRIALS
from equipoise.spec.library import library_file


def _planner() -> Scheduler:
    from equipoise.fuzz.schedulers.planner import Planner  # noqa: PLC0415  (its solver is slow to import)

    return Planner()


_MUTANT: Final = "mutant-"
MUTANTS: Final = SchedulerEntry(
    name=f"{_MUTANT}NAME-RULE",
    about="our planner with constraint NAME altered by mutation rule RULE",
    make=_planner,
)
"""One entry for all mutants: there are too many for a list."""


def registered_schedulers() -> Iterator[SchedulerEntry]:
    """All schedulers, ours first; one entry for all mutants."""
    yield SchedulerEntry(
        name="planner", about="our exact planner with an imposed plan", make=_planner
    )
    yield BALANCE
    yield POWER
    for name, make in FAULTY.items():
        about = (make.__doc__ or "").strip().split("\n")[0].rstrip(".")
        yield SchedulerEntry(name=name, about=about, make=make, constraints=_temporal_constraints())
    for name, make in FAULTY_NETWORK.items():
        about = (make.__doc__ or "").strip().rstrip(".")
        yield SchedulerEntry(
            name=name, about=about, make=make, constraints=("Spread",), options=NETWORK_TRIALS
        )
    yield MUTANTS
    yield scheduler.btrplace_entry()
    yield NOVA
    yield NOVA_PIPELINE
    yield WATCHER
    yield PROXLB


@cache
def _temporal_constraints() -> tuple[str, ...]:
    """The constraints of BtrPlace that depend on time: the faults are about those."""
    library_spec = library_file("btrplace")
    return tuple(
        name
        for name, constraint in library_spec.constraints.items()
        if "continuous" in constraint.marks or library_spec.looks_at_plan(name)
    )


def find_scheduler(name: str) -> SchedulerEntry | None:
    """The entry with a name; ``None`` if there is none."""
    if name.startswith(_MUTANT):
        return _find_mutant(name)
    return next(
        (entry for entry in registered_schedulers() if entry.name == name and entry is not MUTANTS),
        None,
    )


def _find_mutant(name: str) -> SchedulerEntry | None:
    from equipoise.fuzz.schedulers.planner import find_mutant  # noqa: PLC0415  (slow to import)

    mutant = find_mutant(name)
    if mutant is None:
        return None
    return replace(MUTANTS, name=name, make=lambda: mutant, constraints=(mutant.constraint,))


def similar_names(name: str) -> Sequence[str]:
    """The registered names that are similar to an unknown name."""
    if name.startswith(_MUTANT):
        from equipoise.fuzz.schedulers.planner import mutants_like  # noqa: PLC0415  (slow to import)

        return mutants_like(name)
    return get_close_matches(name, [entry.name for entry in registered_schedulers()], n=1)


@cache
def make_scheduler(name: str, settings: tuple[tuple[str, str], ...] = ()) -> Scheduler:
    """The scheduler with a name and settings, created once in each process."""
    entry = find_scheduler(name)
    assert entry is not None, "the caller has checked the name"
    return entry.make(**dict(settings))
