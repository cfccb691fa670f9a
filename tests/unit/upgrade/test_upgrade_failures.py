"""Failures: attempts, reverts, isolation, thresholds, deadlines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.files import parse_campaign
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.event import (
    BatchEnded,
    BatchStarted,
    ResourceGivenUp,
    ResourceIsolated,
    TaskFailed,
    TaskFinished,
)
from equipoise.model.upgrade.infrastructure import DependencyKind, Resource, ResourceKind
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    CommandKind,
    RequestedChange,
    SetId,
)
from equipoise.model.upgrade.work import TaskBatch, TaskKind, UpgradeTask, VmBatch
from equipoise.store import MemoryJournal
from upgrade_clusters import (
    CATALOG,
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    hypervisors,
    switches,
    upgrade_of,
)

HOSTS = [a_host(n, 2) for n in range(1, 4)]


def harness_of(*sets: ChangeSet, fails: Callable[[UpgradeTask], str]) -> UpgradeHarness:
    return UpgradeHarness(
        a_campaign(
            a_request(*sets),
            hosts=HOSTS,
            resources=hypervisors(3) + switches(3),
            catalog=CATALOG,
        ),
        fails=fails,
    )


def failing(resource: str, times: int = 99, kind: TaskKind = TaskKind.APPLY, how: str = "broken"):  # type: ignore[no-untyped-def]
    left = [times]

    def fails(task: UpgradeTask) -> str:
        if task.resource == resource and task.kind is kind and left[0]:
            left[0] -= 1
            return how
        return ""

    return fails


def kinds(harness: UpgradeHarness, resource: str) -> list[TaskKind]:
    return [
        task.kind
        for event in harness.events(BatchStarted)
        for task in event.batch.tasks
        if task.resource == resource
    ]


def agent_and_switch(**more: object) -> ChangeSet:
    """Two works on one resource: the second fails, so the first must be reverted."""
    add = RequestedChange(
        does=ChangeKind.ADD,
        component=ComponentId("agent"),
        version="v2",
        resources=(ResourceId("s1"),),
    )
    return a_set("net", add, upgrade_of(["s1", "s2"]), **more)


def test_a_failed_attempt_is_reverted_and_tried_again() -> None:
    harness = harness_of(agent_and_switch(attempts_max=2), fails=failing("s1", times=1))
    harness.run()
    assert kinds(harness, "s1") == [TaskKind.APPLY, TaskKind.REVERT, TaskKind.APPLY]
    assert harness.outcomes() == {"net": "applied"}
    assert harness.coordinator.state.resources.states[ResourceId("s1")].components == {
        "switch": "v2", "agent": "v2"
    }  # fmt: skip


def test_a_set_is_undone_after_the_last_allowed_attempt() -> None:
    change = upgrade_of(["s1", "s2", "s3"], undo_threshold=3)
    harness = harness_of(a_set("net", change, attempts_max=2), fails=failing("s2"))
    harness.run()
    assert kinds(harness, "s2").count(TaskKind.APPLY) == 2
    assert harness.outcomes() == {"net": "undone"}
    assert [harness.version(f"s{n}") for n in (1, 2, 3)] == ["v1"] * 3
    assert not harness.coordinator.state.resources.states[ResourceId("s2")].isolated, (
        "the undo has restored it"
    )


def test_a_set_continues_without_resources_above_its_threshold() -> None:
    change = upgrade_of(["s1", "s2", "s3"], undo_threshold=2)
    harness = harness_of(a_set("net", change, attempts_max=1), fails=failing("s2"))
    harness.run()
    assert harness.outcomes() == {"net": "applied"}
    resource_state = harness.coordinator.state.resources.states[ResourceId("s2")]
    assert resource_state.operational, "its attempt was taken back, so it is in service"
    assert resource_state.given_up == ("net",)
    (given_up,) = harness.events(ResourceGivenUp)
    assert (given_up.resource, given_up.code) == ("s2", "attempts-exhausted")
    assert [harness.version(f"s{n}") for n in (1, 2, 3)] == ["v2", "v1", "v2"]


def test_a_resource_that_cannot_be_reverted_or_reached_is_failed() -> None:
    def fails(task: UpgradeTask) -> str:
        if task.resource == "s1" and task.kind in (TaskKind.APPLY, TaskKind.REVERT):
            return "broken"
        return "lost" if task.resource == "s3" and task.kind is TaskKind.APPLY else ""

    change = upgrade_of(["s3"], undo_threshold=0)
    set_ = agent_and_switch(attempts_max=5)
    set_ = set_.but(changes=tuple(item.but(undo_threshold=0) for item in (*set_.changes, change)))
    harness = harness_of(set_, fails=fails)
    harness.run()
    isolated = {event.resource: event.failed for event in harness.events(ResourceIsolated)}
    assert isolated == {"s1": True, "s3": True}
    assert harness.outcomes() == {"net": "applied"}


def test_an_undo_leads_to_the_requested_undo_version() -> None:
    change = upgrade_of(["s1", "s2", "s3"], "v3", undo_threshold=3, undo_version="v2")
    harness = harness_of(a_set("net", change), fails=failing("s3"))
    harness.run()
    assert harness.outcomes() == {"net": "undone"}
    assert [harness.version(f"s{n}") for n in (1, 2)] == ["v2", "v2"]


def test_an_undo_keeps_the_later_work_of_other_sets() -> None:
    first = a_set("first", upgrade_of(["s1", "s2"], "v2", undo_threshold=2))
    harness = harness_of(first, fails=failing("s2", times=1))
    harness.ask(a_request(a_set("second", upgrade_of(["s1"], "v3")), name="r2"))
    harness.run()
    assert harness.outcomes() == {"first": "undone", "second": "applied"}
    assert (harness.version("s1"), harness.version("s2")) == ("v3", "v1")


def test_a_failed_member_reverts_the_other_members_of_its_group() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("both", upgrade_of(["k1", "s1"]), attempts_max=2)),
            hosts=HOSTS,
            resources=hypervisors(3) + switches(1),
            dependencies=[binds("s1", "k1", DependencyKind.CONTAINER)],
        ),
        fails=failing("s1", times=1),
    )
    harness.run()
    assert kinds(harness, "k1") == [TaskKind.APPLY, TaskKind.REVERT, TaskKind.APPLY]
    assert harness.outcomes() == {"both": "applied"}


def test_a_set_is_undone_at_its_deadline() -> None:
    late = a_set("late", upgrade_of(["s1", "s2"]), attempts_max=99, completion_s_max=10)
    harness = harness_of(late, fails=failing("s2", times=20))
    harness.run()
    assert harness.outcomes() == {"late": "undone"}
    status = harness.coordinator.state.requests.set_status[SetId("late")]
    assert status.reason.code == "deadline-missed"
    assert "10 s" in status.reason.text


def test_an_administrator_undoes_or_cancels_an_incomplete_set() -> None:
    sets = [
        a_set(name, upgrade_of([f"s{n}", f"k{n}"]), attempts_max=99)
        for n, name in enumerate(("undone", "cancelled"), 1)
    ]

    def fails(task: UpgradeTask) -> str:
        return "not yet" if task.resource[0] == "s" and task.kind is TaskKind.APPLY else ""

    harness = harness_of(*sets, fails=fails)
    while harness.coordinator.state.iteration.number < 3:
        harness.step()
    assert harness.version("k1") == harness.version("k2") == "v2"
    harness.command(CommandKind.UNDO, "undone")
    harness.command(CommandKind.CANCEL, "cancelled")
    harness.run()
    assert harness.outcomes() == {"undone": "undone", "cancelled": "cancelled"}
    assert (harness.version("k1"), harness.version("k2")) == ("v1", "v2")


def test_a_resource_without_a_report_of_the_engine_is_failed() -> None:
    change = upgrade_of(["s1", "s2"], undo_threshold=1)
    harness = harness_of(a_set("net", change, attempts_max=3), fails=failing("none"))
    while not harness.open:
        harness.step()
    harness.open = [
        event for event in harness.open if getattr(event, "resource", None) != "s2"
    ]  # the report is lost
    harness.run()
    resource_state = harness.coordinator.state.resources.states[ResourceId("s2")]
    assert resource_state.failed
    assert harness.outcomes() == {"net": "applied"}


def test_an_unhealthy_resource_that_cannot_be_reverted_is_isolated_and_checked_once() -> None:
    def fails(task: UpgradeTask) -> str:
        return "no" if task.resource == "s1" and task.kind is not TaskKind.APPLY else ""

    change = upgrade_of(["s1", "s2"], undo_threshold=1)
    harness = harness_of(a_set("net", change, bake_s=60), fails=fails)
    harness.run(steps=200)
    assert harness.coordinator.state.resources.states[ResourceId("s1")].failed
    assert (harness.outcomes(), harness.version("s2")) == ({"net": "applied"}, "v2")
    checks = [event for event in harness.events(BatchStarted) if event.batch.id.endswith("/check")]
    assert len(checks) == 1


def test_an_unhealthy_resource_is_reverted_with_its_group_last_change_first() -> None:
    server = Resource(
        id=ResourceId("b1"), kind=ResourceKind.SERVER, version="v1", host=HostId("h1")
    )

    def fails(task: UpgradeTask) -> str:
        return "unhealthy" if task.kind is TaskKind.CHECK and task.resource == "b1" else ""

    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("all", upgrade_of(["b1", "k1"]), bake_s=1)),
            hosts=[a_host(1, 1), a_host(2, 1)],
            resources=[server, *hypervisors(1)],
            dependencies=[binds("k1", "b1", DependencyKind.CONTAINER)],
        ),
        fails=fails,
    )
    harness.run(steps=200)
    (revert,) = [
        event.batch for event in harness.events(BatchStarted) if "revert" in event.batch.id
    ]
    assert [task.resource for task in revert.tasks] == ["k1", "b1"]
    assert harness.outcomes() == {"all": "undone"}
    assert (harness.version("b1"), harness.version("k1")) == ("v1", "v1")


def test_two_reverts_in_one_iteration_have_different_ids() -> None:
    def fails(task: UpgradeTask) -> str:
        wrong = {"s1": TaskKind.APPLY, "s2": TaskKind.CHECK}
        return "no" if wrong.get(task.resource) is task.kind else ""

    agents = RequestedChange(
        does=ChangeKind.ADD,
        component=ComponentId("agent"),
        version="v1",
        resources=(ResourceId("s1"), ResourceId("s2")),
    )
    net = a_set("net", upgrade_of(["s1", "s2"]), agents, bake_s=60)  # a partial attempt is reverted
    harness = harness_of(net, fails=fails)
    harness.run(steps=300)
    ids = [event.batch.id for event in harness.events(BatchStarted)]
    assert "1/revert" in ids
    assert "1/revert-unwell" in ids
    assert len(set(ids)) == len(ids)
    assert harness.outcomes() == {"net": "undone"}


EXAMPLE = Path(__file__).parents[3] / "examples" / "upgrade" / "campaign.yaml"


class FailsOnce:
    """An engine that finishes all tasks at once, except the work on one resource, which fails."""

    def __init__(self, *, begun: bool) -> None:
        self._begun = begun
        self._reports: deque[Event] = deque()

    def perform(self, schedule: TaskBatch | VmBatch) -> None:
        assert isinstance(schedule, TaskBatch)
        for task in schedule.tasks:
            if task.resource == "greeter2" and task.kind is TaskKind.APPLY:
                failed = TaskFailed(
                    at_ms=0,
                    batch=schedule.id,
                    resource=task.resource,
                    kind=task.kind,
                    begun=self._begun,
                )
                self._reports.append(failed)
            else:
                finished = TaskFinished(
                    at_ms=0, batch=schedule.id, resource=task.resource, kind=task.kind
                )
                self._reports.append(finished)
        self._reports.append(BatchEnded(at_ms=0, batch=schedule.id))

    def next_event(self, until_ms: int | None) -> Event | None:
        return self._reports.popleft() if self._reports else None

    def on_event(self, event: Event) -> None:
        """Ignore events of the coordinator."""


@pytest.mark.parametrize("begun", [True, False])
def test_only_work_that_had_started_is_reverted(begun: bool) -> None:
    campaign = parse_campaign(EXAMPLE.read_bytes(), str(EXAMPLE))
    journal = MemoryJournal()
    UpgradeLoop(FailsOnce(begun=begun), journal, campaign).run()
    tasks = [
        task
        for event in journal.events()
        if isinstance(event, BatchStarted)
        for task in event.batch.tasks
        if task.kind is TaskKind.REVERT
    ]
    assert [(task.resource, [work.after for work in task.works]) for task in tasks] == (
        [("greeter2", ["2.0"])] if begun else []
    )


def test_a_check_script_runs_once_without_a_bake_time() -> None:
    campaign = parse_campaign(EXAMPLE.read_bytes(), str(EXAMPLE))
    journal = MemoryJournal()
    UpgradeLoop(FailsOnce(begun=True), journal, campaign).run()
    checked = [
        event.resource
        for event in journal.events()
        if isinstance(event, TaskFinished) and event.kind is TaskKind.CHECK
    ]
    assert checked == ["greeter1", "greeter3"]
