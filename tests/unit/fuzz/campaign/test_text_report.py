"""The text of the machines of a trial, and the moment of its first violation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.campaign.text_report import (
    first_violation_flag,
    network_rows,
    placement_lines,
    unusual_fields,
)
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Migrate
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings
from equipoise.report.placement import placement_timeline
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement
from small_networks import star

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
MOVE = a_step("s", Migrate(vm=V1, source=H1, target=H2), 0, 2000)
BACK = a_step("t", Migrate(vm=V1, source=H2, target=H1), 2000, 3000)


def a_state(second: str) -> Snapshot:
    """Two hosts; v1 is on the first and v2 on the one that is named."""
    return a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", second)])


def spread(state: Snapshot, *steps: object, continuous: bool = True) -> Trial:
    both = {"vs": frozenset({V1, VmId("v2")})}
    demand = Requirement(library_constraints()["Spread"], "Spread", both, continuous=continuous)
    return Trial(demand, state, steps)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trial", "flag"),
    [
        (spread(a_state("h1"), MOVE), (0, "violated from the start")),
        (spread(a_state("h2"), MOVE, BACK), (2, "violated at 2 s")),
        (spread(a_state("h2"), MOVE, continuous=False), (2, "violated at 2 s")),
        (spread(a_state("h2"), MOVE, BACK, continuous=False), None),
        (spread(a_state("h1"), MOVE, continuous=False), None),
        (spread(a_state("h1"), MOVE, BACK, continuous=False), (3, "violated at 3 s")),
        (spread(a_state("h1"), continuous=False), (0, "violated from the start")),
        (spread(a_state("h1"), BACK), (1, "cannot be executed")),
    ],
)
def test_the_first_period_that_is_wrong_is_marked(
    trial: Trial, flag: tuple[int, str] | None
) -> None:
    assert first_violation_flag(trial, placement_timeline(trial.initial, trial.steps)) == flag


def test_placement_lines_need_steps_and_fit_the_width() -> None:
    trial = spread(a_state("h2"), MOVE, BACK)
    assert list(placement_lines(trial)) == [
        "    before  0-2 s   2-3 s !  after",
        "h1  v1      v1>     >v1      v1",
        "h2  v2      >v1 v2  v1> v2   v2",
        ">v arrives, v> leaves or ends, ! violation",
    ]
    assert list(placement_lines(replace(trial, steps=()))) == []
    crowd = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm(f"v{n}", "h1") for n in range(1, 30)])
    assert list(placement_lines(replace(trial, initial=crowd))) == []


def test_only_unusual_fields_of_a_machine_are_shown() -> None:
    assert unusual_fields(a_vm("v1", "h1")) == ""
    assert unusual_fields(a_host("h1")) == ""
    unusual = a_vm("v1", "h1", tenant=TenantId("b"), labels={"zone": "a", "rack": ""}, agent=True)
    assert unusual_fields(unusual) == "tenant b, agent, labels zone=a rack="
    assert unusual_fields(a_host("h1", capacity={"pods": 3})) == "capacity pods=3"
    slow = unusual_fields(a_vm("v1", "h1", cpu=CpuSettings(limit_mhz=500)))
    assert slow == 'cpu {"reservation_mhz":0,"limit_mhz":500,"shares":1000}'


def test_shared_links_have_a_row_and_overload_is_marked() -> None:
    state = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    steps = (
        a_step("s", Migrate(vm=V1, source=H1, target=H2), 0, 9000),
        a_step("t", Migrate(vm=VmId("v2"), source=H1, target=H2), 2000, 11_000),
    )
    trial = replace(spread(state, *steps), network=star("h1", "h2", h2=4000))
    assert list(placement_lines(trial)) == [
        "                      before  0-2 s      2-9 s !    9-11 s     after",
        "h1                    v1 v2   v1> v2     v1> v2>    v2>        -",
        "h2                    -       >v1        >v1 >v2    v1 >v2     v1 v2",
        "link l-h1 towards sw  -       1000/1000  2000/1000  1000/1000  -",
        "link l-h2 towards h2  -       1000/4000  2000/4000  1000/4000  -",
        ">v arrives, v> leaves or ends, ! violation",
    ]
    assert list(network_rows(star("h1", "h2", h2=4000))) == [
        ("l-h1", "h1-sw", "1000"),
        ("l-h2", "h2-sw", "4000"),
        ("sw", "", "any"),
    ]
    alone = replace(trial, steps=steps[:1])
    assert not any("link" in line for line in placement_lines(alone))
