"""Which method a unit takes, and its partitions: the figures of 5.1.4.1 as properties."""

from __future__ import annotations

from itertools import pairwise

import pytest

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit
from equipoise.upgrade.methods import passages_of, unit_of
from upgrade_units import (
    AGGREGATION,
    CONTAINER,
    LINK,
    MODIFIED,
    PEER,
    SPLITS,
    STORAGE,
    chain,
    named,
    wired,
)


def made(graph: ResourceGraph, *, remote_links: bool = False) -> UpgradeUnit:
    unit = unit_of(graph, UnitId("u1"), list(graph.vertices), remote_links=remote_links)
    assert unit is not None
    return unit


def sides(unit: UpgradeUnit) -> list[set[int]]:
    return [{int(one[1:]) for one in partition} for partition in unit.partitions]


def test_a_resource_alone_rolls() -> None:
    unit = made(wired(1, []))
    assert unit.method is Method.ROLLING
    assert unit.partitions == ((named(1),),)


def test_a_container_and_what_it_contains_roll_as_one() -> None:
    unit = made(wired(2, [(1, 2, CONTAINER, True)]))
    assert unit.method is Method.ROLLING
    assert unit.partitions == ((named(1), named(2)),)


def test_resources_on_one_host_stay_together_though_the_host_is_not_changed() -> None:
    graph = wired(4, [(1, 4, CONTAINER, False), (2, 4, CONTAINER, False), (1, 3, STORAGE, True),
                      (2, 3, STORAGE, True)])  # fmt: skip
    unit = unit_of(graph, UnitId("u"), [named(1), named(2), named(3)], remote_links=False)
    assert unit is not None
    assert {1, 2} in sides(unit)


@pytest.mark.parametrize(
    ("figure", "even", "pairs"),
    [
        ("a", [{1, 2, 3, 4}], []),
        ("b", [{1, 2, 3, 4, 5, 6}], [(7, 8)]),
        ("c", [{1, 2, 3, 4, 5, 6}], [(7, 8), (1, 2), (3, 4), (5, 6)]),
        (
            "d",
            [set(range(1, 9)), set(range(9, 13))],
            [(13, 14), (9, 10), (11, 12), (1, 2), (3, 4), (5, 6), (7, 8)],
        ),
    ],
)
def test_split_mode_halves_a_unit_and_parts_its_peers(
    figure: str, even: list[set[int]], pairs: list[tuple[int, int]]
) -> None:
    unit = made(SPLITS[figure])
    assert unit.method is Method.SPLIT
    first, second = sides(unit)
    assert len(first) == len(second)
    for those in even:
        assert len(first & those) == len(second & those)
    for one, other in pairs:
        assert len({one, other} & first) == 1


@pytest.mark.parametrize(
    ("figure", "behind"),
    [
        ("a", [{1, 2, 3, 4, 5, 6}, {7, 8}]),
        ("b", [{1, 2, 3, 4, 5, 6}, {7, 8}]),
        ("c", [set(range(1, 9)), set(range(9, 13)), {13, 14}]),
        ("d", [set(range(1, 13)), {13, 14}]),
    ],
)
def test_modified_split_takes_the_rest_link_by_link(figure: str, behind: list[set[int]]) -> None:
    unit = made(MODIFIED[figure])
    assert unit.method is Method.MODIFIED_SPLIT
    first, *rest = sides(unit)
    assert rest == [those - first for those in behind]
    assert all(2 * len(first & those) == len(those) for those in behind)


def test_a_link_that_is_managed_from_afar_need_not_put_anything_out_of_service() -> None:
    dual = wired(3, [(1, 3, LINK, True), (2, 3, LINK, True)])
    assert made(dual).method is Method.MODIFIED_SPLIT
    assert made(dual, remote_links=True).method is Method.MODIFIED_SPLIT_LINKS
    # Peers that do not understand each other talk on without such a link.
    assert made(MODIFIED["a"], remote_links=True).method is Method.MODIFIED_SPLIT


def test_a_sponsor_without_a_stand_in_comes_last() -> None:
    unit = made(wired(7, [(one, 7, LINK, True) for one in range(1, 7)]))
    first, *rest = sides(unit)
    assert [len(one) for one in (first, *rest)] == [4, 2, 1]
    assert rest[-1] == {7}


def test_of_more_than_two_constituents_each_is_a_partition_of_its_own() -> None:
    needs = [(one, 6, STORAGE, True) for one in range(1, 6)]
    graph = wired(7, [*needs, *((7, one, AGGREGATION, False) for one in range(1, 5))])
    unit = unit_of(graph, UnitId("u"), [named(one) for one in range(1, 7)], remote_links=True)
    assert unit is not None
    assert unit.method is Method.MODIFIED_SPLIT_CONSTITUENTS
    for one in range(1, 5):
        assert {one} in sides(unit)
    assert len(unit.partitions) >= 5


def test_constituents_behind_links_go_one_at_a_time_and_return_at_once() -> None:
    needs = [(one, 5, LINK, True) for one in range(1, 5)]
    graph = wired(6, [*needs, *((6, one, AGGREGATION, False) for one in range(1, 5))])
    members = [named(one) for one in range(1, 6)]
    unit = unit_of(graph, UnitId("u"), members, remote_links=True)
    assert unit is not None
    assert unit.method is Method.MODIFIED_SPLIT_LINKS
    assert all(len(one) == 1 for one in unit.partitions)
    assert all(one.on == one.off for one in passages_of(graph, unit))


def test_three_aggregates_in_a_ring_cannot_be_halved() -> None:
    ring = [(4, 1), (4, 2), (5, 2), (5, 3), (6, 3), (6, 1)]
    wires = [(1, 2, PEER, True), (2, 3, PEER, True)]
    graph = wired(6, [*wires, *((one, two, AGGREGATION, False) for one, two in ring)])
    unit = unit_of(graph, UnitId("u"), [named(1), named(2), named(3)], remote_links=False)
    assert unit is not None
    assert unit.method is Method.MODIFIED_SPLIT_CONSTITUENTS
    assert sorted(sides(unit), key=min) == [{1}, {2}, {3}]


def test_links_in_a_circle_have_no_method() -> None:
    around = [(1, 2, LINK, True), (2, 3, LINK, True), (3, 1, LINK, True)]
    inner = [(4, 5, LINK, True), (5, 4, LINK, True), (1, 4, STORAGE, True), (2, 5, STORAGE, True)]
    graph = wired(6, [*around, *inner, (6, 4, LINK, True), (4, 6, LINK, True)])
    assert unit_of(graph, UnitId("u"), list(graph.vertices), remote_links=False) is None


def test_a_large_unit_is_halved_as_well() -> None:
    hosts = range(3, 4003)
    wires = [(one, sponsor, LINK, True) for one in hosts for sponsor in (1, 2)]
    unit = made(wired(4002, [(1, 2, PEER, True), *wires]))
    assert [len(one) for one in unit.partitions] == [2001, 2000, 1]


def test_what_was_changed_first_returns_when_the_last_leaves() -> None:
    unit = made(MODIFIED["a"])
    *kept, last = passages_of(MODIFIED["a"], unit)
    assert all(one.on == () and one.on_meanwhile == () for one in kept)
    before = [ResourceId(one) for part in unit.partitions[:-1] for one in part]
    assert list(last.on_meanwhile) == before
    assert last.off == last.on == unit.partitions[-1]


def test_a_chain_of_links_is_taken_from_its_end() -> None:
    unit = made(chain(4, LINK), remote_links=True)
    place = {int(one[1:]): at for at, those in enumerate(unit.partitions) for one in those}
    rest = sorted(one for one, at in place.items() if at)
    assert all(place[one] <= place[other] for one, other in pairwise(rest))
