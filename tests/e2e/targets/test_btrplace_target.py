"""The real BtrPlace: of each constraint it accepts one plan and refuses another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from btrplace_trials import (
    a_demand,
    a_trial,
    boot,
    do,
    kill,
    move,
    resume,
    sleep,
    stop,
    suspend,
    wake,
)
from builders import a_vm
from equipoise.adapters.btrplace.encode import CONSTRAINTS
from equipoise.adapters.btrplace.java_build import (
    PINNED,
    SAFEPLACE,
    is_complete,
    safeplace_tests_per_s,
)
from equipoise.adapters.btrplace.scheduler import TRIAL_OPTIONS, BtrPlace, start_btrplace
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.adapters.targets.scheduler import SchedulerCrash
from equipoise.adapters.targets.worker import Worker
from equipoise.errors import WorldError
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.trial import Trial, TrialOutcome
from equipoise.model.action import Forge
from equipoise.model.plan import Step
from equipoise.model.quantity import VmId
from equipoise.model.vm import VmState
from unsupported_trials import unsupported

ONLY = (False,)
ALWAYS = (True,)
BOTH = (False, True)
NODES = ["h1", "h2", "h3", "h4"]


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    try:
        worker = start_btrplace()
    except MissingTarget as error:
        pytest.skip(str(error))
    with worker:
        yield worker


@pytest.fixture(scope="module", name="pinned")
def fixture_pinned(worker: Worker) -> Worker:
    """The worker of the pinned version, for questions whose answers differ in older ones."""
    if worker.version != PINNED.version:
        pytest.skip(f"what was built is {PINNED.about} {worker.version}, not {PINNED.version}")
    return worker


def btrplace(worker: Worker, *, repair: bool = False) -> BtrPlace:
    return BtrPlace(repair=repair, starter=lambda: worker)


class Pair(NamedTuple):
    """A plan that keeps a constraint and one that does not."""

    constraint: str
    arguments: dict[str, Any]
    kept: list[Step]
    broken: list[Step]
    modes: tuple[bool, ...] = ONLY


PAIRS = [
    Pair("Spread", {"vs": ["a", "b"]}, [do(move("a", "h1", "h3"))], [do(move("a", "h1", "h2"))]),
    Pair(
        "Spread", {"vs": ["b", "r"]},
        [do(boot("r", "h2"), 1), do(move("b", "h2", "h1"))], [do(boot("r", "h2"))], ALWAYS,
    ),
    Pair("Gather", {"vs": ["a", "b"]}, [do(move("a", "h1", "h2"))], []),
    Pair("Gather", {"vs": ["a", "r"]}, [do(boot("r", "h1"))], [do(boot("r", "h2"))], BOTH),
    Pair("Lonely", {"vs": ["a"]}, [do(move("b", "h2", "h3"))], [do(move("b", "h2", "h1"))], BOTH),
    Pair("Split", {"parts": [["a", "q"], ["b"]]}, [], [do(move("b", "h2", "h1"))], BOTH),
    Pair(
        "Among", {"vs": ["a", "b"], "parts": [["h1", "h2"], ["h3"]]},
        [do(move("a", "h1", "h2"))], [do(move("a", "h1", "h3"))], BOTH,
    ),
    Pair(
        "SplitAmong", {"vs": [["q"], ["r"]], "parts": [["h1"], ["h2", "h3"]]},
        [do(boot("q", "h1")), do(boot("r", "h3"))], [do(boot("q", "h2")), do(boot("r", "h2"))],
        BOTH,
    ),
    Pair(
        "Fence", {"v": "a", "ns": ["h1", "h2"]},
        [do(move("a", "h1", "h2"))], [do(move("a", "h1", "h3"))], BOTH,
    ),
    Pair(
        "Ban", {"v": "a", "ns": ["h3"]},
        [do(move("a", "h1", "h2"))], [do(move("a", "h1", "h3"))], BOTH,
    ),
    Pair("Root", {"v": "a"}, [do(suspend("a", "h1"))], [do(move("a", "h1", "h3"))], ALWAYS),
    Pair(
        "Quarantine", {"n": "h1"}, [do(move("b", "h2", "h3"))], [do(move("b", "h2", "h1"))], ALWAYS
    ),
    Pair("Running", {"v": "s"}, [do(resume("s", "h3", "h2"))], []),
    Pair("Ready", {"v": "a"}, [do(stop("a", "h1"))], [do(suspend("a", "h1"))]),
    Pair("Sleeping", {"v": "a"}, [do(suspend("a", "h1"))], [do(stop("a", "h1"))]),
    Pair("Killed", {"v": "r"}, [do(kill("r"))], []),
    Pair("Online", {"n": "h4"}, [do(wake("h4"))], []),
    Pair("Offline", {"n": "h1"}, [do(move("a", "h1", "h2")), do(sleep("h1"), 1)], []),
    Pair("MaxOnline", {"ns": NODES, "nb": 3}, [], [do(wake("h4"))], BOTH),
    Pair(
        "RunningCapacity", {"ns": ["h1", "h2"], "nb": 2},
        [do(boot("r", "h3"))], [do(boot("r", "h1"))],
    ),
    Pair(
        "ResourceCapacity", {"ns": ["h1", "h2"], "id": "licences", "qty": 2},
        [do(boot("r", "h3"))], [do(boot("r", "h1"))], BOTH,
    ),
    Pair(
        "ShareableResource", {"id": "licences"},
        [do(boot("r", "h1"))], [do(boot("r", "h1")), do(boot("q", "h1"))], ALWAYS,
    ),
    Pair(
        "Overbook", {"n": "h1", "id": "licences", "percent": 100},
        [do(boot("r", "h1"))], [do(boot("r", "h1")), do(boot("q", "h1"))], BOTH,
    ),
    Pair(
        "Preserve", {"v": "r", "id": "licences", "amount": 2}, [], [do(boot("r", "h1"))]
    ),
    Pair(
        "Seq", {"vs": ("r", "q")},
        [do(boot("r", "h1")), do(boot("q", "h2"), 1)],
        [do(boot("r", "h1"), 1), do(boot("q", "h2"))],
    ),
    Pair(
        "Sync", {"vs": ["a", "b"]},
        [do(move("a", "h1", "h3")), do(move("b", "h2", "h3"))],
        [do(move("a", "h1", "h3")), do(move("b", "h2", "h3"), 1)],
    ),
    Pair("NoDelay", {"v": "r"}, [do(boot("r", "h1"))], [do(boot("r", "h1"), 1)]),
    Pair(
        "Deadline", {"v": "a", "ms": 2500},
        [do(move("a", "h1", "h3"), 1)], [do(move("a", "h1", "h3"), 1, 3)],
    ),
    Pair(
        "Precedence", {"before": "a", "after": "b"},
        [do(move("a", "h1", "h3")), do(move("b", "h2", "h1"), 1)],
        [do(move("a", "h1", "h3"), 1), do(move("b", "h2", "h1"))],
    ),
    Pair(
        "Serialize", {"vs": ["a", "b"]},
        [do(move("a", "h1", "h3"), 1), do(move("b", "h2", "h1"))],
        [do(move("a", "h1", "h3")), do(move("b", "h2", "h1"))],
    ),
]  # fmt: skip


def trials(pair: Pair, *, continuous: bool) -> list[Trial]:
    demand = a_demand(pair.constraint, continuous=continuous, **pair.arguments)
    return [a_trial(demand, *pair.kept), a_trial(demand, *pair.broken)]


def test_the_worker_reports_its_version(worker: Worker) -> None:
    assert worker.version in {PINNED.version, "1.10.2"}
    known = find_scheduler("btrplace")
    assert known is not None
    assert known.version == worker.version


def test_every_constraint_is_in_the_pairs() -> None:
    assert {pair.constraint for pair in PAIRS} == set(CONSTRAINTS)


@pytest.mark.parametrize("repair", [False, True], ids=["rebuild", "repair"])
@pytest.mark.parametrize(
    ("pair", "continuous"),
    [
        pytest.param(pair, mode, id=f"{pair.constraint}-{'continuous' if mode else 'discrete'}")
        for pair in PAIRS
        for mode in pair.modes
    ],
)
def test_one_plan_is_accepted_and_another_rejected(
    worker: Worker, pair: Pair, *, continuous: bool, repair: bool
) -> None:
    kept, broken = trials(pair, continuous=continuous)
    assert not kept.objections
    assert kept.violation is None
    assert broken.objections or broken.violation is not None
    assert btrplace(worker, repair=repair).accepts_many([kept, broken]) == (True, False)


NOTHING = a_demand("Spread", vs=[])


def test_times_are_imposed_to_the_second(worker: Worker) -> None:
    """A host that wakes from 1 to 4 can be used from 4 on, and not before."""
    asked = btrplace(worker)
    for start, expected in ((4, True), (3, False)):
        steps = do(wake("h4"), 1, 4), do(boot("r", "h4"), start, start + 2)
        assert asked.accepts(a_trial(NOTHING, *steps)) is expected


def test_a_plan_may_be_longer_than_an_hour(worker: Worker) -> None:
    assert btrplace(worker).accepts(a_trial(NOTHING, do(move("a", "h1", "h3"), 5000, 9000)))


def test_a_vm_can_be_made_and_be_named(pinned: Worker) -> None:
    vm = a_vm("n", state=VmState.INIT, template="image")
    made = a_trial(a_demand("Ready", v="n"), do(Forge(vm=VmId("n")), 1, 3), vms=[vm])
    left = a_trial(NOTHING, vms=[vm])
    assert btrplace(pinned).accepts_many([made, left]) == (True, True)


def test_a_plan_that_btrplace_would_change_is_rejected(worker: Worker) -> None:
    """It would give the VM more of the resource, which is another plan."""
    wants_more = a_demand("Preserve", v="a", id="licences", amount=2)
    assert not btrplace(worker).accepts(a_trial(wants_more))


@pytest.mark.parametrize(
    ("demand", "detail"),
    [
        (
            a_demand("RunningCapacity", ns=["h1"], nb=1, continuous=True),
            "runningCapacity is never continuous",
        ),
        (a_demand("Running", v="a", continuous=True), "running is never continuous"),
        (a_demand("Root", v="a", continuous=False), "root is never discrete"),
        (
            a_demand("Overbook", n="h1", id="licences", percent=50),
            r"The overbooking ratio must be >= 1\.0",
        ),
    ],
    ids=str,
)
def test_a_constraint_that_btrplace_rejects_is_unsupported(
    pinned: Worker, demand: Any, detail: str
) -> None:
    with unsupported("unsupported-constraint", detail):
        btrplace(pinned).accepts(a_trial(demand))


def test_a_crash_is_reported_by_its_place_in_btrplace(pinned: Worker) -> None:
    crashing = a_trial(a_demand("Split", parts=[]))
    crash, yes = btrplace(pinned).accepts_many([crashing, a_trial(NOTHING)])
    assert yes is True
    assert isinstance(crash, SchedulerCrash)
    assert str(crash).endswith("(Disjoint.java:80 in <init>)")


def test_an_unreadable_question_raises(worker: Worker) -> None:
    question: dict[str, Any] = {
        "origin": {"mapping": {}, "attributes": {}, "views": []},
        "unmade": {}, "actions": [], "constraint": None, "repair": False,
    }  # fmt: skip
    with pytest.raises(WorldError, match=r"cannot read a question: .*offlineNodes"):
        worker.accepts([question], each_s_max=1)
    assert btrplace(worker).accepts(a_trial(NOTHING))


def test_a_campaign_has_few_trials_without_an_answer(worker: Worker) -> None:
    limits = CampaignLimits(tests=60)
    report = FuzzCampaign(
        "btrplace", btrplace(worker), ("Root", "Serialize"), TRIAL_OPTIONS, 0, limits
    ).run()
    assert report.tests == limits.tests
    assert report.findings == []
    assert report.outcomes[TrialOutcome.AGREE] > report.outcomes[TrialOutcome.UNSUPPORTED] * 4


def test_safeplace_itself_runs_where_it_was_built() -> None:
    if not is_complete(SAFEPLACE):
        pytest.skip(f"{SAFEPLACE.about} is not in {SAFEPLACE.folder}: safeplace_rate puts it there")
    assert safeplace_tests_per_s(5) > 0
