"""Laws of upgrade methods, on units by chance; the division itself against brute force."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit
from equipoise.upgrade.methods import passages_of, unit_of
from equipoise.upgrade.methods.anatomy import Anatomy, anatomy_of
from equipoise.upgrade.methods.degradation import out_of_service
from equipoise.upgrade.methods.halves import halve
from equipoise.upgrade.methods.moments import moments_of
from upgrade_units import LINK, units


def made(graph: ResourceGraph, *, remote_links: bool) -> UpgradeUnit:
    unit = unit_of(graph, UnitId("u"), list(graph.vertices), remote_links=remote_links)
    assume(unit is not None)
    assert unit is not None
    return unit


@given(units(), st.booleans())
def test_every_member_is_in_exactly_one_partition(graph: ResourceGraph, links: bool) -> None:
    unit = made(graph, remote_links=links)
    assert sorted(unit.resources) == sorted(graph.vertices)
    assert all(unit.partitions)


@given(units(), st.booleans())
def test_versions_that_clash_never_talk(graph: ResourceGraph, links: bool) -> None:
    unit = made(graph, remote_links=links)
    for now in moments_of(unit, passages_of(graph, unit)):
        for edge in graph.edges:
            ends = {edge.dependent, edge.sponsor}
            mixed = len(ends & now.new) == 1
            if edge.incompatible and mixed and not ends & now.off:
                assert edge.kind is LINK
                assert (edge.dependent, edge.sponsor) in now.cut


@given(units(), st.booleans())
def test_in_the_end_everything_is_new_and_in_service(graph: ResourceGraph, links: bool) -> None:
    unit = made(graph, remote_links=links)
    *_, end = moments_of(unit, passages_of(graph, unit))
    assert end.new == set(graph.vertices)
    assert not end.off
    assert not end.cut
    assert not out_of_service(graph, end)


@given(units(), st.booleans())
def test_peers_are_never_all_off_where_a_method_promises_that(
    graph: ResourceGraph, links: bool
) -> None:
    unit = made(graph, remote_links=links)
    anatomy = anatomy_of(graph, list(graph.vertices))
    for now in moments_of(unit, passages_of(graph, unit)):
        if unit.method not in (Method.SPLIT, Method.MODIFIED_SPLIT_LINKS) or not now.lasts:
            continue
        for family in anatomy.families:
            if len(family) > 1:
                assert any(one not in now.off for place in family for one in anatomy.blocks[place])


@given(units(kinds=(DependencyKind.STORAGE,)))
def test_each_layer_of_sponsors_is_halved_as_well(graph: ResourceGraph) -> None:
    anatomy = anatomy_of(graph, list(graph.vertices))
    halves = halve(anatomy)
    assert halves is not None
    layers = anatomy.layers()
    for layer in set(layers):
        counts = [sum(layers[one] == layer for one in side) for side in halves[:2]]
        assert abs(counts[0] - counts[1]) <= 1


@given(units(), st.booleans())
def test_a_linked_pair_shares_no_partition_but_the_first(graph: ResourceGraph, links: bool) -> None:
    unit = made(graph, remote_links=links)
    place_of = {one: place for place, those in enumerate(unit.partitions) for one in those}
    block_of = {one: n for n, block in enumerate(anatomy_of(graph, list(graph.vertices)).blocks)
                for one in block}  # fmt: skip
    alone = {place for place, those in enumerate(unit.partitions)
             if len({block_of[one] for one in those}) == 1}  # fmt: skip
    if unit.method not in (Method.MODIFIED_SPLIT, Method.MODIFIED_SPLIT_LINKS):
        return
    for edge in graph.edges:
        if edge.kind is LINK and edge.incompatible:
            places = place_of[edge.dependent], place_of[edge.sponsor]
            if places[0] == places[1] and places[0] not in alone:
                assert places[0] == 0
            if 0 not in places and block_of[edge.dependent] != block_of[edge.sponsor]:
                assert places[0] < places[1]


@given(units())
def test_there_are_as_many_partitions_as_links_in_a_row_and_two(graph: ResourceGraph) -> None:
    unit = made(graph, remote_links=False)
    if unit.method is not Method.MODIFIED_SPLIT:
        return
    anatomy = anatomy_of(graph, list(graph.vertices))
    rest = {one for partition in unit.partitions[1:] for one in partition}
    places = {n for n, block in enumerate(anatomy.blocks) if set(block) & rest}
    assert len(unit.partitions) == 2 + _links_in_a_row(anatomy, places)


def _links_in_a_row(anatomy: Anatomy, places: set[int]) -> int:
    """By trying all ways, without the order that the method makes use of."""

    def longest(place: int) -> int:
        return max(
            (
                longest(to) + linked
                for one, to, linked in anatomy.needs
                if one == place and to in places
            ),
            default=0,
        )

    return max((longest(one) for one in places), default=0)


@given(units(most=8, kinds=(DependencyKind.STORAGE, DependencyKind.PEER_STATELESS,
                            DependencyKind.CONTAINER, DependencyKind.AGGREGATION)),
       st.sets(st.integers(0, 7), max_size=2))  # fmt: skip
def test_no_division_that_keeps_the_rules_is_more_even(
    graph: ResourceGraph, second: set[int]
) -> None:
    anatomy = anatomy_of(graph, list(graph.vertices))
    found = halve(anatomy, second)
    best = _by_brute_force(anatomy, second)
    assert (None if found is None else abs(found.difference)) == best
    if found is not None:
        assert _is_legal(anatomy, [place in found.second for place in range(len(anatomy.blocks))],
                         second)  # fmt: skip
        sizes = [sum(len(anatomy.blocks[one]) for one in side) for side in found[:2]]
        assert sizes[0] - sizes[1] == found.difference


def _by_brute_force(anatomy: Anatomy, second: set[int]) -> int | None:
    sizes = [len(block) for block in anatomy.blocks]
    legal = [
        abs(sum(-size if later else size for size, later in zip(sizes, sides, strict=True)))
        for sides in product([False, True], repeat=len(sizes))
        if _is_legal(anatomy, list(sides), second)
    ]
    return min(legal, default=None)


def _is_legal(anatomy: Anatomy, later: list[bool], second: set[int]) -> bool:
    parted = all(len({later[one] for one in pair}) == 2
                 for pair in anatomy.constituents if len(pair) == 2)  # fmt: skip
    covered = all(len(those) == 1 or len({later[one] for one in those}) == 2
                  for those in anatomy.families)  # fmt: skip
    return parted and covered and all(later[one] for one in second if one < len(later))
