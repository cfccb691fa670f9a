"""Brakes of a change set: canary, checkpoints, the size of a batch, and the stop after failures."""

from __future__ import annotations

import pytest

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.event import BatchDecided, BatchStarted, IterationEnded
from equipoise.model.upgrade.infrastructure import Resource, ResourceKind
from equipoise.model.upgrade.request import ChangeSet, CommandKind, SetId
from equipoise.model.upgrade.work import TaskKind, UpgradeTask
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    hypervisors,
    never,
    upgrade_of,
)

HOSTS = 10
ALL = [f"k{n}" for n in range(1, HOSTS + 1)]


def a_run(
    *sets: ChangeSet, fails: object = never, resources: list[Resource] | None = None
) -> UpgradeHarness:
    hosts = [a_host(n, 2) for n in range(1, HOSTS + 1)]
    campaign = a_campaign(a_request(*sets), hosts=hosts, resources=resources or hypervisors(HOSTS))
    harness = UpgradeHarness(campaign, fails=fails)  # type: ignore[arg-type]
    harness.run()
    return harness


def batch_sizes(harness: UpgradeHarness) -> list[int]:
    return [len(event.batch) for event in harness.events(BatchDecided) if event.batch]


def pause_codes(harness: UpgradeHarness) -> tuple[str, ...]:
    return harness.events(IterationEnded)[-1].codes


def test_a_checkpoint_caps_the_batch_before_it() -> None:
    harness = a_run(a_set("all", upgrade_of(ALL), checkpoints_pct=(10, 55)))
    assert batch_sizes(harness) == [1], "10 % of ten hosts is one host"
    assert pause_codes(harness) == ("waits-for-approval",)
    harness.command(CommandKind.APPROVE, "all")
    harness.run()
    assert batch_sizes(harness) == [1, 5], "55 % of ten hosts is six hosts"
    harness.command(CommandKind.APPROVE, "all")
    harness.run()
    assert batch_sizes(harness) == [1, 5, 4]
    assert harness.outcomes() == {"all": "applied"}


def test_the_groups_beyond_a_checkpoint_have_a_reason() -> None:
    harness = a_run(a_set("all", upgrade_of(ALL), checkpoints_pct=(10,)))
    first = harness.events(BatchDecided)[0]
    (elimination,) = first.eliminated
    assert (elimination.rule, elimination.code, len(elimination.vertices)) == (0, "batch-limit", 9)


def test_a_resource_that_matched_from_the_start_is_no_progress() -> None:
    resources = hypervisors(HOSTS)
    resources[0] = resources[0].but(version="v2")
    harness = a_run(a_set("all", upgrade_of(ALL), checkpoints_pct=(10,)), resources=resources)
    assert batch_sizes(harness) == [1], "one of the nine that differ"


def test_a_host_with_several_resources_counts_once() -> None:
    agents = [
        Resource(
            id=ResourceId(f"a{n}"),
            kind=ResourceKind.HOST_OS,
            component="agent",  # type: ignore[arg-type]
            version="v1",
            host=kernel.host,
        )
        for n, kernel in enumerate(hypervisors(HOSTS), 1)
    ]
    names = [*ALL, *(agent.id for agent in agents)]
    harness = a_run(
        a_set("all", upgrade_of(names), batch_max=2), resources=[*hypervisors(HOSTS), *agents]
    )
    states = harness.coordinator.state.resources.states
    for event in harness.events(BatchDecided):
        assert len({states[ResourceId(name)].resource.host for name in event.batch}) <= 2
    assert harness.outcomes() == {"all": "applied"}


def test_a_batch_is_never_larger_than_its_limit() -> None:
    harness = a_run(a_set("all", upgrade_of(ALL), batch_max=3))
    assert batch_sizes(harness) == [3, 3, 3, 1]
    assert harness.outcomes() == {"all": "applied"}


def test_the_limit_of_one_set_does_not_limit_another() -> None:
    harness = a_run(
        a_set("few", upgrade_of(ALL[:5]), batch_max=1), a_set("many", upgrade_of(ALL[5:]))
    )
    assert batch_sizes(harness) == [6, 1, 1, 1, 1]


def test_a_canary_is_healthy_before_the_approval_is_requested() -> None:
    harness = a_run(a_set("all", upgrade_of(ALL), canary=2, bake_s=600))
    assert batch_sizes(harness) == [2]
    checks = [
        event.at_ms
        for event in harness.events(BatchStarted)
        if any(task.kind is TaskKind.CHECK for task in event.batch.tasks)
    ]
    (waits,) = [event for event in harness.events(IterationEnded) if event.paused]
    assert checks[0] >= 600_000
    assert waits.at_ms >= checks[0]
    assert pause_codes(harness) == ("waits-for-approval",)
    harness.command(CommandKind.APPROVE, "all")
    harness.run()
    assert batch_sizes(harness) == [2, 8]
    assert harness.outcomes() == {"all": "applied"}


def test_a_canary_that_is_not_healthy_asks_for_no_approval() -> None:
    def fails(task: UpgradeTask) -> str:
        return "unhealthy" if task.kind is TaskKind.CHECK else ""

    harness = a_run(a_set("all", upgrade_of(ALL), canary=1, bake_s=60), fails=fails)
    assert harness.outcomes() == {"all": "undone"}
    changed = {
        task.resource
        for event in harness.events(BatchStarted)
        for task in event.batch.tasks
        if task.kind is TaskKind.APPLY
    }
    assert len(changed) == 1, "nothing but the canary was touched"


@pytest.mark.parametrize("canary", [None, 1])
def test_canary_and_checkpoint_at_one_place_need_one_approval(canary: int | None) -> None:
    harness = a_run(a_set("all", upgrade_of(ALL), canary=canary, checkpoints_pct=(5, 10)))
    harness.command(CommandKind.APPROVE, "all")
    harness.run()
    assert harness.outcomes() == {"all": "applied"}


def test_a_set_stops_after_failures_and_resumes_by_command() -> None:
    broken = {"on": True}

    def fails(task: UpgradeTask) -> str:
        return "broken" if task.kind is TaskKind.APPLY and broken["on"] else ""

    one = a_set("all", upgrade_of(ALL), attempts_max=5, batch_max=1, failures_max=3)
    harness = a_run(one, fails=fails)
    assert len(batch_sizes(harness)) == 3
    assert pause_codes(harness) == ("too-many-failures",)
    harness.command(CommandKind.RESUME, "all")
    broken["on"] = False
    harness.run()
    assert harness.outcomes() == {"all": "applied"}


def test_after_a_resume_the_failures_count_again() -> None:
    def fails(task: UpgradeTask) -> str:
        return "broken" if task.kind is TaskKind.APPLY else ""

    harness = a_run(
        a_set("all", upgrade_of(ALL), attempts_max=9, batch_max=1, failures_max=2), fails=fails
    )
    harness.command(CommandKind.RESUME, "all")
    harness.run()
    assert len(batch_sizes(harness)) == 4
    status = harness.coordinator.state.requests.set_status[SetId("all")]
    assert (status.failures, status.failures_excused) == (4, 2)


def test_an_undo_has_no_brakes() -> None:
    harness = a_run(a_set("all", upgrade_of(ALL), batch_max=5, checkpoints_pct=(50,)))
    harness.command(CommandKind.UNDO, "all")
    harness.run()
    assert batch_sizes(harness)[0] == 5
    assert harness.outcomes() == {"all": "undone"}
