"""When things fail: attempts, taking back, isolation, thresholds, deadlines."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import DependencyKind, Resource, ResourceKind
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.event import BatchStarted, ResourceIsolated
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, Order, SetId
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
    switches,
    upgrade_of,
)

HOSTS = [a_host(n, 2) for n in range(1, 4)]


def stage_of(*sets: ChangeSet, fails: Callable[[Task], str]) -> Stage:
    return Stage(
        a_campaign(
            a_request(*sets),
            hosts=HOSTS,
            resources=hypervisors(3) + switches(3),
            catalog=CATALOG,
        ),
        fails=fails,
    )


def failing(resource: str, times: int = 99, errand: Errand = Errand.APPLY, how: str = "broken"):  # type: ignore[no-untyped-def]
    left = [times]

    def fails(task: Task) -> str:
        if task.resource == resource and task.errand is errand and left[0]:
            left[0] -= 1
            return how
        return ""

    return fails


def errands(stage: Stage, resource: str) -> list[Errand]:
    return [
        task.errand
        for one in stage.events(BatchStarted)
        for task in one.batch.tasks
        if task.resource == resource
    ]


def agent_and_switch(**more: object) -> ChangeSet:
    """Two works on one resource: the second fails, so that the first has to be taken back."""
    add = Change(
        does=ChangeKind.ADD,
        component=ComponentId("agent"),
        version="v2",
        resources=(ResourceId("s1"),),
    )
    return a_set("net", add, upgrade_of(["s1", "s2"]), **more)


def test_a_failed_attempt_is_taken_back_at_once_and_tried_again() -> None:
    stage = stage_of(agent_and_switch(attempts_max=2), fails=failing("s1", times=1))
    stage.run()
    assert errands(stage, "s1") == [Errand.APPLY, Errand.REVERT, Errand.APPLY]
    assert stage.outcomes() == {"net": "applied"}
    assert stage.coordinator.state.parts[ResourceId("s1")].components == {
        "switch": "v2", "agent": "v2"
    }  # fmt: skip


def test_attempts_end_at_the_most_there_may_be_and_the_set_is_undone() -> None:
    change = upgrade_of(["s1", "s2", "s3"], undo_threshold=3)
    stage = stage_of(a_set("net", change, attempts_max=2), fails=failing("s2"))
    stage.run()
    assert errands(stage, "s2").count(Errand.APPLY) == 2
    assert stage.outcomes() == {"net": "undone"}
    assert [stage.version(f"s{n}") for n in (1, 2, 3)] == ["v1"] * 3
    assert not stage.coordinator.state.parts[ResourceId("s2")].isolated, "it is where undoing leads"


def test_a_set_goes_on_without_those_that_its_threshold_can_spare() -> None:
    change = upgrade_of(["s1", "s2", "s3"], undo_threshold=2)
    stage = stage_of(a_set("net", change, attempts_max=1), fails=failing("s2"))
    stage.run()
    assert stage.outcomes() == {"net": "applied"}
    part = stage.coordinator.state.parts[ResourceId("s2")]
    assert part.isolated
    assert not part.failed
    assert [stage.version(f"s{n}") for n in (1, 2, 3)] == ["v2", "v1", "v2"]


def test_what_cannot_be_taken_back_or_does_not_answer_has_failed() -> None:
    def fails(task: Task) -> str:
        if task.resource == "s1" and task.errand in (Errand.APPLY, Errand.REVERT):
            return "broken"
        return "lost" if task.resource == "s3" and task.errand is Errand.APPLY else ""

    change = upgrade_of(["s3"], undo_threshold=0)
    set_ = agent_and_switch(attempts_max=5)
    set_ = set_.but(changes=tuple(one.but(undo_threshold=0) for one in (*set_.changes, change)))
    stage = stage_of(set_, fails=fails)
    stage.run()
    isolated = {one.resource: one.failed for one in stage.events(ResourceIsolated)}
    assert isolated == {"s1": True, "s3": True}
    assert stage.outcomes() == {"net": "applied"}


def test_undoing_leads_to_the_version_that_was_wished() -> None:
    change = upgrade_of(["s1", "s2", "s3"], "v3", undo_threshold=3, undo_version="v2")
    stage = stage_of(a_set("net", change), fails=failing("s3"))
    stage.run()
    assert stage.outcomes() == {"net": "undone"}
    assert [stage.version(f"s{n}") for n in (1, 2)] == ["v2", "v2"]


def test_an_undone_set_leaves_others_and_their_later_works_right() -> None:
    first = a_set("first", upgrade_of(["s1", "s2"], "v2", undo_threshold=2))
    stage = stage_of(first, fails=failing("s2", times=1))
    stage.ask(a_request(a_set("second", upgrade_of(["s1"], "v3")), name="r2"))
    stage.run()
    assert stage.outcomes() == {"first": "undone", "second": "applied"}
    assert (stage.version("s1"), stage.version("s2")) == ("v3", "v1")


def test_a_member_that_fails_takes_what_was_done_with_it_back() -> None:
    stage = Stage(
        a_campaign(
            a_request(a_set("both", upgrade_of(["k1", "s1"]), attempts_max=2)),
            hosts=HOSTS,
            resources=hypervisors(3) + switches(1),
            dependencies=[binds("s1", "k1", DependencyKind.CONTAINER)],
        ),
        fails=failing("s1", times=1),
    )
    stage.run()
    assert errands(stage, "k1") == [Errand.APPLY, Errand.REVERT, Errand.APPLY]
    assert stage.outcomes() == {"both": "applied"}


def test_a_set_that_takes_too_long_is_undone() -> None:
    late = a_set("late", upgrade_of(["s1", "s2"]), attempts_max=99, completion_s_max=10)
    stage = stage_of(late, fails=failing("s2", times=20))
    stage.run()
    assert stage.outcomes() == {"late": "undone"}
    assert "not complete 10 s after" in stage.coordinator.state.standings[SetId("late")].reason


def test_an_administrator_undoes_or_cancels_what_is_not_complete() -> None:
    sets = [
        a_set(name, upgrade_of([f"s{n}", f"k{n}"]), attempts_max=99)
        for n, name in enumerate(("undone", "cancelled"), 1)
    ]

    def fails(task: Task) -> str:
        return "not yet" if task.resource[0] == "s" and task.errand is Errand.APPLY else ""

    stage = stage_of(*sets, fails=fails)
    while stage.coordinator.state.iteration < 3:
        stage.step()
    assert stage.version("k1") == stage.version("k2") == "v2"
    stage.command(Order.UNDO, "undone")
    stage.command(Order.CANCEL, "cancelled")
    stage.run()
    assert stage.outcomes() == {"undone": "undone", "cancelled": "cancelled"}
    assert (stage.version("k1"), stage.version("k2")) == ("v1", "v2")


def test_what_the_engine_does_not_answer_has_failed() -> None:
    change = upgrade_of(["s1", "s2"], undo_threshold=1)
    stage = stage_of(a_set("net", change, attempts_max=3), fails=failing("nobody"))
    while not stage.open:
        stage.step()
    stage.open = [
        one for one in stage.open if getattr(one, "resource", None) != "s2"
    ]  # its answer is lost
    stage.run()
    part = stage.coordinator.state.parts[ResourceId("s2")]
    assert part.failed
    assert stage.outcomes() == {"net": "applied"}


def test_what_is_not_well_and_cannot_be_taken_back_is_isolated_and_not_looked_at_again() -> None:
    def fails(task: Task) -> str:
        return "no" if task.resource == "s1" and task.errand is not Errand.APPLY else ""

    change = upgrade_of(["s1", "s2"], undo_threshold=1)
    stage = stage_of(a_set("net", change, bake_s=60), fails=fails)
    stage.run(steps=200)
    assert stage.coordinator.state.parts[ResourceId("s1")].failed
    assert (stage.outcomes(), stage.version("s2")) == ({"net": "applied"}, "v2")
    checks = [one for one in stage.events(BatchStarted) if one.batch.id.endswith("/check")]
    assert len(checks) == 1


def test_what_is_not_well_goes_back_with_everything_beside_it_the_last_first() -> None:
    box = Resource(id=ResourceId("b1"), kind=ResourceKind.SERVER, version="v1", host=HostId("h1"))

    def fails(task: Task) -> str:
        return "sick" if task.errand is Errand.CHECK and task.resource == "b1" else ""

    stage = Stage(
        a_campaign(
            a_request(a_set("all", upgrade_of(["b1", "k1"]), bake_s=1)),
            hosts=[a_host(1, 1), a_host(2, 1)],
            resources=[box, *hypervisors(1)],
            dependencies=[binds("k1", "b1", DependencyKind.CONTAINER)],
        ),
        fails=fails,
    )
    stage.run(steps=200)
    (back,) = [one.batch for one in stage.events(BatchStarted) if "revert" in one.batch.id]
    assert [task.resource for task in back.tasks] == ["k1", "b1"]
    assert stage.outcomes() == {"all": "undone"}
    assert (stage.version("b1"), stage.version("k1")) == ("v1", "v1")


def test_two_schedules_that_take_back_in_one_iteration_have_names_of_their_own() -> None:
    def fails(task: Task) -> str:
        wrong = {"s1": Errand.APPLY, "s2": Errand.CHECK}
        return "no" if wrong.get(task.resource) is task.errand else ""

    agents = Change(
        does=ChangeKind.ADD,
        component=ComponentId("agent"),
        version="v1",
        resources=(ResourceId("s1"), ResourceId("s2")),
    )
    net = a_set("net", upgrade_of(["s1", "s2"]), agents, bake_s=60)  # half done is taken back
    stage = stage_of(net, fails=fails)
    stage.run(steps=300)
    ids = [one.batch.id for one in stage.events(BatchStarted)]
    assert "1/revert" in ids
    assert "1/revert-unwell" in ids
    assert len(set(ids)) == len(ids)
    assert stage.outcomes() == {"net": "undone"}
