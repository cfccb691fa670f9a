"""The page of a plan: bars on the hosts they touch, rows that do not overlap, words escaped."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.resources import files
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.documents.plan import GoalRow
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, PlanId, ResourceName, StepId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.result import (
    ConditionConflict,
    PlanningResult,
    PlanningStatus,
)
from equipoise.report.plan_page import (
    HOSTS_MAX,
    NO_HOST,
    ROWS_MAX,
    host_lanes,
    plan_page,
    steps_on_hosts,
)
from unit.report.parsed import Element, parsed

NASTY = "<img src=x onerror=alert(1)>&\"'"
A, B, C = (HostId(name) for name in "abc")
V, W, R = (VmId(name) for name in "vwr")


def host(name: str) -> Host:
    return Host(id=HostId(name), cores=8, mhz_per_core=2000, memory_mib=65536)


def a_cluster(name: str = "test") -> Inventory:
    return Inventory(
        name=name,
        hosts=tuple(map(host, "abc")),
        vms=(
            Vm(id=V, vcpus=1, memory_mib=512, host=A),
            Vm(id=W, vcpus=1, memory_mib=512, host=A),
            Vm(id=R, vcpus=1, memory_mib=512, state=VmState.READY),
        ),
    )


def a_step(name: str, action: Action, start_s: int, end_s: int, *after: str) -> Step:
    return Step(
        id=StepId(name),
        action=action,
        start_ms=start_s * 1000,
        end_ms=end_s * 1000,
        after=tuple(map(StepId, after)),
    )


def shown(
    *steps: Step, cluster: Inventory | None = None, goals: tuple[GoalRow, ...] = ()
) -> Element:
    answer = PlanningResult(PlanningStatus.SOLVED, Plan(id=PlanId("p"), steps=steps))
    return parsed(plan_page(PlanningProblem(cluster=cluster or a_cluster()), answer, goals))


def bars(page: Element) -> list[Element]:
    return page.one("figure").all("svg")[-1].all("rect", "action")


MOVE = Migrate(vm=V, source=A, target=B)


def test_a_migration_is_on_both_hosts_for_its_whole_time() -> None:
    page = shown(a_step("s1", MOVE, 0, 10), a_step("s2", Boot(vm=R, target=A), 10, 20, "s1"))
    leaving, arriving = (
        [bar for bar in bars(page) if ("leaving" in bar.attributes["class"]) is leaves]
        for leaves in (True, False)
    )
    assert len(leaving) == 1
    moved = [element for element in arriving if "migrate" in element.attributes["class"]]
    assert len(moved) == 1
    assert moved[0].attributes["width"] == leaving[0].attributes["width"]
    assert float(moved[0].attributes["y"]) > float(leaving[0].attributes["y"])
    assert moved[0].text == "s1: migrate v from a to b, 0:00:00 to 0:00:10"
    assert "0:00:10 to 0:00:20, waits for s1" in " ".join(bar.text for bar in arriving)
    assert len(page.all("g", "link")) == 1


def test_each_step_is_where_the_vm_is_by_then() -> None:
    steps = [
        a_step("move", MOVE, 0, 10),
        a_step("grow", Allocate(vm=V, resource=ResourceName("cpu"), amount=3), 10, 20),
        a_step("sleep", Suspend(vm=V, source=B), 20, 30),
        a_step("wake", Resume(vm=V, source=B, target=C), 30, 40),
        a_step("kill", Kill(vm=V), 40, 50),
        a_step("stop", Shutdown(vm=W, source=A), 0, 10),
        a_step("end", Kill(vm=W), 10, 20),
        a_step("make", Forge(vm=R), 0, 10),
        a_step("start", Boot(vm=R, target=C), 10, 20),
        a_step("again", Resume(vm=R, source=C, target=C), 20, 30),
        a_step("on", PowerOn(host=C), 0, 10),
        a_step("off", PowerOff(host=A), 20, 30),
        a_step("out", EnterMaintenance(host=B), 40, 50),
        a_step("in", LeaveMaintenance(host=B), 50, 60),
    ]
    where: dict[str, list[tuple[str | None, bool]]] = defaultdict(list)
    for stay in steps_on_hosts(steps, a_cluster()):
        where[stay.step.id].append((stay.host, stay.leaving))
    alone = {"grow": B, "sleep": B, "kill": C, "stop": A, "end": None, "make": None, "start": C,
             "again": C, "on": C, "off": A, "out": B, "in": B}  # fmt: skip
    assert where == {
        **{name: [(place, False)] for name, place in alone.items()},
        "move": [(A, True), (B, False)],
        "wake": [(B, True), (C, False)],
    }
    steps.append(a_step("recreate", Reinstantiate(vm=W, source=A, target=B), 0, 10))
    drawn = {bar.attributes["class"].split()[1] for bar in bars(shown(*steps))}
    assert drawn == set(ActionKind)


def test_each_kind_has_a_look_of_its_own() -> None:
    style = files("equipoise.report").joinpath("page.css").read_text(encoding="utf-8")
    looks = dict(re.findall(r"^\.action\.(\w+) \{ (.+) \}$", style, re.M))
    assert set(ActionKind) <= looks.keys()
    assert len({looks[kind] for kind in ActionKind}) == len(ActionKind)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=40))
def test_rows_do_not_overlap_and_are_as_few_as_can_be(times: list[tuple[int, int]]) -> None:
    steps = [
        a_step(f"s{place}", PowerOn(host=A), start, start + lasts)
        for place, (start, lasts) in enumerate(times)
    ]
    (lane,) = host_lanes(steps, a_cluster())
    rows: dict[int, list[Step]] = defaultdict(list)
    for stay, row in zip(lane.stays, lane.rows, strict=True):
        rows[row].append(stay.step)
    for found in rows.values():
        assert all(first.end_ms <= second.start_ms for first, second in pairwise(found))
    busy = max(sum(step.start_ms <= at < step.end_ms for step in steps)
               for at in {step.start_ms for step in steps})  # fmt: skip
    assert lane.height == len(rows) == busy


def test_bars_of_a_crowded_host_get_thinner_and_still_do_not_overlap() -> None:
    steps = [a_step(f"s{n}", Boot(vm=VmId(f"v{n}"), target=A), 0, 10) for n in range(50)]
    boxes = sorted(
        (float(bar.attributes["y"]), float(bar.attributes["height"])) for bar in bars(shown(*steps))
    )
    assert len(boxes) == 50
    # A place on the page has one digit after the point.
    assert all(y + high <= below + 0.11 for (y, high), (below, _) in pairwise(boxes))


def test_whatever_comes_from_a_file_is_escaped() -> None:
    step = Step(id=StepId("s"), action=MOVE, end_ms=10, reason=NASTY)
    page = shown(step, cluster=a_cluster(NASTY), goals=(GoalRow(goal=NASTY, value=1, bound=None),))
    assert page.one("h1").text == NASTY
    assert NASTY in bars(page)[0].text
    assert not page.all("img")
    conflict = ConditionConflict(conditions=(), why=(NASTY,))
    written = plan_page(
        PlanningProblem(cluster=a_cluster(NASTY)),
        PlanningResult(PlanningStatus.UNSAT, conflict=conflict),
        (),
    )
    assert "<img" not in written
    assert parsed(written).one("section").one("li").text == NASTY


def test_each_goal_has_the_lowest_value_of_any_plan() -> None:
    goals = (
        GoalRow(goal="mttr", value=1234.5, bound=1000.0),
        GoalRow(goal="migrations", value=1, bound=1),
    )
    tiles = [
        element.text for element in shown(a_step("s", MOVE, 0, 90), goals=goals).all("ul", "tiles")
    ]
    assert "any plan: at least 1,000 s" in tiles[0]
    assert "1,234.5 s" in tiles[0]
    assert "the lowest value of any plan" in tiles[0]
    assert "1 min 30 s" in tiles[0]


def test_a_makespan_that_is_a_goal_appears_once() -> None:
    page = shown(a_step("s", MOVE, 0, 90), goals=(GoalRow(goal="makespan", value=90, bound=80),))
    (tiles,) = page.all("ul", "tiles")
    assert tiles.text.count("makespan") == 1
    assert "any plan: at least 80 s" in tiles.text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            PlanningResult(
                PlanningStatus.UNSAT,
                conflict=ConditionConflict((), ("x is full",)),
            ),
            "x is full",
        ),
        (
            PlanningResult(
                PlanningStatus.UNSAT,
                conflict=ConditionConflict((), ("x",), minimal=False),
            ),
            "not be part of the conflict",
        ),
        (PlanningResult(PlanningStatus.TIMEOUT), "No plan was found; one may exist."),
        (
            PlanningResult(PlanningStatus.TIMEOUT, Plan(id=PlanId("p"), steps=())),
            "a better one may exist",
        ),
        (
            PlanningResult(PlanningStatus.SOLVED, Plan(id=PlanId("p"), steps=())),
            "The plan has no step",
        ),
    ],
)
def test_every_kind_of_answer_has_a_page(answer: PlanningResult, said: str) -> None:
    page = parsed(plan_page(PlanningProblem(cluster=a_cluster()), answer, ()))
    assert said in page.text
    assert not page.all("figure")


@pytest.mark.parametrize(
    "answer",
    [
        PlanningResult(PlanningStatus.TIMEOUT),
        PlanningResult(
            PlanningStatus.UNSAT,
            conflict=ConditionConflict((), ("x",), minimal=False),
        ),
    ],
)
def test_the_page_does_not_claim_that_time_was_short(
    answer: PlanningResult,
) -> None:
    page = parsed(plan_page(PlanningProblem(cluster=a_cluster()), answer, ()))
    assert re.findall(r"\btime\b", page.text) == []
    why = "Why no plan exists" in page.text
    assert why is (answer.status is PlanningStatus.UNSAT)


def test_of_a_large_plan_the_busiest_hosts_and_the_first_steps_are_shown() -> None:
    names = [f"h{n:03d}" for n in range(200)]
    cluster = Inventory(hosts=tuple(map(host, names)))
    steps = [
        a_step(f"s-{name}-{n}", Boot(vm=VmId(f"v-{name}-{n}"), target=HostId(name)), n, n + 1)
        for name, n in product(names, range(5))
        if n < 3 or name >= "h150"
    ]
    steps.append(a_step("forged", Forge(vm=R), 0, 1))
    page = shown(*steps, cluster=cluster)
    labels = [element.words[0] for element in page.one("figure").all("text", "end")]
    assert len(labels) == HOSTS_MAX + 1
    assert set(names[150:]) <= set(labels)
    assert labels[-1] == NO_HOST
    assert not page.all("g", "link")
    notes = [element.text for element in page.all("p", "note")]
    assert notes == [
        "The chart shows the 60 busiest of 200 hosts.",
        f"The table shows the first 500 steps; there are {len(steps) - ROWS_MAX} more.",
    ]
    assert len(page.one("tbody").all("tr")) == ROWS_MAX
