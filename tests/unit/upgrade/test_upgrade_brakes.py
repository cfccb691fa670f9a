"""What holds an upgrade back by intention: commands, windows, checkpoints, health, priority."""

from __future__ import annotations

from equipoise.model.upgrade.event import BatchDecided, BatchStarted, IterationEnded
from equipoise.model.upgrade.request import ChangeSet, Order, SetId, Window
from equipoise.model.upgrade.work import Errand, Task
from equipoise.upgrade.rules.brakes import waits_for_approval
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

HOSTS = [a_host(n, 2) for n in range(1, 6)]


def stage_of(*sets: ChangeSet, fails: object = None) -> Stage:
    campaign = a_campaign(a_request(*sets), hosts=HOSTS, resources=hypervisors(5) + switches(4))
    return Stage(campaign) if fails is None else Stage(campaign, fails=fails)  # type: ignore[arg-type]


def started_s(stage: Stage, errand: Errand = Errand.APPLY) -> list[int]:
    return [
        one.at_ms // 1000
        for one in stage.events(BatchStarted)
        if any(task.errand is errand for task in one.batch.tasks)
    ]


def test_a_pause_holds_one_set_or_all_until_it_is_resumed() -> None:
    stage = stage_of(a_set("one", upgrade_of(["s1"])), a_set("two", upgrade_of(["s2"])))
    stage.command(Order.PAUSE, "one")
    stage.step()  # the set is known from the first iteration on
    stage.run()
    stage.command(Order.PAUSE)
    stage.ask(a_request(a_set("three", upgrade_of(["s3"])), name="r2"))
    stage.run()
    assert stage.outcomes()["three"] == "scheduled"
    stage.command(Order.RESUME)
    stage.run()
    assert stage.outcomes()["three"] == "applied"


def test_a_window_is_waited_for_and_not_overrun() -> None:
    window = Window(opens_s=100, closes_s=150, every_s=1000)
    stage = stage_of(a_set("night", upgrade_of(["s1"]), windows=(window,)))
    stage.run()
    assert started_s(stage) == [100]
    late = stage_of(a_set("night", upgrade_of(["s1"]), windows=(window,)))
    late.now_ms = 140_000  # ten seconds are left, and the work may take twenty
    late.run()
    assert started_s(late) == [1100]


def test_a_checkpoint_waits_for_approval() -> None:
    stage = stage_of(a_set("all", upgrade_of(["s1", "k1", "k2", "k3"]), checkpoints_pct=(25,)))
    stage.coordinator.decide(0)
    stage.run()
    if stage.outcomes()["all"] != "applied":  # everything that was begun before is finished
        stage.command(Order.APPROVE, "all")
        stage.run()
    assert stage.outcomes() == {"all": "applied"}


def test_a_set_that_has_ended_waits_for_nobody() -> None:
    stage = stage_of(a_set("all", upgrade_of(["s1", "s2"]), checkpoints_pct=(50,)))
    stage.run()  # both in one batch, so that nobody was ever asked
    assert stage.outcomes() == {"all": "applied"}
    state = stage.coordinator.state
    assert not waits_for_approval(state, state.standings[SetId("all")])


def test_a_checkpoint_stops_between_iterations() -> None:
    hosts = [a_host(n, 1) for n in range(1, 5)]
    tenants = [a_tenant("t", ["vm"], most=1)]
    stage = Stage(
        a_campaign(
            a_request(a_set("all", upgrade_of(["k1", "k2", "k3", "k4"]), checkpoints_pct=(50,))),
            hosts=hosts,
            vms=[a_vm("vm", 1, "t")],
            tenants=tenants,
            resources=hypervisors(4),
        )
    )
    stage.run()
    assert stage.outcomes() == {"all": "scheduled"}
    ends = [one.paused for one in stage.events(IterationEnded)]
    assert "waits for approval" in ends[-1]
    stage.command(Order.APPROVE, "all")
    stage.run()
    assert stage.outcomes() == {"all": "applied"}


def test_changed_resources_are_watched_and_taken_back_if_they_are_not_well() -> None:
    unwell = ["s1"]

    def fails(task: Task) -> str:
        if task.errand is Errand.CHECK and task.resource in unwell:
            unwell.clear()
            return "it is not well"
        return ""

    stage = stage_of(a_set("net", upgrade_of(["s1"]), bake_s=60, attempts_max=2), fails=fails)
    stage.run()
    errands = [task.errand for one in stage.events(BatchStarted) for task in one.batch.tasks]
    expected = [Errand.APPLY, Errand.CHECK, Errand.REVERT, Errand.APPLY, Errand.CHECK]
    assert errands == expected
    assert started_s(stage, Errand.CHECK)[0] >= 60
    assert stage.outcomes() == {"net": "applied"}


def test_the_more_urgent_set_gets_the_hosts_that_can_be_spared() -> None:
    tenants = [a_tenant("t", ["vm"], most=2)]
    stage = Stage(
        a_campaign(
            a_request(
                a_set("low", upgrade_of(["k4", "k5"])),
                a_set("high", upgrade_of(["k2", "k3"]), priority=5),
            ),
            hosts=HOSTS,
            vms=[a_vm("vm", 1, "t")],
            tenants=tenants,
            resources=hypervisors(5),
        )
    )
    stage.run()
    first = stage.events(BatchDecided)[0]
    assert set(first.batch[:2]) == {"k2", "k3"}
    assert stage.coordinator.state.standings[SetId("high")].priority == 5
