"""The real BtrPlace in the experiments: its own checker, its own plans, and what repair changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from btrplace_trials import a_demand, a_trial, boot, do, kill, move, sleep, stop
from builders import a_host, a_vm
from equipoise.adapters.btrplace.scheduler import BtrPlace, btrplace_entry, start_btrplace
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.adapters.targets.worker import Worker
from equipoise.fuzz.experiments import EXPERIMENTS, subject_of
from equipoise.fuzz.trial import Trial

X, Y = a_vm("x", "h1"), a_vm("y", "h2")
THREE = [a_host("h1"), a_host("h2"), a_host("h3")]


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    try:
        worker = start_btrplace()
    except MissingTarget as error:
        pytest.skip(str(error))
    with worker:
        yield worker


def btrplace(worker: Worker, *, repair: bool = False) -> BtrPlace:
    return BtrPlace(repair=repair, starter=lambda: worker)


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "continuous"])
def test_the_checker_tells_a_right_plan_from_a_wrong_one(
    worker: Worker, *, continuous: bool
) -> None:
    demand = a_demand("Spread", vs=["a", "b"], continuous=continuous)
    apart = a_trial(demand, do(move("a", "h1", "h3")))
    together = a_trial(demand, do(move("a", "h1", "h2")))
    assert btrplace(worker).checks_many([apart, together]) == (True, False)


def test_the_checker_judges_every_moment_only_in_continuous_mode(worker: Worker) -> None:
    def meeting(*, continuous: bool) -> Trial:
        demand = a_demand("Lonely", vs=["b"], continuous=continuous)
        return a_trial(demand, do(boot("r", "h2")), do(stop("b", "h2"), 1))

    discrete, continuous = meeting(continuous=False), meeting(continuous=True)
    assert (discrete.is_acceptable, continuous.is_acceptable) == (True, False)
    assert btrplace(worker).checks_many([discrete, continuous]) == (True, False)


def test_a_constraint_without_an_equivalent_has_no_checker(worker: Worker) -> None:
    (answer,) = btrplace(worker).checks_many(
        [a_trial(a_demand("ShareableResource", id="licences"))]
    )
    assert isinstance(answer, UnsupportedTrial)


def test_left_to_itself_it_finds_a_way_to_where_the_plan_leads(worker: Worker) -> None:
    demand = a_demand("Spread", vs=["a", "r"])
    trial = a_trial(demand, do(boot("r", "h2"), 3, 4), do(sleep("h3"), 5, 6), vms=[
        a_vm("a", "h1"), a_vm("r"),
    ])  # fmt: skip
    (made,) = btrplace(worker).plans_many([trial])
    assert isinstance(made, tuple)
    own = replace(trial, steps=made)
    assert own.is_acceptable
    assert own.steps != trial.steps  # its own plan does not wait


SYNC = a_trial(
    a_demand("Sync", vs=["x", "y"]), do(move("x", "h1", "h3")), do(sleep("h1"), 1),
    hosts=THREE, vms=[X, Y],
)  # fmt: skip
LONELY = a_trial(
    a_demand("Lonely", vs=["x", "w"], continuous=True), do(kill("w")),
    hosts=THREE, vms=[X, Y, a_vm("w", "h1", consumption={"licences": 0})],
)  # fmt: skip


@pytest.mark.parametrize("trial", [SYNC, LONELY], ids=["Sync", "Lonely"])
def test_repair_reaches_the_solver_and_keeps_it_from_a_way_that_there_is(
    worker: Worker, trial: Trial
) -> None:
    """Finding 19 of the document: who must move for it to work is not taken for misplaced."""
    assert trial.is_acceptable
    (free,) = btrplace(worker).plans_many([trial])
    (repaired,) = btrplace(worker, repair=True).plans_many([trial])
    assert isinstance(free, tuple)
    assert replace(trial, steps=free).is_acceptable
    assert repaired is None


NO_VMS = a_trial(a_demand("Quarantine", n="h1"), vms=[], hosts=[a_host("h1")])
AT_FIRST = a_trial(
    a_demand("Ban", v="x", ns=["h1"], continuous=True), do(stop("x", "h1")), vms=[X], hosts=THREE
)
OWN = a_trial(
    a_demand("Lonely", vs=["x", "y"], continuous=True), do(move("x", "h1", "h2")),
    vms=[X, Y], hosts=THREE,
)  # fmt: skip
TOO_LATE = a_trial(
    a_demand("Deadline", v="x", ms=0), do(move("x", "h1", "h2")), vms=[X], hosts=THREE
)


@pytest.mark.parametrize(
    ("trial", "right"),
    [(NO_VMS, True), (AT_FIRST, False), (OWN, True), (TOO_LATE, False)],
    ids=["20-Quarantine", "21-Ban", "22-Lonely", "23-Deadline"],
)
def test_the_checker_errs_where_the_solver_is_right(
    worker: Worker, trial: Trial, *, right: bool
) -> None:
    assert trial.is_acceptable is right
    assert btrplace(worker).accepts_many([trial]) == (right,)
    assert btrplace(worker).checks_many([trial]) == (not right,)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_made_with_it(name: str) -> None:
    experiment, known = EXPERIMENTS[name], btrplace_entry()
    assert experiment.lacks(known) == ""
    some = subject_of(known, experiment.constraints(known), tests=60, seed=0)
    tables = experiment.run(some).tables
    assert tables[0].rows
