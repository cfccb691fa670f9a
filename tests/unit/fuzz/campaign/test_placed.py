"""What is told of the machines of a trial, and when its plan goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.campaign.placed import flag_of, particulars, placed, wires
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Migrate
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import CpuSettings
from equipoise.report.placement import course_of
from equipoise.spec.demand import Demand
from equipoise.spec.library import library_constraints
from small_networks import star

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
MOVE = a_step("s", Migrate(vm=V1, source=H1, target=H2), 0, 2000)
BACK = a_step("t", Migrate(vm=V1, source=H2, target=H1), 2000, 3000)


def a_state(second: str) -> Snapshot:
    """Two hosts; v1 is on the first and v2 on the one that is named."""
    return a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", second)])


def spread(state: Snapshot, *steps: object, continuous: bool = True) -> Trial:
    both = {"vs": frozenset({V1, VmId("v2")})}
    demand = Demand(library_constraints()["Spread"], "Spread", both, continuous=continuous)
    return Trial(demand, state, steps)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trial", "flag"),
    [
        (spread(a_state("h1"), MOVE), (0, "broken from the start")),
        (spread(a_state("h2"), MOVE, BACK), (2, "broken at 2 s")),
        (spread(a_state("h2"), MOVE, continuous=False), (2, "broken at 2 s")),
        (spread(a_state("h2"), MOVE, BACK, continuous=False), None),
        (spread(a_state("h1"), MOVE, continuous=False), None),
        (spread(a_state("h1"), MOVE, BACK, continuous=False), (3, "broken at 3 s")),
        (spread(a_state("h1"), continuous=False), (0, "broken from the start")),
        (spread(a_state("h1"), BACK), (1, "cannot be carried out")),
    ],
)
def test_the_first_period_that_is_wrong_is_marked(
    trial: Trial, flag: tuple[int, str] | None
) -> None:
    assert flag_of(trial, course_of(trial.initial, trial.steps)) == flag


def test_who_is_where_is_told_in_lines_unless_nothing_happens_or_they_are_too_long() -> None:
    trial = spread(a_state("h2"), MOVE, BACK)
    assert list(placed(trial)) == [
        "    before  0-2 s   2-3 s !  after",
        "h1  v1      v1>     >v1      v1",
        "h2  v2      >v1 v2  v1> v2   v2",
        ">v arrives, v> leaves or ends, ! wrong",
    ]
    assert list(placed(replace(trial, steps=()))) == []
    crowd = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm(f"v{n}", "h1") for n in range(1, 30)])
    assert list(placed(replace(trial, initial=crowd))) == []


def test_only_what_is_unusual_is_told_of_a_machine() -> None:
    assert particulars(a_vm("v1", "h1")) == ""
    assert particulars(a_host("h1")) == ""
    unusual = a_vm("v1", "h1", tenant=TenantId("b"), labels={"zone": "a", "rack": ""}, agent=True)
    assert particulars(unusual) == "tenant b, agent, labels zone=a rack="
    assert particulars(a_host("h1", capacity={"pods": 3})) == "capacity pods=3"
    slow = particulars(a_vm("v1", "h1", cpu=CpuSettings(limit_mhz=500)))
    assert slow == 'cpu {"reservation_mhz":0,"limit_mhz":500,"shares":1000}'


def test_what_migrations_share_has_a_row_and_what_is_too_much_is_marked() -> None:
    state = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    steps = (
        a_step("s", Migrate(vm=V1, source=H1, target=H2), 0, 9000),
        a_step("t", Migrate(vm=VmId("v2"), source=H1, target=H2), 2000, 11_000),
    )
    trial = replace(spread(state, *steps), network=star("h1", "h2", h2=4000))
    assert list(placed(trial)) == [
        "                      before  0-2 s      2-9 s !    9-11 s     after",
        "h1                    v1 v2   v1> v2     v1> v2>    v2>        -",
        "h2                    -       >v1        >v1 >v2    v1 >v2     v1 v2",
        "link l-h1 towards sw  -       1000/1000  2000/1000  1000/1000  -",
        "link l-h2 towards h2  -       1000/4000  2000/4000  1000/4000  -",
        ">v arrives, v> leaves or ends, ! wrong",
    ]
    assert list(wires(star("h1", "h2", h2=4000))) == [
        ("l-h1", "h1-sw", "1000"),
        ("l-h2", "h2-sw", "4000"),
        ("sw", "", "any"),
    ]
    alone = replace(trial, steps=steps[:1])
    assert not any("link" in line for line in placed(alone))
