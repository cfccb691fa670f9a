"""Shrinking ends with the same small trial each time, and nothing smaller is one reduction away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.fuzz.campaign.findings import signature_of
from equipoise.fuzz.trial import Trial, judge, shrink
from equipoise.fuzz.trial.shrink import TrialSize, reductions
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.domains import in_order
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import bind_arguments
from small_networks import a_network
from small_worlds import VARIANTS, a_random_plan, a_random_state, arguments

FEWER = settings(max_examples=max(2, settings().max_examples // 4))
CHANCE = st.randoms(use_true_random=False)
MODES = [
    (name, mode == "continuous")
    for name, home in library_constraints().items()
    for mode in ("discrete", "continuous")
    if mode in home.constraints[name].marks
]


def a_trial(chance: Random) -> Trial:
    """Any constraint with any arguments, and a plan that often makes no sense."""
    initial = a_random_state(
        chance, chance.randrange(5), chance.randint(1, 4), chance.randrange(VARIANTS)
    )
    name, continuous = chance.choice(MODES)
    specification = library_constraints()[name]
    values = arguments(specification.constraints[name], initial, chance, most=8)
    if not values:  # about a VM, and there is none
        return a_trial(chance)
    demand = Requirement(specification, name, chance.choice(values), continuous)
    network = a_network(chance, tuple(initial.hosts)) if chance.random() < 0.3 else None
    return Trial(demand, initial, a_random_plan(chance, initial), network)


def content(trial: Trial) -> tuple[dict[str, Any], Snapshot, tuple[Step, ...], Network | None]:
    """What is equal if two trials are."""
    return dict(trial.demand.arguments), trial.initial, trial.steps, trial.network


def at_whim(salt: int) -> Callable[[Trial], bool]:
    """Says yes to one trial of four, without rhyme or reason, but always to the same."""

    def keeps(trial: Trial) -> bool:
        told = f"{told_values(trial)} {trial.initial.hosts} {trial.initial.vms} {trial.steps} "
        told += str(trial.network)
        return (crc32(told.encode()) ^ salt) % 4 == 0

    return keeps


def told_values(trial: Trial) -> list[Any]:
    """The arguments with lists for sets, whose order differs between processes."""
    return [
        [
            in_order(member) if isinstance(member, frozenset) else member
            for member in in_order(value)
        ]
        if isinstance(value, frozenset)
        else value
        for value in trial.demand.arguments.values()
    ]


class Careless:
    """Looks at the end only, forgets one kind of step, and breaks on what it does not know."""

    def __init__(self, forgotten: int) -> None:
        self._forgotten = forgotten

    def accepts(self, trial: Trial) -> bool:
        kinds = {len(type(step.action).__name__) for step in trial.steps}
        if self._forgotten in kinds:
            raise LookupError(f"no steps of kind {self._forgotten}")
        return len(trial.steps) % 2 == 0


def judged_alike(trial: Trial, forgotten: int) -> Callable[[Trial], bool]:
    """Says yes if a scheduler errs in the same way."""
    scheduler = Careless(forgotten)
    sort = signature_of(trial, judge(scheduler, trial))
    return lambda other: signature_of(other, judge(scheduler, other)) == sort


@FEWER
@given(CHANCE, st.integers(0, 2**32))
def test_no_single_reduction_of_what_is_left_is_kept(chance: Random, salt: int) -> None:
    trial, keeps = a_trial(chance), at_whim(salt)
    found = shrink(trial, keeps)
    assert found is trial or keeps(found)
    assert not any(map(keeps, reductions(found)))
    assert shrink(found, keeps) is found


@FEWER
@given(CHANCE, st.integers(4, 8))
def test_a_defect_stays_the_same_and_is_the_smallest(chance: Random, forgotten: int) -> None:
    trial = a_trial(chance)
    keeps = judged_alike(trial, forgotten)
    found = shrink(trial, keeps)
    assert keeps(found)
    assert not any(map(keeps, reductions(found)))


@FEWER
@given(CHANCE)
def test_every_reduction_is_smaller_and_could_have_been_generated(chance: Random) -> None:
    trial = a_trial(chance)
    constraint = trial.demand.specification.constraints[trial.demand.name]
    for reduction in reductions(trial):
        assert TrialSize.of(reduction) < TrialSize.of(trial)
        assert bind_arguments(constraint, reduction.demand.arguments, reduction.initial) == (
            reduction.demand.arguments,
            [],
        )
        assert reduction.initial == Snapshot.of(reduction.initial.inventory())
        assert reduction.initial.settings == trial.initial.settings
        assert reduction.initial.hosts
        for step in reduction.steps:
            assert step.footprint.vm is None or step.footprint.vm in reduction.initial.vms
            assert reduction.initial.hosts.keys() >= set(step.footprint.hosts)
        hosts = {link.host for link in reduction.network.links} if reduction.network else set()
        assert hosts <= {None, *reduction.initial.hosts}
        assert {vm.host for vm in reduction.initial.vms.values()} - {
            None
        } <= reduction.initial.hosts.keys()


@FEWER
@given(CHANCE, st.integers(0, 2**32))
def test_equal_trials_have_equal_reductions(chance: Random, salt: int) -> None:
    trial, keeps = a_trial(chance), at_whim(salt)
    copy = replace(trial, initial=Snapshot.of(trial.initial.inventory()))
    assert content(shrink(copy, keeps)) == content(shrink(trial, keeps))
    assert list(map(content, reductions(copy))) == list(map(content, reductions(trial)))


@FEWER
@given(CHANCE, st.integers(0, 60))
def test_a_longer_search_finds_nothing_larger(chance: Random, asks: int) -> None:
    trial, keeps = a_trial(chance), at_whim(0)
    sizes = [TrialSize.of(shrink(trial, keeps, asks_max)) for asks_max in (0, asks, 2 * asks)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == TrialSize.of(trial)
