"""Changes of dependencies: they come and go with a resource, or by themselves."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind, Presence
from equipoise.model.upgrade.event import BatchDecided
from equipoise.model.upgrade.request import Change, ChangeKind, Order
from equipoise.upgrade.graph.bonds import presence
from upgrade_worlds import (
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    switches,
    upgrade_of,
)

STORAGE = DependencyKind.STORAGE


def change_of(does: ChangeKind, *dependencies: Dependency) -> Change:
    return Change(does=does, dependencies=dependencies)


def stage_of(*changes: Change, bonds: tuple[Dependency, ...] = ()) -> Stage:
    return Stage(
        a_campaign(
            a_request(a_set("wires", *changes)),
            hosts=[a_host(1, 0)],
            resources=switches(3),
            dependencies=bonds,
        )
    )


def lasting(stage: Stage) -> list[tuple[str, str, str]]:
    """The dependencies that hold in the end."""
    state = stage.coordinator.state
    found = [(presence(state, bond), bond.dependency) for bond in state.bonds]
    assert all(holds in (None, Presence.CURRENT_FUTURE) for holds, _ in found)
    return [(one.dependent, one.sponsor, one.kind.value) for holds, one in found if holds]


def test_a_dependency_that_is_added_by_itself_is_there_in_the_end() -> None:
    stage = stage_of(change_of(ChangeKind.ADD, binds("s1", "s2", STORAGE)))
    stage.run()
    assert stage.outcomes() == {"wires": "applied"}
    assert lasting(stage) == [("s1", "s2", "storage")]


def test_one_that_is_removed_by_itself_is_gone() -> None:
    bond = binds("s1", "s2", STORAGE)
    stage = stage_of(change_of(ChangeKind.REMOVE, bond), bonds=(bond,))
    stage.run()
    assert lasting(stage) == []


def test_one_that_is_changed_is_there_once_and_as_it_is_to_be() -> None:
    old = binds("s1", "s2", DependencyKind.AGGREGATION, constituents_min=1)
    new = binds("s1", "s2", DependencyKind.AGGREGATION, constituents_min=2)
    stage = stage_of(change_of(ChangeKind.UPGRADE, new), bonds=(old,))
    stage.run()
    assert lasting(stage) == [("s1", "s2", "aggregation")]
    bonds = stage.coordinator.state.bonds
    (kept,) = [one.dependency for one in bonds if presence(stage.coordinator.state, one)]
    assert kept.constituents_min == 2


def test_one_that_comes_with_a_set_orders_it_and_goes_when_it_is_taken_back() -> None:
    change = upgrade_of(["s1", "s2"]).but(dependencies=(binds("s1", "s2", STORAGE),))
    stage = stage_of(change)
    stage.run()
    batches = [one.batch for one in stage.events(BatchDecided) if one.batch]
    assert batches == [("s2",), ("s1",)], "the sponsor comes first (case 3a)"
    assert lasting(stage) == [("s1", "s2", "storage")]
    again = stage_of(change)
    again.step()
    again.command(Order.UNDO, "wires")
    again.run()
    assert again.outcomes() == {"wires": "undone"}
    assert lasting(again) == []


def test_a_dependency_to_nobody_is_refused() -> None:
    stage = stage_of(change_of(ChangeKind.ADD, binds("s1", "s9", STORAGE)))
    stage.run()
    assert stage.outcomes() == {"wires": "refused"}


def test_so_is_the_removal_of_one_that_is_not_there() -> None:
    stage = stage_of(change_of(ChangeKind.REMOVE, binds("s1", "s2", STORAGE)))
    stage.run()
    assert stage.outcomes() == {"wires": "refused"}
    assert ResourceId("s1") in stage.coordinator.state.parts
