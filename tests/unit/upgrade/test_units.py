"""Units of several resources: partitions in order, kept off, linked, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from equipoise.model.event import Event
from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Need
from equipoise.model.upgrade.event import BatchDecided, BatchStarted
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.settings import UpgradeSettings
from equipoise.model.upgrade.work import Errand, Method, Task, UnitId, UpgradeUnit
from equipoise.upgrade.requests import units
from upgrade_worlds import (
    CATALOG,
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    never,
    switches,
    upgrade_of,
)

PEERS = DependencyKind.PEER_STATEFUL_DIRECT
STRICT = Catalog(
    descriptions=tuple(
        one.but(
            needs=(Need(component=ComponentId("switch"), versions=(one.version,), along=PEERS),)
        )
        if one.component == "switch"
        else one
        for one in CATALOG.descriptions
    )
)
"""Switches that understand their own version only."""


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Callable[[Method], None]:
    """Let every unit be split in the middle, by the given method."""

    def install(method: Method) -> None:
        def unit_of(
            _graph: ResourceGraph, id_: UnitId, members: Sequence[ResourceId], *, remote_links: bool
        ) -> UpgradeUnit:
            assert isinstance(remote_links, bool)
            middle = len(members) // 2
            parts = (tuple(members[:middle]), tuple(members[middle:]))
            return UpgradeUnit(id=id_, method=method, partitions=parts)

        monkeypatch.setattr(units, "unit_of", unit_of)

    return install


def four_switches(fails: Callable[[Task], str] = never, *, remote_links: bool = False) -> Stage:
    pairs = [(a, b) for a in range(1, 5) for b in range(a + 1, 5)]
    stage = Stage(
        a_campaign(
            a_request(a_set("net", upgrade_of(["s1", "s2", "s3", "s4"]), attempts_max=1)),
            hosts=[a_host(1, 1)],
            resources=switches(4),
            dependencies=[binds(f"s{a}", f"s{b}", PEERS) for a, b in pairs],
            catalog=STRICT,
            settings=UpgradeSettings(remote_links=remote_links),
        ),
        fails=fails,
    )
    stage.watch.append(lambda _event: _nobody_talks_across(stage))
    return stage


def _nobody_talks_across(stage: Stage) -> None:
    """Active switches, at any moment, all have one version."""
    parts = stage.coordinator.state.parts.values()
    assert len({part.components.get(part.main) for part in parts if part.active}) <= 1


def stages(stage: Stage) -> list[list[tuple[Errand, list[str]]]]:
    """What each schedule asks for, stage by stage."""
    return [
        [(tasks[0].errand, sorted(task.resource for task in tasks)) for tasks in one.batch.stages]
        for one in stage.events(BatchStarted)
    ]


def test_a_split_has_one_version_in_service_at_any_time(
    halves: Callable[[Method], None],
) -> None:
    halves(Method.SPLIT)
    stage = four_switches()
    stage.run()
    first, second = ["s1", "s2"], ["s3", "s4"]
    assert stages(stage) == [
        [(Errand.DEACTIVATE, first), (Errand.APPLY, first)],
        [
            (Errand.DEACTIVATE, second),
            (Errand.ACTIVATE, first),
            (Errand.APPLY, second),
            (Errand.ACTIVATE, second),
        ],
    ]
    assert stage.outcomes() == {"net": "applied"}
    assert all(part.active for part in stage.coordinator.state.parts.values())
    waits = {
        vertex: (one.rule, one.reason)
        for one in stage.events(BatchDecided)[0].eliminated
        for vertex in one.vertices
    }
    assert waits == {"Gs3": (5, "partition 1 of its unit comes first")}


def test_the_way_back_of_a_split_mixes_no_versions_either(
    halves: Callable[[Method], None],
) -> None:
    halves(Method.SPLIT)

    def fails(task: Task) -> str:
        return "broken" if task.resource == "s4" and task.errand is Errand.APPLY else ""

    stage = four_switches(fails)
    stage.run()
    assert stage.outcomes() == {"net": "undone"}
    assert [stage.version(f"s{n}") for n in range(1, 5)] == ["v1"] * 4
    assert all(part.active for part in stage.coordinator.state.parts.values())


def test_links_are_switched_where_that_can_be_done_from_afar(
    halves: Callable[[Method], None],
) -> None:
    halves(Method.MODIFIED_SPLIT_LINKS)
    stage = four_switches(remote_links=True)
    stage.watch.clear()  # all stay in service, and links between versions are off
    links: dict[frozenset[str], bool] = {}

    def watch(event: Event) -> None:
        if isinstance(event, BatchStarted):
            for task in event.batch.tasks:
                if task.link_to is not None:
                    pair = frozenset((task.resource, task.link_to))
                    links[pair] = task.errand is Errand.LINK_ON

    stage.watch.append(watch)
    stage.run()
    assert stage.outcomes() == {"net": "applied"}
    assert links, "links were switched"
    assert all(links.values()), "in the end all are on again"
