"""Each faulty scheduler errs on a small trial of its own cause, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.schedulers.faulty import FAULTY, SpecificationScheduler
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.action import Migrate, Resume
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

BOTH = frozenset({"v1", "v2"})
NONE: frozenset[str] = frozenset()


def a_demand(name: str, *, continuous: bool = False, **arguments: Any) -> Requirement:
    return Requirement(library_constraints()[name], name, arguments, continuous=continuous)


def kept_apart(vms: frozenset[str] = BOTH) -> Requirement:
    return a_demand("Spread", vs=vms, continuous=True)


def a_trial(demand: Requirement, *vms: Vm, steps: tuple[Step, ...] = ()) -> Trial:
    return Trial(demand, a_cluster(a_host("h1"), a_host("h2"), vms=vms), steps)


def a_move(vm: str, source: str, target: str, start_ms: int, end_ms: int) -> Step:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return a_step(vm, action, start_ms, end_ms)


ON_H1, ON_H2 = a_vm("v1", "h1"), a_vm("v2", "h2")
TRIALS = {
    "faulty-A": (
        TrialOutcome.UNDER,  # two are together at first, and one leaves
        a_trial(kept_apart(), ON_H1, a_vm("v2", "h1"), steps=(a_move("v2", "h1", "h2", 0, 1),)),
    ),
    "faulty-B": (
        TrialOutcome.CRASH,  # the set is empty
        a_trial(kept_apart(NONE), ON_H1),
    ),
    "faulty-C": (
        TrialOutcome.UNDER,  # they change places, and meet on the way
        a_trial(
            kept_apart(),
            ON_H1,
            ON_H2,
            steps=(a_move("v1", "h1", "h2", 0, 1), a_move("v2", "h2", "h1", 1, 2)),
        ),
    ),
    "faulty-D": (
        TrialOutcome.OVER,  # they change places at once, and never meet
        a_trial(
            kept_apart(),
            ON_H1,
            ON_H2,
            steps=(a_move("v1", "h1", "h2", 0, 1), a_move("v2", "h2", "h1", 0, 1)),
        ),
    ),
    "faulty-E": (
        TrialOutcome.OVER,  # one VM moves where one may run
        a_trial(
            a_demand("RunningCapacity", ns=frozenset({"h1", "h2"}), nb=1, continuous=True),
            ON_H1,
            steps=(a_move("v1", "h1", "h2", 0, 1),),
        ),
    ),
    "faulty-F": (
        TrialOutcome.OVER,  # one sleeps where the other runs
        a_trial(kept_apart(), ON_H1, a_vm("v2", "h1", state=VmState.SLEEPING)),
    ),
}


@pytest.mark.parametrize("asked", FAULTY)
@pytest.mark.parametrize("cause", TRIALS)
def test_it_errs_on_the_trial_of_its_own_cause_and_on_no_other(asked: str, cause: str) -> None:
    outcome, trial = TRIALS[cause]
    verdict = judge(FAULTY[asked](), trial)
    assert verdict.input_valid
    assert verdict.outcome is (outcome if asked == cause else TrialOutcome.AGREE)


@pytest.mark.parametrize("cause", TRIALS)
def test_the_specification_scheduler_is_always_right(cause: str) -> None:
    outcome, trial = TRIALS[cause]
    assert SpecificationScheduler().accepts(trial) is (outcome is not TrialOutcome.UNDER)


@pytest.mark.parametrize("asked", FAULTY)
def test_faulty_schedulers_reject_plans_that_cannot_be_executed(asked: str) -> None:
    trial = a_trial(kept_apart(NONE), ON_H1, steps=(a_move("v1", "h2", "h1", 0, 1),))
    assert trial.objections
    assert not FAULTY[asked]().accepts(trial)


def test_an_empty_set_crashes_with_the_same_message_each_time() -> None:
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
    expected = TrialOutcome.CRASH if crashes else TrialOutcome.AGREE
    assert judge(FAULTY["faulty-B"](), trial).outcome is expected


def test_sequential_assumption_counts_one_of_two_concurrent_actions() -> None:
    _, trial = TRIALS["faulty-D"]
    demand = a_demand("MaxDisturbed", vs=BOTH, nb=1, continuous=True)
    again = Trial(demand, trial.initial, trial.steps)
    assert judge(FAULTY["faulty-D"](), again).outcome is TrialOutcome.UNDER


def test_all_running_assumption_misses_a_resume() -> None:
    asleep = a_vm("v1", "h1", state=VmState.SLEEPING)
    step = a_step("s", Resume(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2")))
    trial = a_trial(a_demand("Ban", v="v1", ns=frozenset({"h2"})), asleep, steps=(step,))
    assert judge(FAULTY["faulty-F"](), trial).outcome is TrialOutcome.UNDER
