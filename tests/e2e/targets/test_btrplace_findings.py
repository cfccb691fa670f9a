"""What ``docs/findings`` says of BtrPlace is so, in each version, whether it repairs or not."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from btrplace_trials import a_demand, a_trial, boot, do, move, resume, sleep, stop, suspend, wake
from builders import a_host, a_vm
from equipoise.adapters.btrplace.java_build import FALLBACK, PINNED, require_build
from equipoise.adapters.btrplace.scheduler import BtrPlace, start_btrplace
from equipoise.adapters.targets.environment import MissingTarget, PinnedTarget
from equipoise.adapters.targets.worker import Worker
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.vm import Vm, VmState
from equipoise.spec.requirement import Requirement
from small_networks import a_link, a_switch

DOCUMENTS = Path(__file__).parents[3] / "docs" / "findings"
ELSEWHERE = {"18", "19", "20", "21", "22", "23"}
"""What is no question about a plan: below, and in ``test_btrplace_experiments.py``."""
OVER, UNDER, CRASH = TrialOutcome.OVER, TrialOutcome.UNDER, TrialOutcome.CRASH


class Known(NamedTuple):
    """A finding of the document, by its number there."""

    number: str
    trial: Trial
    outcome: TrialOutcome
    place: str = ""
    """Where it crashes, in the version that is pinned."""


def is_so(known: Known, version: str, *, repair: bool) -> bool:
    """Whether a finding of the pinned version is one in another as well; its document says so."""
    if version == PINNED.version:
        return True
    return known.number != "3" and (repair or known.number not in ("4", "5"))


def with_vms(demand: Requirement, vms: list[Vm], *steps: Step) -> Trial:
    hosts = [a_host("h1"), a_host("h2")]
    return a_trial(demand, *steps, hosts=hosts, vms=vms)


def asleep(name: str) -> Vm:
    return a_vm(name, "h1", state=VmState.SLEEPING)


X, Y, Z = a_vm("x", "h1"), a_vm("y", "h2"), a_vm("z")
BESIDE = a_vm("y", "h1")
BOTH_MODES = (False, True)

KNOWN = [
    *(
        Known(
            "1", with_vms(a_demand("Split", parts=[["z"]], continuous=mode), [Z]), CRASH,
            "ArrayIndexOutOfBoundsException: .*Disjoint.java:80",
        )
        for mode in BOTH_MODES
    ),
    *(
        Known(
            "2", with_vms(a_demand("Among", vs=["z"], parts=[], continuous=mode), [Z]), CRASH,
            "SolverException: .*CAmong.java:121",
        )
        for mode in BOTH_MODES
    ),
    *(
        Known(
            "2", with_vms(a_demand("SplitAmong", vs=[["z"]], parts=[], continuous=mode), [Z]),
            CRASH, "SolverException: .*CAmong.java:121",
        )
        for mode in BOTH_MODES
    ),
    *(
        Known(
            "3", with_vms(a_demand("SplitAmong", vs=[], parts=[], continuous=mode), []), CRASH,
            "IllegalArgumentException: .*CSplitAmong.java:75",
        )
        for mode in BOTH_MODES
    ),
    *(
        Known(
            "4", with_vms(a_demand("SplitAmong", vs=[["x"]], parts=[["h1"]], continuous=mode), [X]),
            CRASH, "ArrayStoreException: .*CSplitAmong.java:116",
        )
        for mode in BOTH_MODES
    ),
    Known(
        "5", with_vms(a_demand("SplitAmong", vs=[["x"]], parts=[["h2"]]), [X], do(stop("x", "h1"))),
        CRASH, "ArrayIndexOutOfBoundsException: .*CSplitAmong.java:116",
    ),
    Known(
        "6",
        a_trial(
            a_demand("ResourceCapacity", ns=["h1", "h2"], id="licences", qty=1, continuous=True),
            vms=[a_vm("z", consumption={"licences": 1})],
        ),
        CRASH, "ArrayIndexOutOfBoundsException: .*AliasedCumulatives.java:104",
    ),
    *(
        Known(
            "11",
            with_vms(
                a_demand("SplitAmong", vs=[["x"], ["z"]], parts=[["h1"]], continuous=mode),
                [a_vm("x"), Z],
            ),
            OVER,
        )
        for mode in BOTH_MODES
    ),
    Known(
        "7",
        with_vms(
            a_demand("Among", vs=["x"], parts=[["h2"]], continuous=True),
            [X], do(move("x", "h1", "h2")),
        ),
        UNDER,
    ),
    Known(
        "8",
        with_vms(a_demand("Lonely", vs=["x"], continuous=True), [X, BESIDE], do(stop("x", "h1"))),
        UNDER,
    ),
    Known(
        "8",
        with_vms(
            a_demand("Lonely", vs=["z"], continuous=True), [X, Z],
            do(boot("z", "h1")), do(suspend("x", "h1"), 0, 2),
        ),
        UNDER,
    ),
    Known(
        "12",
        with_vms(
            a_demand("Lonely", vs=["x", "w"], continuous=True), [X, Y, a_vm("w", "h1")],
            do(suspend("x", "h1")),
        ),
        OVER,
    ),
    Known(
        "9",
        with_vms(
            a_demand("Split", parts=[["x"], ["z"]], continuous=True), [X, Z],
            do(boot("z", "h1")), do(suspend("x", "h1"), 0, 2),
        ),
        UNDER,
    ),
    Known(
        "13", with_vms(a_demand("Spread", vs=["s", "x"], continuous=True), [asleep("s"), X]), OVER
    ),
    Known("13", with_vms(a_demand("Ban", v="s", ns=["h1"], continuous=True), [asleep("s")]), OVER),
    Known(
        "13", with_vms(a_demand("Fence", v="s", ns=["h2"], continuous=True), [asleep("s")]), OVER
    ),
    Known("10", with_vms(a_demand("NoDelay", v="x"), [X], do(stop("x", "h1"), 1)), UNDER),
    Known("10", with_vms(a_demand("NoDelay", v="x"), [X], do(suspend("x", "h1"), 1)), UNDER),
    Known("14", with_vms(a_demand("Sync", vs=["x", "y"]), [X, Y], do(move("x", "h1", "h2"))), OVER),
    Known("15", with_vms(a_demand("Precedence", before="x", after="z"), [X, Z]), OVER),
    Known(
        "15",
        with_vms(
            a_demand("Precedence", before="x", after="y"), [X, Y], do(move("x", "h1", "h2"))
        ),
        OVER,
    ),
    Known("16", a_trial(a_demand("Preserve", v="a", id="licences", amount=0)), OVER),
    Known(
        "17",
        a_trial(
            a_demand("ResourceCapacity", ns=["h1", "h3"], id="licences", qty=1, continuous=True),
            do(suspend("a", "h1"), 0, 2), do(resume("s", "h3", "h3")),
        ),
        UNDER,
    ),
    Known(
        "A",
        with_vms(
            a_demand("Spread", vs=["x", "y"], continuous=True), [X, Y],
            do(move("x", "h1", "h2")), do(move("y", "h2", "h1")),
        ),
        OVER,
    ),
    Known(
        "A",
        with_vms(
            a_demand("Split", parts=[["x"], ["y"]], continuous=True), [X, Y],
            do(move("x", "h1", "h2")), do(move("y", "h2", "h1")),
        ),
        OVER,
    ),
    Known(
        "A",
        with_vms(
            a_demand("Lonely", vs=["x"], continuous=True), [X, Y],
            do(move("x", "h1", "h2")), do(move("y", "h2", "h1")),
        ),
        OVER,
    ),
    Known(
        "A",
        a_trial(
            a_demand("ResourceCapacity", ns=["h1"], id="licences", qty=1, continuous=True),
            do(suspend("a", "h1")), do(boot("r", "h1")),
        ),
        OVER,
    ),
    Known(
        "A",
        a_trial(
            a_demand("MaxOnline", ns=["h3", "h4"], nb=1, continuous=True),
            do(sleep("h3")), do(wake("h4")), vms=[],
        ),
        OVER,
    ),
    Known(
        "B",
        with_vms(
            a_demand("Among", vs=["x"], parts=[["h1"], ["h2"]], continuous=True),
            [X], do(move("x", "h1", "h2")),
        ),
        OVER,
    ),
    Known(
        "C",
        with_vms(
            a_demand("Gather", vs=["x", "z"], continuous=True), [X, Z], do(move("x", "h1", "h2"))
        ),
        OVER,
    ),
]  # fmt: skip


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    try:
        worker = start_btrplace()
    except MissingTarget as error:
        pytest.skip(str(error))
    with worker:
        yield worker


@pytest.mark.parametrize("repair", [False, True], ids=["rebuild", "repair"])
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.number}-{known.trial.demand}")
def test_a_finding_can_be_reproduced(worker: Worker, known: Known, *, repair: bool) -> None:
    assert not known.trial.objections
    verdict = judge(BtrPlace(repair=repair, starter=lambda: worker), known.trial)
    so = is_so(known, worker.version, repair=repair)
    assert verdict.outcome is (known.outcome if so else TrialOutcome.AGREE)
    if worker.version == PINNED.version:
        assert re.search(known.place, verdict.message)


RUNNING = "RunningCapacity"
NOTHING = a_demand("Spread", vs=[])
CHAIN = Network(
    switches=(a_switch("sw1"), a_switch("sw2", 1000), a_switch("sw3")),
    links=(
        a_link("l1", "sw1", 2000, host="h1"),
        a_link("l2", "sw3", 2000, host="h2"),
        a_link("l3", "sw1", 2000, to="sw2"),
        a_link("l4", "sw3", 2000, to="sw2"),
    ),
)
"""Two hosts, and between them three switches of which the middle one has a limit."""
OLD = [
    Known("1", with_vms(a_demand(RUNNING, ns=[], nb=0, continuous=True), []), CRASH),
    Known(
        "2",
        with_vms(
            a_demand(RUNNING, ns=["h1", "h2"], nb=1, continuous=True),
            [X], do(move("x", "h1", "h2")),
        ),
        CRASH,
    ),
    Known(
        "3",
        with_vms(
            a_demand("SplitAmong", vs=[["x"], ["y"]], parts=[["h1"]]),
            [X, BESIDE], do(suspend("x", "h1")),
        ),
        OVER,
    ),
    Known("4", replace(with_vms(NOTHING, [X], do(stop("x", "h1"))), network=CHAIN), CRASH),
    Known(
        "5", replace(with_vms(NOTHING, [X], do(move("x", "h1", "h2"), 0, 9)), network=CHAIN), OVER
    ),
]  # fmt: skip
"""What was found in the older version only."""


@pytest.mark.parametrize("known", OLD, ids=lambda known: f"{known.number}-{known.trial.demand}")
def test_a_finding_of_the_older_version_can_be_reproduced(worker: Worker, known: Known) -> None:
    if worker.version != FALLBACK.version:
        pytest.skip(f"what was built is {FALLBACK.about} {worker.version}, not {FALLBACK.version}")
    verdict = judge(BtrPlace(repair=False, starter=lambda: worker), known.trial)
    assert verdict.outcome is known.outcome


def two_capacities(*amounts: int) -> dict[str, Any]:
    """Who runs on two nodes takes no more than these amounts, all the time; for finding 18."""
    nodes = {
        "0": {"runningVMs": [], "sleepingVMs": [1]},
        "1": {"runningVMs": [0, 2], "sleepingVMs": []},
    }
    resource = {
        "id": "shareableResource", "rcId": "rc", "defCapacity": 3, "defConsumption": 1,
        "nodes": {}, "vms": {"0": 2},
    }  # fmt: skip
    capacity = {"id": "resourceCapacity", "nodes": [0, 1], "rc": "rc", "continuous": True}
    return {
        "model": {
            "mapping": {"readyVMs": [], "onlineNodes": nodes, "offlineNodes": []},
            "attributes": {"nodes": {}, "vms": {"2": {"shutdown": 2}}},
            "views": [resource],
        },
        "constraints": [
            {"id": "ready", "vm": 2},
            {"id": "running", "vm": 1},
            *({**capacity, "amount": amount} for amount in amounts),
        ],
        "objective": {"id": "minimizeMTTR"},
    }


@pytest.mark.parametrize(("amounts", "start"), [((3, 10), 2), ((10, 3), 0)])
def test_of_several_capacities_only_the_first_counts(
    worker: Worker, tmp_path: Path, amounts: tuple[int, ...], start: int
) -> None:
    if worker.version == FALLBACK.version:
        start = 0  # there it is wrong in either order
    instance, plan = tmp_path / "instance.json", tmp_path / "plan.json"
    instance.write_text(json.dumps(two_capacities(*amounts)))
    line = require_build().line(instance, plan, repair=False, search_s_max=10, heap_mib=256)
    subprocess.run(line, check=True, capture_output=True, timeout=60)
    actions = json.loads(plan.read_text())["actions"]
    assert [action["start"] for action in actions if action["id"] == "resumeVM"] == [start]


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        (PINNED, {known.number for known in KNOWN} | ELSEWHERE),
        (FALLBACK, {known.number for known in OLD}),
    ],
    ids=lambda one: getattr(one, "version", ""),
)
def test_the_document_tells_of_these_and_no_others(
    version: PinnedTarget, numbers: set[str]
) -> None:
    document = DOCUMENTS / f"btrplace-{version.version}.md"
    told = re.findall(r"^### (\w+)\. ", document.read_text(), flags=re.MULTILINE)
    assert len(told) == len(set(told))
    assert set(told) == numbers
