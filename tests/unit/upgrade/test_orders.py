"""What administrators order: what is heeded, what is refused and in which words."""

from __future__ import annotations

import pytest

from equipoise.model.upgrade.event import OrderRefused, SetEnded, VmBatchStarted
from equipoise.model.upgrade.request import Order
from upgrade_worlds import (
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    switches,
    upgrade_of,
)


def a_stage(**more: object) -> Stage:
    return Stage(
        a_campaign(
            a_request(a_set("one", upgrade_of(["s1"]), **more), a_set("two", upgrade_of(["s2"]))),
            hosts=[a_host(1, 1)],
            resources=switches(2),
        )
    )


def refused(stage: Stage) -> list[tuple[str, str]]:
    stage.decide()
    return [(one.order, one.reason) for one in stage.events(OrderRefused)]


def test_a_set_that_is_not_there_is_told_with_those_that_are() -> None:
    stage = a_stage()
    stage.run()
    stage.command(Order.UNDO, "three")
    assert refused(stage) == [("undo:three", "there is no set three; there are one, two")]


@pytest.mark.parametrize("order", list(Order))
def test_what_comes_after_the_end_of_a_set_comes_too_late(order: Order) -> None:
    stage = a_stage()
    stage.run()
    stage.command(order, "one")
    ((_, why),) = refused(stage)
    assert why == "set one is applied already: it comes too late"
    stage.run()
    assert stage.coordinator.ended
    assert [one.set for one in stage.events(SetEnded)] == ["one", "two"]


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (Order.PAUSE, Order.PAUSE, "set one is paused"),
        (None, Order.RESUME, "set one is not paused"),
        (Order.UNDO, Order.UNDO, "set one is being undone"),
        (Order.CANCEL, Order.UNDO, "set one is being cancelled"),
        (None, Order.APPROVE, "set one has no checkpoint that is not approved"),
    ],
)
def test_what_changes_nothing_is_refused(first: Order | None, second: Order, why: str) -> None:
    stage = a_stage()
    stage.step()  # it begins its first iteration, and knows its sets
    if first is not None:
        stage.command(first, "one")
    stage.command(second, "one")
    assert refused(stage) == [(f"{second}:one", why)]


def test_the_whole_upgrade_is_paused_once() -> None:
    stage = a_stage()
    stage.command(Order.RESUME)
    stage.command(Order.PAUSE)
    stage.command(Order.PAUSE)
    stage.run()
    stage.command(Order.RESUME, "one")
    stage.command(Order.UNDO)
    stage.run()
    assert [why for _, why in refused(stage)] == [
        "the upgrade is not paused",
        "the upgrade is paused",
        "set one is not paused; the upgrade as a whole is",
        "undo is about one set: say undo:SET, with one of one, two",
    ]


def test_a_command_about_a_set_that_is_not_taken_up_yet_waits_for_it() -> None:
    stage = a_stage()
    stage.command(Order.CANCEL, "one")
    stage.run()
    assert stage.outcomes() == {"one": "cancelled", "two": "applied"}
    assert not stage.events(OrderRefused)


def test_a_request_with_the_name_of_a_set_that_is_there_leaves_that_alone() -> None:
    stage = a_stage()
    stage.step()
    stage.ask(a_request(a_set("one", upgrade_of(["s2"])), name="again"))
    stage.run()
    ((order, why),) = refused(stage)
    assert order == "request again"
    assert "a set one was asked for before" in why
    assert stage.outcomes() == {"one": "applied", "two": "applied"}


def test_while_everything_is_held_no_vm_moves() -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3"]))),
            hosts=[a_host(n, 2) for n in range(1, 4)],
            vms=[a_vm("a-1", 1, "a")],
            tenants=[a_tenant("a", ["a-1"], most=1)],
            resources=hypervisors(3),
        )
    )
    while stage.version("k3") == "v1":
        stage.step()
    stage.command(Order.PAUSE)
    stage.run()
    assert not stage.events(VmBatchStarted)
    stage.command(Order.RESUME)
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}
