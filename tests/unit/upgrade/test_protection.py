"""Protection groups: members stand in for one another, and so many are in service at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind, ResourceGroup, ResourceGroupKind
from equipoise.model.upgrade.event import BatchDecided, SetEnded, SetUndoBegan, TaskFinished
from equipoise.model.upgrade.request import Change, ChangeKind
from equipoise.model.upgrade.work import Errand, Task
from upgrade_worlds import (
    CATALOG,
    STRICT,
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    hypervisors,
    never,
    protects,
    switches,
    upgrade_of,
)

NAMES = ["s1", "s2", "s3", "s4"]
POTENTIAL = ResourceGroupKind.POTENTIAL_PROTECTION


def stage_of(
    *groups: ResourceGroup,
    changed: Sequence[str] = NAMES,
    fails: Callable[[Task], str] = never,
    attempts: int = 1,
) -> Stage:
    change = upgrade_of(changed, undo_threshold=0)
    return Stage(
        a_campaign(
            a_request(a_set("net", change, attempts_max=attempts)),
            hosts=[a_host(1, 1)],
            resources=switches(4),
            groups=groups,
        ),
        fails=fails,
    )


def batches(stage: Stage) -> list[list[str]]:
    return [sorted(one.batch) for one in stage.events(BatchDecided) if one.batch]


def waiting(stage: Stage, iteration: int = 0) -> dict[str, tuple[int, str]]:
    return {
        vertex: (one.rule, one.reason)
        for one in stage.events(BatchDecided)[iteration].eliminated
        for vertex in one.vertices
    }


def test_members_of_a_protection_group_are_changed_one_at_a_time() -> None:
    stage = stage_of(protects("routers", ["s1", "s2"]))
    stage.run()
    assert batches(stage) == [["s1", "s3", "s4"], ["s2"]]
    assert waiting(stage) == {
        "s2": (6, "s1, of the same protection group routers, is in the batch")
    }
    assert stage.outcomes() == {"net": "applied"}


@pytest.mark.parametrize(
    ("numbers", "sizes"),
    [
        ({"in_service_min": 2}, [2, 2]),
        ({"out_max": 3}, [3, 1]),
        ({"in_service_min": 1, "out_max": 2}, [2, 2]),
        ({"in_service_min": 3, "out_max": 2}, [1, 1, 1, 1]),
    ],
)
def test_as_many_go_at_a_time_as_the_group_can_spare(
    numbers: dict[str, object], sizes: list[int]
) -> None:
    stage = stage_of(protects("g", NAMES, **numbers))
    stage.run()
    assert [len(one) for one in batches(stage)] == sizes


def test_who_could_take_over_lets_one_more_go_and_goes_first() -> None:
    stage = stage_of(
        protects("able", NAMES, kind=POTENTIAL), protects("now", ["s1", "s2"], within="able")
    )
    stage.run()
    assert batches(stage) == [["s1", "s3", "s4"], ["s2"]]


def test_who_could_hold_an_assignment_is_not_protected_before_somebody_holds_it() -> None:
    stage = stage_of(protects("able", NAMES, kind=POTENTIAL))
    stage.run()
    assert batches(stage) == [NAMES]


def test_a_member_that_is_lost_is_missed_and_the_set_is_taken_back_rather_than_wait() -> None:
    def fails(task: Task) -> str:
        return "lost" if task.resource == "s1" else ""

    stage = stage_of(protects("g", ["s1", "s2"], in_service_min=1), fails=fails)
    stage.run()
    assert stage.version("s2") == "v1", "with it nobody would be in service"
    assert stage.outcomes() == {"net": "undone"}
    why = stage.events(SetUndoBegan)[0].reason
    assert (
        why == "s2 cannot be taken out: protection group g needs all that are left since s1 is lost"
    )


def test_a_member_on_a_host_that_is_down_is_missed_until_it_returns() -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1"]))),
            hosts=[a_host(n, 1) for n in range(1, 4)],
            resources=hypervisors(3),
            groups=[protects("g", ["k1", "k2"])],
        )
    )
    stage.fail_host("h2")
    stage.run()
    why = "its protection group g cannot spare it while k2 is down"
    assert waiting(stage)["k1"] == (0, why)
    stage.recover_host("h2")
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}


def test_whoever_is_cut_off_with_a_change_is_out_as_well() -> None:
    """Two switches, each the only one of a member: both at once would leave nobody."""
    stage = Stage(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1", "s2"]))),
            hosts=[a_host(1, 0), a_host(2, 0)],
            resources=[*hypervisors(2), *switches(2)],
            dependencies=[binds(f"k{n}", f"s{n}", DependencyKind.COMMUNICATION) for n in (1, 2)],
            groups=[protects("g", ["k1", "k2"])],
        )
    )
    stage.run()
    assert batches(stage) == [["s1"], ["s2"]]


@pytest.mark.parametrize(
    ("group", "change", "why"),
    [
        (
            protects("g", ["s1", "s2"], in_service_min=2),
            upgrade_of(["s1"]),
            "needs 2 of 2 in service at any time, so that s1 can never be taken out",
        ),
        (
            protects("g", ["s1", "s2", "s3"], in_service_min=2),
            Change(does=ChangeKind.REMOVE, resources=(ResourceId("s1"), ResourceId("s2"))),
            "needs 2 members, and 1 would be left",
        ),
    ],
)
def test_a_set_that_a_group_can_never_spare_is_refused(
    group: ResourceGroup, change: Change, why: str
) -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("net", change)), hosts=[a_host(1, 1)], resources=switches(4),
            groups=[group],
        )
    )  # fmt: skip
    stage.run()
    assert stage.outcomes() == {"net": "refused"}
    assert why in stage.events(SetEnded)[0].reason


def test_so_is_one_that_cuts_all_members_of_a_group_off() -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1"]))),
            hosts=[a_host(1, 0), a_host(2, 0)],
            resources=[*hypervisors(2), *switches(1)],
            dependencies=[binds(f"k{n}", "s1", DependencyKind.COMMUNICATION) for n in (1, 2)],
            groups=[protects("g", ["k1", "k2"])],
        )
    )
    stage.run()
    assert stage.outcomes() == {"net": "refused"}
    assert "so that k1, k2 can never be taken out" in stage.events(SetEnded)[0].reason


def clashing(group: ResourceGroup) -> Stage:
    """Two peers that understand their own version only, and two more that stand in for one."""
    return Stage(
        a_campaign(
            a_request(a_set("net", upgrade_of(NAMES))),
            hosts=[a_host(1, 1)],
            resources=switches(4),
            dependencies=[binds("s1", "s2", DependencyKind.PEER_STATELESS)],
            groups=[group],
            catalog=STRICT,
        )
    )


def test_a_unit_keeps_as_many_of_a_group_in_service_as_it_needs() -> None:
    stage = clashing(protects("g", ["s1", "s3"], in_service_min=1))
    in_service: list[int] = []

    def watch(event: object) -> None:
        """While something is worked on; it is switched from one half to the other in between."""
        parts = stage.coordinator.state.parts
        if isinstance(event, TaskFinished) and event.errand is Errand.APPLY:
            in_service.append(sum(parts[ResourceId(one)].active for one in ("s1", "s3")))

    stage.watch.append(watch)
    stage.run()
    assert stage.outcomes() == {"net": "applied"}
    assert min(in_service) == 1


def test_a_unit_that_would_take_too_many_of_a_group_out_is_refused() -> None:
    stage = clashing(protects("g", NAMES, in_service_min=3))
    stage.run()
    assert stage.outcomes() == {"net": "refused"}
    reason = stage.events(SetEnded)[0].reason
    assert "takes 2 of protection group g out at a time, which needs 3 of 4 in service" in reason


def test_taking_back_does_not_wait_for_a_member_that_is_lost() -> None:
    def fails(task: Task) -> str:
        if task.resource == "s2" and task.errand is Errand.APPLY:
            return "lost"
        return ""

    stage = Stage(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1", "s2"]))),
            hosts=[a_host(1, 1)],
            resources=switches(2),
            groups=[protects("g", ["s1", "s2"])],
            catalog=CATALOG,
        ),
        fails=fails,
    )
    stage.run()
    assert stage.outcomes() == {"net": "undone"}
    assert stage.version("s1") == "v1"


def test_what_replaces_a_member_stands_in_for_it() -> None:
    new = switches(5)[4]
    swap = Change(does=ChangeKind.ADD, new=(new.but(version="v2"),), replaces=ResourceId("s1"))
    stage = Stage(
        a_campaign(
            a_request(a_set("swap", swap), a_set("other", upgrade_of(["s2"]))),
            hosts=[a_host(1, 1)],
            resources=switches(2),
            groups=[protects("g", ["s1", "s2"], in_service_min=1)],
        )
    )
    stage.run()
    assert stage.outcomes() == {"swap": "applied", "other": "applied"}
    assert stage.version("s2") == "v2"
