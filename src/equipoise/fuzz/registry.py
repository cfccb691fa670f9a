"""Every scheduler that can be put to the test, by its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Final

from equipoise.fuzz.schedulers.deciders import BALANCE, POWER
from equipoise.fuzz.schedulers.faulty import FAULTY
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import Scheduler
from equipoise.fuzz.schedulers.unwired import TRIALS, UNWIRED
from equipoise.fuzz.targets import btrplace_scheduler
from equipoise.fuzz.targets.nova_known import NOVA, NOVA_PIPELINE
from equipoise.fuzz.targets.proxlb_scheduler import PROXLB
from equipoise.fuzz.targets.watcher_scheduler import WATCHER
from equipoise.spec.library import of_origin


def _planner() -> Scheduler:
    from equipoise.fuzz.schedulers.planner import Planner  # noqa: PLC0415  (its solver takes time)

    return Planner()


_MUTANT: Final = "mutant-"
MUTANTS: Final = Known(
    name=f"{_MUTANT}NAME-RULE",
    about="our planner, with that constraint altered by that rule",
    make=_planner,
)
"""All mutants together: there are too many for a list."""


def registered() -> Iterator[Known]:
    """All of them, ours first; of the mutants, how they are called."""
    yield Known(
        name="planner", about="our exact planner, with the plan imposed on it", make=_planner
    )
    yield BALANCE
    yield POWER
    for name, make in FAULTY.items():
        about = (make.__doc__ or "").strip().split("\n")[0].rstrip(".")
        yield Known(name=name, about=about, make=make, constraints=_about_time())
    for name, make in UNWIRED.items():
        about = (make.__doc__ or "").strip().rstrip(".")
        yield Known(name=name, about=about, make=make, constraints=("Spread",), options=TRIALS)
    yield MUTANTS
    yield btrplace_scheduler.target()
    yield NOVA
    yield NOVA_PIPELINE
    yield WATCHER
    yield PROXLB


@cache
def _about_time() -> tuple[str, ...]:
    """The constraints of BtrPlace, where the causes of defects are from, that are about time."""
    home = of_origin("btrplace")
    return tuple(
        name
        for name, one in home.constraints.items()
        if "continuous" in one.marks or home.looks_at_plan(name)
    )


def find_known(name: str) -> Known | None:
    """The scheduler of a name, if there is one."""
    if name.startswith(_MUTANT):
        return _find_mutant(name)
    return next((one for one in registered() if one.name == name and one is not MUTANTS), None)


def _find_mutant(name: str) -> Known | None:
    from equipoise.fuzz.schedulers.mutants import find_mutant  # noqa: PLC0415  (as the planner)

    mutant = find_mutant(name)
    if mutant is None:
        return None
    return replace(MUTANTS, name=name, make=lambda: mutant, constraints=(mutant.constraint,))


def names_like(name: str) -> Sequence[str]:
    """What somebody may have meant by a name that nobody has."""
    if name.startswith(_MUTANT):
        from equipoise.fuzz.schedulers.mutants import mutants_like  # noqa: PLC0415  (as above)

        return mutants_like(name)
    return get_close_matches(name, [one.name for one in registered()], n=1)


@cache
def the_scheduler(name: str, settings: tuple[tuple[str, str], ...] = ()) -> Scheduler:
    """The scheduler of a name, made once in each process, with its settings in order."""
    known = find_known(name)
    assert known is not None, "whoever asks has seen that there is one"
    return known.make(**dict(settings))
