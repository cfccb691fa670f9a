"""A faulty scheduler is right wherever its cause plays no part, and wrong somewhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, islice, pairwise
from random import Random
from typing import Any

import pytest

from equipoise.fuzz.schedulers.faulty import FAULTY, SpecificationScheduler
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.action import Move
from equipoise.model.vm import VmState
from equipoise.spec.library import library_file
from random_trials import trials

TRIALS_EACH = 40


@cache
def all_trials() -> tuple[Trial, ...]:
    """Some of each constraint, and more of one that is often broken on the way."""
    names = [*library_file("btrplace").constraints, *library_file("more").constraints]
    each = (islice(trials(name, Random(name)), TRIALS_EACH) for name in names)
    more = islice(trials("TenantsApart", Random("more")), 10 * TRIALS_EACH)
    return tuple(chain(*each, more))


def broken_at_first(trial: Trial) -> bool:
    return trial.demand.continuous and trial.is_broken_at_first


def empty_argument(trial: Trial) -> bool:
    return any(
        len(collection) == 0 for collection in collections(tuple(trial.demand.arguments.values()))
    )


def collections(values: tuple[Any, ...]) -> Iterator[frozenset[Any] | tuple[Any, ...]]:
    for value in values:
        if isinstance(value, frozenset | tuple):
            yield value
            yield from collections(tuple(value))


def continuous(trial: Trial) -> bool:
    return trial.demand.continuous and not trial.is_broken_at_first


def at_once(trial: Trial) -> bool:
    times = sorted((step.start_ms, step.end_ms) for step in trial.steps)
    return any(later < end for (_, end), (later, _) in pairwise(times))


def moved(trial: Trial) -> bool:
    return trial.demand.continuous and any(isinstance(step.action, Move) for step in trial.steps)


def asleep_at_first(trial: Trial) -> bool:
    return any(vm.state is VmState.SLEEPING for vm in trial.initial.vms.values())


CAUSES: dict[str, Callable[[Trial], bool]] = {
    "faulty-A": broken_at_first,
    "faulty-B": empty_argument,
    "faulty-C": continuous,
    "faulty-D": at_once,
    "faulty-E": moved,
    "faulty-F": asleep_at_first,
}


@pytest.mark.parametrize("name", FAULTY)
def test_it_is_right_where_its_cause_plays_no_part(name: str) -> None:
    apart = [trial for trial in all_trials() if not CAUSES[name](trial)]
    answers = {trial.violation is None for trial in apart}
    assert answers == {True, False}, "there is something to be right about"
    wrong = [trial for trial in apart if judge(FAULTY[name](), trial).outcome != TrialOutcome.AGREE]
    assert not wrong


@pytest.mark.parametrize("name", FAULTY)
def test_it_is_wrong_somewhere_where_its_cause_plays_a_part(name: str) -> None:
    involved = (trial for trial in all_trials() if CAUSES[name](trial))
    assert any(judge(FAULTY[name](), trial).outcome.is_defect for trial in involved)


def test_who_goes_by_the_book_agrees_with_the_specification_everywhere() -> None:
    assert {judge(SpecificationScheduler(), trial).outcome for trial in all_trials()} == {
        TrialOutcome.AGREE
    }
