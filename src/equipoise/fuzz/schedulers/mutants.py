"""Our planner, asked to keep a constraint that says something slightly else.

Of each constraint, one mutant is made by each rule of ``mutate``. A campaign that looks well enough
tells all of them from the original, but for those that say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final

from equipoise.fuzz.schedulers.mutate import Mutant, sound_mutants
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial.trial import Trial
from equipoise.spec.library import of_origin, origin_of


@dataclass(frozen=True, slots=True)
class MutantPlanner:
    """The planner with one constraint of the library misread; all others it reads well."""

    constraint: str
    mutant: Mutant

    def accepts(self, trial: Trial) -> bool:
        """Whether it could have made the plan, as it reads the constraint."""
        demand = trial.demand
        if demand.library_name == self.constraint:
            demand = replace(demand, specification=self.mutant.specification)
        return Planner().accepts(replace(trial, demand=demand))


@cache
def mutants() -> Mapping[str, MutantPlanner]:
    """All of them by name, such as ``mutant-Spread-moment``."""
    found = (
        (_name(one), one)
        for origin in MISREAD
        for constraint in _misread(origin)
        for one in _of(origin, constraint)
    )
    return MappingProxyType({name: one for name, one in found if name not in SAME})


def find_mutant(name: str) -> MutantPlanner | None:
    """The mutant of a name; only those of its constraint are made, for making all takes a while."""
    return _of_constraint(name.removeprefix("mutant-").rpartition("-")[0]).get(name)


def mutants_like(name: str) -> tuple[str, ...]:
    """The mutants of the constraint that a name has in it."""
    wished = name.removeprefix("mutant-")
    found = _of_constraint(wished) or _of_constraint(wished.rpartition("-")[0])
    return tuple(found)


def _of_constraint(constraint: str) -> Mapping[str, MutantPlanner]:
    origin = origin_of(constraint)
    if origin is None or constraint not in _misread(origin):
        return {}
    found = ((_name(one), one) for one in _of(origin, constraint))
    return {name: one for name, one in found if name not in SAME}


def _misread(origin: str) -> Collection[str]:
    return (MISREAD[origin] or of_origin(origin).constraints) if origin in MISREAD else ()


def _name(one: MutantPlanner) -> str:
    return f"mutant-{one.constraint}-{one.mutant.rule}"


def _of(origin: str, constraint: str) -> Iterator[MutantPlanner]:
    """One for each rule: the last that is made, for the deeper the change, the harder to see."""
    made = {one.rule: one for one in sound_mutants(of_origin(origin), constraint)}
    return (MutantPlanner(constraint, one) for one in made.values())


MISREAD: Final[Mapping[str, tuple[str, ...]]] = {
    "btrplace": (),
    "more": ("MaxPerHost", "Isolated", "MinRunning", "MaxConcurrent", "MaxDisturbed"),
}
"""The constraints that are misread, by the file of the library; of some files all."""
SAME: Final = frozenset(
    f"mutant-{constraint}-kept"
    for constraint in ("MaxOnline", "MostlySpread", "MaxConcurrent", "MaxDisturbed")
)
"""Those left out because they say the same: what they count differs, so a list has no more of it.

Of all others, a trial is known that they get wrong.
"""
