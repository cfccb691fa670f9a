"""Every experiment by its name, and whom it can be made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from equipoise.fuzz.experiments.causes import count_causes
from equipoise.fuzz.experiments.modes import compare_modes
from equipoise.fuzz.experiments.oracle import compare_oracles
from equipoise.fuzz.experiments.repair import REPAIR, compare_repair
from equipoise.fuzz.experiments.subject import Subject, all_of, both_modes
from equipoise.fuzz.experiments.table import Result
from equipoise.fuzz.schedulers.known import Known


@dataclass(frozen=True, slots=True)
class Experiment:
    """Something that the paper has measured."""

    about: str
    run: Callable[[Subject], Result]
    constraints: Callable[[Known], tuple[str, ...]] = all_of
    """Which constraints its trials are for."""
    lacks: Callable[[Known], str] = lambda _known: ""
    """Why it cannot be made with a scheduler; nothing if it can."""


def _lacks_judging(known: Known) -> str:
    able = known.question in ("accepts", "admits")
    return "" if able else f"{known.name} makes plans, and here it is asked about given ones"


def _lacks_repair(known: Known) -> str:
    return "" if REPAIR in known.settings else f"{known.name} has no setting '{REPAIR}'"


def _lacks_checker(known: Known) -> str:
    return "" if known.has_checker else f"{known.name} has no checker of its own"


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "modes": Experiment(
        "discrete against continuous: the same trials in both modes",
        compare_modes, both_modes, _lacks_judging,
    ),
    "repair": Experiment(
        "repair on against off: the same trials, imposed and planned by the scheduler itself",
        compare_repair, all_of, _lacks_repair,
    ),
    "oracle": Experiment(
        "the specification against the scheduler's own checker: who finds which defects",
        compare_oracles, all_of, _lacks_checker,
    ),
    "causes": Experiment(
        "defects by constraint and by the causes A to F, beside the paper's",
        count_causes, all_of, _lacks_judging,
    ),
}  # fmt: skip
