"""Each faulty scheduler errs on a small trial of its own cause, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.schedulers.faulty import FAULTY, ByTheBook
from equipoise.fuzz.trial import Outcome, Trial, judge
from equipoise.model.action import Migrate, Resume
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.spec.demand import Demand
from equipoise.spec.library import library_constraints

BOTH = frozenset({"v1", "v2"})
NONE: frozenset[str] = frozenset()


def a_demand(name: str, *, continuous: bool = False, **arguments: Any) -> Demand:
    return Demand(library_constraints()[name], name, arguments, continuous=continuous)


def kept_apart(vms: frozenset[str] = BOTH) -> Demand:
    return a_demand("Spread", vs=vms, continuous=True)


def a_trial(demand: Demand, *vms: Vm, steps: tuple[Step, ...] = ()) -> Trial:
    return Trial(demand, a_cluster(a_host("h1"), a_host("h2"), vms=vms), steps)


def a_move(vm: str, source: str, target: str, start_ms: int, end_ms: int) -> Step:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return a_step(vm, action, start_ms, end_ms)


ON_H1, ON_H2 = a_vm("v1", "h1"), a_vm("v2", "h2")
TRIALS = {
    "faulty-A": (
        Outcome.UNDER,  # two are together at first, and one leaves
        a_trial(kept_apart(), ON_H1, a_vm("v2", "h1"), steps=(a_move("v2", "h1", "h2", 0, 1),)),
    ),
    "faulty-B": (
        Outcome.CRASH,  # nobody is to be apart from anybody
        a_trial(kept_apart(NONE), ON_H1),
    ),
    "faulty-C": (
        Outcome.UNDER,  # they change places, and meet on the way
        a_trial(
            kept_apart(),
            ON_H1,
            ON_H2,
            steps=(a_move("v1", "h1", "h2", 0, 1), a_move("v2", "h2", "h1", 1, 2)),
        ),
    ),
    "faulty-D": (
        Outcome.OVER,  # they change places at once, and never meet
        a_trial(
            kept_apart(),
            ON_H1,
            ON_H2,
            steps=(a_move("v1", "h1", "h2", 0, 1), a_move("v2", "h2", "h1", 0, 1)),
        ),
    ),
    "faulty-E": (
        Outcome.OVER,  # one VM moves where one may run
        a_trial(
            a_demand("RunningCapacity", ns=frozenset({"h1", "h2"}), nb=1, continuous=True),
            ON_H1,
            steps=(a_move("v1", "h1", "h2", 0, 1),),
        ),
    ),
    "faulty-F": (
        Outcome.OVER,  # one sleeps where the other runs
        a_trial(kept_apart(), ON_H1, a_vm("v2", "h1", state=VmState.SLEEPING)),
    ),
}


@pytest.mark.parametrize("asked", FAULTY)
@pytest.mark.parametrize("cause", TRIALS)
def test_it_errs_on_the_trial_of_its_own_cause_and_on_no_other(asked: str, cause: str) -> None:
    outcome, trial = TRIALS[cause]
    verdict = judge(FAULTY[asked](), trial)
    assert verdict.input_valid
    assert verdict.outcome is (outcome if asked == cause else Outcome.AGREE)


@pytest.mark.parametrize("cause", TRIALS)
def test_who_goes_by_the_book_is_right_about_all_of_them(cause: str) -> None:
    outcome, trial = TRIALS[cause]
    assert ByTheBook().accepts(trial) is (outcome is not Outcome.UNDER)


@pytest.mark.parametrize("asked", FAULTY)
def test_all_of_them_refuse_what_machines_refuse(asked: str) -> None:
    trial = a_trial(kept_apart(NONE), ON_H1, steps=(a_move("v1", "h2", "h1", 0, 1),))
    assert trial.objections
    assert not FAULTY[asked]().accepts(trial)


def test_an_empty_set_crashes_with_the_same_words_each_time() -> None:
    _, trial = TRIALS["faulty-B"]
    verdict = judge(FAULTY["faulty-B"](), trial)
    assert verdict.message.startswith("ValueError: ")
    assert judge(FAULTY["faulty-B"](), trial) == verdict


@pytest.mark.parametrize(
    ("parts", "crashes"),
    [
        (frozenset[frozenset[str]](), True),
        (frozenset({frozenset({"v1"}), NONE}), True),
        (frozenset({frozenset({"v1"}), frozenset({"v2"})}), False),
    ],
)
def test_an_empty_packing_or_group_crashes_too(
    parts: frozenset[frozenset[str]], crashes: bool
) -> None:
    trial = a_trial(a_demand("Split", parts=parts), ON_H1, ON_H2)
    expected = Outcome.CRASH if crashes else Outcome.AGREE
    assert judge(FAULTY["faulty-B"](), trial).outcome is expected


def test_who_thinks_of_one_action_at_a_time_counts_one_where_there_are_two() -> None:
    _, trial = TRIALS["faulty-D"]
    demand = a_demand("MaxDisturbed", vs=BOTH, nb=1, continuous=True)
    again = Trial(demand, trial.initial, trial.steps)
    assert judge(FAULTY["faulty-D"](), again).outcome is Outcome.UNDER


def test_who_thinks_that_all_are_awake_at_first_misses_that_one_is_woken() -> None:
    asleep = a_vm("v1", "h1", state=VmState.SLEEPING)
    step = a_step("s", Resume(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2")))
    trial = a_trial(a_demand("Ban", v="v1", ns=frozenset({"h2"})), asleep, steps=(step,))
    assert judge(FAULTY["faulty-F"](), trial).outcome is Outcome.UNDER
