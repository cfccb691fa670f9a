"""Upgrade methods: partitions (figures of 5.1.4.1), degradation and spare hosts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.work import UnitId, UpgradeMethod, UpgradeUnit
from equipoise.upgrade.methods.partitioning import make_unit
from equipoise.upgrade.methods.switching import switchings_of
from upgrade_units import (
    AGGREGATION,
    CONTAINER,
    LINK,
    MODIFIED,
    PEER,
    SPLITS,
    STORAGE,
    Wire,
    chain,
    named,
    wired,
)


def a_unit(graph: ResourceGraph, *, remote_links: bool = False) -> UpgradeUnit:
    unit = make_unit(graph, UnitId("u1"), list(graph.vertices), remote_links=remote_links)
    assert unit is not None
    return unit


def partitions(unit: UpgradeUnit) -> list[set[int]]:
    return [{int(id_[1:]) for id_ in partition} for partition in unit.partitions]


def test_a_single_resource_changes_by_rolling() -> None:
    unit = a_unit(wired(1, []))
    assert unit.method is UpgradeMethod.ROLLING
    assert unit.partitions == ((named(1),),)


def test_a_container_and_its_contents_change_together() -> None:
    unit = a_unit(wired(2, [(1, 2, CONTAINER, True)]))
    assert unit.method is UpgradeMethod.ROLLING
    assert unit.partitions == ((named(1), named(2)),)


def test_resources_on_one_host_share_a_partition_although_the_host_does_not_change() -> None:
    graph = wired(4, [(1, 4, CONTAINER, False), (2, 4, CONTAINER, False), (1, 3, STORAGE, True),
                      (2, 3, STORAGE, True)])  # fmt: skip
    unit = make_unit(graph, UnitId("u"), [named(1), named(2), named(3)], remote_links=False)
    assert unit is not None
    assert {1, 2} in partitions(unit)


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
def test_split_mode_halves_a_unit_and_separates_peers(
    figure: str, even: list[set[int]], pairs: list[tuple[int, int]]
) -> None:
    unit = a_unit(SPLITS[figure])
    assert unit.method is UpgradeMethod.SPLIT
    first, second = partitions(unit)
    assert len(first) == len(second)
    for layer in even:
        assert len(first & layer) == len(second & layer)
    for left, right in pairs:
        assert len({left, right} & first) == 1


@pytest.mark.parametrize(
    ("figure", "levels"),
    [
        ("a", [{1, 2, 3, 4, 5, 6}, {7, 8}]),
        ("b", [{1, 2, 3, 4, 5, 6}, {7, 8}]),
        ("c", [set(range(1, 9)), set(range(9, 13)), {13, 14}]),
        ("d", [set(range(1, 13)), {13, 14}]),
    ],
)
def test_a_modified_split_divides_the_second_half_by_links(
    figure: str, levels: list[set[int]]
) -> None:
    unit = a_unit(MODIFIED[figure])
    assert unit.method is UpgradeMethod.MODIFIED_SPLIT
    first, *rest = partitions(unit)
    assert rest == [level - first for level in levels]
    assert all(2 * len(first & level) == len(level) for level in levels)


def test_remotely_managed_links_keep_all_resources_in_service() -> None:
    dual = wired(3, [(1, 3, LINK, True), (2, 3, LINK, True)])
    assert a_unit(dual).method is UpgradeMethod.MODIFIED_SPLIT
    assert a_unit(dual, remote_links=True).method is UpgradeMethod.MODIFIED_SPLIT_LINKS
    # Incompatible peers communicate without such a link.
    assert a_unit(MODIFIED["a"], remote_links=True).method is UpgradeMethod.MODIFIED_SPLIT


def test_a_sponsor_without_a_peer_comes_last() -> None:
    unit = a_unit(wired(7, [(number, 7, LINK, True) for number in range(1, 7)]))
    first, *rest = partitions(unit)
    assert [len(number) for number in (first, *rest)] == [4, 2, 1]
    assert rest[-1] == {7}


def test_each_of_more_than_two_constituents_has_its_own_partition() -> None:
    needs = [(number, 6, STORAGE, True) for number in range(1, 6)]
    graph = wired(7, [*needs, *((7, number, AGGREGATION, False) for number in range(1, 5))])
    unit = make_unit(
        graph, UnitId("u"), [named(number) for number in range(1, 7)], remote_links=True
    )
    assert unit is not None
    assert unit.method is UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS
    for number in range(1, 5):
        assert {number} in partitions(unit)
    assert len(unit.partitions) >= 5


def test_constituents_behind_links_change_one_at_a_time_and_return_at_once() -> None:
    needs = [(number, 5, LINK, True) for number in range(1, 5)]
    graph = wired(6, [*needs, *((6, number, AGGREGATION, False) for number in range(1, 5))])
    members = [named(number) for number in range(1, 6)]
    unit = make_unit(graph, UnitId("u"), members, remote_links=True)
    assert unit is not None
    assert unit.method is UpgradeMethod.MODIFIED_SPLIT_LINKS
    assert all(len(partition) == 1 for partition in unit.partitions)
    assert all(switching.on == switching.off for switching in switchings_of(graph, unit))


def test_three_aggregates_in_a_ring_cannot_be_halved() -> None:
    ring = [(4, 1), (4, 2), (5, 2), (5, 3), (6, 3), (6, 1)]
    wires = [(1, 2, PEER, True), (2, 3, PEER, True)]
    graph = wired(6, [*wires, *((left, right, AGGREGATION, False) for left, right in ring)])
    unit = make_unit(graph, UnitId("u"), [named(1), named(2), named(3)], remote_links=False)
    assert unit is not None
    assert unit.method is UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS
    assert sorted(partitions(unit), key=min) == [{1}, {2}, {3}]


def test_links_in_a_cycle_have_no_method() -> None:
    around = [(1, 2, LINK, True), (2, 3, LINK, True), (3, 1, LINK, True)]
    inner = [(4, 5, LINK, True), (5, 4, LINK, True), (1, 4, STORAGE, True), (2, 5, STORAGE, True)]
    graph = wired(6, [*around, *inner, (6, 4, LINK, True), (4, 6, LINK, True)])
    assert make_unit(graph, UnitId("u"), list(graph.vertices), remote_links=False) is None


def test_a_large_unit_is_halved() -> None:
    hosts = range(3, 4003)
    wires = [(host, sponsor, LINK, True) for host in hosts for sponsor in (1, 2)]
    unit = a_unit(wired(4002, [(1, 2, PEER, True), *wires]))
    assert [len(partition) for partition in unit.partitions] == [2001, 2000, 1]


def test_changed_partitions_return_when_the_last_one_leaves() -> None:
    unit = a_unit(MODIFIED["a"])
    *kept, last = switchings_of(MODIFIED["a"], unit)
    assert all(switching.on == () and switching.on_during_work == () for switching in kept)
    before = [ResourceId(id_) for partition in unit.partitions[:-1] for id_ in partition]
    assert list(last.on_during_work) == before
    assert last.off == last.on == unit.partitions[-1]


def test_a_chain_of_links_changes_from_its_end() -> None:
    unit = a_unit(chain(4, LINK), remote_links=True)
    index = {int(id_[1:]): at for at, partition in enumerate(unit.partitions) for id_ in partition}
    second_half = sorted(number for number, at in index.items() if at)
    assert all(index[left] <= index[right] for left, right in pairwise(second_half))


HOSTS = range(1, 7)


def degraded(wires: list[Wire], *, remote_links: bool = False) -> UpgradeUnit:
    graph = wired(8, wires, hosts=HOSTS)
    unit = make_unit(graph, UnitId("u"), list(graph.vertices), remote_links=remote_links)
    assert unit is not None
    return unit


def two_sponsors(kind: DependencyKind, *, incompatible: bool = True) -> list[Wire]:
    needs: list[Wire] = [(host, sponsor, kind, True) for host in HOSTS for sponsor in (7, 8)]
    return [(7, 8, PEER, incompatible), *needs]


def test_split_mode_deactivates_half_of_the_hosts() -> None:
    unit = degraded(two_sponsors(STORAGE))
    assert unit.method is UpgradeMethod.SPLIT
    assert unit.degraded_hosts == 3


def test_a_modified_split_deactivates_all_hosts_of_the_unit() -> None:
    unit = degraded(two_sponsors(LINK))
    assert unit.method is UpgradeMethod.MODIFIED_SPLIT
    assert unit.degraded_hosts == 6


def test_remotely_managed_links_deactivate_no_host() -> None:
    unit = degraded(two_sponsors(LINK, incompatible=False), remote_links=True)
    assert unit.method is UpgradeMethod.MODIFIED_SPLIT_LINKS
    assert unit.degraded_hosts is None


def test_a_host_outside_the_unit_counts_if_it_loses_its_only_sponsor() -> None:
    needs: list[Wire] = [(1, 7, LINK, False), (2, 7, LINK, False), (2, 8, LINK, False)]
    graph = wired(8, [(7, 8, PEER, True), *needs], hosts=HOSTS)
    unit = make_unit(graph, UnitId("u"), [named(7), named(8)], remote_links=False)
    assert unit is not None
    assert unit.method is UpgradeMethod.SPLIT
    assert unit.degraded_hosts == 1


def test_an_aggregate_works_while_enough_constituents_work() -> None:
    wires: list[Wire] = [(7, 8, PEER, True), (6, 7, AGGREGATION, False), (6, 8, AGGREGATION, False)]
    for least, worst in ((1, None), (2, 1)):
        graph = wired(8, wires, hosts=HOSTS, least=least)
        unit = make_unit(graph, UnitId("u"), [named(7), named(8)], remote_links=False)
        assert unit is not None
        assert unit.degraded_hosts == worst


def test_a_modified_split_deactivates_more_hosts_than_a_split() -> None:
    split, modified = degraded(two_sponsors(STORAGE)), degraded(two_sponsors(LINK))
    assert (split.degraded_hosts, modified.degraded_hosts) == (3, 6)
