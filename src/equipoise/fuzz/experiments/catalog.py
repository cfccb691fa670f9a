"""The experiments by name, and the schedulers that each one supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from equipoise.adapters.targets.scheduler import SchedulerEntry
from equipoise.fuzz.experiments.causes import count_causes
from equipoise.fuzz.experiments.modes import compare_modes
from equipoise.fuzz.experiments.oracle import compare_oracles
from equipoise.fuzz.experiments.repair import REPAIR, compare_repair
from equipoise.fuzz.experiments.subject import (
    ExperimentResult,
    Subject,
    all_constraints_of,
    constraints_with_both_modes,
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A measurement of the paper."""

    about: str
    run: Callable[[Subject], ExperimentResult]
    constraints: Callable[[SchedulerEntry], tuple[str, ...]] = all_constraints_of
    """The constraints of its trials."""
    lacks: Callable[[SchedulerEntry], str] = lambda _entry: ""
    """Why a scheduler is unsuitable; empty if it is suitable."""


def _why_not_judging(entry: SchedulerEntry) -> str:
    judges = entry.question in ("accepts", "admits")
    return "" if judges else f"{entry.name} makes plans; the experiment needs a judge of plans"


def _why_no_repair(entry: SchedulerEntry) -> str:
    return "" if REPAIR in entry.settings else f"{entry.name} has no setting '{REPAIR}'"


def _why_no_checker(entry: SchedulerEntry) -> str:
    return "" if entry.has_checker else f"{entry.name} has no checker"


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "modes": Experiment(
        "discrete and continuous mode: the same trials in both",
        compare_modes, constraints_with_both_modes, _why_not_judging,
    ),
    "repair": Experiment(
        "repair on and off: the same trials, with imposed and with self-made plans",
        compare_repair, all_constraints_of, _why_no_repair,
    ),
    "oracle": Experiment(
        "the specification and the scheduler's own checker: which defects each one finds",
        compare_oracles, all_constraints_of, _why_no_checker,
    ),
    "causes": Experiment(
        "defects by constraint and by the causes A to F, beside those of the paper",
        count_causes, all_constraints_of, _why_not_judging,
    ),
}  # fmt: skip
