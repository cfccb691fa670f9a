"""Shrinking: the smallest trial that still shows what a large one has shown.

Coarse reductions are tried first. Each makes the trial smaller by ``Size``, so that it always ends,
and none makes a cluster, a plan or arguments that nobody could have written down in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from equipoise.fuzz.trial.fewer import fewer_counted, fewer_hosts, fewer_steps, fewer_vms, less_room
from equipoise.fuzz.trial.plainer import plainer_machines, plainer_steps, smaller_arguments
from equipoise.fuzz.trial.rounder import rounder_times
from equipoise.fuzz.trial.size import Size
from equipoise.fuzz.trial.trial import Trial
from equipoise.fuzz.trial.wider import plainer_network
from equipoise.model.case import CaseFile
from equipoise.model.files.check import problems_of
from equipoise.spec.arguments import fitted

_KINDS: tuple[Callable[[Trial], Iterator[Trial]], ...] = (
    fewer_steps,
    fewer_vms,
    less_room,
    fewer_hosts,
    fewer_counted,
    plainer_network,
    smaller_arguments,
    rounder_times,
    plainer_machines,
    plainer_steps,
)


def shrink(trial: Trial, keeps: Callable[[Trial], bool], asks_max: int = 2_000) -> Trial:
    """The smallest trial that is reached by single reductions for which ``keeps`` says yes.

    No single reduction of it is kept, unless ``asks_max`` questions were not enough. What ``keeps``
    raises is not caught.
    """
    smaller = reductions(trial)
    for _ in range(asks_max):
        candidate = next(smaller, None)
        if candidate is None:
            break
        if keeps(candidate):
            trial, smaller = candidate, reductions(candidate)
    return trial


def reductions(trial: Trial) -> Iterator[Trial]:
    """Everything that is one reduction away from a trial, coarse ones first, in a fixed order."""
    size, wrong = Size.of(trial), _wrong(trial)
    for kind in _KINDS:
        for candidate in kind(trial):
            if Size.of(candidate) < size and _wrong(candidate) <= wrong:
                yield candidate


def _wrong(trial: Trial) -> frozenset[str]:
    """What a file of this trial would be refused for: some are wrong on purpose."""
    constraint = trial.demand.specification.constraints[trial.demand.name]
    cluster = trial.initial.inventory()
    found = problems_of(CaseFile(cluster=cluster, plan=trial.plan, network=trial.network))
    _, misfits = fitted(constraint, trial.demand.arguments, trial.initial)
    return frozenset(one.what for one in (*found, *misfits))
