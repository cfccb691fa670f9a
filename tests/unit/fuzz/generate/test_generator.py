"""Random trials: they meet the options and depend only on the seed."""

from __future__ import annotations

from collections import Counter

import pytest

from equipoise.adapters.targets.trial import PlanSampling, ResourceOptions
from equipoise.errors import InvalidInput
from equipoise.fuzz.generate import Generator, TrialOptions
from equipoise.fuzz.generate.generator import draw_in_turn
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.action import Boot
from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints


def some(name: str, count: int, options: TrialOptions | None = None, seed: int = 0) -> list[Trial]:
    maker = Generator(library_constraints()[name], name, options or TrialOptions(), seed)
    return list(maker.block(range(count)).trials)


def test_a_trial_depends_on_the_seed_and_its_number_and_on_nothing_else() -> None:
    one, other = some("Among", 20), some("Among", 20)
    assert [trial.steps for trial in one] == [trial.steps for trial in other]
    assert [trial.initial for trial in one] == [trial.initial for trial in other]
    assert [dict(trial.demand.arguments) for trial in one] == [
        dict(trial.demand.arguments) for trial in other
    ]
    late = Generator(library_constraints()["Among"], "Among").trial(19)
    assert (late.initial, late.steps) == (one[19].initial, one[19].steps)
    assert some("Among", 20, seed=1)[19].initial != one[19].initial


def test_the_numbers_of_hosts_and_vms_meet_the_options() -> None:
    options = TrialOptions(hosts=(2, 5), vms=(3, 3))
    sizes = {
        (len(trial.initial.hosts), len(trial.initial.vms)) for trial in some("Spread", 60, options)
    }
    assert sizes == {(hosts, 3) for hosts in range(2, 6)}


def test_every_action_and_every_state_comes_up() -> None:
    trials = some("Spread", 1500)
    kinds = Counter(type(step.action).__name__ for trial in trials for step in trial.steps)
    assert set(kinds) == {
        *("PowerOn", "PowerOff", "Forge", "Boot", "Shutdown", "Migrate", "Suspend", "Resume"),
        *("Allocate", "Kill", "Reinstantiate", "EnterMaintenance", "LeaveMaintenance"),
    }
    assert min(kinds.values()) > 10
    states = {vm.state for trial in trials for vm in trial.initial.vms.values()}
    assert states == {VmState.RUNNING, VmState.READY, VmState.SLEEPING, VmState.INIT}


def test_actions_are_interleaved_and_often_begin_or_end_together() -> None:
    trials = some("Spread", 300)
    several = [trial for trial in trials if len(trial.steps) > 1]
    ties = [
        trial
        for trial in several
        if len({step.start_ms for step in trial.steps}) < len(trial.steps)
    ]
    acted = [[step.footprint.vm for step in trial.steps if step.footprint.vm] for trial in several]
    twice = [vms for vms in acted if len(set(vms)) < len(vms)]
    assert len(ties) > len(several) / 5
    assert len(twice) > 20


@pytest.mark.parametrize("name", ["Spread", "Split", "Fence", "Seq"])
def test_unusual_arguments_come_up(name: str) -> None:
    sizes = Counter(
        len(value)
        for trial in some(name, 200)
        for value in trial.demand.arguments.values()
        if isinstance(value, frozenset | tuple)
    )
    assert sizes[0] > 10
    assert sizes[1] > 10


def test_no_argument_is_unusual_if_none_is_to_be() -> None:
    options = TrialOptions(vms=(4, 4), unusual=0.0, given={"nb": (3,)})
    assert {trial.demand.arguments["nb"] for trial in some("RunningCapacity", 30, options)} == {3}


@pytest.mark.parametrize("broken", [True, False])
def test_the_constraint_is_broken_at_first_or_not(broken: bool) -> None:
    trials = some("Spread", 30, TrialOptions(broken_at_first=broken))
    assert {trial.is_broken_at_first for trial in trials} == {broken}


@pytest.mark.parametrize("continuous", [True, False])
def test_every_moment_counts_or_only_the_end(continuous: bool) -> None:
    trials = some("Spread", 10, TrialOptions(continuous=continuous))
    assert {trial.demand.continuous for trial in trials} == {continuous}


def test_impossible_options_are_rejected() -> None:
    for name, options in (
        ("Seq", TrialOptions(continuous=True)),
        ("Spread", TrialOptions(vms=(0, 0), broken_at_first=True)),
    ):
        with pytest.raises(InvalidInput) as caught:
            some(name, 1, options)
        assert caught.value.code == "impossible-trials"
        assert name in str(caught.value)
    assert "3,000" in str(caught.value)


def test_hosts_may_all_sleep_and_a_resource_may_be_rare() -> None:
    options = TrialOptions(
        host_states={HostState.STANDBY: 1},
        resources={"gpus": ResourceOptions(capacity=(0, 1), consumption=(0, 1), offered=0.5)},
    )
    for trial in some("Spread", 40, options):
        assert all(host.state is HostState.STANDBY for host in trial.initial.hosts.values())
        assert not trial.objections


def test_no_more_happens_at_once_than_may_however_large_it_is() -> None:
    """The planner counts what is under way, and must not be blamed for refusing too much of it."""
    options = TrialOptions(hosts=(30, 30), vms=(60, 60), actions=(2, 3), waits=(0, 0))
    for trial in some("Spread", 2, options, seed=2):
        limits = trial.initial.settings.limits
        for step in trial.steps:
            others = [
                other for other in trial.steps if other.start_ms <= step.start_ms < other.end_ms
            ]
            assert len(others) <= limits.actions_total
        assert judge(Planner(), trial).outcome is TrialOutcome.AGREE


@pytest.mark.parametrize("name", sorted(library_constraints()))
def test_a_batch_has_the_verdicts_of_single_trials(name: str) -> None:
    # Odd sizes, so that some clusters have more machines than fit into small numbers of digits.
    for options in (TrialOptions(), TrialOptions(hosts=(1, 12), vms=(1, 12))):
        drawn = Generator(library_constraints()[name], name, options, 7).block(range(64))
        for place in range(64):
            alone = drawn.trial(place)
            assert (alone.violation is None) == drawn.keeps[place]
            assert alone.is_broken_at_first == drawn.broken_at_first[place]


def test_trials_are_the_same_whether_drawn_together_or_alone() -> None:
    names = ("Spread", "Fence", "Online", "Seq")
    known = library_constraints()
    makers = [Generator(known[name], name) for name in names]
    for numbers, drawn in draw_in_turn(makers, TrialOptions(), 0, range(5, 45)):
        for number, together in zip(numbers, drawn.trials, strict=True):
            alone = makers[number % 4].trial(number)
            assert together.demand.name == names[number % 4]
            assert (alone.initial, alone.steps) == (together.initial, together.steps)
            assert alone.demand.arguments == together.demand.arguments
            assert alone.demand.continuous == together.demand.continuous


def test_only_the_kinds_of_the_options_are_drawn() -> None:
    options = TrialOptions(kinds=frozenset({ActionKind.BOOT}), total=(1, 2), vms=(4, 6), switched=0)
    plans = [trial.steps for trial in some("Spread", 200, options)]
    assert {type(step.action) for steps in plans for step in steps} == {Boot}
    assert max(map(len, plans)) == 2


def test_labels_and_tenants_are_those_of_the_options() -> None:
    options = TrialOptions(labels={"colour": ("red",)}, labelled=1, tenants=("t",), owned=1)
    for trial in some("Spread", 20, options):
        hosts, vms = trial.initial.hosts.values(), trial.initial.vms.values()
        labels = [host.labels for host in hosts] + [vm.labels for vm in vms]
        assert all(dict(label) == {"colour": "red"} for label in labels)
        assert all(vm.tenant == "t" for vm in trial.initial.vms.values())


def test_plans_can_be_drawn_anyhow_and_rejected_or_not() -> None:
    crowded = TrialOptions(vms=(4, 6), actions=(2, 3))
    anyhow = some("Spread", 150, crowded.but(plans=PlanSampling.ANY))
    assert any(trial.objections for trial in anyhow)
    rejected = some("Spread", 40, crowded.but(plans=PlanSampling.REJECTED))
    assert not any(trial.objections for trial in rejected)
    assert any(trial.steps for trial in rejected)


def test_single_members_of_arguments_exist() -> None:
    assert all(trial.initial.vms for trial in some("Fence", 100, TrialOptions(vms=(0, 2))))
    with pytest.raises(InvalidInput) as caught:
        some("Fence", 1, TrialOptions(vms=(0, 0)))
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("impossible-trials", "vms")
    assert "Fence" in problem.what
