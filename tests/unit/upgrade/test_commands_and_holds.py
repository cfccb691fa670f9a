"""Commands of administrators, and holds: pauses, windows, checkpoints, health."""

from __future__ import annotations

import pytest

from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchStarted,
    CommandRejected,
    IterationEnded,
    SetEnded,
    VmBatchStarted,
)
from equipoise.model.upgrade.request import ChangeSet, CommandKind, MaintenanceWindow, SetId
from equipoise.model.upgrade.work import TaskKind, UpgradeTask
from equipoise.upgrade.requests.brakes import waits_for_approval
from upgrade_clusters import (
    UpgradeHarness,
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


def a_harness(**more: object) -> UpgradeHarness:
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("one", upgrade_of(["s1"]), **more), a_set("two", upgrade_of(["s2"]))),
            hosts=[a_host(1, 1)],
            resources=switches(2),
        )
    )


def rejections(harness: UpgradeHarness) -> list[tuple[str, str]]:
    harness.decide()
    return [(event.command, event.code) for event in harness.events(CommandRejected)]


def test_a_command_about_an_unknown_set_is_rejected() -> None:
    harness = a_harness()
    harness.run()
    harness.command(CommandKind.UNDO, "three")
    assert rejections(harness) == [("undo:three", "unknown-set")]
    assert "one, two" in harness.events(CommandRejected)[0].reason


@pytest.mark.parametrize(
    "order", [kind for kind in CommandKind if kind is not CommandKind.REPAIRED]
)
def test_a_command_about_an_ended_set_is_rejected(order: CommandKind) -> None:
    harness = a_harness()
    harness.run()
    harness.command(order, "one")
    ((_, code),) = rejections(harness)
    assert code == "set-ended"
    harness.run()
    assert harness.coordinator.ended
    assert [event.set for event in harness.events(SetEnded)] == ["one", "two"]


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (CommandKind.PAUSE, CommandKind.PAUSE, "no-effect"),
        (None, CommandKind.RESUME, "no-effect"),
        (CommandKind.UNDO, CommandKind.UNDO, "no-effect"),
        (CommandKind.CANCEL, CommandKind.UNDO, "no-effect"),
        (None, CommandKind.APPROVE, "no-checkpoint"),
    ],
)
def test_a_command_without_an_effect_is_rejected(
    first: CommandKind | None, second: CommandKind, code: str
) -> None:
    harness = a_harness()
    harness.step()  # the first iteration schedules the sets
    if first is not None:
        harness.command(first, "one")
    harness.command(second, "one")
    assert rejections(harness) == [(f"{second}:one", code)]


def test_the_campaign_is_paused_once() -> None:
    harness = a_harness()
    harness.command(CommandKind.RESUME)
    harness.command(CommandKind.PAUSE)
    harness.command(CommandKind.PAUSE)
    harness.run()
    harness.command(CommandKind.RESUME, "one")
    harness.command(CommandKind.UNDO)
    harness.run()
    assert [code for _, code in rejections(harness)] == [
        "no-effect",
        "no-effect",
        "no-effect",
        "set-required",
    ]


def test_a_command_about_a_pending_set_waits_for_its_scheduling() -> None:
    harness = a_harness()
    harness.command(CommandKind.CANCEL, "one")
    harness.run()
    assert harness.outcomes() == {"one": "cancelled", "two": "applied"}
    assert not harness.events(CommandRejected)


def test_a_request_with_a_duplicate_set_id_is_rejected() -> None:
    harness = a_harness()
    harness.step()
    harness.ask(a_request(a_set("one", upgrade_of(["s2"])), name="again"))
    harness.run()
    ((order, code),) = rejections(harness)
    assert order == "request again"
    assert code == "duplicate-set"
    assert harness.outcomes() == {"one": "applied", "two": "applied"}


def test_no_vm_moves_while_all_work_is_held() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(["k1", "k2", "k3"]))),
            hosts=[a_host(n, 2) for n in range(1, 4)],
            vms=[a_vm("a-1", 1, "a")],
            tenants=[a_tenant("a", ["a-1"], most=1)],
            resources=hypervisors(3),
        )
    )
    while harness.version("k3") == "v1":
        harness.step()
    harness.command(CommandKind.PAUSE)
    harness.run()
    assert not harness.events(VmBatchStarted)
    harness.command(CommandKind.RESUME)
    harness.run()
    assert harness.outcomes() == {"hosts": "applied"}


HOSTS = [a_host(n, 2) for n in range(1, 6)]


def harness_of(*sets: ChangeSet, fails: object = None) -> UpgradeHarness:
    campaign = a_campaign(a_request(*sets), hosts=HOSTS, resources=hypervisors(5) + switches(4))
    return UpgradeHarness(campaign) if fails is None else UpgradeHarness(campaign, fails=fails)  # type: ignore[arg-type]


def started_s(harness: UpgradeHarness, kind: TaskKind = TaskKind.APPLY) -> list[int]:
    return [
        event.at_ms // 1000
        for event in harness.events(BatchStarted)
        if any(task.kind is kind for task in event.batch.tasks)
    ]


def test_a_pause_holds_one_set_or_all_sets_until_it_is_resumed() -> None:
    harness = harness_of(a_set("one", upgrade_of(["s1"])), a_set("two", upgrade_of(["s2"])))
    harness.command(CommandKind.PAUSE, "one")
    harness.step()  # the first iteration schedules the set
    harness.run()
    harness.command(CommandKind.PAUSE)
    harness.ask(a_request(a_set("three", upgrade_of(["s3"])), name="r2"))
    harness.run()
    assert harness.outcomes()["three"] == "scheduled"
    harness.command(CommandKind.RESUME)
    harness.run()
    assert harness.outcomes()["three"] == "applied"


def test_work_waits_for_its_window_and_does_not_overrun_it() -> None:
    window = MaintenanceWindow(opens_s=100, closes_s=150, every_s=1000)
    harness = harness_of(a_set("night", upgrade_of(["s1"]), windows=(window,)))
    harness.run()
    assert started_s(harness) == [100]
    late = harness_of(a_set("night", upgrade_of(["s1"]), windows=(window,)))
    late.now_ms = 140_000  # ten seconds remain, and the work may take twenty
    late.run()
    assert started_s(late) == [1100]


def test_a_checkpoint_waits_for_approval() -> None:
    harness = harness_of(a_set("all", upgrade_of(["s1", "k1", "k2", "k3"]), checkpoints_pct=(25,)))
    harness.coordinator.decide(0)
    harness.run()
    if harness.outcomes()["all"] != "applied":  # the first batch finishes in any case
        harness.command(CommandKind.APPROVE, "all")
        harness.run()
    assert harness.outcomes() == {"all": "applied"}


def test_an_ended_set_waits_for_no_approval() -> None:
    harness = harness_of(a_set("all", upgrade_of(["s1", "s2"]), checkpoints_pct=(50,)))
    harness.command(CommandKind.APPROVE, "all")  # in advance
    harness.run()
    assert harness.outcomes() == {"all": "applied"}
    state = harness.coordinator.state
    assert not waits_for_approval(state, state.requests.set_status[SetId("all")])


def test_a_checkpoint_stops_between_iterations() -> None:
    hosts = [a_host(n, 1) for n in range(1, 5)]
    tenants = [a_tenant("t", ["vm"], most=1)]
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("all", upgrade_of(["k1", "k2", "k3", "k4"]), checkpoints_pct=(50,))),
            hosts=hosts,
            vms=[a_vm("vm", 1, "t")],
            tenants=tenants,
            resources=hypervisors(4),
        )
    )
    harness.run()
    assert harness.outcomes() == {"all": "scheduled"}
    assert "waits-for-approval" in harness.events(IterationEnded)[-1].codes
    harness.command(CommandKind.APPROVE, "all")
    harness.run()
    assert harness.outcomes() == {"all": "applied"}


def test_a_changed_resource_is_reverted_if_its_health_check_fails() -> None:
    unhealthy = ["s1"]

    def fails(task: UpgradeTask) -> str:
        if task.kind is TaskKind.CHECK and task.resource in unhealthy:
            unhealthy.clear()
            return "unhealthy"
        return ""

    harness = harness_of(a_set("net", upgrade_of(["s1"]), bake_s=60, attempts_max=2), fails=fails)
    harness.run()
    kinds = [task.kind for event in harness.events(BatchStarted) for task in event.batch.tasks]
    expected = [TaskKind.APPLY, TaskKind.CHECK, TaskKind.REVERT, TaskKind.APPLY, TaskKind.CHECK]
    assert kinds == expected
    assert started_s(harness, TaskKind.CHECK)[0] >= 60
    assert harness.outcomes() == {"net": "applied"}


def test_the_set_with_higher_priority_gets_the_spare_hosts() -> None:
    tenants = [a_tenant("t", ["vm"], most=2)]
    harness = UpgradeHarness(
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
    harness.run()
    first = harness.events(BatchDecided)[0]
    assert set(first.batch[:2]) == {"k2", "k3"}
    assert harness.coordinator.state.requests.set_status[SetId("high")].priority == 5
