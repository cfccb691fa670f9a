"""Undo versions: where all resources of a change are led to when its set is taken back (4.1.3)."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Need, Recipe
from equipoise.model.upgrade.event import BatchStarted, ResourceIsolated, ResourceReleased
from equipoise.model.upgrade.request import Order
from equipoise.model.upgrade.work import Errand, Task
from upgrade_worlds import (
    CATALOG,
    Stage,
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    binds,
    switches,
    upgrade_of,
)


def stage_of(fails: object = None, catalog: Catalog = CATALOG) -> Stage:
    change = upgrade_of(["s1", "s2", "s3"], "v3", undo_threshold=3, undo_version="v2")
    return Stage(
        a_campaign(
            a_request(a_set("net", change)),
            hosts=[a_host(1, 0)],
            resources=switches(3),
            dependencies=[binds("s3", "s2", DependencyKind.STORAGE)],
            catalog=catalog,
        ),
        fails=fails or (lambda _: ""),  # type: ignore[arg-type]
    )


def once(resource: str, undoing: bool | None = None) -> object:
    def fails(task: Task) -> str:
        back = any(work.undoing for work in task.works)
        meant = task.resource == resource and task.errand is Errand.APPLY
        return "broken" if meant and undoing in (None, back) else ""

    return fails


def test_an_isolated_resource_and_one_never_changed_are_led_there_as_well() -> None:
    stage = stage_of(once("s2", undoing=False))
    stage.run()
    assert stage.outcomes() == {"net": "undone"}
    assert [stage.version(f"s{n}") for n in (1, 2, 3)] == ["v2", "v2", "v2"]
    assert [one.resource for one in stage.events(ResourceReleased)] == ["s2"]
    assert not stage.coordinator.state.parts[ResourceId("s2")].isolated


def test_one_that_cannot_be_led_there_has_failed() -> None:
    stage = stage_of(once("s2"))
    stage.run()
    assert [(one.resource, one.failed) for one in stage.events(ResourceIsolated)] == [
        ("s2", False),
        ("s2", True),
    ]
    assert stage.outcomes() == {"net": "undone"}


def test_the_way_there_is_that_of_the_undo_version_not_that_of_the_one_taken_back() -> None:
    recipe = Recipe(duration_s=7, script="to-v2", undo_script="from-v2")
    catalog = Catalog(
        descriptions=tuple(
            one.but(upgrade=recipe) if (one.component, one.version) == ("switch", "v2") else one
            for one in CATALOG.descriptions
        )
    )
    stage = stage_of(once("s2", undoing=False), catalog)
    stage.run()
    works = [
        work
        for one in stage.events(BatchStarted)
        for task in one.batch.tasks
        for work in task.works
        if work.undoing
    ]
    assert {(work.recipe.undo_script, work.duration_s) for work in works} == {("to-v2", 7)}


def test_a_set_that_is_undone_before_it_began_leads_there_too() -> None:
    stage = stage_of()
    while stage.coordinator.state.iteration < 1:
        stage.step()
    stage.command(Order.PAUSE, "net")
    stage.command(Order.UNDO, "net")
    stage.command(Order.RESUME, "net")
    stage.run()
    assert [stage.version(f"s{n}") for n in (1, 2, 3)] == ["v2", "v2", "v2"]


def test_a_complementary_change_of_the_same_component_has_the_same_undo_version() -> None:
    along = DependencyKind.STORAGE
    need = Need(component=ComponentId("switch"), versions=("v3",), along=along)
    catalog = Catalog(
        descriptions=(
            a_description("switch", "v1"),
            a_description("switch", "v2"),
            a_description("switch", "v3", needs=(need,)),
        )
    )
    stage = Stage(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1"], "v3", undo_version="v2"))),
            hosts=[a_host(1, 0)],
            resources=switches(2),
            dependencies=[binds("s1", "s2", along)],
            catalog=catalog,
        )
    )
    stage.step()
    (standing,) = stage.coordinator.state.standings.values()
    asked, complement = standing.set.changes
    assert complement.complements
    assert complement.undo_version == asked.undo_version == "v2"
