"""Several sets about one unit or one resource: what becomes of one when another is taken back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Need
from equipoise.model.upgrade.event import SetEnded, SetUndoBegan
from equipoise.model.upgrade.request import ChangeSet, Order
from equipoise.model.upgrade.work import Errand, Task
from upgrade_worlds import (
    CATALOG,
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    hypervisors,
    never,
    switches,
    upgrade_of,
)

NEW_SWITCH = Need(
    component=ComponentId("switch"), versions=("v2",), along=DependencyKind.COMMUNICATION
)
ONE_WAY = Catalog(
    descriptions=tuple(
        one.but(needs=(NEW_SWITCH,))
        if (one.component, one.version) == ("hypervisor", "v2")
        else one
        for one in CATALOG.descriptions
    )
)
"""A new hypervisor needs new switches; a new switch gets on with anything."""


def two_by_two(*sets: ChangeSet, fails: Callable[[Task], str] = never) -> Stage:
    """Two hypervisors on two switches that stand in for each other."""
    links = [(n, s) for n in (1, 2) for s in (1, 2)]
    return Stage(
        a_campaign(
            a_request(*sets),
            hosts=[a_host(n, 0) for n in (1, 2)],
            resources=[*hypervisors(2), *switches(2)],
            dependencies=[
                binds("s1", "s2", DependencyKind.PEER_STATELESS),
                *(binds(f"k{n}", f"s{s}", DependencyKind.COMMUNICATION) for n, s in links),
            ],
            catalog=ONE_WAY,
        ),
        fails=fails,
    )


def broken(*names: str) -> Callable[[Task], str]:
    def fails(task: Task) -> str:
        return "broken" if task.resource in names and task.errand is Errand.APPLY else ""

    return fails


HOSTS = a_set("hosts", upgrade_of(["k1", "k2"]))
NET = a_set("net", upgrade_of(["s1", "s2"]))


def versions(stage: Stage) -> list[str | None]:
    return [stage.version(one) for one in ("k1", "k2", "s1", "s2")]


def test_both_sets_get_through_their_unit_and_are_complete_together() -> None:
    stage = two_by_two(NET, HOSTS)
    stage.run()
    assert stage.outcomes() == {"net": "applied", "hosts": "applied"}
    assert {len(unit.partitions) for unit in stage.coordinator.state.units.values()} == {3}
    ended = [one.at_ms for one in stage.events(SetEnded)]
    assert ended[0] == ended[1]


def test_a_set_goes_on_without_another_of_its_unit_if_it_can_do_without() -> None:
    stage = two_by_two(NET, HOSTS, fails=broken("k2"))
    stage.run()
    assert stage.outcomes() == {"net": "applied", "hosts": "undone"}
    assert versions(stage) == ["v1", "v1", "v2", "v2"]
    assert all(part.active for part in stage.coordinator.state.parts.values())


def test_what_two_sets_want_is_not_lost_with_one_of_them() -> None:
    """The hosts' set brings the switches by itself; the other set asks for them as well."""
    stage = two_by_two(HOSTS, NET, fails=broken("k2"))
    stage.run()
    assert stage.outcomes() == {"hosts": "undone", "net": "applied"}
    assert versions(stage) == ["v1", "v1", "v2", "v2"]


def test_nor_with_a_set_that_an_administrator_gives_up() -> None:
    for order in (Order.CANCEL, Order.UNDO):
        stage = two_by_two(HOSTS, NET)
        stage.step()
        stage.command(order, "hosts")
        stage.run()
        assert stage.outcomes()["net"] == "applied"
        assert versions(stage)[2:] == ["v2", "v2"]


def test_a_set_is_taken_back_with_another_that_it_cannot_do_without() -> None:
    stage = Stage(
        a_campaign(
            a_request(
                a_set("one", upgrade_of(["s1"])),
                a_set("two", upgrade_of(["s2"])),
                a_set("three", upgrade_of(["s3"])),
            ),
            hosts=[a_host(1, 0)],
            resources=switches(3),
            dependencies=[binds("s1", "s2", DependencyKind.PEER_STATELESS, incompatible=True)],
        ),
        fails=broken("s2"),
    )
    stage.run()
    assert stage.outcomes() == {"one": "undone", "two": "undone", "three": "applied"}
    assert [stage.version(f"s{n}") for n in (1, 2, 3)] == ["v1", "v1", "v2"]
    reasons = {str(one.set): one.reason for one in stage.events(SetUndoBegan)}
    assert reasons["one"] == "s1 would not understand s2, which stays as it is"


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_two_sets_that_build_on_each_other_go_back_all_the_way(order: tuple[str, str]) -> None:
    """Whichever is taken back first, and while the other is on its way."""
    older, newer = upgrade_of(["k1", "k2"]), upgrade_of(["k1", "k2"], "v3")
    stage = Stage(
        a_campaign(
            a_request(a_set("old", older), a_set("new", newer)),
            hosts=[a_host(n, 0) for n in (1, 2)],
            resources=hypervisors(2),
            dependencies=[binds("k1", "k2", DependencyKind.PEER_STATELESS)],
        )
    )
    while stage.version("k1") != "v3":
        assert stage.step()
    for name in order:
        stage.command(Order.UNDO, name)
        while name not in [one.set for one in stage.events(SetUndoBegan)]:
            assert stage.step()
    stage.run()
    assert stage.outcomes() == {"old": "undone", "new": "undone"}
    assert [stage.version(one) for one in ("k1", "k2")] == ["v1", "v1"]
