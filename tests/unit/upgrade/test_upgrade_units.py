"""Upgrade units: their members, their partitions and their undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.event import Event
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.campaign import UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog, ComponentId, ComponentRequirement
from equipoise.model.upgrade.event import BatchDecided, BatchStarted
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.infrastructure import Dependency, DependencyKind
from equipoise.model.upgrade.work import TaskKind, UnitId, UpgradeMethod, UpgradeTask, UpgradeUnit
from equipoise.upgrade.requests import units
from equipoise.upgrade.requests.units import group_units, strong_components
from upgrade_clusters import (
    CATALOG,
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    never,
    switches,
    upgrade_of,
)

STORAGE, PEER = DependencyKind.STORAGE, DependencyKind.PEER_STATELESS


def a_dependency(dependent: str, sponsor: str, kind: DependencyKind = STORAGE) -> Dependency:
    return Dependency(dependent=ResourceId(dependent), sponsor=ResourceId(sponsor), kind=kind)


def unit_names(
    names: str, dependencies: list[Dependency], incompatible: list[Dependency]
) -> list[str]:
    unit_members = group_units(
        [ResourceId(name) for name in names], [*dependencies, *incompatible], incompatible
    )
    return ["".join(members) for members in unit_members]


def test_without_incompatible_dependencies_there_is_no_unit() -> None:
    assert unit_names("abc", [a_dependency("a", "b"), a_dependency("b", "c", PEER)], []) == []


def test_incompatible_resources_form_a_unit() -> None:
    assert unit_names("abcd", [], [a_dependency("a", "c"), a_dependency("b", "d")]) == ["ac", "bd"]


def test_a_resource_between_two_members_joins_the_unit() -> None:
    between = [a_dependency("a", "b"), a_dependency("b", "c")]
    assert unit_names("abcd", [*between, a_dependency("d", "a")], [a_dependency("a", "c")]) == [
        "abc"
    ]


def test_peers_of_members_and_resources_between_them_join_the_unit() -> None:
    dependencies = [a_dependency("c", "d", PEER), a_dependency("d", "e"), a_dependency("e", "a")]
    assert unit_names("abcdef", dependencies, [a_dependency("a", "c")]) == ["acde"]


def test_constituents_of_an_aggregate_are_peers() -> None:
    kind = DependencyKind.AGGREGATION
    dependencies = [a_dependency("x", "a", kind), a_dependency("x", "b", kind)]
    assert unit_names("abc", dependencies, [a_dependency("a", "c")]) == ["abc"]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_strong_components_are_the_nodes_that_reach_each_other(
    pairs: list[tuple[int, int]],
) -> None:
    edges: dict[int, list[int]] = {node: [] for node in range(7)}
    for node, target in pairs:
        edges[node].append(target)
    reach = {node: {node} for node in edges}
    for _ in edges:
        for node, targets in edges.items():
            reach[node] = reach[node].union(*(reach[target] for target in targets))
    expected = {
        frozenset(target for target in edges if target in reach[node] and node in reach[target])
        for node in edges
    }
    assert {frozenset(component) for component in strong_components(edges)} == {
        component for component in expected if len(component) > 1
    }


PEERS = DependencyKind.PEER_STATEFUL_DIRECT
STRICT = Catalog(
    descriptions=tuple(
        described.but(
            needs=(
                ComponentRequirement(
                    component=ComponentId("switch"), versions=(described.version,), along=PEERS
                ),
            )
        )
        if described.component == "switch"
        else described
        for described in CATALOG.descriptions
    )
)
"""Switches that are compatible with their own version only."""


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Callable[[UpgradeMethod], None]:
    """Split every unit in the middle, by the given method."""

    def install(method: UpgradeMethod) -> None:
        def unit_of(
            _graph: ResourceGraph, id_: UnitId, members: Sequence[ResourceId], *, remote_links: bool
        ) -> UpgradeUnit:
            assert isinstance(remote_links, bool)
            middle = len(members) // 2
            parts = (tuple(members[:middle]), tuple(members[middle:]))
            return UpgradeUnit(id=id_, method=method, partitions=parts)

        monkeypatch.setattr(units, "make_unit", unit_of)

    return install


def four_switches(
    fails: Callable[[UpgradeTask], str] = never, *, remote_links: bool = False
) -> UpgradeHarness:
    pairs = [(a, b) for a in range(1, 5) for b in range(a + 1, 5)]
    harness = UpgradeHarness(
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
    harness.watch.append(lambda _event: _check_one_version_in_service(harness))
    return harness


def _check_one_version_in_service(harness: UpgradeHarness) -> None:
    """Check that all active switches have one version."""
    resource_states = harness.coordinator.state.resources.states.values()
    assert (
        len(
            {
                resource_state.components.get(resource_state.own_component)
                for resource_state in resource_states
                if resource_state.active
            }
        )
        <= 1
    )


def stages(harness: UpgradeHarness) -> list[list[tuple[TaskKind, list[str]]]]:
    """Return the tasks of each schedule, stage by stage."""
    return [
        [(tasks[0].kind, sorted(task.resource for task in tasks)) for tasks in event.batch.stages]
        for event in harness.events(BatchStarted)
    ]


def test_a_split_keeps_one_version_in_service(
    halves: Callable[[UpgradeMethod], None],
) -> None:
    halves(UpgradeMethod.SPLIT)
    harness = four_switches()
    harness.run()
    first, second = ["s1", "s2"], ["s3", "s4"]
    assert stages(harness) == [
        [(TaskKind.DEACTIVATE, first), (TaskKind.APPLY, first)],
        [
            (TaskKind.DEACTIVATE, second),
            (TaskKind.ACTIVATE, first),
            (TaskKind.APPLY, second),
            (TaskKind.ACTIVATE, second),
        ],
    ]
    assert harness.outcomes() == {"net": "applied"}
    assert all(resource.active for resource in harness.coordinator.state.resources.states.values())
    waits = {
        vertex: (elimination.rule, elimination.code)
        for elimination in harness.events(BatchDecided)[0].eliminated
        for vertex in elimination.vertices
    }
    assert waits == {"Gs3": (5, "partition-order")}


def test_the_undo_of_a_split_keeps_one_version_in_service(
    halves: Callable[[UpgradeMethod], None],
) -> None:
    halves(UpgradeMethod.SPLIT)

    def fails(task: UpgradeTask) -> str:
        return "broken" if task.resource == "s4" and task.kind is TaskKind.APPLY else ""

    harness = four_switches(fails)
    harness.run()
    assert harness.outcomes() == {"net": "undone"}
    assert [harness.version(f"s{n}") for n in range(1, 5)] == ["v1"] * 4
    assert all(resource.active for resource in harness.coordinator.state.resources.states.values())


def test_remotely_managed_links_are_switched(
    halves: Callable[[UpgradeMethod], None],
) -> None:
    halves(UpgradeMethod.MODIFIED_SPLIT_LINKS)
    harness = four_switches(remote_links=True)
    harness.watch.clear()  # all switches stay in service; links between versions are off
    links: dict[frozenset[str], bool] = {}

    def watch(event: Event) -> None:
        if isinstance(event, BatchStarted):
            for task in event.batch.tasks:
                if task.link_to is not None:
                    pair = frozenset((task.resource, task.link_to))
                    links[pair] = task.kind is TaskKind.LINK_ON

    harness.watch.append(watch)
    harness.run()
    assert harness.outcomes() == {"net": "applied"}
    assert links, "links were switched"
    assert all(links.values()), "all links are on at the end"
