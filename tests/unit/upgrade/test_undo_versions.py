"""Undo versions: the version of all resources of a change after its set is undone (4.1.3)."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import Catalog, ComponentId, ComponentRequirement, Recipe
from equipoise.model.upgrade.event import BatchStarted, ResourceIsolated, ResourceReleased
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.request import CommandKind
from equipoise.model.upgrade.work import TaskKind, UpgradeTask
from upgrade_clusters import (
    CATALOG,
    UpgradeHarness,
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    binds,
    switches,
    upgrade_of,
)


def harness_of(fails: object = None, catalog: Catalog = CATALOG) -> UpgradeHarness:
    change = upgrade_of(["s1", "s2", "s3"], "v3", undo_threshold=3, undo_version="v2")
    return UpgradeHarness(
        a_campaign(
            a_request(a_set("net", change)),
            hosts=[a_host(1, 0)],
            resources=switches(3),
            dependencies=[binds("s3", "s2", DependencyKind.STORAGE)],
            catalog=catalog,
        ),
        fails=fails or (lambda _: ""),  # type: ignore[arg-type]
    )


def fails_on(resource: str, undoing: bool | None = None) -> object:
    def fails(task: UpgradeTask) -> str:
        back = any(work.undoing for work in task.works)
        meant = task.resource == resource and task.kind is TaskKind.APPLY
        return "broken" if meant and undoing in (None, back) else ""

    return fails


def test_isolated_and_unchanged_resources_get_the_undo_version_as_well() -> None:
    harness = harness_of(fails_on("s2", undoing=False))
    harness.run()
    assert harness.outcomes() == {"net": "undone"}
    assert [harness.version(f"s{n}") for n in (1, 2, 3)] == ["v2", "v2", "v2"]
    assert [event.resource for event in harness.events(ResourceReleased)] == ["s2"]
    assert not harness.coordinator.state.resources.states[ResourceId("s2")].isolated


def test_a_resource_whose_undo_fails_is_failed() -> None:
    harness = harness_of(fails_on("s2"))
    harness.run()
    assert [(event.resource, event.failed) for event in harness.events(ResourceIsolated)] == [
        ("s2", False),
        ("s2", True),
    ]
    assert harness.outcomes() == {"net": "undone"}


def test_the_undo_uses_the_recipe_of_the_undo_version() -> None:
    recipe = Recipe(duration_s=7, script="to-v2", undo_script="from-v2")
    catalog = Catalog(
        descriptions=tuple(
            described.but(upgrade=recipe)
            if (described.component, described.version) == ("switch", "v2")
            else described
            for described in CATALOG.descriptions
        )
    )
    harness = harness_of(fails_on("s2", undoing=False), catalog)
    harness.run()
    works = [
        work
        for event in harness.events(BatchStarted)
        for task in event.batch.tasks
        for work in task.works
        if work.undoing
    ]
    assert {(work.recipe.undo_script, work.duration_s) for work in works} == {("to-v2", 7)}


def test_a_set_undone_before_its_start_applies_the_undo_version() -> None:
    harness = harness_of()
    while harness.coordinator.state.iteration.number < 1:
        harness.step()
    harness.command(CommandKind.PAUSE, "net")
    harness.command(CommandKind.UNDO, "net")
    harness.command(CommandKind.RESUME, "net")
    harness.run()
    assert [harness.version(f"s{n}") for n in (1, 2, 3)] == ["v2", "v2", "v2"]


def test_a_complementary_change_of_the_same_component_has_the_undo_version() -> None:
    along = DependencyKind.STORAGE
    need = ComponentRequirement(component=ComponentId("switch"), versions=("v3",), along=along)
    catalog = Catalog(
        descriptions=(
            a_description("switch", "v1"),
            a_description("switch", "v2"),
            a_description("switch", "v3", needs=(need,)),
        )
    )
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1"], "v3", undo_version="v2"))),
            hosts=[a_host(1, 0)],
            resources=switches(2),
            dependencies=[binds("s1", "s2", along)],
            catalog=catalog,
        )
    )
    harness.step()
    (status,) = harness.coordinator.state.requests.set_status.values()
    requested, complement = status.set.changes
    assert complement.complements
    assert complement.undo_version == requested.undo_version == "v2"
